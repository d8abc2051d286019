//! The stack's two ends as parties of a network: a connection, and an endpoint that accepts everyone.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use quic_common::{BatchBuffer, Random};
use quic_transport::{
    ApiError, Application, CidGenerator, Config, Connection, Endpoint, EndpointConfig, Event,
    Handle, Output, RetryPolicy, Versions, tls,
};

use crate::certificates::{Certificate, WALL_CLOCK, ed25519};
use crate::network::{Arrivals, Party, Transmit};

/// The application protocol of tests.
pub const ALPN: &[u8] = b"test";

/// The name that the certificate of tests is for.
pub const NAME: &str = "localhost";

/// What two ends are made with.
#[derive(Debug)]
pub struct Settings {
    /// For all that is random.
    pub seed: u8,
    /// The client's settings.
    pub client: Config,
    /// The server's settings.
    pub server: Config,
    /// When the server sends a Retry.
    pub retry: RetryPolicy,
    /// How the server makes its connection IDs, if not at random with the length in its settings.
    pub cids: Option<CidGenerator>,
    /// The versions that the server speaks; the client's are in its settings.
    pub versions: Versions,
    /// The key exchange groups of both: X25519 alone by default, so that a ClientHello fits a datagram.
    pub key_exchange: Vec<tls::KeyExchange>,
    /// Whether the server takes any number of clients, all of which have the same address here.
    pub takes_crowds: bool,
    /// The server's certificate.
    pub certificate: Certificate,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            client: Config::default(),
            server: Config::default(),
            retry: RetryPolicy::default(),
            cids: None,
            versions: Versions::DEFAULT,
            key_exchange: vec![tls::KeyExchange::X25519],
            takes_crowds: false,
            certificate: ed25519(&[NAME]),
        }
    }
}

impl Settings {
    /// TLS settings of a client that trusts the last certificate of the server's chain, and remembers servers.
    ///
    /// # Panics
    ///
    /// If that is no certificate.
    #[must_use]
    pub fn client_tls(&self) -> tls::ClientConfig {
        let root = self.certificate.chain.last().unwrap().clone();
        let tls = tls::ClientConfig::with_roots([root], &[ALPN]).unwrap();
        let tls = tls.key_exchange(&self.key_exchange).unwrap();
        tls.wall_clock(tls::WallClock::manual(WALL_CLOCK))
    }
}

/// Keeps all events, and does nothing about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// In the order in which they came.
    pub events: Vec<Event>,
}

impl Application for Log {
    fn process(&mut self, connection: &mut Connection, _: Instant) {
        self.events
            .extend(std::iter::from_fn(|| connection.next_event()));
    }

    fn outlives_its_peer(&self) -> bool {
        true
    }
}

/// A client's connection and what runs above it.
#[derive(Debug)]
pub struct Client<A> {
    /// The connection.
    pub connection: Connection,
    /// What gets its events.
    pub application: A,
}

impl<A: Application + Default> Client<A> {
    /// A client of the server at `remote`, which trusts the last certificate of the server's chain.
    #[must_use]
    pub fn new(settings: &Settings, remote: SocketAddr, now: Instant) -> Self {
        let tls = settings.client_tls();
        let random = Random::from_seed([settings.seed; 32]);
        Self::with_tls(&tls, &settings.client, (NAME, remote), random, now)
    }

    /// A client with other TLS settings, of a server with this name and address.
    #[must_use]
    pub fn with_tls(
        tls: &tls::ClientConfig,
        config: &Config,
        (name, remote): (&str, SocketAddr),
        random: Random,
        now: Instant,
    ) -> Self {
        Self {
            connection: Connection::client(config, tls, name, remote, random, now).unwrap(),
            application: A::default(),
        }
    }
}

impl<A: Application> Party for Client<A> {
    fn receive(&mut self, datagrams: Arrivals<'_>, now: Instant) {
        self.connection.process_multiple_input(datagrams, now);
    }

    fn transmit(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Transmit {
        let Self {
            connection,
            application,
        } = self;
        connection.settle(now);
        if connection.has_events() {
            application.process(connection, now);
        }
        let transmit = Transmit::from(connection.process_output(now, buffer));
        if connection.has_events() {
            application.process(connection, now);
        }
        transmit
    }
}

/// An endpoint that accepts everyone, with one kind of application.
pub struct Server<A> {
    /// The endpoint.
    pub endpoint: Endpoint<A>,
    /// The connections, in the order in which they were accepted.
    pub handles: Vec<Handle>,
    /// Why connections could not be accepted.
    pub refused: Vec<ApiError>,
    /// What the next connection is accepted with.
    pub config: Config,
    /// What the next connection is accepted with.
    pub tls: tls::ServerConfig,
}

impl<A> fmt::Debug for Server<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("handles", &self.handles)
            .finish_non_exhaustive()
    }
}

impl<A: Application + Default> Server<A> {
    /// A server without connections.
    #[must_use]
    pub fn new(settings: &Settings, _: Instant) -> Self {
        let Certificate { chain, key } = settings.certificate.copy();
        let tls = tls::ServerConfig::new(chain, key, &[ALPN]).unwrap();
        Self::with_tls(settings, tls.key_exchange(&settings.key_exchange).unwrap())
    }

    /// A server with other TLS settings.
    #[must_use]
    pub fn with_tls(settings: &Settings, tls: tls::ServerConfig) -> Self {
        let mut random = Random::from_seed([settings.seed.wrapping_add(100); 32]);
        let mut endpoint = EndpointConfig {
            retry: settings.retry,
            versions: settings.versions,
            cids: settings.cids.clone().unwrap_or(CidGenerator::Random {
                length: settings.server.cid_length,
            }),
            grease: settings.server.grease,
            clock: tls::WallClock::manual(WALL_CLOCK),
            ..EndpointConfig::new(&mut random)
        };
        if settings.takes_crowds {
            endpoint.connections_of_address = usize::MAX;
            endpoint.memory = u64::MAX;
        }
        Self {
            endpoint: Endpoint::new(endpoint, random),
            handles: Vec::new(),
            refused: Vec::new(),
            config: settings.server.clone(),
            tls: tls.wall_clock(tls::WallClock::manual(WALL_CLOCK)),
        }
    }

    /// A connection that is still there, with its application.
    pub fn connection(&mut self, place: usize) -> Option<(&mut Connection, &mut A)> {
        let handle = self.handles.get(place)?;
        self.endpoint.connection_mut(*handle)
    }
}

impl<A: Application + Default> Party for Server<A> {
    fn receive(&mut self, datagrams: Arrivals<'_>, now: Instant) {
        self.endpoint.process_multiple_input(datagrams, now);
    }

    fn transmit(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Transmit {
        while let Some(incoming) = self.endpoint.next_incoming() {
            let Self {
                endpoint,
                config,
                tls,
                ..
            } = self;
            match endpoint.accept(incoming, config, tls, A::default(), now) {
                Ok(handle) => self.handles.push(handle),
                Err(error) => self.refused.push(error),
            }
        }
        self.endpoint.process_output(now, buffer).into()
    }
}

impl From<Output<'_>> for Transmit {
    fn from(output: Output<'_>) -> Self {
        match output {
            Output::Datagrams(batch) => Self::Batch(batch.head()),
            Output::Callback(time) => Self::Callback(time),
            Output::None => Self::Nothing,
        }
    }
}
