//! What an application chooses about TLS: whom it trusts or what it proves, and which protocols it speaks
//! ([RFC 9001, section 8.1](https://www.rfc-editor.org/rfc/rfc9001#section-8.1)).
//!
//! Each holds a finished rustls configuration, which every connection clones with a key log of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{KeyLog, RootCertStore};

use super::clock::WallClock;
use super::crypto::provider::default_provider;
use super::failure::reason;
use super::key_exchange::KeyExchange;
use super::server_sessions::{ServerSessions, SessionCache};
use super::session_store::{Destination, Memory, SessionStore};
use super::suite::CipherSuite;
use super::ticket_key::TicketKey;
use super::verify::Rootless;
use crate::error::ApiError;
use crate::wire::Version;

/// The algorithms of a configuration, most wanted first.
#[derive(Clone, Debug)]
struct Algorithms {
    suites: Vec<CipherSuite>,
    groups: Vec<KeyExchange>,
}

impl Default for Algorithms {
    fn default() -> Self {
        Self {
            suites: CipherSuite::ALL.to_vec(),
            groups: KeyExchange::DEFAULT.to_vec(),
        }
    }
}

/// Whether clients have to show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// One without a certificate is turned away.
    Required,
    /// One without a certificate is let in; one with a certificate that isn't trusted is turned away.
    Optional,
}

