//! Two parties on a network: the stack's own ends, or one of them and a scripted peer.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use quic_transport::Application;

use crate::ends::{ALPN, Client, NAME, Server, Settings};
use crate::network::{Counted, Link, Network, Party};
use crate::scripted::{Parameters, ScriptedPeer, client_config, server_config};

/// The client's place in the network.
pub const CLIENT: usize = 0;
/// The server's place in the network.
pub const SERVER: usize = 1;

/// How long anything that is waited for may take, in virtual time.
const PATIENCE: Duration = Duration::from_mins(10);

/// A client and a server on virtual time.
#[derive(Debug)]
pub struct Pair<C, S> {
    /// What connects them.
    pub network: Network,
    /// The client.
    pub client: C,
    /// The server.
    pub server: S,
}

impl<C: Party, S: Party> Pair<C, S> {
    /// Gives each a turn; false when nothing would ever happen again.
    pub fn step(&mut self) -> bool {
        self.network.step(&mut [&mut self.client, &mut self.server])
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration) {
        let parties: &mut [&mut dyn Party] = &mut [&mut self.client, &mut self.server];
        self.network.run(parties, time);
    }

    /// Lets time pass, and counts how often each is asked what to send: once, if it has nothing to do.
    pub fn turns(&mut self, time: Duration) -> (u32, u32) {
        let mut client = Counted::new(&mut self.client);
        let mut server = Counted::new(&mut self.server);
        self.network.run(&mut [&mut client, &mut server], time);
        (client.turns, server.turns)
    }

    /// Steps until `done`.
    ///
    /// # Panics
    ///
    /// If that takes more than ten virtual minutes, or nothing happens any more.
    pub fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.network.now() + PATIENCE;
        while !done(self) {
            let is_over = !self.step() && !done(self);
            assert!(!is_over, "nothing happens any more: {:?}", self.network);
            assert!(self.network.now() < end, "not done in {PATIENCE:?}");
        }
    }
}

impl<A: Application + Default, B: Application + Default> Pair<Client<A>, Server<B>> {
    /// Both ends are the stack's own.
    #[must_use]
    pub fn new(settings: &Settings, link: Link) -> Self {
        let network = network(settings, link);
        Self {
            client: Client::new(settings, network.address(SERVER), network.now()),
            server: Server::new(settings, network.now()),
            network,
        }
    }

    /// Runs until both ends know that the handshake is complete.
    ///
    /// # Panics
    ///
    /// If it doesn't complete.
    pub fn handshake(&mut self) {
        self.run_until(|pair| {
            assert!(!pair.client.connection.is_closing(), "the client gave up");
            let server = pair.server.connection(0);
            let is_server_ready = server.is_some_and(|(server, _)| !server.is_handshaking());
            is_server_ready && !pair.client.connection.is_handshaking()
        });
    }
}

impl<A: Application + Default> Pair<ScriptedPeer, Server<A>> {
    /// The client is scripted.
    #[must_use]
    pub fn scripted_client(settings: &Settings, parameters: Parameters, link: Link) -> Self {
        let network = network(settings, link);
        let root = settings.certificate.chain.last().unwrap();
        let tls = client_config(root, &[ALPN]);
        let remote = network.address(SERVER);
        Self {
            client: ScriptedPeer::client(tls, NAME, parameters, remote, settings.seed),
            server: Server::new(settings, network.now()),
            network,
        }
    }

    /// Runs until the scripted client has been told that the handshake is complete.
    pub fn handshake(&mut self) {
        self.run_until(|pair| pair.client.is_confirmed());
    }
}

impl<A: Application + Default> Pair<Client<A>, ScriptedPeer> {
    /// The server is scripted.
    #[must_use]
    pub fn scripted_server(settings: &Settings, parameters: Parameters, link: Link) -> Self {
        let network = network(settings, link);
        let tls = server_config(&settings.certificate, &[ALPN]);
        Self {
            client: Client::new(settings, network.address(SERVER), network.now()),
            server: ScriptedPeer::server(tls, parameters, settings.seed),
            network,
        }
    }

    /// Runs until the scripted server has told the client that the handshake is complete.
    pub fn handshake(&mut self) {
        self.run_until(|pair| pair.server.is_confirmed());
        self.run(Duration::from_secs(1));
    }
}

/// Two nodes, the client first.
#[must_use]
pub fn network(settings: &Settings, link: Link) -> Network {
    let address = |host, port| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), port));
    let mut network = Network::new(settings.seed.into(), &[address(1, 50_000), address(2, 443)]);
    network.set_links(link);
    network
}
