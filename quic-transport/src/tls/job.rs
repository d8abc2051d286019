//! A step of TLS that is lent out: the session and what it is to read, for any thread to work out.
//!
//! What takes long in a handshake happens while TLS reads: certificates are chosen and verified, keys sign. Meanwhile the
//! connection stays where it is, and does everything else.

use std::sync::Arc;

use rustls::quic::Connection;

use super::secrets::SecretLog;

/// A step of a connection's handshake. [Run](Self::run) it anywhere, and give it back to its connection.
pub struct HandshakeJob {
    pub(super) tls: Box<Connection>,
    /// Tells whose job this is.
    pub(super) log: Arc<SecretLog>,
    data: Vec<u8>,
    outcome: Option<Result<(), rustls::Error>>,
}

impl HandshakeJob {
    pub(super) const fn new(tls: Box<Connection>, log: Arc<SecretLog>, data: Vec<u8>) -> Self {
        Self {
            tls,
            log,
            data,
            outcome: None,
        }
    }

    /// Works the step out, which may take as long as verifiers, resolvers and keys do; a second call does nothing.
    pub fn run(&mut self) {
        if self.outcome.is_none() {
            self.outcome = Some(self.tls.read_hs(&self.data));
        }
    }

    /// Takes the session out, with what came of the step.
    pub(super) fn finish(mut self) -> (Box<Connection>, Result<(), rustls::Error>) {
        self.run();
        (self.tls, self.outcome.unwrap_or(Ok(())))
    }
}

impl std::fmt::Debug for HandshakeJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandshakeJob")
            .field("bytes", &self.data.len())
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}
