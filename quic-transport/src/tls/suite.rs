//! The three cipher suites of TLS 1.3 that QUIC uses here, and what each one fixes: the AEAD, the header
//! protection, the hash, and how often a key may be used
//! ([RFC 9001, section 6.6](https://www.rfc-editor.org/rfc/rfc9001#section-6.6)).

use rustls::SupportedCipherSuite;

use super::crypto::{aead, hkdf};
use super::keyless;

/// A TLS 1.3 cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CipherSuite {
    /// TLS_AES_128_GCM_SHA256: the fastest where the CPU has AES instructions.
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256: the fastest where the CPU has none.
    ChaCha20Poly1305,
}

impl CipherSuite {
    /// All suites, in the order in which they are preferred.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    /// The name in the IANA registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
            Self::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
            Self::ChaCha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
        }
    }

    /// How many packets one key may protect; a packet may be as large as a datagram can be.
    #[must_use]
    pub(crate) const fn confidentiality_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 23,
            Self::ChaCha20Poly1305 => 1 << 62,
        }
    }

    /// How many packets a connection may fail to authenticate, over all its keys.
    #[must_use]
    pub(crate) const fn integrity_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }

    /// A packet of full size is made so that its plaintext is a multiple of this, in bytes. AES-GCM handles whole blocks in
    /// one go; the part of a block that remains costs as much again as a hundred bytes, at both ends. To ChaCha20-Poly1305 it
    /// matters less than the bytes.
    pub(crate) const fn block(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 16,
            Self::ChaCha20Poly1305 => 1,
        }
    }

    pub(super) const fn aead(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    pub(super) const fn header_protection(self) -> &'static aead::quic::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::quic::AES_128,
            Self::Aes256Gcm => &aead::quic::AES_256,
            Self::ChaCha20Poly1305 => &aead::quic::CHACHA20,
        }
    }

    pub(super) const fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Self::Aes128Gcm | Self::ChaCha20Poly1305 => hkdf::HKDF_SHA256,
            Self::Aes256Gcm => hkdf::HKDF_SHA384,
        }
    }

    /// The length of a traffic secret, which is that of the hash.
    pub(super) const fn secret_length(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::ChaCha20Poly1305 => 32,
            Self::Aes256Gcm => 48,
        }
    }

    /// What rustls gets: the handshake of this suite, without keys.
    pub(super) const fn rustls(self) -> SupportedCipherSuite {
        SupportedCipherSuite::Tls13(match self {
            Self::Aes128Gcm => &keyless::TLS13_AES_128_GCM_SHA256,
            Self::Aes256Gcm => &keyless::TLS13_AES_256_GCM_SHA384,
            Self::ChaCha20Poly1305 => &keyless::TLS13_CHACHA20_POLY1305_SHA256,
        })
    }

    pub(super) fn from_rustls(suite: SupportedCipherSuite) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.rustls().suite() == suite.suite())
    }
}

impl std::fmt::Display for CipherSuite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::CipherSuite;

    #[test]
    fn every_suite_is_one_of_rustls() {
        for suite in CipherSuite::ALL {
            assert_eq!(CipherSuite::from_rustls(suite.rustls()), Some(suite));
            assert!(suite.rustls().tls13().is_some());
        }
    }

    /// RFC 9001, 6.6.
    #[test]
    fn limits_of_the_rfc() {
        assert_eq!(CipherSuite::Aes128Gcm.confidentiality_limit(), 1 << 23);
        assert_eq!(CipherSuite::Aes256Gcm.confidentiality_limit(), 1 << 23);
        assert_eq!(CipherSuite::Aes128Gcm.integrity_limit(), 1 << 52);
        assert_eq!(CipherSuite::ChaCha20Poly1305.integrity_limit(), 1 << 36);
    }
}
