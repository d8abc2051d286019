//! The algorithms that a configuration offers, and the provider that has these alone.

use rustls::crypto::CryptoProvider;

use super::crypto::provider::default_provider;
use super::key_exchange::KeyExchange;
use super::suite::CipherSuite;
use crate::error::ApiError;

/// The algorithms of a configuration, most wanted first.
#[derive(Clone, Debug)]
pub(super) struct Algorithms {
    pub(super) suites: Vec<CipherSuite>,
    pub(super) groups: Vec<KeyExchange>,
}

impl Default for Algorithms {
    fn default() -> Self {
        Self {
            suites: CipherSuite::ALL.to_vec(),
            groups: KeyExchange::DEFAULT.to_vec(),
        }
    }
}

impl Algorithms {
    /// The provider with these algorithms alone.
    pub(super) fn provider(&self) -> Result<CryptoProvider, ApiError> {
        let Self { suites, groups } = self;
        if suites.is_empty() {
            return Err(ApiError::Config("no cipher suite"));
        }
        if groups.is_empty() {
            return Err(ApiError::Config("no key exchange group"));
        }
        let mut provider = default_provider();
        provider.cipher_suites = suites.iter().map(|suite| suite.rustls()).collect();
        provider.kx_groups = groups.iter().map(|group| group.rustls()).collect();
        Ok(provider)
    }
}
