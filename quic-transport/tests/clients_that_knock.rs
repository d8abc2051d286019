//! The endpoint before a connection exists: clients that knock, once, twice or with nonsense, and what they are told.
#![expect(clippy::unwrap_used, reason = "test code")]

mod knocking;

use quic_common::{Datagram, Ecn};
use quic_transport::{ApiError, CloseReason, Config, Event, RetryPolicy, TransportErrorCode};
use std::net::SocketAddr;
use std::time::Duration;
use test_fixture::ends::{ALPN, Log, NAME, Server, Settings};
use test_fixture::network::{Link, Route};
use test_fixture::scripted::parameters::MAX_IDLE_TIMEOUT;
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer};
use test_fixture::{CLIENT, CountingAllocator, Pair, SERVER, held_bytes};

use knocking::{Bench, client, client_address, first_datagram, sent, server_address};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const SECOND: Duration = Duration::from_secs(1);

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
