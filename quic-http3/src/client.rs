//! The client's session.

use std::time::Instant;

use http::Request;
use quic_transport::{Bytes, Side, StreamEvent, StreamId};

use crate::convert::request_lines;
use crate::error::{ApiError, Code, Error};
use crate::field::{Field, Fields};
use crate::session::{Session, Signal};
use crate::settings::Settings;
use crate::transport::Transport;

/// What a client is told.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// An interim (1xx) response; the final one follows.
    Interim {
        /// The request's stream.
        id: StreamId,
        /// The header section.
        fields: Fields,
    },
    /// The header section of the final response.
    Response {
        /// The request's stream.
        id: StreamId,
        /// The header section, `:status` first.
        fields: Fields,
    },
    /// Bytes of the body can be read, until [`ClientSession::fill`] gives none.
    Data {
        /// The request's stream.
        id: StreamId,
    },
    /// The trailer section.
    Trailers {
        /// The request's stream.
        id: StreamId,
        /// The lines.
        fields: Fields,
    },
    /// The response is complete, and as long as it said.
    Finished {
        /// The request's stream.
        id: StreamId,
    },
    /// The server abandoned the response; the request is over. With [`Code::REQUEST_REJECTED`] it had no effect and may
    /// be made again.
    Reset {
        /// The request's stream.
        id: StreamId,
        /// The server's code.
        code: Code,
    },
    /// The server wants no more of the request's body; the response goes on.
    Stopped {
        /// The request's stream.
        id: StreamId,
        /// The server's code.
        code: Code,
    },
    /// The response is malformed; the request is over.
    Failed {
        /// The request's stream.
        id: StreamId,
        /// What is wrong.
        error: Error,
    },
    /// The request's body can go on.
    Writable {
        /// The request's stream.
        id: StreamId,
    },
    /// The server takes no requests from this stream ID on: those made already are reset, the others go on.
    GoAway {
        /// The first stream ID that is not served.
        id: u64,
    },
    /// The server allows more requests at a time.
    Available,
    /// The server broke a rule, and the connection is closed.
    Closed(Error),
}

/// The client's side of HTTP/3 on one connection.
///
/// It owns no transport: each call gets one. Feed it the transport's stream events, then take its own until there are none.
///
/// While the transport sends early data, only requests with safe methods can be made. When the server doesn't take early
/// data, the transport sends them again by itself; a server that answers 425 wants them made anew after the handshake.
///
/// ```
/// use std::time::Instant;
///
/// use quic_http3::{ApiError, ClientEvent, ClientSession, Field, Transport};
/// use quic_transport::StreamEvent;
///
/// fn get<T: Transport>(session: &mut ClientSession, transport: &mut T) -> Result<(), ApiError> {
///     let fields = [
///         Field::new(":method", "GET"),
///         Field::new(":scheme", "https"),
///         Field::new(":authority", "example.com"),
///         Field::new(":path", "/"),
///     ];
///     session.request(transport, &fields, true)?;
///     Ok(())
/// }
///
/// fn on_event<T: Transport>(
///     session: &mut ClientSession,
///     transport: &mut T,
///     event: StreamEvent,
///     now: Instant,
///     body: &mut Vec<u8>,
/// ) -> Result<(), ApiError> {
///     session.on_event(transport, event);
///     while let Some(event) = session.next_event(transport, now) {
///         match event {
///             ClientEvent::Response { fields, .. } => println!("{:?}", fields.status()),
///             ClientEvent::Data { id } => loop {
///                 let data = session.fill(transport, id)?;
///                 if data.is_empty() {
///                     break;
///                 }
///                 body.extend_from_slice(data);
///                 let count = data.len();
///                 session.consume(transport, id, count)?;
///             },
///             ClientEvent::Finished { id } => println!("{id} is complete"),
///             _ => {}
///         }
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct ClientSession {
    session: Session,
}

