//! The key that stateless reset tokens are derived from,
//! [RFC 9000, section 10.3.2](https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2).
//!
//! A token is a keyed hash of the connection ID, so an endpoint that has lost its state, but not this key, still
//! knows every token that it ever gave out.

use std::sync::Arc;

use super::crypto::hmac;
use crate::wire::{ConnectionId, ResetToken};

/// Derives a reset token for each connection ID.
#[derive(Clone)]
pub struct ResetKey {
    /// Each connection has the key, so it is shared.
    keys: Arc<Keys>,
}

struct Keys {
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
        Self::rotated([secret])
    }

    /// The key with the first secret, which knows the tokens of the others too.
    pub(super) fn rotated(secrets: impl IntoIterator<Item = [u8; 32]>) -> Self {
        let key = |secret: [u8; 32]| hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let mut secrets = secrets.into_iter();
        Self {
            keys: Arc::new(Keys {
                key: key(secrets.next().unwrap_or_default()),
                older: secrets.map(key).collect(),
            }),
        }
    }

    /// The token of `cid`.
    #[must_use]
    pub(crate) fn token(&self, cid: &ConnectionId) -> ResetToken {
        derive(&self.keys.key, cid)
    }

    /// The token of `cid` that a reset is sent with: those of all keys in turn, for nobody knows which one the peer was
    /// given, and it goes on sending until the right one comes.
    #[must_use]
    pub(crate) fn token_in_turn(&self, turn: usize, cid: &ConnectionId) -> ResetToken {
        let Keys { key, older } = &*self.keys;
        let place = turn % (older.len() + 1);
        let older = place.checked_sub(1).and_then(|place| older.get(place));
        derive(older.unwrap_or(key), cid)
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
