//! The server's session.

use std::time::Instant;

use http::Response;
use quic_transport::{Bytes, Side, StreamEvent, StreamId};

use crate::convert::response_lines;
use crate::error::{ApiError, Code, Error};
use crate::face::face;
use crate::field::{Field, Fields};
use crate::session::{Session, Signal};
use crate::settings::Settings;
use crate::transport::Transport;

/// What a server is told.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The header section of a request.
    Request {
        /// The request's stream.
        id: StreamId,
        /// The header section, pseudo-header fields first.
        fields: Fields,
    },
    /// Bytes of the body can be read, until [`ServerSession::fill`] gives none.
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
    /// The request is complete, and as long as it said.
    Finished {
        /// The request's stream.
        id: StreamId,
    },
    /// The client abandoned the request, which is over.
    Reset {
        /// The request's stream.
        id: StreamId,
        /// The client's code.
        code: Code,
    },
    /// The client wants no more of the response.
    Stopped {
        /// The request's stream.
        id: StreamId,
        /// The client's code.
        code: Code,
    },
    /// The request is malformed and over; if its header section was, it has not been told before.
    Failed {
        /// The request's stream.
        id: StreamId,
        /// What is wrong.
        error: Error,
    },
    /// The response's body can go on.
    Writable {
        /// The request's stream.
        id: StreamId,
    },
    /// The client makes no more requests.
    GoAway,
    /// The client broke a rule, and the connection is closed.
    Closed(Error),
}

/// The server's side of HTTP/3 on one connection.
///
/// It owns no transport: each call gets one. Feed it the transport's stream events, then take its own until there are none.
///
/// Requests may come before the handshake is complete, as early data: those with safe methods are told of at once (the
/// transport says whether it is still handshaking, for what must not be replayed even so, to be answered with 425), the
/// others when it is complete. So ask for events when the transport is connected, too.
///
/// ```
/// use std::time::Instant;
///
/// use quic_http3::{ApiError, Field, ServerEvent, ServerSession, Transport};
/// use quic_transport::StreamEvent;
///
/// fn on_event<T: Transport>(
///     session: &mut ServerSession,
///     transport: &mut T,
///     event: StreamEvent,
///     now: Instant,
/// ) -> Result<(), ApiError> {
///     session.on_event(transport, event);
///     while let Some(event) = session.next_event(transport, now) {
///         if let ServerEvent::Request { id, fields } = event {
///             let response = [Field::new(":status", "200"), Field::new("content-length", "5")];
///             session.respond_with(transport, id, &response, b"hello")?;
///             session.recycle(fields);
///         }
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct ServerSession {
    session: Session,
}

impl Default for ServerSession {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerSession {
    /// A session on a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            session: Session::new(Side::Server),
        }
    }

    /// What a server says about itself, to be kept beside its clients' TLS sessions: what an
    /// [`Application`](quic_transport::Application) should give as its settings.
    #[must_use]
    pub fn settings() -> Vec<u8> {
        let mut payload = Vec::new();
        Settings::local().encode(&mut payload);
        payload
    }

    /// Whether a client that relies on the settings of an earlier connection may send early data.
    #[must_use]
    pub fn accepts_early_data(settings: &[u8]) -> bool {
        Settings::parse(settings).is_ok_and(|earlier| Settings::local().keep(&earlier).is_ok())
    }

    /// Answers a request with an interim (1xx) response, or with the header section of the final one, to be followed by
    /// [`Self::send_body`] and [`Self::finish`].
    ///
    /// A request that isn't complete yet goes on arriving: read it, or [`Self::stop`] it with [`Code::NO_ERROR`].
    ///
    /// # Errors
    ///
    /// When the request is unknown or answered, or the lines are malformed.
    pub fn respond<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        fields: &[Field<'_>],
    ) -> Result<(), ApiError> {
        self.session
            .respond(transport, id, fields.iter().copied(), None)
    }

    /// Answers a request with a whole body. Returns how many of its bytes were taken: all of them, and the response is
    /// ended; fewer, and the rest is for [`Self::send_body`] and [`Self::finish`]. A body of up to 1024 bytes is always taken.
    ///
    /// # Errors
    ///
    /// As [`Self::respond`], and when the body is not as long as its content-length.
    #[inline]
    pub fn respond_with<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        fields: &[Field<'_>],
        body: &[u8],
    ) -> Result<usize, ApiError> {
        self.session
            .respond_with(transport, id, fields.iter().copied(), body)
    }

    /// [`Self::respond`] with a response of the `http` crate's, whose body is not looked at.
    ///
    /// # Errors
    ///
    /// As [`Self::respond`].
    pub fn send_response<T: Transport, B>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        response: &Response<B>,
    ) -> Result<(), ApiError> {
        let status = response.status();
        let lines = response_lines(&status, response.headers());
        self.session.respond(transport, id, lines, None)
    }

    /// Works until there is something to tell; `None` means that it waits for the transport.
    #[inline]
    pub fn next_event<T: Transport>(
        &mut self,
        transport: &mut T,
        now: Instant,
    ) -> Option<ServerEvent> {
        loop {
            return Some(match self.session.next(transport, now)? {
                Signal::Head(id, fields) => ServerEvent::Request { id, fields },
                Signal::Data(id) => ServerEvent::Data { id },
                Signal::Trailers(id, fields) => ServerEvent::Trailers { id, fields },
                Signal::Finished(id) => ServerEvent::Finished { id },
                Signal::Reset(id, code) => ServerEvent::Reset { id, code },
                Signal::Stopped(id, code) => ServerEvent::Stopped { id, code },
                Signal::Failed(id, error) => ServerEvent::Failed { id, error },
                Signal::Writable(id) => ServerEvent::Writable { id },
                Signal::GoAway(_) => ServerEvent::GoAway,
                Signal::Closed(error) => ServerEvent::Closed(error),
                // Requests are never interim, and servers open none.
                Signal::Interim(..) | Signal::Available => continue,
            });
        }
    }
}

face!(ServerSession);
