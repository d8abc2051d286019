//! The server: an endpoint on a socket, and who is let in.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use mio::Waker;
use quic_common::{BatchBuffer, BatchHead, Random};
use quic_http3::Code;
use quic_transport::{
    Admission, Config, Endpoint, EndpointConfig, Incoming, Output as Step, RetryPolicy, Side,
    UsedTokens, Versions,
    tls::{self, CipherSuite, KeyExchange, ResetKey, TokenKey},
};
use quic_udp::{Datagrams, Fault};

use crate::{
    alpn::Alpn,
    certificate::Identity,
    cli::{self, Extensions},
    event_loop::{Output, Protocol, SocketId},
    failure::Failure,
    limits::{GOODBYE, MAX_LOOPBACK_DATAGRAM, SERVER_STREAMS},
    post::Post,
    qlog_files::QlogFiles,
    random,
    reader::Reader,
    secrets::Secrets,
    service::Service,
    signals::Termination,
    site::Site,
};

/// The application protocol of HTTP/3.
pub const ALPN: &[u8] = b"h3";

/// What a server does in its own way.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Settings {
    /// The protocols that it speaks, most wanted first.
    pub alpn: Vec<Alpn>,
    /// When clients have to show that they are where they say.
    pub retry: RetryPolicy,
    /// The QUIC versions that it speaks, most wanted first.
    pub versions: Versions,
    /// The cipher suites that it accepts, most wanted first.
    pub cipher_suites: Vec<CipherSuite>,
    /// Where it would rather be reached, one address of a family.
    pub preferred: Vec<SocketAddr>,
    /// Whether clients are asked not to move.
    pub forbids_migration: bool,
    /// Where each connection is logged, if it is to be.
    pub qlog: Option<QlogFiles>,
    /// What it does without.
    pub extensions: Extensions,
    /// Connections that one address may have, if the usual number isn't right.
    pub connections_of_address: Option<usize>,
    /// The key exchange groups that it accepts, most wanted first.
    pub key_exchange: Vec<KeyExchange>,
    /// Requests that a client may have open at a time.
    pub streams: u64,
    /// Whether it takes requests that come in 0-RTT packets.
    pub early_data: bool,
    /// Whether those are to be made again after the handshake.
    pub refuses_early: bool,
    /// What it has in common with other servers, or with itself before a restart.
    pub secrets: Option<Secrets>,
    /// Whether sessions are in tickets sealed with those secrets, and not kept.
    pub shared_tickets: bool,
    /// Whether datagrams of clients that speak HTTP/0.9 are returned.
    pub echoes_datagrams: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            alpn: vec![Alpn::Http3],
            retry: RetryPolicy::default(),
            versions: Versions::DEFAULT,
            cipher_suites: CipherSuite::ALL.to_vec(),
            preferred: Vec::new(),
            forbids_migration: false,
            qlog: None,
            extensions: Extensions::default(),
            connections_of_address: None,
            key_exchange: KeyExchange::DEFAULT.to_vec(),
            streams: SERVER_STREAMS,
            early_data: true,
            refuses_early: false,
            secrets: None,
            shared_tickets: false,
            echoes_datagrams: false,
        }
    }
}

impl Settings {
    /// The settings for all connections.
    fn config(&self) -> Config {
        let mut config = self.extensions.apply(Config {
            max_streams_bidirectional: self.streams,
            disable_active_migration: self.forbids_migration,
            early_data: self.early_data,
            ..Config::default()
        });
        for address in &self.preferred {
            match address {
                SocketAddr::V4(v4) => config.preferred_v4 = Some(*v4),
                SocketAddr::V6(v6) => config.preferred_v6 = Some(*v6),
            }
        }
        config
    }
}

impl TryFrom<&cli::Server> for Settings {
    type Error = Failure;

    fn try_from(arguments: &cli::Server) -> Result<Self, Failure> {
        let mut settings = Self {
            alpn: arguments.alpn.clone(),
            versions: arguments.quic_versions,
            forbids_migration: arguments.no_migration,
            qlog: QlogFiles::new(arguments.qlog_dir.as_deref())?,
            extensions: arguments.extensions,
            connections_of_address: arguments.connections_per_address,
            early_data: !arguments.no_0rtt,
            refuses_early: arguments.too_early,
            shared_tickets: arguments.shared_tickets,
            echoes_datagrams: arguments.datagram_echo,
            ..Self::default()
        };
        if arguments.retry {
            settings.retry = RetryPolicy::Always;
        }
        if !arguments.key_exchange.is_empty() {
            let groups = arguments.key_exchange.iter();
            settings.key_exchange = groups.map(|group| group.key_exchange()).collect();
        }
        if let Some(cipher) = arguments.cipher {
            settings.cipher_suites = vec![cipher.suite()];
        }
        Ok(settings)
    }
}

