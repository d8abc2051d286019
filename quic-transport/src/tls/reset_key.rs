//! The key that stateless reset tokens are derived from,
//! [RFC 9000, section 10.3.2](https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2).
//!
//! A token is a keyed hash of the connection ID, so an endpoint that has lost its state, but not this key, still
//! knows every token that it ever gave out.

use super::crypto::hmac;
use crate::wire::{ConnectionId, ResetToken};

/// Derives a reset token for each connection ID.
#[derive(Clone)]
pub struct ResetKey {
    key: hmac::Key,
    /// Keys that tokens were derived from before.
    older: Vec<hmac::Key>,
}

impl std::fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResetKey").finish_non_exhaustive()
    }
}

impl ResetKey {
    /// The key with these 32 secret bytes.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            older: Vec::new(),
        }
    }

    /// The key with the first secret, which knows the tokens of the others too.
    pub(super) fn rotated(secrets: impl IntoIterator<Item = [u8; 32]>) -> Self {
        let mut secrets = secrets.into_iter();
        let key = Self::new(secrets.next().unwrap_or_default());
        Self {
            older: secrets.map(|secret| Self::new(secret).key).collect(),
            ..key
        }
    }

    /// The token of `cid`.
    #[must_use]
    pub(crate) fn token(&self, cid: &ConnectionId) -> ResetToken {
        derive(&self.key, cid)
    }

    /// The token of `cid` that a reset is sent with: those of all keys in turn, for nobody knows which one the peer was
    /// given, and it goes on sending until the right one comes.
    #[must_use]
    pub(crate) fn token_in_turn(&self, turn: usize, cid: &ConnectionId) -> ResetToken {
        let older = turn % (self.older.len() + 1);
        let key = older.checked_sub(1).and_then(|place| self.older.get(place));
        derive(key.unwrap_or(&self.key), cid)
    }
}

fn derive(key: &hmac::Key, cid: &ConnectionId) -> ResetToken {
    let tag = hmac::sign(key, cid.as_slice());
    ResetToken(tag.as_ref().first_chunk().copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::ResetKey;
    use crate::wire::ConnectionId;

    #[test]
    fn a_token_belongs_to_one_key_and_one_id() {
        let [a, b] = [1, 2].map(|secret| ResetKey::new([secret; 32]));
        let [x, y] = [1, 2].map(|byte| ConnectionId::new(&[byte; 8]).unwrap());
        assert_eq!(a.token(&x), a.token(&x));
        assert_ne!(a.token(&x), a.token(&y));
        assert_ne!(a.token(&x), b.token(&x));
    }
}
