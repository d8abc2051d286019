//! What an application chooses about a server's TLS: what it proves, whom it lets in, and which protocols it speaks
//! ([RFC 9001, section 8.1](https://www.rfc-editor.org/rfc/rfc9001#section-8.1)).
//!
//! It holds a finished rustls configuration, which every connection clones with a key log of its own.

use std::sync::Arc;

use rustls::KeyLog;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;

use super::algorithms::Algorithms;
use super::clock::WallClock;
use super::crypto::provider::default_provider;
use super::failure::reason;
use super::given::{READY_MADE, certified, check_protocols, check_provider, protocols, store};
use super::key_exchange::KeyExchange;
use super::server_sessions::{ServerSessions, SessionCache};
use super::suite::CipherSuite;
use super::ticket_key::TicketKey;
use crate::error::ApiError;

/// Whether clients have to show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// One without a certificate is turned away.
    Required,
    /// One without a certificate is let in; one with a certificate that isn't trusted is turned away.
    Optional,
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

fn server(
    certificates: Arc<dyn ResolvesServerCert>,
    clients: Arc<dyn ClientCertVerifier>,
    algorithms: &Algorithms,
) -> Result<rustls::ServerConfig, ApiError> {
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(algorithms.provider()?))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| ApiError::Tls(reason(&error)))?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificates);
    config.ignore_client_order = true;
    Ok(config)
}