/// A client's side of TLS 1.3; cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    tls: rustls::ClientConfig,
    /// What the configuration is built from; `None` when it came ready-made.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
    algorithms: Algorithms,
    clock: WallClock,
    insecure: bool,
    /// What is remembered from one connection to the next.
    sessions: Option<SessionStore>,
    /// Tells these settings from others: a session is resumed only with those that it was got with.
    identity: u64,
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
        Self::with_root_store(store(roots)?, alpn)
    }

    /// As [`ClientConfig::with_roots`], with trust anchors in rustls' form.
    ///
    /// # Errors
    ///
    /// When there is no root, or `alpn` is invalid.
    pub fn with_root_store(roots: RootCertStore, alpn: &[&[u8]]) -> Result<Self, ApiError> {
        let provider = Arc::new(default_provider());
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
        let algorithms = default_provider().signature_verification_algorithms;
        Self::with_verifier(Arc::new(Rootless::pinned(pin, algorithms)), alpn)
    }

    /// Trusts every server, so that anyone on the path can read and change everything. For experiments only.
    ///
    /// # Errors
    ///
    /// When `alpn` is invalid.
    pub fn insecure(alpn: &[&[u8]]) -> Result<Self, ApiError> {
        let algorithms = default_provider().signature_verification_algorithms;
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
        let algorithms = Algorithms::default();
        let mut tls = client(Arc::clone(&verifier), &algorithms)?;
        tls.alpn_protocols = protocols(alpn)?;
        Ok(Self {
            tls,
            verifier: Some(verifier),
            algorithms,
            clock: WallClock::system(),
            insecure: false,
            sessions: Some(SessionStore::new()),
            identity: new_identity(),
        })
    }

    /// Takes a rustls configuration as it is, but for its session store, whose place a [`SessionStore`] takes, and for
    /// early data, which each connection decides on.
    ///
    /// # Errors
    ///
    /// When it has no TLS 1.3 cipher suite or no application protocol.
    pub fn from_rustls(mut tls: rustls::ClientConfig) -> Result<Self, ApiError> {
        check_provider(tls.crypto_provider())?;
        check_protocols(&tls.alpn_protocols)?;
        tls.resumption = Resumption::disabled();
        tls.enable_early_data = false;
        Ok(Self {
            tls,
            verifier: None,
            algorithms: Algorithms::default(),
            clock: WallClock::system(),
            insecure: false,
            sessions: Some(SessionStore::new()),
            identity: new_identity(),
        })
    }

    /// Offers only `suites`, most wanted first.
    ///
    /// # Errors
    ///
    /// When there is none, or the configuration came from [`ClientConfig::from_rustls`].
    pub fn cipher_suites(mut self, suites: &[CipherSuite]) -> Result<Self, ApiError> {
        self.algorithms.suites = suites.to_vec();
        self.rebuild()
    }

    /// Offers only `groups`, most wanted first, and a share of the first at once.
    ///
    /// # Errors
    ///
    /// When there is none, or the configuration came from [`ClientConfig::from_rustls`].
    pub fn key_exchange(mut self, groups: &[KeyExchange]) -> Result<Self, ApiError> {
        self.algorithms.groups = groups.to_vec();
        self.rebuild()
    }

    fn rebuild(mut self) -> Result<Self, ApiError> {
        let verifier = self.verifier.as_ref().ok_or(READY_MADE)?;
        let mut tls = client(Arc::clone(verifier), &self.algorithms)?;
        tls.client_auth_cert_resolver = Arc::clone(&self.tls.client_auth_cert_resolver);
        tls.alpn_protocols = std::mem::take(&mut self.tls.alpn_protocols);
        tls.key_log = Arc::clone(&self.tls.key_log);
        tls.time_provider = Arc::clone(&self.tls.time_provider);
        self.tls = tls;
        self.identity = new_identity();
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

    /// Proves its own identity to servers that ask for that, with `chain`, the client's own certificate first.
    ///
    /// # Errors
    ///
    /// When the key is of an unknown kind or isn't the certificate's.
    pub fn certificate(
        self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, ApiError> {
        let certified = certified(chain, key)?;
        Ok(self.certificate_resolver(Arc::new(SingleCertAndKey::from(certified))))
    }

    /// Proves its own identity with what `certificates` chooses for each server that asks for that.
    #[must_use]
    pub fn certificate_resolver(mut self, certificates: Arc<dyn ResolvesClientCert>) -> Self {
        self.tls.client_auth_cert_resolver = certificates;
        self.identity = new_identity();
        self
    }

    /// Remembers servers in `sessions`, which other settings may share; without this call, only these settings and their
    /// clones remember something for each other.
    #[must_use]
    pub fn sessions(mut self, sessions: SessionStore) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Remembers nothing: makes a full handshake each time, and shows no token of an earlier connection.
    #[must_use]
    pub fn without_resumption(mut self) -> Self {
        self.sessions = None;
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

    /// A connection's way to what is remembered of a server.
    pub(super) fn memory(&self, name: &str, port: u16, version: Version) -> Option<Memory> {
        let destination = Destination::new(name, port, &self.tls.alpn_protocols, version);
        let sessions = self.sessions.clone()?;
        Some(Memory::new(sessions, destination, self.identity))
    }
}

/// A number that no other settings have.
fn new_identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A server's side of TLS 1.3; cheap to clone.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    tls: rustls::ServerConfig,
    /// What the configuration is built from; `None` when it came ready-made.
    certificates: Option<Arc<dyn ResolvesServerCert>>,
    clients: Arc<dyn ClientCertVerifier>,
    algorithms: Algorithms,
    clock: WallClock,
    sessions: Arc<dyn ServerSessions>,
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
        let certified = certified(chain, key)?;
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
        let algorithms = Algorithms::default();
        let clients: Arc<dyn ClientCertVerifier> = Arc::new(NoClientAuth);
        let mut tls = server(Arc::clone(&certificates), Arc::clone(&clients), &algorithms)?;
        tls.alpn_protocols = protocols(alpn)?;
        Ok(Self {
            tls,
            certificates: Some(certificates),
            clients,
            algorithms,
            clock: WallClock::system(),
            sessions: Arc::new(SessionCache::default()),
        })
    }

    /// Takes a rustls configuration as it is, but for its session storage, whose place [`Self::sessions`] takes, and for
    /// early data, which each connection decides on.
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
            clients: Arc::new(NoClientAuth),
            algorithms: Algorithms::default(),
            clock: WallClock::system(),
            sessions: Arc::new(SessionCache::default()),
        })
    }

    /// Accepts only `suites`, most wanted first; a client that wants ChaCha20 most gets it if it is among them.
    ///
    /// # Errors
    ///
    /// When there is none, or the configuration came from [`ServerConfig::from_rustls`].
    pub fn cipher_suites(mut self, suites: &[CipherSuite]) -> Result<Self, ApiError> {
        self.algorithms.suites = suites.to_vec();
        self.rebuild()
    }

    /// Accepts only `groups`, most wanted first.
    ///
    /// # Errors
    ///
    /// When there is none, or the configuration came from [`ServerConfig::from_rustls`].
    pub fn key_exchange(mut self, groups: &[KeyExchange]) -> Result<Self, ApiError> {
        self.algorithms.groups = groups.to_vec();
        self.rebuild()
    }

    /// Asks clients for a certificate that leads to one of `roots`.
    ///
    /// # Errors
    ///
    /// When a root can't be read, when there is none, or when the configuration came from [`ServerConfig::from_rustls`].
    pub fn client_roots(
        self,
        roots: impl IntoIterator<Item = CertificateDer<'static>>,
        certificates: ClientCertificates,
    ) -> Result<Self, ApiError> {
        let provider = Arc::new(default_provider());
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::new(store(roots)?), provider);
        let builder = match certificates {
            ClientCertificates::Required => builder,
            ClientCertificates::Optional => builder.allow_unauthenticated(),
        };
        let verifier = builder
            .build()
            .map_err(|_no_roots| ApiError::Config("no root certificate"))?;
        self.client_verifier(verifier)
    }

    /// Asks clients for a certificate that `verifier` accepts.
    ///
    /// # Errors
    ///
    /// When the configuration came from [`ServerConfig::from_rustls`].
    pub fn client_verifier(
        mut self,
        verifier: Arc<dyn ClientCertVerifier>,
    ) -> Result<Self, ApiError> {
        self.clients = verifier;
        self.rebuild()
    }

    fn rebuild(mut self) -> Result<Self, ApiError> {
        let certificates = self.certificates.as_ref().ok_or(READY_MADE)?;
        let (certificates, clients) = (Arc::clone(certificates), Arc::clone(&self.clients));
        let mut tls = server(certificates, clients, &self.algorithms)?;
        tls.alpn_protocols = std::mem::take(&mut self.tls.alpn_protocols);
        tls.key_log = Arc::clone(&self.tls.key_log);
        tls.time_provider = Arc::clone(&self.tls.time_provider);
        tls.ticketer = Arc::clone(&self.tls.ticketer);
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

    /// Keeps the sessions of clients in `sessions`, which may be shared. Without this call, a [`SessionCache`] is shared by
    /// these settings and their clones.
    #[must_use]
    pub fn sessions(mut self, sessions: Arc<dyn ServerSessions>) -> Self {
        self.sessions = sessions;
        self
    }

    /// Gives out tickets that hold their session, so that nothing is stored and all servers with the same key understand
    /// them. There is no 0-RTT then: nobody would notice when a ticket is used twice.
    #[must_use]
    pub fn tickets(mut self, key: TicketKey) -> Self {
        self.tls.ticketer = Arc::new(key);
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

    pub(super) fn stored_sessions(&self) -> Arc<dyn ServerSessions> {
        Arc::clone(&self.sessions)
    }
}

const READY_MADE: ApiError = ApiError::Config("a rustls configuration is taken as it is");

fn client(
    verifier: Arc<dyn ServerCertVerifier>,
    algorithms: &Algorithms,
) -> Result<rustls::ClientConfig, ApiError> {
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(provider(algorithms)?))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| ApiError::Tls(reason(&error)))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // Each connection brings its own.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn server(
    certificates: Arc<dyn ResolvesServerCert>,
    clients: Arc<dyn ClientCertVerifier>,
    algorithms: &Algorithms,
) -> Result<rustls::ServerConfig, ApiError> {
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider(algorithms)?))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| ApiError::Tls(reason(&error)))?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificates);
    config.ignore_client_order = true;
    Ok(config)
}

/// The provider with these algorithms alone.
fn provider(algorithms: &Algorithms) -> Result<CryptoProvider, ApiError> {
    let Algorithms { suites, groups } = algorithms;
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

/// The roots in rustls' form.
fn store(
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
fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, ApiError> {
    CertifiedKey::from_der(chain, key, &default_provider())
        .map_err(|error| ApiError::Tls(certified_key_reason(&error)))
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
