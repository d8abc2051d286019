//! What an application chooses about a client's TLS: whom it trusts, what it proves, and which protocols it speaks
//! ([RFC 9001, section 8.1](https://www.rfc-editor.org/rfc/rfc9001#section-8.1)).
//!
//! It holds a finished rustls configuration, which every connection clones with a key log of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{EchMode, ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{KeyLog, RootCertStore};

use super::algorithms::Algorithms;
use super::clock::WallClock;
use super::crypto::provider::default_provider;
use super::ech::{self, EchStatus};
use super::failure::reason;
use super::given::{READY_MADE, certified, check_protocols, check_provider, protocols, store};
use super::key_exchange::KeyExchange;
use super::session_store::{Destination, Memory, SessionStore};
use super::suite::CipherSuite;
use super::verify::Rootless;
use crate::error::ApiError;
use crate::wire::Version;

/// A client's side of TLS 1.3; cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    tls: rustls::ClientConfig,
    /// What the configuration is built from; `None` when it came ready-made.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
    algorithms: Algorithms,
    ech: Option<EchMode>,
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
        let mut tls = client(Arc::clone(&verifier), &algorithms, None)?;
        tls.alpn_protocols = protocols(alpn)?;
        Ok(Self {
            tls,
            verifier: Some(verifier),
            algorithms,
            ech: None,
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
            ech: None,
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

    /// Encrypts the ClientHello, so that the server's name can't be read on the way: `list` is the ECHConfigList that the
    /// server has published, in DNS say. [`Connection::ech_status`](crate::Connection::ech_status) tells whether the server
    /// took it; one that doesn't is left. The names of the protocols and the transport parameters can be read all the same.
    ///
    /// # Errors
    ///
    /// When `list` can't be used, the cryptographic library is ring, which lacks what it takes, or the configuration came
    /// from [`ClientConfig::from_rustls`].
    pub fn ech(mut self, list: &[u8]) -> Result<Self, ApiError> {
        self.ech = Some(ech::encrypted(list)?);
        self.rebuild()
    }

    /// Has the ClientHello look as if it were encrypted, for servers that don't ask for that: else those that do would
    /// stand out (RFC 9849, 6.2).
    ///
    /// # Errors
    ///
    /// When the cryptographic library is ring, which lacks what it takes, or the configuration came from
    /// [`ClientConfig::from_rustls`].
    pub fn ech_grease(mut self) -> Result<Self, ApiError> {
        self.ech = Some(ech::grease()?);
        self.rebuild()
    }

    fn rebuild(mut self) -> Result<Self, ApiError> {
        let verifier = self.verifier.as_ref().ok_or(READY_MADE)?;
        let mut tls = client(Arc::clone(verifier), &self.algorithms, self.ech.as_ref())?;
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

    /// What becomes of the ClientHello, as a connection begins.
    pub(super) const fn ech_offered(&self) -> EchStatus {
        match self.ech {
            None => EchStatus::NotOffered,
            Some(EchMode::Grease(_)) => EchStatus::Grease,
            Some(EchMode::Enable(_)) => EchStatus::Offered,
        }
    }

    /// Whether a session with a server could be resumed in this version: they are for one each (RFC 9369, 5).
    pub(crate) fn has_session(&self, name: &str, port: u16, version: Version) -> bool {
        let memory = self.memory(name, port, version);
        memory.is_some_and(|memory| memory.has_session())
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

fn client(
    verifier: Arc<dyn ServerCertVerifier>,
    algorithms: &Algorithms,
    ech: Option<&EchMode>,
) -> Result<rustls::ClientConfig, ApiError> {
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(algorithms.provider()?));
    let builder = match ech {
        Some(mode) => builder.with_ech(mode.clone()),
        None => builder.with_protocol_versions(&[&TLS13]),
    };
    let mut config = builder
        .map_err(|error| ApiError::Tls(reason(&error)))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // Each connection brings its own.
    config.resumption = Resumption::disabled();
    Ok(config)
}
