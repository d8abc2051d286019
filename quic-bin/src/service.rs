//! What runs above a connection of the server: one of the protocols that share its port.

use std::{sync::Arc, time::Instant};

use quic_http3::ServerSession;
use quic_transport::{Application, Connection, Handle, StreamId};

use crate::{alpn::Alpn, file_body::FileRead, hq, reader::Requests, responder, site::Site};

/// The application of one connection, chosen when its ClientHello has come.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are the large one")]
pub enum Service {
    /// HTTP/3.
    Http3(responder::Responder),
    /// HTTP/0.9.
    Hq(hq::Responder),
}

impl Service {
    /// Serves `site` in the protocol that TLS agrees on.
    #[must_use]
    pub fn new(alpn: Alpn, site: Arc<Site>, requests: Requests) -> Self {
        match alpn {
            Alpn::Http3 => Self::Http3(responder::Responder::new(site, requests)),
            Alpn::HqInterop => Self::Hq(hq::Responder::new(site, requests)),
        }
    }

    /// Has requests that come before the handshake is complete made again. HTTP/0.9 has no words for it.
    #[must_use]
    pub fn refusing_early_requests(self) -> Self {
        match self {
            Self::Http3(responder) => Self::Http3(responder.refusing_early_requests()),
            Self::Hq(_) => self,
        }
    }

    /// The connection has been made.
    pub const fn set_connection(&mut self, connection: Handle) {
        match self {
            Self::Http3(responder) => responder.set_connection(connection),
            Self::Hq(responder) => responder.set_connection(connection),
        }
    }

    /// A chunk of a body has been read.
    pub fn on_read(&mut self, connection: &mut Connection, id: StreamId, read: FileRead) {
        match self {
            Self::Http3(responder) => responder.on_read(connection, id, read),
            Self::Hq(responder) => responder.on_read(connection, id, read),
        }
    }
}

impl Application for Service {
    fn process(&mut self, connection: &mut Connection, now: Instant) {
        match self {
            Self::Http3(responder) => responder.process(connection, now),
            Self::Hq(responder) => responder.process(connection, now),
        }
    }

    fn rest(&mut self) {
        match self {
            Self::Http3(responder) => responder.rest(),
            Self::Hq(responder) => responder.rest(),
        }
    }

    fn settings(&self) -> Vec<u8> {
        match self {
            Self::Http3(_) => ServerSession::settings(),
            Self::Hq(_) => Vec::new(),
        }
    }

    fn accepts_early_data(&self, settings: &[u8]) -> bool {
        match self {
            Self::Http3(_) => ServerSession::accepts_early_data(settings),
            // There is nothing to promise.
            Self::Hq(_) => true,
        }
    }
}
