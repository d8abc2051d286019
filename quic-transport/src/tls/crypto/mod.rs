//! The cryptographic library, chosen here for the whole crate: ring, or aws-lc-rs where that feature is on.
//!
//! The two have the same interface, and rustls has a provider for each. What ring lacks is added beside it.

/// Whether ML-KEM is as fast as the rest.
pub(super) const HAS_FAST_MLKEM: bool = cfg!(feature = "aws-lc-rs");

#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
compile_error!(
    "quic-transport needs a cryptographic library: turn on its feature `ring` or `aws-lc-rs`"
);

#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
mod hybrid;

#[cfg(feature = "aws-lc-rs")]
pub(super) use {
    aws_lc_rs::{aead, digest, hkdf, hmac, rand},
    rustls::crypto::aws_lc_rs as provider,
    rustls::crypto::aws_lc_rs::hpke::ALL_SUPPORTED_SUITES as HPKE_SUITES,
    rustls::crypto::aws_lc_rs::kx_group::X25519MLKEM768,
};
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub(super) use {
    hybrid::X25519MLKEM768,
    ring::{aead, digest, hkdf, hmac, rand},
    rustls::crypto::ring as provider,
};
/// ring has none.
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub(super) static HPKE_SUITES: &[&dyn rustls::crypto::hpke::Hpke] = &[];

/// What rustls is given: the cryptographic library that this crate was built with. For a configuration that is made by
/// hand, see [`ClientConfig::from_rustls`](super::ClientConfig::from_rustls).
#[must_use]
pub fn crypto_provider() -> rustls::crypto::CryptoProvider {
    provider::default_provider()
}
