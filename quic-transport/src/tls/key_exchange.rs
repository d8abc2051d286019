//! The groups that keys are exchanged in ([RFC 8446, section 4.2.7](https://www.rfc-editor.org/rfc/rfc8446#section-4.2.7)).

use rustls::crypto::SupportedKxGroup;

use super::crypto::{HAS_FAST_MLKEM, X25519MLKEM768, provider::kx_group};

/// A key exchange group of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyExchange {
    /// X25519 together with ML-KEM-768, which no quantum computer breaks. It makes a ClientHello longer than a datagram.
    X25519MlKem768,
    /// X25519, the fastest.
    X25519,
    /// NIST's P-256.
    Secp256r1,
    /// NIST's P-384.
    Secp384r1,
}

impl KeyExchange {
    /// All groups, in the order in which they are preferred.
    pub const ALL: [Self; 4] = [
        Self::X25519MlKem768,
        Self::X25519,
        Self::Secp256r1,
        Self::Secp384r1,
    ];

    /// The groups of settings that don't say otherwise: all of them with aws-lc-rs. With ring, X25519MLKEM768 costs as
    /// much as the rest of a handshake, so it has to be asked for.
    pub const DEFAULT: &[Self] = if HAS_FAST_MLKEM {
        &Self::ALL
    } else {
        &[Self::X25519, Self::Secp256r1, Self::Secp384r1]
    };

    /// The name in the IANA registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X25519MlKem768 => "X25519MLKEM768",
            Self::X25519 => "X25519",
            Self::Secp256r1 => "secp256r1",
            Self::Secp384r1 => "secp384r1",
        }
    }

    pub(super) fn rustls(self) -> &'static dyn SupportedKxGroup {
        match self {
            Self::X25519MlKem768 => X25519MLKEM768,
            Self::X25519 => kx_group::X25519,
            Self::Secp256r1 => kx_group::SECP256R1,
            Self::Secp384r1 => kx_group::SECP384R1,
        }
    }
}

impl std::fmt::Display for KeyExchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::KeyExchange;

    #[test]
    fn every_group_has_the_name_that_rustls_gives_it() {
        for group in KeyExchange::ALL {
            let name = group.rustls().name().as_str().unwrap();
            assert_eq!(name.to_lowercase(), group.name().to_lowercase());
        }
    }
}