/// What all threads of a server have in common.
#[derive(Debug)]
pub struct Shared {
    settings: Settings,
    tls: tls::ServerConfig,
    site: Arc<Site>,
    reset_key: ResetKey,
    token_key: TokenKey,
    /// Which secrets those keys are from.
    secrets_version: u64,
    used_tokens: UsedTokens,
    admission: Admission,
    termination: Termination,
}

/// A server on one socket.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint<Service>,
    config: Config,
    alpn: Vec<Alpn>,
    qlog: Option<QlogFiles>,
    echoes_datagrams: bool,
    refuses_early: bool,
    tls: tls::ServerConfig,
    site: Arc<Site>,
    secrets: Option<Secrets>,
    /// Which of them are in use.
    secrets_version: u64,
    shared_tickets: bool,
    termination: Termination,
    post: Post,
    reader: Reader,
    life: Life,
}

/// Whether the server is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Serving,
    /// Every client is being told, but not beyond this time.
    Ending {
        until: Instant,
    },
    /// There is nothing left to say.
    Ended,
}

impl Shared {
    /// Serves `site` and shows `identity`. On `termination` its servers say goodbye to their clients and end.
    ///
    /// # Errors
    ///
    /// When the certificate and the key don't fit, or there is no randomness.
    pub fn new(identity: Identity, site: Site, termination: Termination) -> Result<Self, Failure> {
        Self::with_settings(identity, site, Settings::default(), termination)
    }

    /// [`Shared::new`], in its own way.
    ///
    /// # Errors
    ///
    /// When the certificate and the key don't fit, or nothing is left to speak.
    pub fn with_settings(
        identity: Identity,
        site: Site,
        settings: Settings,
        termination: Termination,
    ) -> Result<Self, Failure> {
        let names = Alpn::names(&settings.alpn);
        let tls = tls::ServerConfig::new(identity.chain, identity.key, &names)
            .and_then(|tls| tls.cipher_suites(&settings.cipher_suites))
            .and_then(|tls| tls.key_exchange(&settings.key_exchange))
            .map_err(|error| Failure::new(format!("certificate and key: {error}")))?
            .key_log(Arc::new(rustls::KeyLogFile::new()));
        // In this order: what changes in between is seen as a change.
        let secrets_version = settings.secrets.as_ref().map_or(0, Secrets::version);
        let secrets = settings.secrets.as_ref().map(Secrets::current);
        let tls = match secrets.as_ref().filter(|_| settings.shared_tickets) {
            Some(secrets) => tls.tickets(secrets.ticket_key()),
            None => tls,
        };
        let mut random = Random::from_seed(random::seed()?);
        let (reset_key, token_key) = secrets.as_ref().map_or_else(
            || (ResetKey::new(random.array()), TokenKey::new(random.array())),
            |secrets| (secrets.reset_key(), secrets.token_key()),
        );
        Ok(Self {
            settings,
            tls,
            site: Arc::new(site),
            reset_key,
            token_key,
            secrets_version,
            used_tokens: UsedTokens::default(),
            admission: Admission::default(),
            termination,
        })
    }

    /// What ends its servers.
    pub(crate) const fn termination(&self) -> &Termination {
        &self.termination
    }

    /// The server for the thread that `post` belongs to, and whose loop `waker` wakes up.
    ///
    /// # Errors
    ///
    /// When there is no randomness, or no thread to read files in.
    pub fn server(&self, post: Post, waker: Arc<Waker>) -> Result<Server, Failure> {
        let reader = Reader::start(waker)
            .map_err(|error| Failure::new(format!("can't start a thread: {error}")))?;
        let mut random = Random::from_seed(random::seed()?);
        let mut config = EndpointConfig::new(&mut random);
        config.retry = self.settings.retry;
        config.versions = self.settings.versions;
        config.grease = !self.settings.extensions.no_grease;
        config.share = post.share();
        config.reset_key = self.reset_key.clone();
        if let Some(most) = self.settings.connections_of_address {
            config.connections_of_address = most;
        }
        config.token_key = self.token_key.clone();
        config.used_tokens = self.used_tokens.clone();
        config.admission = self.admission.clone();
        Ok(Server {
            endpoint: Endpoint::new(config, random),
            config: self.settings.config(),
            alpn: self.settings.alpn.clone(),
            qlog: self.settings.qlog.clone(),
            echoes_datagrams: self.settings.echoes_datagrams,
            refuses_early: self.settings.refuses_early,
            tls: self.tls.clone(),
            site: Arc::clone(&self.site),
            secrets: self.settings.secrets.clone(),
            secrets_version: self.secrets_version,
            shared_tickets: self.settings.shared_tickets,
            termination: self.termination.clone(),
            post,
            reader,
            life: Life::Serving,
        })
    }
}

