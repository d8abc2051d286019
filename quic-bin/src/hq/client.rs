//! The client's side: it tells what happens in the words of HTTP/3, so that a download need not know which it is.

use std::collections::VecDeque;

use quic_http3::{ApiError, ClientEvent, Code};
use quic_transport::{Connection, Direction, StreamEvent, StreamId};

use super::GIVEN_UP;

/// The requests on one connection of a client.
#[derive(Debug, Default)]
pub struct Client {
    events: VecDeque<ClientEvent>,
    /// The stream whose last bytes were lent, and how many those are.
    ending: Option<(StreamId, usize)>,
}

impl Client {
    /// Asks for `path`.
    ///
    /// # Errors
    ///
    /// When the server permits no more streams now, or the path is too long for one write.
    pub fn request(connection: &mut Connection, path: &str) -> Result<StreamId, ApiError> {
        let id = connection
            .open(Direction::Bidirectional)
            .ok_or(ApiError::StreamLimit)?;
        let line = format!("GET {path}\r\n");
        let taken = connection.stream_send(id, line.as_bytes());
        if taken.map_err(ApiError::Transport)? < line.len() {
            let _ = connection.reset(id, GIVEN_UP);
            return Err(ApiError::FieldsTooLarge);
        }
        connection.finish(id).map_err(ApiError::Transport)?;
        Ok(id)
    }

    /// Gives a request up.
    pub fn cancel(&mut self, connection: &mut Connection, id: StreamId) {
        let _ = connection.reset(id, GIVEN_UP);
        let _ = connection.stop(id, GIVEN_UP);
        self.ending.take_if(|(ending, _)| *ending == id);
    }

    /// Takes note of what happened to a stream.
    pub fn on_event(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Readable(id) => self.events.push_back(ClientEvent::Data { id }),
            StreamEvent::Reset { id, code } => self.events.push_back(ClientEvent::Reset {
                id,
                code: Code::new(code),
            }),
            _ => {}
        }
    }

    /// What there is to tell.
    pub fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Lends the next bytes of a body; none when more are still to come, or the body has ended.
    ///
    /// # Errors
    ///
    /// When there is no such request any more.
    pub fn fill<'c>(
        &mut self,
        connection: &'c mut Connection,
        id: StreamId,
    ) -> Result<&'c [u8], ApiError> {
        let fill = connection.fill(id).map_err(ApiError::Transport)?;
        self.ending = fill.fin.then_some((id, fill.data.len()));
        if fill.fin && fill.data.is_empty() {
            self.events.push_back(ClientEvent::Finished { id });
        }
        Ok(fill.data)
    }

    /// Takes `count` bytes off a body.
    ///
    /// # Errors
    ///
    /// When there is no such request any more.
    pub fn consume(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        count: usize,
    ) -> Result<(), ApiError> {
        connection.consume(id, count).map_err(ApiError::Transport)?;
        if self.ending == Some((id, count)) {
            self.ending = None;
            self.events.push_back(ClientEvent::Finished { id });
        }
        Ok(())
    }
}
