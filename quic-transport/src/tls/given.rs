//! What settings are given from outside, checked and in rustls' form: roots, certificates with their keys, protocols.

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::crypto::provider::default_provider;
use super::failure::reason;
use super::suite::CipherSuite;
use crate::error::ApiError;

pub(super) const READY_MADE: ApiError =
    ApiError::Config("a rustls configuration is taken as it is");

/// The roots in rustls' form.
pub(super) fn store(
    roots: impl IntoIterator<Item = CertificateDer<'static>>,
) -> Result<RootCertStore, ApiError> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store
            .add(root)
            .map_err(|error| ApiError::Tls(reason(&error)))?;
    }
    Ok(store)
}

/// A certificate chain with its key.
pub(super) fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, ApiError> {
    CertifiedKey::from_der(chain, key, &default_provider())
        .map_err(|error| ApiError::Tls(certified_key_reason(&error)))
}

pub(super) fn check_provider(provider: &CryptoProvider) -> Result<(), ApiError> {
    let mut suites = provider.cipher_suites.iter();
    if suites.any(|suite| CipherSuite::from_rustls(*suite).is_some()) {
        return Ok(());
    }
    Err(ApiError::Config("no TLS 1.3 cipher suite"))
}

pub(super) fn protocols(alpn: &[&[u8]]) -> Result<Vec<Vec<u8>>, ApiError> {
    let protocols: Vec<_> = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    check_protocols(&protocols)?;
    Ok(protocols)
}

/// RFC 7301, 3.1, and RFC 9001, 8.1: QUIC always negotiates a protocol.
pub(super) fn check_protocols(protocols: &[Vec<u8>]) -> Result<(), ApiError> {
    if protocols.is_empty() {
        return Err(ApiError::Config("no application protocol"));
    }
    if protocols
        .iter()
        .any(|name| !(1..=255).contains(&name.len()))
    {
        return Err(ApiError::Config(
            "the name of an application protocol has 1 to 255 bytes",
        ));
    }
    Ok(())
}

/// A key that can't be read is the usual mistake here, and rustls has no kind of its own for it.
fn certified_key_reason(error: &rustls::Error) -> &'static str {
    if matches!(error, rustls::Error::General(_)) {
        return "the private key can't be read or is of an unknown kind";
    }
    reason(error)
}
