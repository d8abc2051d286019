//! The client's session.

use std::time::Instant;

use http::Request;
use quic_transport::{Bytes, Side, StreamEvent, StreamId};

use crate::convert::request_lines;
use crate::error::{ApiError, Code, Error};
use crate::face::face;
use crate::field::{Field, Fields};
use crate::priority::Priority;
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

    /// Tells the server how urgent a response is, as often as that changes: 0 first, 7 last, and whether it is of use in
    /// parts, so that it shares with others as urgent ([RFC 9218](https://www.rfc-editor.org/rfc/rfc9218)). It outdoes a
    /// `priority` field of the request.
    ///
    /// # Errors
    ///
    /// When the request is unknown, or the control stream can't be opened yet.
    pub fn prioritize<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        urgency: u8,
        incremental: bool,
    ) -> Result<(), ApiError> {
        let priority = Priority {
            urgency: urgency.min(7),
            incremental,
        };
        self.session.prioritize(transport, id, priority)
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
}

face!(ClientSession);
