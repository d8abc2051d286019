//! The requests of a client's connection, in whichever protocol they are made.

use std::time::Instant;

use quic_http3::{ApiError, ClientEvent, ClientSession, Code, Field, Fields};
use quic_transport::{Bytes, Connection, StreamEvent, StreamId};

use crate::{alpn::Alpn, hq};

/// One of the client's protocols.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are the large one")]
pub enum Session {
    /// HTTP/3.
    Http3(ClientSession),
    /// HTTP/0.9.
    Hq(hq::Client),
}

impl Session {
    /// Requests over a new connection.
    #[must_use]
    pub fn new(alpn: Alpn) -> Self {
        match alpn {
            Alpn::Http3 => Self::Http3(ClientSession::new()),
            Alpn::HqInterop => Self::Hq(hq::Client::default()),
        }
    }

    /// Makes a request; `is_whole` says that no body follows. HTTP/0.9 sends the path and nothing else.
    ///
    /// # Errors
    ///
    /// When it can't be made, or not yet.
    pub fn request(
        &mut self,
        connection: &mut Connection,
        fields: &[Field<'_>],
        path: &str,
        is_whole: bool,
    ) -> Result<StreamId, ApiError> {
        match self {
            Self::Http3(session) => session.request(connection, fields, is_whole),
            Self::Hq(_) => hq::Client::request(connection, path),
        }
    }

    /// Takes note of what happened to a stream.
    pub fn on_event(&mut self, connection: &mut Connection, event: StreamEvent) {
        match self {
            Self::Http3(session) => session.on_event(connection, event),
            Self::Hq(client) => client.on_event(event),
        }
    }

    /// What there is to tell.
    pub fn next_event(&mut self, connection: &mut Connection, now: Instant) -> Option<ClientEvent> {
        match self {
            Self::Http3(session) => session.next_event(connection, now),
            Self::Hq(client) => client.next_event(),
        }
    }

    /// Lends the next bytes of a body.
    ///
    /// # Errors
    ///
    /// When the request is over.
    pub fn fill<'c>(
        &mut self,
        connection: &'c mut Connection,
        id: StreamId,
    ) -> Result<&'c [u8], ApiError> {
        match self {
            Self::Http3(session) => session.fill(connection, id),
            Self::Hq(client) => client.fill(connection, id),
        }
    }

    /// Takes `count` bytes off a body.
    ///
    /// # Errors
    ///
    /// When the request is over.
    pub fn consume(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        count: usize,
    ) -> Result<(), ApiError> {
        match self {
            Self::Http3(session) => session.consume(connection, id, count),
            Self::Hq(client) => client.consume(connection, id, count),
        }
    }

    /// Takes bytes of a request's body off the front of `data`, as many as can be sent. HTTP/0.9 has no such bodies.
    pub fn send_body(&mut self, connection: &mut Connection, id: StreamId, data: &mut Bytes) {
        if let Self::Http3(session) = self {
            // What isn't taken stays.
            let _ = session.send_body_bytes(connection, id, data);
        }
    }

    /// Gives a request up: nothing of its answer is wanted.
    pub fn cancel(&mut self, connection: &mut Connection, id: StreamId) {
        match self {
            Self::Http3(session) => {
                // It may be over already.
                let _ = session.cancel(connection, id, Code::REQUEST_CANCELLED);
            }
            Self::Hq(client) => client.cancel(connection, id),
        }
    }

    /// Takes a field list back, so that the next one needs no allocation.
    pub fn recycle(&mut self, fields: Fields) {
        if let Self::Http3(session) = self {
            session.recycle(fields);
        }
    }

    /// Ends a request's body. The server may have answered and stopped it already, so that there is nothing to end.
    pub fn finish(&mut self, connection: &mut Connection, id: StreamId) {
        if let Self::Http3(session) = self {
            let _ = session.finish(connection, id);
        }
    }
}