impl Server {
    fn admit(&mut self, mut incoming: Incoming, now: Instant) {
        if let Some(qlog) = &self.qlog
            && let Some(observer) = qlog.observer(incoming.original_dcid(), Side::Server)
        {
            incoming.observe(observer);
        }
        let mut config = config_for(incoming.remote(), &self.config);
        // TLS tells a client with which it has no protocol in common.
        let alpn = Alpn::choose(&self.alpn, || incoming.alpn()).unwrap_or(Alpn::Http3);
        if self.echoes_datagrams && alpn == Alpn::HqInterop {
            config.datagrams.max_frame_size = u16::MAX;
        }
        let mut service = Service::new(alpn, Arc::clone(&self.site), self.reader.requests());
        if self.refuses_early {
            service = service.refusing_early_requests();
        }
        let accepted = self
            .endpoint
            .accept(incoming, &config, &self.tls, service, now);
        // A client that can't be accepted has been refused.
        if let Ok(handle) = accepted
            && let Some((_, service)) = self.endpoint.connection_mut(handle)
        {
            service.set_connection(handle);
        }
    }

    /// Goes over to other secrets, if the file has been read again.
    fn follow_secrets(&mut self) {
        let Some(secrets) = &self.secrets else {
            return;
        };
        let version = secrets.version();
        if version == self.secrets_version {
            return;
        }
        self.secrets_version = version;
        let current = secrets.current();
        self.endpoint.set_secrets(&current);
        if self.shared_tickets {
            self.tls = self.tls.clone().tickets(current.ticket_key());
        }
    }

    fn say_goodbye(&mut self, now: Instant) {
        let handles: Vec<_> = self.endpoint.handles().collect();
        for handle in handles {
            if let Some((connection, _)) = self.endpoint.connection_mut(handle) {
                connection.close(Code::NO_ERROR.value(), b"the server ends");
            }
        }
        self.life = Life::Ending {
            until: now + GOODBYE,
        };
    }
}

/// The settings for a client at `remote`: on this machine a datagram may be as large as UDP allows.
fn config_for(remote: SocketAddr, config: &Config) -> Config {
    let mut config = config.clone();
    if remote.ip().is_loopback() {
        config.max_datagram = MAX_LOOPBACK_DATAGRAM;
    }
    config
}

impl Protocol for Server {
    fn input(&mut self, _: SocketId, datagrams: Datagrams<'_>, now: Instant) {
        self.endpoint.process_multiple_input(datagrams, now);
    }

    fn process(&mut self, now: Instant) {
        self.follow_secrets();
        while let Some(foreign) = self.endpoint.take_foreign() {
            self.post.send(foreign);
        }
        while let Some(mut foreign) = self.post.receive() {
            self.endpoint.input(foreign.datagram(), now);
        }
        while let Some((reference, read)) = self.reader.receive() {
            if let Some((connection, service)) = self.endpoint.connection_mut(reference.connection)
            {
                service.on_read(connection, reference.stream, read);
            }
        }
        match self.life {
            Life::Serving if self.termination.is_requested() => self.say_goodbye(now),
            Life::Serving => {
                while let Some(incoming) = self.endpoint.next_incoming() {
                    self.admit(incoming, now);
                }
            }
            Life::Ending { until } if until <= now => self.life = Life::Ended,
            Life::Ending { .. } | Life::Ended => {}
        }
    }

    fn output(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Output {
        let output = self.endpoint.process_output(now, buffer).into();
        if matches!(self.life, Life::Ending { .. }) && !matches!(output, Output::Batch(_)) {
            self.life = Life::Ended;
        }
        output
    }

    fn is_done(&self) -> bool {
        self.life == Life::Ended
    }

    fn on_fault(&mut self, _: SocketId, head: BatchHead, fault: Fault) {
        if fault == Fault::TooLarge {
            self.endpoint.on_batch_refused(&head);
        }
    }
}

impl From<Step<'_>> for Output {
    fn from(step: Step<'_>) -> Self {
        match step {
            Step::Datagrams(batch) => Self::Batch(batch.head()),
            Step::Callback(wait) => Self::Wait(wait),
            Step::None => Self::Idle,
        }
    }
}
