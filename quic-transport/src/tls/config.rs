//! What an application chooses about TLS: whom it trusts or what it proves, and which protocols it speaks
//! ([RFC 9001, section 8.1](https://www.rfc-editor.org/rfc/rfc9001#section-8.1)).
//!
//! Each holds a finished rustls configuration, which every connection clones with a key log of its own.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring as ring_provider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{KeyLog, RootCertStore};

use super::clock::WallClock;
use super::failure::reason;
use super::suite::CipherSuite;
use super::verify::Rootless;
use crate::error::ApiError;

/// A client's side of TLS 1.3; cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    tls: rustls::ClientConfig,
    /// What the configuration is built from; `None` when it came ready-made.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
    clock: WallClock,
    insecure: bool,
}

impl ClientConfig {
    /// Trusts the servers whose certificate leads to one of `roots`, and speaks the protocols `alpn`, most wanted first.
    ///
    /// # Errors
    ///
    /// When a root can't be read, when there is none, or when `alpn` is empty or holds a name not of 1 to 255 bytes.
    pub fn with_roots(
        roots: impl IntoIterator<Item = CertificateDer<'static>>,
        alpn: &[&[u8]],
    ) -> Result<Self, ApiError> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store
                .add(root)
                .map_err(|error| ApiError::Tls(reason(&error)))?;
        }
        Self::with_root_store(store, alpn)
    }

    /// As [`ClientConfig::with_roots`], with trust anchors in rustls' form.
    ///
    /// # Errors
    ///
    /// When there is no root, or `alpn` is invalid.
    pub fn with_root_store(roots: RootCertStore, alpn: &[&[u8]]) -> Result<Self, ApiError> {
        let provider = Arc::new(provider(&CipherSuite::ALL)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|_no_roots| ApiError::Config("no root certificate"))?;
        Self::with_verifier(verifier, alpn)
    }

    /// Trusts one certificate: that whose DER encoding has the SHA-256 digest `pin`. Its dates and names are checked
    /// all the same; a certificate that isn't self-signed must come with its issuer's.
    ///
    /// # Errors
    ///
    /// When `alpn` is invalid.
    pub fn with_pin(pin: [u8; 32], alpn: &[&[u8]]) -> Result<Self, ApiError> {
        let algorithms = ring_provider::default_provider().signature_verification_algorithms;
        Self::with_verifier(Arc::new(Rootless::pinned(pin, algorithms)), alpn)
    }

    /// Trusts every server, so that anyone on the path can read and change everything. For experiments only.
    ///
    /// # Errors
    ///
    /// When `alpn` is invalid.
    pub fn insecure(alpn: &[&[u8]]) -> Result<Self, ApiError> {
        let algorithms = ring_provider::default_provider().signature_verification_algorithms;
        let mut config = Self::with_verifier(Arc::new(Rootless::insecure(algorithms)), alpn)?;
        config.insecure = true;
        Ok(config)
    }

    /// Trusts the servers that `verifier` accepts.
    ///
    /// # Errors
    ///
    /// When `alpn` is invalid.
    pub fn with_verifier(
        verifier: Arc<dyn ServerCertVerifier>,
        alpn: &[&[u8]],
    ) -> Result<Self, ApiError> {
        let mut tls = client(Arc::clone(&verifier), &CipherSuite::ALL)?;
        tls.alpn_protocols = protocols(alpn)?;
        Ok(Self {
            tls,
            verifier: Some(verifier),
            clock: WallClock::system(),
            insecure: false,
        })
    }

    /// Takes a rustls configuration as it is, but for early data, which is not offered.
    ///
    /// # Errors
    ///
    /// When it has no TLS 1.3 cipher suite or no application protocol.
    pub fn from_rustls(mut tls: rustls::ClientConfig) -> Result<Self, ApiError> {
        check_provider(tls.crypto_provider())?;
        check_protocols(&tls.alpn_protocols)?;
        tls.enable_early_data = false;
        Ok(Self {
            tls,
            verifier: None,
            clock: WallClock::system(),
            insecure: false,
        })
    }

    /// Offers only `suites`, most wanted first.
    ///
    /// # Errors
    ///
    /// When there is none, or the configuration came from [`ClientConfig::from_rustls`].
    pub fn cipher_suites(mut self, suites: &[CipherSuite]) -> Result<Self, ApiError> {
        let verifier = self.verifier.as_ref().ok_or(READY_MADE)?;
        let mut tls = client(Arc::clone(verifier), suites)?;
        tls.alpn_protocols = std::mem::take(&mut self.tls.alpn_protocols);
        tls.key_log = Arc::clone(&self.tls.key_log);
        tls.time_provider = Arc::clone(&self.tls.time_provider);
        tls.resumption = self.tls.resumption.clone();
        self.tls = tls;
        Ok(self)
    }

    /// Tells `log` every secret, with which all traffic can be read.
    #[must_use]
    pub fn key_log(mut self, log: Arc<dyn KeyLog>) -> Self {
        self.tls.key_log = log;
        self
    }

    /// Judges certificates by another clock than the system's.
    #[must_use]
    pub fn wall_clock(mut self, clock: WallClock) -> Self {
        self.tls.time_provider = Arc::new(clock.clone());
        self.clock = clock;
        self
    }

    /// Makes a full handshake each time.
    #[must_use]
    pub fn without_resumption(mut self) -> Self {
        self.tls.resumption = Resumption::disabled();
        self
    }

    /// Whether no certificate is checked: something to warn the user about.
    #[must_use]
    pub const fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// The clock in use.
    #[must_use]
    pub const fn clock(&self) -> &WallClock {
        &self.clock
    }

    /// The application protocols offered, most wanted first.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        self.tls.alpn_protocols.iter().map(Vec::as_slice)
    }

    pub(super) const fn rustls(&self) -> &rustls::ClientConfig {
        &self.tls
    }
}

