//! Encrypted ClientHello, a client's side: the name of the server is told to nobody else
//! ([RFC 9849](https://www.rfc-editor.org/rfc/rfc9849)).
//!
//! rustls makes both messages: the outer one, which anyone can read, has the public name of the configuration, and in it
//! lies the inner one, encrypted. What else the outer one says, protocols and transport parameters among it, can be read.

use rustls::client::{EchConfig, EchGreaseConfig, EchMode};
// No part of rustls' stable interface, but the only way to the bytes of what a server offers in place of a configuration
// that it doesn't know, and to the name of a suite's part.
use rustls::internal::msgs::codec::Codec;
use rustls::internal::msgs::enums::HpkeKem;
use rustls::pki_types::EchConfigListBytes;
use rustls::{EncryptedClientHelloError, PeerIncompatible};

use super::crypto::HPKE_SUITES;
use crate::error::ApiError;

const NO_HPKE: ApiError =
    ApiError::Config("Encrypted ClientHello needs the feature `aws-lc-rs` of quic-transport");

/// What has become of a client's encrypted ClientHello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EchStatus {
    /// There was none.
    #[default]
    NotOffered,
    /// Something that looks like one was sent, see [`ClientConfig::ech_grease`](super::ClientConfig::ech_grease).
    Grease,
    /// Sent, and no answer yet.
    Offered,
    /// The server has answered the inner ClientHello, and nobody else has read it.
    Accepted,
    /// The server doesn't know the configuration: it has answered the outer ClientHello, has proved to be who has the
    /// public name, and the connection has ended.
    Rejected {
        /// What the server offers instead: an ECHConfigList to connect with again, once. It is empty when the server has
        /// given ECH up: then a client may connect again without it (RFC 9849, 6.1.6).
        retry_configs: Box<[u8]>,
    },
}

/// Encrypts for the servers whose ECHConfigList this is.
pub(super) fn encrypted(list: &[u8]) -> Result<EchMode, ApiError> {
    if HPKE_SUITES.is_empty() {
        return Err(NO_HPKE);
    }
    let list = EchConfigListBytes::from(list);
    match EchConfig::new(list, HPKE_SUITES) {
        Ok(config) => Ok(config.into()),
        Err(rustls::Error::InvalidEncryptedClientHello(
            EncryptedClientHelloError::NoCompatibleConfig,
        )) => Err(ApiError::Config(
            "no configuration in the ECHConfigList can be used",
        )),
        Err(_malformed) => Err(ApiError::Config("not an ECHConfigList")),
    }
}

/// Sends what looks like an encrypted ClientHello.
pub(super) fn grease() -> Result<EchMode, ApiError> {
    // What nearly everyone who has configurations uses.
    let usual = HpkeKem::DHKEM_X25519_HKDF_SHA256;
    let mut suites = HPKE_SUITES.iter();
    let suite = *suites
        .find(|suite| suite.suite().kem == usual)
        .ok_or(NO_HPKE)?;
    let (public, _) = suite
        .generate_key_pair()
        .map_err(|_error| ApiError::Tls("the system gives no random numbers"))?;
    Ok(EchGreaseConfig::new(suite, public).into())
}

/// What has become of an offer, if `failure` tells that.
pub(super) fn rejection(failure: &rustls::Error) -> Option<EchStatus> {
    let rustls::Error::PeerIncompatible(PeerIncompatible::ServerRejectedEncryptedClientHello(
        configs,
    )) = failure
    else {
        return None;
    };
    let configs = configs.as_ref().filter(|configs| !configs.is_empty());
    Some(EchStatus::Rejected {
        retry_configs: configs.map(Codec::get_encoding).unwrap_or_default().into(),
    })
}
