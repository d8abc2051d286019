//! The key that address validation tokens are sealed with,
//! [RFC 9000, section 8.1.4](https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4).

use std::sync::Arc;

use super::crypto::aead;

/// Bytes that sealing adds: a random nonce and the tag.
#[cfg(test)]
pub(crate) const TOKEN_OVERHEAD: usize = aead::NONCE_LEN + 16;

/// Seals and opens tokens: AES-256-GCM under a random nonce.
#[derive(Clone)]
pub struct TokenKey {
    /// The first seals, all open.
    keys: Arc<[aead::LessSafeKey]>,
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenKey").finish_non_exhaustive()
    }
}

impl TokenKey {
    /// The key with these 32 secret bytes.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Self {
        Self::rotated([secret])
    }

    /// The key with the first secret, which opens what was sealed with the others too.
    pub(super) fn rotated(secrets: impl IntoIterator<Item = [u8; 32]>) -> Self {
        // The length is the right one; a key that isn't there opens nothing.
        let key = |secret: [u8; 32]| aead::UnboundKey::new(&aead::AES_256_GCM, &secret).ok();
        let keys = secrets.into_iter().filter_map(key);
        Self {
            keys: keys.map(aead::LessSafeKey::new).collect(),
        }
    }

    /// Seals `plain`, bound to `context`, which isn't part of the token.
    pub(crate) fn seal(
        &self,
        plain: &[u8],
        context: &[u8],
        nonce: [u8; aead::NONCE_LEN],
    ) -> Vec<u8> {
        let mut sealed = plain.to_vec();
        let tag = self.keys.first().and_then(|key| {
            let nonce = aead::Nonce::assume_unique_for_key(nonce);
            key.seal_in_place_separate_tag(nonce, aead::Aad::from(context), &mut sealed)
                .ok()
        });
        let mut token = nonce.to_vec();
        token.append(&mut sealed);
        if let Some(tag) = tag {
            token.extend_from_slice(tag.as_ref());
        }
        token
    }

    /// What is in `token`, if it was sealed with this key and `context`.
    pub(crate) fn open(&self, token: &[u8], context: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = token.split_first_chunk::<{ aead::NONCE_LEN }>()?;
        self.keys.iter().find_map(|key| {
            let mut plain = sealed.to_vec();
            let nonce = aead::Nonce::assume_unique_for_key(*nonce);
            let length = key
                .open_in_place(nonce, aead::Aad::from(context), &mut plain)
                .ok()?
                .len();
            plain.truncate(length);
            Some(plain)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{TOKEN_OVERHEAD, TokenKey};

    #[test]
    fn only_what_was_sealed_opens() {
        let key = TokenKey::new([1; 32]);
        let token = key.seal(b"content", b"address", [2; 12]);
        assert_eq!(token.len(), 7 + TOKEN_OVERHEAD);
        assert_eq!(
            key.open(&token, b"address").as_deref(),
            Some(&b"content"[..])
        );
        assert_eq!(key.open(&token, b"another"), None);
        assert_eq!(TokenKey::new([3; 32]).open(&token, b"address"), None);
        for index in 0..token.len() {
            let mut flipped = token.clone();
            flipped[index] ^= 1;
            assert_eq!(key.open(&flipped, b"address"), None, "byte {index}");
            assert_eq!(key.open(&token[..index], b"address"), None);
        }
    }
}