/// A server's side of TLS 1.3; cheap to clone.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    tls: rustls::ServerConfig,
    /// What the configuration is built from; `None` when it came ready-made.
    certificates: Option<Arc<dyn ResolvesServerCert>>,
    clock: WallClock,
}

impl ServerConfig {
    /// Proves its identity with `chain`, the server's own certificate first, and speaks the protocols `alpn`, most wanted
    /// first.
    ///
    /// # Errors
    ///
    /// When the key is of an unknown kind or isn't the certificate's, or when `alpn` is empty or holds a name not of 1
    /// to 255 bytes.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        alpn: &[&[u8]],
    ) -> Result<Self, ApiError> {
        let certified = CertifiedKey::from_der(chain, key, &ring_provider::default_provider())
            .map_err(|error| ApiError::Tls(certified_key_reason(&error)))?;
        Self::with_resolver(Arc::new(SingleCertAndKey::from(certified)), alpn)
    }

    /// Proves its identity with what `certificates` chooses for each client.
    ///
    /// # Errors
    ///
    /// When `alpn` is invalid.
    pub fn with_resolver(
        certificates: Arc<dyn ResolvesServerCert>,
        alpn: &[&[u8]],
    ) -> Result<Self, ApiError> {
        let mut tls = server(Arc::clone(&certificates), &CipherSuite::ALL)?;
        tls.alpn_protocols = protocols(alpn)?;
        Ok(Self {
            tls,
            certificates: Some(certificates),
            clock: WallClock::system(),
        })
    }

    /// Takes a rustls configuration as it is, but for early data, which is refused.
    ///
    /// # Errors
    ///
    /// When it has no TLS 1.3 cipher suite or no application protocol.
    pub fn from_rustls(mut tls: rustls::ServerConfig) -> Result<Self, ApiError> {
        check_provider(tls.crypto_provider())?;
        check_protocols(&tls.alpn_protocols)?;
        tls.max_early_data_size = 0;
        Ok(Self {
            tls,
            certificates: None,
            clock: WallClock::system(),
        })
    }

    /// Accepts only `suites`, most wanted first; a client that wants ChaCha20 most gets it if it is among them.
    ///
    /// # Errors
    ///
    /// When there is none, or the configuration came from [`ServerConfig::from_rustls`].
    pub fn cipher_suites(mut self, suites: &[CipherSuite]) -> Result<Self, ApiError> {
        let certificates = self.certificates.as_ref().ok_or(READY_MADE)?;
        let mut tls = server(Arc::clone(certificates), suites)?;
        tls.alpn_protocols = std::mem::take(&mut self.tls.alpn_protocols);
        tls.key_log = Arc::clone(&self.tls.key_log);
        tls.time_provider = Arc::clone(&self.tls.time_provider);
        tls.session_storage = Arc::clone(&self.tls.session_storage);
        tls.send_tls13_tickets = self.tls.send_tls13_tickets;
        self.tls = tls;
        Ok(self)
    }

    /// Tells `log` every secret, with which all traffic can be read.
    #[must_use]
    pub fn key_log(mut self, log: Arc<dyn KeyLog>) -> Self {
        self.tls.key_log = log;
        self
    }

    /// Judges tickets by another clock than the system's.
    #[must_use]
    pub fn wall_clock(mut self, clock: WallClock) -> Self {
        self.tls.time_provider = Arc::new(clock.clone());
        self.clock = clock;
        self
    }

    /// Gives out no tickets: each handshake is a full one.
    #[must_use]
    pub const fn without_resumption(mut self) -> Self {
        self.tls.send_tls13_tickets = 0;
        self
    }

    /// The clock in use.
    #[must_use]
    pub const fn clock(&self) -> &WallClock {
        &self.clock
    }

    /// The application protocols spoken, most wanted first.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        self.tls.alpn_protocols.iter().map(Vec::as_slice)
    }

    pub(super) const fn rustls(&self) -> &rustls::ServerConfig {
        &self.tls
    }
}

