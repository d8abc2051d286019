//! Tickets that hold their TLS session themselves, sealed: nothing has to be stored, and all servers with the key
//! understand them ([RFC 5077](https://www.rfc-editor.org/rfc/rfc5077)). Nobody notices when one is used twice; so there
//! is no 0-RTT with them.

use std::time::Duration;

use rustls::server::ProducesTickets;

use super::seed::unpredictable;
use super::token_key::TokenKey;

/// How long a ticket is said to be good for; the secrets should be changed twice as often as that.
const LIFETIME: Duration = Duration::from_hours(12);

/// What seals the tickets.
#[derive(Debug)]
pub struct TicketKey {
    key: TokenKey,
}

impl TicketKey {
    pub(super) const fn new(key: TokenKey) -> Self {
        Self { key }
    }
}

impl ProducesTickets for TicketKey {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(LIFETIME.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        Some(self.key.seal(plain, b"", unpredictable()?))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.key.open(cipher, b"")
    }
}

#[cfg(test)]
mod tests {
    use rustls::server::ProducesTickets as _;

    use super::{TicketKey, TokenKey};

    #[test]
    fn a_ticket_opens_with_its_key_alone() {
        let [one, other] = [1, 2].map(|byte| TicketKey::new(TokenKey::new([byte; 32])));
        let ticket = one.encrypt(b"session").unwrap();
        assert_eq!(one.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        assert_eq!(other.decrypt(&ticket), None);
        assert_ne!(one.encrypt(b"session"), Some(ticket));
    }
}
