//! Connection IDs of one byte: there are few of them, and each leads to one connection.
mod knocking;

use std::net::SocketAddr;
use std::time::Duration;

use quic_common::Ecn;
use quic_transport::{CidGenerator, Direction, RetryPolicy};
use test_fixture::ends::{Client, Log};
use test_fixture::network::{Arrivals, Party as _, Route};

use knocking::{Bench, client, client_address, sent, server_address};

/// Lets a client and the endpoint say what they have to say.
fn talk(bench: &mut Bench, client: &mut Client<Log>, address: SocketAddr) {
    let route = Route {
        source: server_address(),
        destination: address,
    };
    for _ in 0..10 {
        for datagram in sent(client, bench.now) {
            bench.input(address, datagram);
        }
        bench.accept();
        for mut datagram in bench.output().0 {
            let length = datagram.len();
            let arrivals = Arrivals::new(route, Ecn::NotEct, length, &mut datagram);
            client.receive(arrivals, bench.now);
        }
    }
}

/// RFC 9000, 5.1: no later ID of a connection is one that another connection has.
#[test]
fn each_id_leads_to_one_connection() {
    let mut bench = Bench::with(|config| {
        config.retry = RetryPolicy::Never;
        config.cids = CidGenerator::Random { length: 1 };
    });
    let mut clients = Vec::new();
    for index in 0..80 {
        let mut client = client(index, bench.now);
        talk(&mut bench, &mut client, client_address(index));
        assert!(!client.connection.is_handshaking(), "{index}");
        clients.push(client);
    }
    // Each has two more IDs: 240 of 256 are taken.
    for (client, index) in clients.iter_mut().zip(0..) {
        let connection = &mut client.connection;
        let stream = connection.open(Direction::Unidirectional).unwrap();
        connection.stream_send(stream, b"for me").unwrap();
        connection.finish(stream).unwrap();
        let before = connection.stats().packets_lost;
        talk(&mut bench, client, client_address(index));
        // An acknowledgment may take its time.
        bench.now += Duration::from_millis(30);
        talk(&mut bench, client, client_address(index));
        let stats = client.connection.stats();
        assert_eq!(stats.bytes_in_flight, 0, "{index}: acknowledged");
        assert_eq!(stats.packets_lost, before);
        assert!(!client.connection.is_closing());
    }
}
