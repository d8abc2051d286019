//! A client that comes back to a server: for tests of what is remembered.

use std::time::Duration;

use quic_common::Random;
use quic_transport::{Config, Connection, tls};

use crate::ends::{Client, NAME, Server, Settings};
use crate::network::Link;
use crate::{Bulk, Pair, SERVER};

/// Both ends move bytes.
pub type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

/// From one end to the other.
pub const DELAY: Duration = Duration::from_millis(20);

const SECOND: Duration = Duration::from_secs(1);

/// Ends that send and take early data.
#[must_use]
pub fn settings() -> Settings {
    let early = Config {
        early_data: true,
        ..Config::default()
    };
    Settings {
        client: early.clone(),
        server: early,
        ..Settings::default()
    }
}

/// A pair whose client has been there before, with a connection that is over.
#[derive(Debug)]
pub struct Visit {
    /// Both ends; the client is the one that came last.
    pub pair: Bulks,
    /// What the client remembers servers with.
    pub tls: tls::ClientConfig,
    /// How often it has come back.
    pub visits: u8,
}

impl Visit {
    /// The first visit, which is over.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self::serving(settings, |tls| tls)
    }

    /// The first visit to a server with other TLS settings.
    #[must_use]
    pub fn serving(
        settings: &Settings,
        change: impl FnOnce(tls::ServerConfig) -> tls::ServerConfig,
    ) -> Self {
        let mut pair = Bulks::new(settings, Link::delayed(DELAY));
        pair.server.tls = change(pair.server.tls.clone());
        let tls = settings.client_tls();
        pair.client = client(&pair, &tls, &settings.client, 0);
        let mut visit = Self {
            pair,
            tls,
            visits: 0,
        };
        assert!(!visit.pair.client.connection.is_sending_early_data());
        visit.pair.handshake();
        visit.leave();
        visit
    }

    /// Ends the connection, after what the server still has to say.
    pub fn leave(&mut self) {
        self.pair.run(SECOND);
        self.pair.client.connection.close(0, b"");
        self.pair.run(SECOND * 10);
        self.pair.server.handles.clear();
        assert!(self.pair.server.endpoint.is_empty());
    }

    /// The client comes back.
    pub fn come_back(&mut self) {
        self.visits += 1;
        let config = Config {
            early_data: true,
            ..Config::default()
        };
        self.pair.client = client(&self.pair, &self.tls, &config, self.visits);
    }

    /// The client asks for something at once.
    pub fn request(&mut self, download: u64, upload: u64) {
        self.pair.client.request(download, upload).unwrap();
    }

    /// Runs until the client has so many answers, and the server as many requests, each once and whole.
    pub fn finish(&mut self, requests: u64, bytes: u64) {
        self.pair.run_until(|pair| {
            assert_eq!(pair.client.application.closed, None);
            pair.client.application.complete == requests
        });
        self.pair.run(SECOND);
        let (server, application) = self.pair.server.connection(0).unwrap();
        assert!(!server.is_handshaking());
        assert!(!application.is_wrong && !self.pair.client.application.is_wrong);
        assert_eq!(application.complete, requests);
        assert_eq!(application.received, bytes);
    }

    /// The client's connection.
    #[must_use]
    pub const fn client(&self) -> &Connection {
        &self.pair.client.connection
    }
}

/// A client of the pair's server.
#[must_use]
pub fn client(pair: &Bulks, tls: &tls::ClientConfig, config: &Config, visit: u8) -> Client<Bulk> {
    let remote = (NAME, pair.network.address(SERVER));
    let random = Random::from_seed([100 + visit; 32]);
    Client::with_tls(tls, config, remote, random, pair.network.now())
}
