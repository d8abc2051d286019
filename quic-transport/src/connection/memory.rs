//! What a client keeps for its next connection to the same server, in the [`SessionStore`](crate::tls::SessionStore) of
//! its TLS settings: tokens, [RFC 9000, section 8.1.3](https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3), the
//! round-trip time, and what the application wants to know. TLS sessions go there by themselves. And the tokens that a
//! server gives it for that.

use super::Connection;
use crate::error::ApiError;

impl Connection {
    /// Keeps `settings`, up to 1 KiB, beside the sessions that the server gives on this connection: what the application
    /// must know of the server before it hears from it again, when it sends early data.
    ///
    /// # Errors
    ///
    /// When they are too long.
    pub fn remember(&self, settings: &[u8]) -> Result<(), ApiError> {
        match self.session.memory() {
            Some(memory) if !memory.learn(settings) => Err(ApiError::TooLarge),
            _ => Ok(()),
        }
    }

    /// Whether a server wants a token for its client's new address.
    #[inline]
    pub(crate) const fn wants_token(&self) -> bool {
        self.new_token.is_outdated()
    }

    /// Gives the client of a server a token for its new address, or none.
    pub(crate) fn give_token(&mut self, token: Option<Vec<u8>>) {
        self.new_token.replace(token);
    }

    /// Keeps a token of the server.
    pub(super) fn keep_token(&self, token: &[u8]) {
        if let Some(memory) = self.session.memory() {
            memory.keep_token(token);
        }
    }

    /// Keeps the round-trip time, if one was measured: the next connection begins with it (RFC 9002, 6.2.2).
    pub(super) fn keep_rtt(&self) {
        if let Some(memory) = self.session.memory()
            && self.path.rtt.first_sample().is_some()
        {
            memory.keep_rtt(self.path.rtt.smoothed());
        }
    }
}
