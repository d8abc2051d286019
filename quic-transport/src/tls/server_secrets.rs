//! The secrets of a server that outlive it, or that several servers share: a list, the one in use first
//! ([RFC 9000, section 8.1.4](https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4) and 10.3.2).
//!
//! What was made with an older one is still understood, so that secrets can be changed without anyone noticing: put a
//! new one in front, and take the last one away when what was made with it has expired. The key of each purpose is
//! derived from them.

use super::crypto::hmac;
use super::reset_key::ResetKey;
use super::ticket_key::TicketKey;
use super::token_key::TokenKey;
use crate::limits::SERVER_SECRETS;

/// Up to four secrets of 32 bytes.
#[derive(Clone)]
pub struct ServerSecrets(Vec<[u8; 32]>);

impl ServerSecrets {
    /// Reads one secret from each line, as 64 hexadecimal digits; empty lines and those that begin with # are skipped.
    ///
    /// # Errors
    ///
    /// What is wrong, and in which line, counted from 1.
    pub fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        let mut secrets = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if secrets.len() >= SERVER_SECRETS {
                return Err((number, "there are four secrets at most"));
            }
            let secret = bytes(line).ok_or((number, "a secret has 64 hexadecimal digits"))?;
            secrets.push(secret);
        }
        if secrets.is_empty() {
            return Err((1, "there is no secret"));
        }
        Ok(Self(secrets))
    }

    /// The key of address validation tokens.
    #[must_use]
    pub fn token_key(&self) -> TokenKey {
        TokenKey::rotated(self.derive(b"quic token"))
    }

    /// The key of stateless reset tokens.
    #[must_use]
    pub fn reset_key(&self) -> ResetKey {
        ResetKey::rotated(self.derive(b"quic reset"))
    }

    /// The key of tickets that hold their TLS session themselves.
    #[must_use]
    pub fn ticket_key(&self) -> TicketKey {
        TicketKey::new(TokenKey::rotated(self.derive(b"quic ticket")))
    }

    /// A key for one purpose from each secret.
    fn derive(&self, purpose: &'static [u8]) -> impl Iterator<Item = [u8; 32]> + '_ {
        self.0.iter().map(move |secret| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            let tag = hmac::sign(&key, purpose);
            tag.as_ref().try_into().unwrap_or_default()
        })
    }
}

impl std::fmt::Debug for ServerSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerSecrets")
            .field("count", &self.0.len())
            .finish_non_exhaustive()
    }
}

fn bytes(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        // A sign would be taken for a part of the number.
        *byte = pair
            .bytes()
            .all(|digit| digit.is_ascii_hexdigit())
            .then(|| u8::from_str_radix(pair, 16).ok())??;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{SERVER_SECRETS, ServerSecrets};
    use crate::wire::ConnectionId;

    fn secrets(bytes: &[u8]) -> ServerSecrets {
        let lines = bytes.iter().map(|byte| format!("{byte:02x}").repeat(32));
        let text: Vec<String> = lines.collect();
        ServerSecrets::parse(&text.join("\n")).unwrap()
    }

    #[test]
    fn what_an_older_secret_made_is_understood() {
        let (old, new) = (secrets(&[1]), secrets(&[2, 1]));
        let token = old.token_key().seal(b"content", b"address", [7; 12]);
        assert!(new.token_key().open(&token, b"address").is_some());
        assert!(secrets(&[2]).token_key().open(&token, b"address").is_none());
        let token = new.token_key().seal(b"content", b"address", [7; 12]);
        assert!(old.token_key().open(&token, b"address").is_none());
    }

    #[test]
    fn resets_take_turns() {
        let cid = ConnectionId::new(&[5; 8]).unwrap();
        let (old, new) = (secrets(&[1]).reset_key(), secrets(&[2, 1]).reset_key());
        assert_ne!(new.token(&cid), old.token(&cid));
        assert_eq!(new.token_in_turn(0, &cid), new.token(&cid));
        assert_eq!(new.token_in_turn(1, &cid), old.token(&cid));
        assert_eq!(new.token_in_turn(2, &cid), new.token(&cid));
    }

    #[test]
    fn each_purpose_has_a_key_of_its_own() {
        let secrets = secrets(&[1]);
        let keys: Vec<_> = [&b"quic token"[..], b"quic reset", b"quic ticket"]
            .into_iter()
            .map(|purpose| secrets.derive(purpose).next().unwrap())
            .collect();
        assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
        assert!(!format!("{secrets:?}").contains("01, 01"));
    }

    #[test]
    fn wrong_files_are_explained() {
        let line = "ab".repeat(32);
        let parse = |text: &str| ServerSecrets::parse(text).map(|secrets| secrets.0.len());
        assert_eq!(parse(&format!("# mine\n\n {line} \n{line}\n")), Ok(2));
        let most = [line.as_str(); SERVER_SECRETS].join("\n");
        assert_eq!(parse(&most), Ok(SERVER_SECRETS));
        assert_eq!(parse(&format!("{most}\n{line}")).unwrap_err().0, 5);
        assert_eq!(parse("# nothing").unwrap_err().0, 1);
        for wrong in [
            &"a".repeat(63),
            &format!("{line}0"),
            &"+1".repeat(32),
            "äöü",
        ] {
            assert_eq!(parse(&format!("{line}\n{wrong}")).unwrap_err().0, 2);
        }
    }
}
