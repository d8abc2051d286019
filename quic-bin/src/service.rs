//! What runs above a connection of the server: one of the protocols that share its port.

use std::{sync::Arc, time::Instant};

use quic_transport::{Application, Connection};

use crate::{alpn::Alpn, hq, responder, site::Site};

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
    pub fn new(alpn: Alpn, site: Arc<Site>) -> Self {
        match alpn {
            Alpn::Http3 => Self::Http3(responder::Responder::new(site)),
            Alpn::HqInterop => Self::Hq(hq::Responder::new(site)),
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
}