impl Default for ClientSession {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientSession {
    /// A session on a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            session: Session::new(Side::Client),
        }
    }

    /// Makes a request of these lines, pseudo-header fields first; `end` says that it has no body.
    ///
    /// # Errors
    ///
    /// When the stream limit is reached, the server takes no more, or the lines are malformed.
    #[inline]
    pub fn request<T: Transport>(
        &mut self,
        transport: &mut T,
        fields: &[Field<'_>],
        end: bool,
    ) -> Result<StreamId, ApiError> {
        self.session.request(transport, fields.iter().copied(), end)
    }

    /// Makes a request of the `http` crate's, whose body is not looked at; `end` says that it has none.
    ///
    /// The scheme is https and the path / where the URI says nothing; the authority may come from `host`.
    ///
    /// # Errors
    ///
    /// As [`Self::request`].
    pub fn send_request<T: Transport, B>(
        &mut self,
        transport: &mut T,
        request: &Request<B>,
        end: bool,
    ) -> Result<StreamId, ApiError> {
        self.session.request(transport, request_lines(request), end)
    }

    /// Works until there is something to tell; `None` means that it waits for the transport.
    #[inline]
    pub fn next_event<T: Transport>(
        &mut self,
        transport: &mut T,
        now: Instant,
    ) -> Option<ClientEvent> {
        Some(match self.session.next(transport, now)? {
            Signal::Interim(id, fields) => ClientEvent::Interim { id, fields },
            Signal::Head(id, fields) => ClientEvent::Response { id, fields },
            Signal::Data(id) => ClientEvent::Data { id },
            Signal::Trailers(id, fields) => ClientEvent::Trailers { id, fields },
            Signal::Finished(id) => ClientEvent::Finished { id },
            Signal::Reset(id, code) => ClientEvent::Reset { id, code },
            Signal::Stopped(id, code) => ClientEvent::Stopped { id, code },
            Signal::Failed(id, error) => ClientEvent::Failed { id, error },
            Signal::Writable(id) => ClientEvent::Writable { id },
            Signal::GoAway(id) => ClientEvent::GoAway { id },
            Signal::Available => ClientEvent::Available,
            Signal::Closed(error) => ClientEvent::Closed(error),
        })
    }

    /// Makes no more requests and says so; those that exist go on.
    ///
    /// # Errors
    ///
    /// When the control stream can't be opened yet.
    pub fn shutdown<T: Transport>(&mut self, transport: &mut T) -> Result<(), ApiError> {
        self.session.shutdown(transport)
    }

    /// What the peer says about itself, once its SETTINGS have arrived.
    #[must_use]
    pub const fn peer_settings(&self) -> Option<Settings> {
        self.session.peer_settings()
    }

    /// How many requests are not over.
    #[must_use]
    pub fn active(&self) -> usize {
        self.session.active()
    }

    /// Takes note of what happened to a stream; call [`Self::next_event`] afterwards until it has nothing more.
    #[inline]
    pub fn on_event<T: Transport>(&mut self, transport: &mut T, event: StreamEvent) {
        self.session.on_event(transport, event);
    }

    /// Lends the next bytes of a server's body, as they lie in the transport.
    ///
    /// Empty means that the next event tells how it goes on. After a `Data` event, read until then.
    ///
    /// # Errors
    ///
    /// When the request is unknown.
    #[inline]
    pub fn fill<'t, T: Transport>(
        &mut self,
        transport: &'t mut T,
        id: StreamId,
    ) -> Result<&'t [u8], ApiError> {
        self.session.fill(transport, id)
    }

    /// Takes `count` bytes that [`Self::fill`] lent off the body.
    ///
    /// # Errors
    ///
    /// When the request is unknown.
    #[inline]
    pub fn consume<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        count: usize,
    ) -> Result<(), ApiError> {
        self.session.consume(transport, id, count)
    }

    /// Sends bytes of a body and returns how many were taken; fewer than all mean that a `Writable` event follows.
    ///
    /// A write promises its bytes: what was not taken must be written before the message can end. When the header section
    /// had a content-length, the body must have that length.
    ///
    /// # Errors
    ///
    /// When the request is unknown or not at that point, or the body gets too long.
    #[inline]
    pub fn send_body<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        data: &[u8],
    ) -> Result<usize, ApiError> {
        self.session.send_body(transport, id, &mut &*data)
    }

    /// As [`Self::send_body`], without a copy: what is taken off the front of `data` stays where it is until it has been
    /// acknowledged, or the stream is given up; see
    /// [`stream_send_bytes`](quic_transport::Connection::stream_send_bytes).
    ///
    /// # Errors
    ///
    /// As [`Self::send_body`].
    pub fn send_body_bytes<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, ApiError> {
        self.session.send_body(transport, id, data)
    }

    /// Sends a trailer section, which ends the message.
    ///
    /// # Errors
    ///
    /// When the request is unknown or not at that point, the lines are malformed, or the body is too short.
    pub fn send_trailers<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        fields: &[Field<'_>],
    ) -> Result<(), ApiError> {
        self.session.trailers(transport, id, fields.iter().copied())
    }

    /// Ends the message.
    ///
    /// # Errors
    ///
    /// When the request is unknown or not at that point, or the body is too short.
    #[inline]
    pub fn finish<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
    ) -> Result<(), ApiError> {
        self.session.finish(transport, id)
    }

    /// Wants no more of the server's message; the own one goes on.
    ///
    /// # Errors
    ///
    /// When the request is unknown.
    pub fn stop<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        code: Code,
    ) -> Result<(), ApiError> {
        self.session.stop(transport, id, code)
    }

    /// Abandons a request and its response; it is forgotten at once, and no event follows.
    ///
    /// # Errors
    ///
    /// When the request is unknown.
    pub fn cancel<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        code: Code,
    ) -> Result<(), ApiError> {
        self.session.cancel(transport, id, code)
    }

    /// Gives back the memory that is kept for requests to come; to be called when the transport has been silent for a while.
    pub fn rest(&mut self) {
        self.session.rest();
    }

    /// Takes a field list back, so that the next one needs no allocation.
    pub fn recycle(&mut self, fields: Fields) {
        self.session.recycle(fields);
    }
}
