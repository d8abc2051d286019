//! Tokens that a server gives for the next connection, at the client,
//! [RFC 9000, section 8.1.3](https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3).

use super::Connection;
use crate::{
    error::ApiError,
    limits::{TOKEN, TOKENS},
};

impl Connection {
    /// The oldest token that the server gave and nobody took: for [`Connection::use_token`] of the next connection to
    /// the same server. Each is to be used once, so that nobody can link connections by it.
    #[must_use]
    pub fn take_token(&mut self) -> Option<Box<[u8]>> {
        self.tokens.pop_front()
    }

    /// Shows the server a token of an earlier connection, which spares the client a Retry. Only before anything is
    /// sent.
    ///
    /// # Errors
    ///
    /// When something has been sent, or the token is longer than a server's can be.
    pub fn use_token(&mut self, token: &[u8]) -> Result<(), ApiError> {
        if token.len() > TOKEN {
            return Err(ApiError::TooLarge);
        }
        if self.side.is_server() || self.stats.packets_sent > 0 {
            return Err(ApiError::Started);
        }
        self.setup.token = token.to_vec();
        Ok(())
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

    /// Keeps a token of the server, if it isn't too long.
    pub(super) fn keep_token(&mut self, token: &[u8]) {
        if token.len() > TOKEN {
            return;
        }
        if self.tokens.len() >= TOKENS {
            self.tokens.pop_front();
        }
        self.tokens.push_back(token.into());
    }
}