const READY_MADE: ApiError =
    ApiError::Config("the cipher suites are those of the rustls configuration");

fn client(
    verifier: Arc<dyn ServerCertVerifier>,
    suites: &[CipherSuite],
) -> Result<rustls::ClientConfig, ApiError> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(provider(suites)?))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| ApiError::Tls(reason(&error)))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(config)
}

fn server(
    certificates: Arc<dyn ResolvesServerCert>,
    suites: &[CipherSuite],
) -> Result<rustls::ServerConfig, ApiError> {
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider(suites)?))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| ApiError::Tls(reason(&error)))?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.ignore_client_order = true;
    Ok(config)
}

/// ring with `suites`, and X25519 as the first key exchange group.
fn provider(suites: &[CipherSuite]) -> Result<CryptoProvider, ApiError> {
    if suites.is_empty() {
        return Err(ApiError::Config("no cipher suite"));
    }
    let mut provider = ring_provider::default_provider();
    provider.cipher_suites = suites.iter().map(|suite| suite.rustls()).collect();
    provider.kx_groups = vec![
        ring_provider::kx_group::X25519,
        ring_provider::kx_group::SECP256R1,
        ring_provider::kx_group::SECP384R1,
    ];
    Ok(provider)
}

fn check_provider(provider: &CryptoProvider) -> Result<(), ApiError> {
    let mut suites = provider.cipher_suites.iter();
    if suites.any(|suite| CipherSuite::from_rustls(*suite).is_some()) {
        return Ok(());
    }
    Err(ApiError::Config("no TLS 1.3 cipher suite"))
}

fn protocols(alpn: &[&[u8]]) -> Result<Vec<Vec<u8>>, ApiError> {
    let protocols: Vec<_> = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    check_protocols(&protocols)?;
    Ok(protocols)
}

/// RFC 7301, 3.1, and RFC 9001, 8.1: QUIC always negotiates a protocol.
fn check_protocols(protocols: &[Vec<u8>]) -> Result<(), ApiError> {
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
