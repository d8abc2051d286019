//! Secrets that TLS makes for others, from one that outlives its session
//! ([RFC 8446, section 7.5](https://www.rfc-editor.org/rfc/rfc8446#section-7.5)).

use super::crypto::digest::{self, digest};
use super::crypto::hkdf::Prk;
use super::schedule::{Secret, try_fill};
use super::suite::CipherSuite;
use crate::error::ApiError;

/// The secret that exported ones are derived from; wiped when dropped.
pub(super) struct Exporter {
    suite: CipherSuite,
    secret: Secret,
}

impl Exporter {
    pub(super) const fn new(suite: CipherSuite, secret: Secret) -> Self {
        Self { suite, secret }
    }

    /// Fills `out` for `label` and `context`; no context is an empty one.
    ///
    /// # Errors
    ///
    /// [`ApiError::TooLarge`] for more than 255 hashes, or for a label of more than 249 bytes.
    pub(super) fn export(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ApiError> {
        let hash = |bytes| digest(self.digest(), bytes);
        let mut secret = Secret::zeros(self.suite.secret_length());
        let derived = try_fill(
            &self.prk(&self.secret),
            label,
            hash(b"").as_ref(),
            secret.as_mut_slice(),
        );
        derived.ok_or(ApiError::TooLarge)?;
        let context = hash(context.unwrap_or_default());
        try_fill(&self.prk(&secret), b"exporter", context.as_ref(), out).ok_or(ApiError::TooLarge)
    }

    fn prk(&self, secret: &Secret) -> Prk {
        Prk::new_less_safe(self.suite.hkdf(), secret.as_slice())
    }

    const fn digest(&self) -> &'static digest::Algorithm {
        match self.suite {
            CipherSuite::Aes128Gcm | CipherSuite::ChaCha20Poly1305 => &digest::SHA256,
            CipherSuite::Aes256Gcm => &digest::SHA384,
        }
    }
}
