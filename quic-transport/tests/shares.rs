//! Endpoints on several threads that share an address: what the kernel gives to the wrong one is carried to the right one.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, Datagram, Random, Share};
use quic_transport::{
    Config, Connection, Direction, Endpoint, EndpointConfig, Event, Output, RetryPolicy,
    StreamEvent, tls,
};
use test_fixture::certificates::{WALL_CLOCK, ed25519};
use test_fixture::ends::{ALPN, Log, NAME, Settings};
use test_fixture::network::Link;

const THREADS: u16 = 3;

/// All endpoints of an address, of which the first gets every datagram.
struct Threads {
    endpoints: Vec<Endpoint<Log>>,
    config: Config,
    tls: tls::ServerConfig,
    carried: usize,
}

impl Threads {
    fn new(retry: RetryPolicy) -> (Self, tls::ClientConfig) {
        let certificate = ed25519(&[NAME]);
        let clock = tls::WallClock::manual(WALL_CLOCK);
        // So that a ClientHello fits a datagram, and gets one Retry.
        let client = tls::ClientConfig::with_roots(certificate.chain.clone(), &[ALPN])
            .and_then(|tls| tls.key_exchange(&[tls::KeyExchange::X25519]))
            .unwrap();
        let server = tls::ServerConfig::new(certificate.chain, certificate.key, &[ALPN]).unwrap();
        let endpoints = (0..THREADS).map(|index| {
            let mut config = EndpointConfig::new(&mut Random::from_seed([1; 32]));
            config.retry = retry;
            config.share = Share::new(index, THREADS).unwrap();
            let seed = u8::try_from(index).unwrap() + 2;
            Endpoint::new(config, Random::from_seed([seed; 32]))
        });
        let threads = Self {
            endpoints: endpoints.collect(),
            config: Config::default(),
            tls: server.wall_clock(clock.clone()),
            carried: 0,
        };
        (threads, client.wall_clock(clock))
    }

    fn input(&mut self, datagram: Datagram<'_>, now: Instant) {
        let (first, others) = self.endpoints.split_first_mut().unwrap();
        first.input(datagram, now);
        while let Some(mut foreign) = first.take_foreign() {
            self.carried += 1;
            let other = usize::from(foreign.owner()) - 1;
            let endpoint = others.get_mut(other).unwrap();
            endpoint.input(foreign.datagram(), now);
            assert_eq!(endpoint.take_foreign(), None, "it has found its owner");
        }
    }

    fn output(&mut self, now: Instant, buffer: &mut BatchBuffer, client: &mut Connection) {
        for endpoint in &mut self.endpoints {
            while let Some(incoming) = endpoint.next_incoming() {
                let log = Log::default();
                endpoint
                    .accept(incoming, &self.config, &self.tls, log, now)
                    .unwrap();
            }
            while let Output::Datagrams(batch) = endpoint.process_output(now, buffer) {
                let head = batch.head();
                for segment in batch.segments() {
                    let datagram = Datagram {
                        remote: ([192, 0, 2, 2], 443).into(),
                        local: None,
                        ecn: head.ecn,
                        payload: &mut segment.to_vec(),
                    };
                    client.input(datagram, now);
                }
            }
        }
    }
}

/// Connects, and sends a stream that the server acknowledges whole; returns how many datagrams were carried.
fn exchange(retry: RetryPolicy, seed: u8) -> (Threads, usize) {
    let (mut threads, tls) = Threads::new(retry);
    let mut now = test_fixture::network(&Settings::default(), Link::default()).now();
    let remote = ([192, 0, 2, 2], 443).into();
    let random = Random::from_seed([seed; 32]);
    let mut client =
        Connection::client(&Config::default(), &tls, NAME, remote, random, now).unwrap();
    let mut buffer = BatchBuffer::new();
    for _ in 0..1000 {
        while let Output::Datagrams(batch) = client.process_output(now, &mut buffer) {
            for segment in batch.segments() {
                let datagram = Datagram {
                    remote: ([198, 51, 100, 1], 5000).into(),
                    local: None,
                    ecn: batch.head().ecn,
                    payload: &mut segment.to_vec(),
                };
                threads.input(datagram, now);
            }
        }
        threads.output(now, &mut buffer, &mut client);
        while let Some(event) = client.next_event() {
            match event {
                Event::Connected => {
                    let id = client.open(Direction::Unidirectional).unwrap();
                    assert_eq!(client.stream_send(id, &[5; 10_000]), Ok(10_000));
                    client.finish(id).unwrap();
                }
                Event::Stream(StreamEvent::Finished(_)) => {
                    let carried = threads.carried;
                    return (threads, carried);
                }
                _ => {}
            }
        }
        now += Duration::from_millis(5);
    }
    panic!("the exchange did not end");
}

#[test]
fn a_connection_lives_on_the_thread_that_its_ids_lead_to() {
    let mut used = [0; 3];
    for seed in 0..20 {
        let (threads, carried) = exchange(RetryPolicy::Never, seed);
        let at: Vec<_> = threads.endpoints.iter().map(Endpoint::len).collect();
        assert_eq!(at.iter().sum::<usize>(), 1);
        assert_eq!(at[0] == 0, carried > 0, "the first needs nobody to carry");
        used.iter_mut().zip(&at).for_each(|(all, at)| *all += at);
        let dropped: u64 = threads.endpoints.iter().map(|e| e.stats().dropped).sum();
        assert_eq!(dropped, 0);
    }
    assert!(used.iter().all(|count| *count > 0), "{used:?}");
}

/// The destination of a Retry leads to the thread that sent it, which knows the token.
#[test]
fn a_client_that_was_sent_a_retry_stays_with_the_thread() {
    for seed in 0..10 {
        let (threads, _) = exchange(RetryPolicy::Always, seed);
        for endpoint in &threads.endpoints {
            assert_eq!(endpoint.stats().retries, endpoint.stats().accepted);
        }
    }
}
