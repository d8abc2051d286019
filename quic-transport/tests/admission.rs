//! Who is let in when many knock: handshakes under way, shares of an address, tokens, memory.
#![expect(clippy::unwrap_used, reason = "test code")]

mod knocking;

use quic_common::{BatchBuffer, Datagram, Ecn, Random};
use quic_transport::{
    Admission, CloseReason, Endpoint, EndpointConfig, Event, RetryPolicy, TransportErrorCode, tls,
};
use std::net::SocketAddr;
use std::time::Duration;
use test_fixture::certificates::{WALL_CLOCK, ed25519};
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::{Arrivals, Link, Party as _, Route, Transmit};
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, client_config, frames};
use test_fixture::{Bulk, CountingAllocator, Pair, held_bytes};

use knocking::{Bench, client, client_address, first_datagram, sent, server_address};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const SECOND: Duration = Duration::from_secs(1);

/// Handshakes under way before new clients are asked for a token.
const BEFORE_RETRY: u64 = 1024;

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
        pair.client.request(1, 100_000_000).unwrap();
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

/// Endpoints of a server on several threads: a client finds no more room at another one.
#[test]
fn endpoints_count_handshakes_together() {
    let admission = Admission::default();
    let mut benches = [(); 2].map(|()| Bench::with(|config| config.admission = admission.clone()));
    let now = benches[0].now;
    for index in 0..BEFORE_RETRY {
        let bench = &mut benches[usize::from(index % 2 == 0)];
        bench.input(client_address(index), first_datagram(index, now));
    }
    let [one, other] = &mut benches;
    let retries = |bench: &Bench| bench.endpoint.stats().retries;
    assert_eq!((retries(one), retries(other)), (0, 0), "at the limit");
    for (index, bench) in (2000..).zip([&mut *one, &mut *other]) {
        bench.input(client_address(index), first_datagram(index, now));
        assert_eq!(retries(bench), 1, "beyond it");
    }
    // Whoever is gone leaves room for the others.
    *one = Bench::with(|config| config.admission = admission.clone());
    other.input(client_address(3000), first_datagram(3000, now));
    assert_eq!(retries(other), 1);
}

#[test]
fn endpoints_count_the_connections_of_an_address_together() {
    let from = |port: u16| SocketAddr::from(([203, 0, 113, 9], 20_000 + port));
    let admission = Admission::default();
    let [mut one, mut other] = [(); 2].map(|()| {
        Bench::with(|config| {
            config.admission = admission.clone();
            config.connections_of_address = 3;
        })
    });
    let mut clients: Vec<_> = (0..5).map(|index| client(index, one.now)).collect();
    assert!(talk(&mut one, &mut clients[0], from(0)));
    assert!(talk(&mut one, &mut clients[1], from(1)));
    assert!(talk(&mut other, &mut clients[2], from(2)));
    assert!(!talk(&mut other, &mut clients[3], from(3)), "a fourth");
    drop(one);
    assert!(talk(&mut other, &mut clients[4], from(4)), "there is room");
}

#[test]
fn endpoints_have_one_memory() {
    let each = (1 << 20) * 3 / 8 + (32 << 10);
    let admission = Admission::default();
    let [mut one, mut other] = [(); 2].map(|()| {
        Bench::with(|config| {
            config.admission = admission.clone();
            config.memory = each * 10;
        })
    });
    let admitted = |bench: &mut Bench, index: u64| {
        let datagram = first_datagram(index, bench.now);
        bench.input(client_address(index), datagram);
        let count = bench.accept();
        // At the end of the wake-up the others are told.
        bench.output();
        count
    };
    let at_one: usize = (0..4).map(|index| admitted(&mut one, index)).sum();
    let at_other: usize = (4..12).map(|index| admitted(&mut other, index)).sum();
    assert_eq!((at_one, at_other), (4, 6));
    assert_eq!(admitted(&mut one, 12), 0);
    other.now += SECOND * 20;
    other.output();
    assert!(other.endpoint.is_empty());
    assert_eq!(admitted(&mut one, 13), 1);
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
