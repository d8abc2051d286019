//! The endpoint before a connection exists: clients that knock, under load or with nonsense.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, Datagram, Ecn, Random};
use quic_transport::{
    ApiError, CloseReason, Config, Endpoint, EndpointConfig, Event, Output, RetryPolicy,
    TransportErrorCode, tls,
};
use test_fixture::certificates::{WALL_CLOCK, ed25519};
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::{Arrivals, Link, Party as _, Route, Transmit};
use test_fixture::scripted::parameters::MAX_IDLE_TIMEOUT;
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, client_config, frames};
use test_fixture::{Bulk, CLIENT, CountingAllocator, Pair, SERVER, held_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const SECOND: Duration = Duration::from_secs(1);

/// Handshakes under way before new clients are asked for a token.
const BEFORE_RETRY: u64 = 1024;

fn server_address() -> SocketAddr {
    ([192, 0, 2, 2], 443).into()
}

fn client_address(index: u64) -> SocketAddr {
    let index = u16::try_from(index).unwrap();
    let host = u8::try_from(index / 100).unwrap();
    ([198, 51, 100, host], 40_000 + index).into()
}

struct Bench {
    endpoint: Endpoint<Log>,
    config: Config,
    tls: tls::ServerConfig,
    now: Instant,
    buffer: BatchBuffer,
}

impl Bench {
    fn new(retry: RetryPolicy) -> Self {
        Self::with(|config| config.retry = retry)
    }

    fn with(change: impl FnOnce(&mut EndpointConfig)) -> Self {
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

    fn input(&mut self, remote: SocketAddr, mut payload: Vec<u8>) {
        let datagram = Datagram {
            remote,
            local: None,
            ecn: Ecn::NotEct,
            payload: &mut payload,
        };
        self.endpoint.input(datagram, self.now);
    }

    /// Accepts all, and returns how many.
    fn accept(&mut self) -> usize {
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
    fn output(&mut self) -> (Vec<Vec<u8>>, Option<Duration>) {
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
fn client(index: u64, now: Instant) -> Client<Log> {
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
fn sent(client: &mut Client<Log>, now: Instant) -> Vec<Vec<u8>> {
    let mut buffer = BatchBuffer::new();
    let mut sent = Vec::new();
    while let Transmit::Batch(head) = client.transmit(now, &mut buffer) {
        sent.extend(buffer.batch(head).segments().map(<[u8]>::to_vec));
    }
    sent
}

/// A client's first datagram.
fn first_datagram(index: u64, now: Instant) -> Vec<u8> {
    sent(&mut client(index, now), now).swap_remove(0)
}

/// An Initial packet to a destination of its own, sealed, with a piece of a ClientHello that is never completed.
fn incomplete(index: u64) -> Vec<u8> {
    let certificate = ed25519(&[NAME]);
    let config = client_config(certificate.chain.last().unwrap(), &[ALPN]);
    let seed = u8::try_from(index % 251).unwrap();
    let mut peer =
        ScriptedPeer::client(config, NAME, Parameters::generous(), server_address(), seed);
    let hello = peer.take_crypto(Level::Initial);
    peer.seal(&Draft::new(
        Level::Initial,
        &frames::crypto(0, hello.get(..100).unwrap()),
    ))
}

/// RFC 9000, 5.2.2: copies of a first datagram are one client, whether they come before it is accepted or after.
#[test]
fn copies_of_a_first_datagram_make_one_connection() {
    let mut bench = Bench::new(RetryPolicy::UnderLoad);
    let datagram = first_datagram(1, bench.now);
    for _ in 0..20 {
        bench.input(client_address(1), datagram.clone());
    }
    assert_eq!(bench.accept(), 1);
    for _ in 0..20 {
        bench.input(client_address(1), datagram.clone());
    }
    assert_eq!((bench.accept(), bench.endpoint.len()), (0, 1));
    // Nor do copies from elsewhere disturb it.
    bench.input(client_address(2), datagram);
    assert_eq!((bench.accept(), bench.endpoint.len()), (0, 1));
}

/// What can't be opened with the keys of its own connection ID leaves nothing behind.
#[test]
fn nonsense_leaves_nothing_behind() {
    let mut bench = Bench::new(RetryPolicy::UnderLoad);
    for index in 0..100_u64 {
        let mut datagram = first_datagram(1, bench.now);
        // Another destination, and so other keys.
        datagram
            .get_mut(6..14)
            .unwrap()
            .copy_from_slice(&index.to_be_bytes());
        bench.input(client_address(1), datagram);
    }
    assert_eq!(bench.accept(), 0);
    let (sent, wait) = bench.output();
    assert!(sent.is_empty() && wait.is_none(), "{wait:?}");
}

/// RFC 9000, 8.1: a ClientHello that isn't completed is forgotten after 10 seconds.
#[test]
fn half_a_client_hello_is_forgotten() {
    let mut bench = Bench::new(RetryPolicy::UnderLoad);
    let datagram = incomplete(3);
    bench.input(client_address(1), datagram.clone());
    assert_eq!(bench.accept(), 0);
    let (sent, wait) = bench.output();
    assert!(sent.is_empty());
    assert_eq!(wait, Some(SECOND * 10));
    bench.now += SECOND * 4;
    bench.input(client_address(1), datagram);
    assert_eq!(
        bench.output().1,
        Some(SECOND * 6),
        "more doesn't prolong it"
    );
    bench.now += SECOND * 6;
    assert_eq!(bench.output().1, None);
}

/// What a client that never completes its ClientHello can make us hold.
#[test]
fn a_half_open_client_holds_little_memory() {
    let mut bench = Bench::new(RetryPolicy::UnderLoad);
    let head = incomplete(4);
    let start = held_bytes();
    let mut most = 0;
    for size in (1200..60_000).step_by(100) {
        let mut datagram = head.clone();
        datagram.resize(size, 0x55);
        bench.input(client_address(1), datagram);
        most = most.max(held_bytes() - start);
    }
    assert!((16 << 10..64 << 10).contains(&most), "{most}");
    bench.now += SECOND * 11;
    assert_eq!(bench.output().1, None);
}

/// RFC 9000, 8.1.2: beyond 1024 handshakes new clients are asked for a token, and one that has it gets in.
#[test]
fn under_load_clients_need_a_token() {
    let mut bench = Bench::new(RetryPolicy::UnderLoad);
    let now = bench.now;
    for index in 0..BEFORE_RETRY {
        bench.input(client_address(index), first_datagram(index, now));
    }
    assert_eq!(bench.endpoint.stats().retries, 0, "at the limit");
    let address = client_address(BEFORE_RETRY);
    let mut late = client(BEFORE_RETRY, now);
    for datagram in sent(&mut late, now) {
        bench.input(address, datagram);
    }
    assert_eq!(bench.endpoint.stats().retries, 1, "beyond the limit");
    let (replies, _) = bench.output();
    let [mut retry] = <[Vec<u8>; 1]>::try_from(replies).unwrap();
    assert!(retry.len() < 1200);
    let datagram = Datagram {
        remote: server_address(),
        local: None,
        ecn: Ecn::NotEct,
        payload: &mut retry,
    };
    late.connection.input(datagram, now);
    let again = sent(&mut late, now);
    // The token is good for one address only.
    bench.input(
        client_address(BEFORE_RETRY + 1),
        again.first().unwrap().clone(),
    );
    assert_eq!(bench.endpoint.stats().refused, 1);
    for datagram in again {
        bench.input(address, datagram);
    }
    assert_eq!(bench.endpoint.stats().retries, 1);
    let mut validated = 0;
    while let Some(incoming) = bench.endpoint.next_incoming() {
        validated += usize::from(incoming.is_validated());
    }
    assert_eq!(validated, 1);
}

/// Wake-ups that a peer brings forward again and again leave no entries behind.
#[test]
fn wake_ups_that_move_leave_nothing_behind() {
    let hour = Duration::from_hours(1);
    let mut settings = Settings::default();
    settings.server.idle_timeout = hour;
    let mut parameters = Parameters::generous();
    parameters.set(MAX_IDLE_TIMEOUT, u64::try_from(hour.as_millis()).unwrap());
    let mut pair = Pair::<ScriptedPeer, Server<Log>>::scripted_client(
        &settings,
        parameters,
        Link::delayed(Duration::from_millis(1)),
    );
    pair.handshake();
    let route = Route {
        source: pair.network.address(CLIENT),
        destination: pair.network.address(SERVER),
    };
    // The next wake-up is the acknowledgment's, and then that of idleness.
    let rounds = |pair: &mut Pair<ScriptedPeer, Server<Log>>| {
        for _ in 0..5000 {
            let packet = pair.client.seal(&Draft::new(Level::OneRtt, &[1]));
            pair.network.inject(route, Ecn::NotEct, &packet);
            pair.run(Duration::from_millis(30));
        }
        pair.client.forget();
    };
    rounds(&mut pair);
    let start = held_bytes();
    rounds(&mut pair);
    let more = held_bytes() - start;
    assert!(more < 200_000, "{more}");
}

/// RFC 9000, 5.2.2: a client that isn't let in is told so, in an Initial packet.
#[test]
fn a_refused_client_is_told() {
    let mut bench = Bench::new(RetryPolicy::UnderLoad);
    let mut client = client(1, bench.now);
    let first = sent(&mut client, bench.now).swap_remove(0);
    bench.input(client_address(1), first);
    let incoming = bench.endpoint.next_incoming().unwrap();
    bench
        .endpoint
        .refuse(&incoming, TransportErrorCode::CONNECTION_REFUSED);
    let (mut answers, _) = bench.output();
    let [answer] = answers.as_mut_slice() else {
        panic!("{answers:?}");
    };
    assert_eq!(answer[0] & 0xf0, 0xc0, "an Initial packet");
    let datagram = Datagram {
        remote: server_address(),
        local: None,
        ecn: Ecn::NotEct,
        payload: answer,
    };
    client.connection.input(datagram, bench.now);
    let events: Vec<_> = std::iter::from_fn(|| client.connection.next_event()).collect();
    let [Event::Closed(CloseReason::Peer { code, .. })] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(*code, TransportErrorCode::CONNECTION_REFUSED);
    assert_eq!(bench.endpoint.len(), 0);
}

/// A packet with a long header of any version, padded to 1200 bytes.
fn long_packet(version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xc0];
    packet.extend(version.to_be_bytes());
    for cid in [destination, source] {
        packet.push(u8::try_from(cid.len()).unwrap());
        packet.extend(cid);
    }
    packet.resize(1200, 0x55);
    packet
}

/// RFC 9000, 17.2.1 and 6.1: one Version Negotiation packet for a datagram, with both connection IDs changed over,
/// whatever version 1 would say of their lengths.
#[test]
fn a_negotiation_returns_connection_ids_of_any_length() {
    for (destination, source) in [(8, 8), (0, 0), (7, 1), (21, 20), (255, 255)] {
        let mut bench = Bench::new(RetryPolicy::UnderLoad);
        let (destination, source) = (vec![0xdd; destination], vec![0x55; source]);
        let packet = long_packet(0x1a2a_3a4a, &destination, &source);
        bench.input(client_address(1), packet);
        let (answers, _) = bench.output();
        assert_eq!(answers.len(), 1);
        let answer = answers.first().unwrap();
        assert!(answer.len() < 1200);
        assert_eq!(answer[0] & 0xc0, 0xc0);
        let head = long_packet(0, &source, &destination);
        let length = 7 + source.len() + destination.len();
        assert_eq!(answer[1..length], head[1..length]);
        let versions: Vec<&[u8]> = answer[length..].chunks(4).collect();
        assert!(versions.contains(&&[0, 0, 0, 1][..]), "{versions:?}");
        assert!(bench.endpoint.next_incoming().is_none());
    }
}

/// RFC 9000, 6.1: nothing answers a Version Negotiation packet.
#[test]
fn negotiations_are_not_answered() {
    let mut bench = Bench::new(RetryPolicy::UnderLoad);
    bench.input(client_address(1), long_packet(0, &[1; 8], &[2; 8]));
    assert_eq!(bench.output(), (Vec::new(), None));
}

/// One address may not have more than 256 handshakes without a token, nor more than 2048 with or without; others
/// have room all the same.
#[test]
fn one_address_has_its_share() {
    let from = |port: u16| SocketAddr::from(([203, 0, 113, 9], 20_000 + port));
    for (retry, most) in [(RetryPolicy::UnderLoad, 256), (RetryPolicy::Never, 2048)] {
        let mut bench = Bench::new(retry);
        for index in 0..most {
            let datagram = first_datagram(index.into(), bench.now);
            bench.input(from(index), datagram);
        }
        let at_most = bench.endpoint.stats();
        assert_eq!((at_most.retries, at_most.dropped), (0, 0));
        let beyond = first_datagram(most.into(), bench.now);
        bench.input(from(most), beyond.clone());
        let stats = bench.endpoint.stats();
        assert_eq!(stats.retries + stats.dropped, 1, "{stats:?}");
        assert_eq!(bench.accept(), usize::from(most));
        bench.input(client_address(1), beyond);
        assert_eq!(bench.accept(), 1, "another address");
        // A share is free again once the handshakes are given up.
        bench.now += SECOND * 20;
        bench.output();
        let again = first_datagram(5000, bench.now);
        bench.input(from(1), again);
        assert_eq!(bench.accept(), 1, "later");
    }
}

/// Lets a client at `address` and the endpoint talk; returns whether their handshake is complete.
fn talk(bench: &mut Bench, client: &mut Client<Log>, address: SocketAddr) -> bool {
    let route = Route {
        source: server_address(),
        destination: address,
    };
    for _ in 0..10 {
        let mut buffer = BatchBuffer::new();
        while let Transmit::Batch(head) = client.transmit(bench.now, &mut buffer) {
            let batch = buffer.batch(head);
            batch
                .segments()
                .for_each(|segment| bench.input(address, segment.to_vec()));
        }
        bench.accept();
        for mut datagram in bench.output().0 {
            let length = datagram.len();
            let arrivals = Arrivals::new(route, Ecn::NotEct, length, &mut datagram);
            client.receive(arrivals, bench.now);
        }
    }
    !client.connection.is_handshaking() && !client.connection.is_closing()
}

/// One address may not have more connections than it is granted; others are let in, and so is it when one has ended.
#[test]
fn one_address_has_so_many_connections() {
    let from = |port: u16| SocketAddr::from(([203, 0, 113, 9], 20_000 + port));
    let mut bench = Bench::with(|config| config.connections_of_address = 3);
    let mut clients: Vec<_> = (0..5).map(|index| client(index, bench.now)).collect();
    for (port, client) in (0..).zip(&mut clients[..3]) {
        assert!(talk(&mut bench, client, from(port)));
    }
    assert!(!talk(&mut bench, &mut clients[3], from(3)));
    let refused = clients[3].application.events.iter().any(|event| {
        let code = TransportErrorCode::CONNECTION_REFUSED;
        matches!(event, Event::Closed(CloseReason::Peer { code: told, .. }) if *told == code)
    });
    assert!(refused, "{:?}", clients[3].application.events);
    assert!(
        talk(&mut bench, &mut clients[4], client_address(4)),
        "another address"
    );
    clients[0].connection.close(0, b"");
    assert!(!talk(&mut bench, &mut clients[0], from(0)));
    bench.now += SECOND * 5;
    bench.output();
    assert_eq!(bench.endpoint.len(), 3);
    let mut last = client(9, bench.now);
    assert!(talk(&mut bench, &mut last, from(9)), "there is room again");
}

/// Ports of services that would answer get no answer: no version negotiation, refusal, Retry or reset.
#[test]
fn reflective_ports_get_no_answer() {
    let mut bench = Bench::new(RetryPolicy::Always);
    let mut unknown_version = first_datagram(1, bench.now);
    unknown_version[1..5].copy_from_slice(&[0x0a, 0x1a, 0x2a, 0x3a]);
    let mut short = vec![0x41; 1200];
    short[1..9].fill(9);
    let stray = [unknown_version, first_datagram(2, bench.now), short];
    for (port, answers) in [
        (7, 0),
        (19, 0),
        (53, 0),
        (123, 0),
        (0, 0),
        (443, 3),
        (50_000, 3),
    ] {
        for datagram in &stray {
            let address = SocketAddr::from(([198, 51, 100, 7], port));
            bench.input(address, datagram.clone());
        }
        assert_eq!(bench.output().0.len(), answers, "port {port}");
        bench.now += SECOND;
    }
}

/// RFC 9000, 10.3.3: two endpoints that know nothing of each other soon fall silent.
#[test]
fn two_endpoints_do_not_answer_each_other_for_ever() {
    let mut ends = [0, 1].map(|_| Bench::new(RetryPolicy::Always));
    let starts = [
        vec![0x41; 1200],
        first_datagram(1, ends[0].now),
        [vec![0xc1, 9, 9, 9, 9], vec![8; 1300]].concat(),
    ];
    for start in starts {
        let mut flying = vec![start];
        let mut turns = 0;
        while !flying.is_empty() {
            assert!(turns < 5, "{flying:?}");
            for end in &mut ends {
                end.now += SECOND;
            }
            let end = &mut ends[turns % 2];
            for datagram in std::mem::take(&mut flying) {
                end.input(server_address(), datagram);
            }
            flying = end.output().0;
            turns += 1;
        }
    }
}

/// What all connections count for is bounded: at the bound one is still let in, beyond it none, until there is
/// room again.
#[test]
fn a_full_memory_admits_no_one() {
    // Each counts for a quarter of its window, and something for itself.
    let each = (1 << 20) * 3 / 8 + (32 << 10);
    let mut bench = Bench::with(|config| config.memory = each * 10);
    for index in 0..12 {
        let datagram = first_datagram(index, bench.now);
        bench.input(client_address(index), datagram);
        bench.accept();
    }
    assert_eq!(bench.endpoint.len(), 10);
    assert_eq!(bench.endpoint.memory(), each * 10);
    assert_eq!(bench.endpoint.stats().refused, 2);
    bench.now += SECOND * 20;
    bench.output();
    assert_eq!((bench.endpoint.len(), bench.endpoint.memory()), (0, 0));
    let datagram = first_datagram(20, bench.now);
    bench.input(client_address(20), datagram);
    assert_eq!(bench.accept(), 1);
}

/// Windows grow for a fast reader until three quarters of the memory are taken; what is held counts, read or not.
#[test]
fn a_memory_that_fills_stops_windows() {
    let most_of = |memory: u64| {
        let settings = Settings::default();
        let link = Link {
            bandwidth: Some(1_000_000_000),
            queue: 10_000_000,
            ..Link::delayed(Duration::from_millis(50))
        };
        let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&settings, link);
        let mut random = Random::from_seed([7; 32]);
        let mut config = EndpointConfig::new(&mut random);
        config.memory = memory;
        config.clock = tls::WallClock::manual(WALL_CLOCK);
        pair.server.endpoint = Endpoint::new(config, random);
        pair.handshake();
        let Client {
            connection,
            application,
        } = &mut pair.client;
        application.request(connection, 1, 100_000_000).unwrap();
        let mut most = 0;
        let end = pair.network.now() + SECOND * 4;
        pair.run_until(|pair| {
            most = most.max(pair.server.endpoint.memory());
            pair.client.application.complete == 1 || pair.network.now() > end
        });
        assert!(pair.server.connection(0).unwrap().1.received > 10_000_000);
        most
    };
    let free = most_of(1 << 30);
    assert!(free > 4 << 20, "{free}: a quarter of a window of 24 MiB");
    let full = most_of(1 << 19);
    assert!(full <= (1 << 20) * 3 / 8 + (32 << 10), "{full}");
}

/// What an application does with a client: it may ask for a token at any time, once, and accept it once, with IDs of
/// the endpoint's length.
#[test]
fn an_application_decides_about_clients() {
    let mut bench = Bench::new(RetryPolicy::Never);
    bench.input(client_address(1), first_datagram(1, bench.now));
    let incoming = bench.endpoint.next_incoming().unwrap();
    assert_eq!(incoming.server_name(), Some(NAME));
    assert!(incoming.alpn().eq([ALPN]));
    assert_eq!(incoming.remote(), client_address(1));
    bench.endpoint.retry(&incoming);
    assert_eq!(bench.output().0.len(), 1);
    assert_eq!(bench.endpoint.stats().retries, 1);

    // Settings that can't be are refused with the client.
    bench.input(client_address(2), first_datagram(2, bench.now));
    let incoming = bench.endpoint.next_incoming().unwrap();
    let config = Config {
        max_datagram: 100,
        ..Config::default()
    };
    let accepted = bench
        .endpoint
        .accept(incoming, &config, &bench.tls, Log::default(), bench.now);
    assert!(matches!(accepted, Err(ApiError::Config(_))), "{accepted:?}");
    assert_eq!(bench.endpoint.stats().refused, 1);
    assert_eq!(bench.output().0.len(), 1, "it is told");
    assert!(bench.endpoint.is_empty());
}

/// A client that answers a Retry, and is to answer another, is refused instead.
#[test]
fn nobody_is_asked_for_a_token_twice() {
    let mut bench = Bench::new(RetryPolicy::Always);
    let mut client = client(1, bench.now);
    let address = client_address(1);
    let route = Route {
        source: server_address(),
        destination: address,
    };
    let mut buffer = BatchBuffer::new();
    for _ in 0..2 {
        while let Transmit::Batch(head) = client.transmit(bench.now, &mut buffer) {
            let batch = buffer.batch(head);
            batch
                .segments()
                .for_each(|segment| bench.input(address, segment.to_vec()));
        }
        for mut datagram in bench.output().0 {
            let length = datagram.len();
            let arrivals = Arrivals::new(route, Ecn::NotEct, length, &mut datagram);
            client.receive(arrivals, bench.now);
        }
    }
    let incoming = bench.endpoint.next_incoming().unwrap();
    assert!(incoming.is_validated());
    bench.endpoint.retry(&incoming);
    let stats = bench.endpoint.stats();
    assert_eq!((stats.retries, stats.refused), (1, 1));
}
