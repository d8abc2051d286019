//! An endpoint, and the first datagrams of clients that it doesn't know.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::missing_const_for_fn,
    clippy::unwrap_used,
    reason = "test code, of which each file uses a part"
)]

use quic_common::{BatchBuffer, Datagram, Ecn, Random};
use quic_transport::{Config, Endpoint, EndpointConfig, Output, RetryPolicy, tls};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use test_fixture::certificates::{WALL_CLOCK, ed25519};
use test_fixture::ends::{ALPN, Client, Log, NAME, Settings};
use test_fixture::network::{Link, Party as _, Transmit};

pub fn server_address() -> SocketAddr {
    ([192, 0, 2, 2], 443).into()
}

pub fn client_address(index: u64) -> SocketAddr {
    let index = u16::try_from(index).unwrap();
    let host = u8::try_from(index / 100).unwrap();
    ([198, 51, 100, host], 40_000 + index).into()
}

pub struct Bench {
    pub endpoint: Endpoint<Log>,
    pub config: Config,
    pub tls: tls::ServerConfig,
    pub now: Instant,
    pub buffer: BatchBuffer,
}

impl Bench {
    pub fn new(retry: RetryPolicy) -> Self {
        Self::with(|config| config.retry = retry)
    }

    pub fn with(change: impl FnOnce(&mut EndpointConfig)) -> Self {
        let settings = Settings::default();
        let mut random = Random::from_seed([7; 32]);
        let certificate = ed25519(&[NAME]);
        let tls = tls::ServerConfig::new(certificate.chain, certificate.key, &[ALPN]).unwrap();
        let now = test_fixture::network(&settings, Link::default()).now();
        let mut config = EndpointConfig::new(&mut random);
        change(&mut config);
        Self {
            endpoint: Endpoint::new(config, random),
            config: Config::default(),
            tls: tls.wall_clock(tls::WallClock::manual(WALL_CLOCK)),
            now,
            buffer: BatchBuffer::new(),
        }
    }

    pub fn input(&mut self, remote: SocketAddr, mut payload: Vec<u8>) {
        let datagram = Datagram {
            remote,
            local: None,
            ecn: Ecn::NotEct,
            payload: &mut payload,
        };
        self.endpoint.input(datagram, self.now);
    }

    /// Accepts all, and returns how many.
    pub fn accept(&mut self) -> usize {
        let mut count = 0;
        while let Some(incoming) = self.endpoint.next_incoming() {
            let accepted =
                self.endpoint
                    .accept(incoming, &self.config, &self.tls, Log::default(), self.now);
            count += usize::from(accepted.is_ok());
        }
        count
    }

    /// All that the endpoint has to send now, and when it wants to be asked again.
    pub fn output(&mut self) -> (Vec<Vec<u8>>, Option<Duration>) {
        let mut sent = Vec::new();
        loop {
            match self.endpoint.process_output(self.now, &mut self.buffer) {
                Output::Datagrams(batch) => sent.extend(batch.segments().map(<[u8]>::to_vec)),
                Output::Callback(time) => return (sent, Some(time)),
                Output::None => return (sent, None),
            }
        }
    }
}

/// A client; each index has its own connection IDs.
pub fn client(index: u64, now: Instant) -> Client<Log> {
    let mut seed = [9; 32];
    seed[..8].copy_from_slice(&index.to_be_bytes());
    let root = Settings::default()
        .certificate
        .chain
        .last()
        .unwrap()
        .clone();
    let tls = tls::ClientConfig::with_roots([root], &[ALPN]).unwrap();
    let tls = tls.key_exchange(&[tls::KeyExchange::X25519]).unwrap();
    let tls = tls.wall_clock(tls::WallClock::manual(WALL_CLOCK));
    let random = Random::from_seed(seed);
    Client::with_tls(
        &tls,
        &Config::default(),
        (NAME, server_address()),
        random,
        now,
    )
}

/// What a client sends now.
pub fn sent(client: &mut Client<Log>, now: Instant) -> Vec<Vec<u8>> {
    let mut buffer = BatchBuffer::new();
    let mut sent = Vec::new();
    while let Transmit::Batch(head) = client.transmit(now, &mut buffer) {
        sent.extend(buffer.batch(head).segments().map(<[u8]>::to_vec));
    }
    sent
}

/// A client's first datagram.
pub fn first_datagram(index: u64, now: Instant) -> Vec<u8> {
    sent(&mut client(index, now), now).swap_remove(0)
}
