//! Packets from elsewhere, challenges, and stateless resets.

use std::net::SocketAddr;
use std::time::Duration;

use quic_common::Ecn;
use quic_transport::{CloseReason, Event, StreamEvent};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Link, Route};
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames, parameters,
};
use test_fixture::{CLIENT, Pair, SERVER};

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

const SECOND: Duration = Duration::from_secs(1);

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

fn to_server() -> ToServer {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.handshake();
    pair.run(SECOND);
    pair
}

fn to_client(parameters: Parameters) -> ToClient {
    let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link());
    pair.handshake();
    pair
}

fn elsewhere() -> SocketAddr {
    ([203, 0, 113, 9], 9).into()
}

/// RFC 9000, 9.3: what can't be opened doesn't come from the peer, wherever it comes from, and nothing goes there.
#[test]
fn forgeries_from_another_address_are_dropped() {
    let mut pair = to_server();
    let packet = pair.client.seal(&Draft::new(
        Level::OneRtt,
        &frames::stream(0, 0, b"moved", true),
    ));
    let route = Route {
        source: elsewhere(),
        destination: pair.network.address(SERVER),
    };
    for at in [0, 12, packet.len() - 1] {
        let mut forged = packet.clone();
        forged[at] ^= 1;
        pair.network.inject(route, Ecn::NotEct, &forged);
    }
    pair.run(SECOND);
    let (connection, log) = pair.server.connection(0).unwrap();
    let is_stream = |event: &Event| matches!(event, Event::Stream(StreamEvent::Opened(_)));
    assert!(!log.events.iter().any(is_stream));
    assert_eq!(connection.stats().packets_dropped, 3);
    assert_eq!(connection.paths().count(), 1);
    assert_eq!(pair.network.unroutable(), 0);
    // The packet itself was fine.
    pair.client.send_datagram(packet);
    pair.run(SECOND);
    let (_, log) = pair.server.connection(0).unwrap();
    assert!(log.events.iter().any(is_stream));
}

/// RFC 9000, 10.2.1: nor are they answered by a connection that is closing.
#[test]
fn a_closing_connection_does_not_answer_other_addresses() {
    let mut pair = to_server();
    let (connection, _) = pair.server.connection(0).unwrap();
    connection.close(7, b"");
    pair.run(Duration::from_millis(1));
    let before = pair.network.passed(SERVER, CLIENT).sent;
    let packet = pair.client.seal(&Draft::new(Level::OneRtt, &[1]));
    let route = Route {
        source: elsewhere(),
        destination: pair.network.address(SERVER),
    };
    for _ in 0..10 {
        pair.network.inject(route, Ecn::NotEct, &packet);
        pair.run(Duration::from_millis(1));
    }
    assert_eq!(pair.network.passed(SERVER, CLIENT).sent, before);
    assert_eq!(pair.network.unroutable(), 0);
}

fn responses(peer: &ScriptedPeer) -> Vec<([u8; 8], usize)> {
    let mut found = Vec::new();
    for packet in peer.packets() {
        for frame in &packet.frames {
            if let SeenFrame::PathResponse(data) = frame {
                found.push((*data, packet.datagram_length));
            }
        }
    }
    found
}

/// RFC 9000, 8.2.2: the same data, once, in a datagram of at least 1200 bytes; in both roles.
#[test]
fn a_challenge_is_answered_once_in_a_full_datagram() {
    let challenge = frames::path_challenge(*b"12345678");
    let mut pair = to_server();
    pair.client.send(Level::OneRtt, &challenge);
    pair.run(SECOND);
    let answers = responses(&pair.client);
    assert!(
        matches!(answers[..], [(data, 1200..)] if data == *b"12345678"),
        "{answers:?}"
    );

    let mut pair = to_client(Parameters::generous());
    pair.server.send(Level::OneRtt, &challenge);
    pair.run(SECOND);
    let answers = responses(&pair.server);
    assert!(
        matches!(answers[..], [(data, 1200..)] if data == *b"12345678"),
        "{answers:?}"
    );
}

/// RFC 9000, 8.2.2: a peer that never acknowledges gets no answer beyond the window, and nothing piles up.
#[test]
fn a_flood_of_challenges_is_bounded_by_the_window() {
    let mut pair = to_server();
    pair.client.acknowledges = false;
    let before = pair.network.passed(SERVER, CLIENT).sent_bytes;
    for round in 0..5000_u64 {
        pair.client
            .send(Level::OneRtt, &frames::path_challenge(round.to_be_bytes()));
        pair.run(Duration::from_millis(1));
    }
    let sent = pair.network.passed(SERVER, CLIENT).sent_bytes - before;
    let (connection, _) = pair.server.connection(0).unwrap();
    assert!(!connection.is_closing());
    let in_flight = connection.stats().bytes_in_flight;
    let window = connection.stats().congestion_window;
    assert!(in_flight <= window + 30 * 1452, "{in_flight} of {window}");
    let acknowledgments = 5000 * 50;
    assert!(sent < 3 * window + acknowledgments, "{sent}");
}

/// RFC 9000, 10.3.1: a datagram that can't be opened and ends with the token ends the connection, without an answer.
#[test]
fn a_stateless_reset_is_known_by_its_token() {
    let token = [0x42; 16];
    let mut parameters = Parameters::generous();
    parameters.set_bytes(parameters::STATELESS_RESET_TOKEN, &token);
    let mut pair = to_client(parameters);
    let mut reset = vec![0x51; 24];
    reset.extend(token);
    for wrong in 0..16 {
        let mut other = reset.clone();
        other[24 + wrong] ^= 1;
        pair.server.send_datagram(other);
    }
    pair.run(SECOND);
    assert!(!pair.client.connection.is_closing());
    let before = pair.network.passed(CLIENT, SERVER).sent;
    pair.server.send_datagram(reset);
    pair.run(SECOND);
    let ended = Event::Closed(CloseReason::StatelessReset);
    assert!(pair.client.application.events.contains(&ended));
    assert_eq!(pair.network.passed(CLIENT, SERVER).sent, before);
    let (turns, _) = pair.turns(SECOND * 5);
    assert!(
        turns <= 2,
        "{turns}: the end of the draining state is waited for"
    );
    assert!(pair.client.connection.is_closed());
}

/// RFC 9000, 10.3.1: clients reset, too, and their datagrams may name none of the endpoint's connections.
#[test]
fn a_reset_of_a_client_is_found_by_its_token() {
    let tail = [7; 16];
    let mut reset = vec![0x51; 24];
    reset.extend(tail);
    for (retired, is_reset) in [(0, false), (1, true)] {
        let mut pair = to_server();
        let frame = frames::new_connection_id(1, retired, b"11111111", tail);
        pair.client.send(Level::OneRtt, &frame);
        pair.run(SECOND);
        let mut other = reset.clone();
        other[39] ^= 1;
        let routes = [elsewhere(), pair.network.address(CLIENT)].map(|source| Route {
            source,
            destination: pair.network.address(SERVER),
        });
        pair.network.inject(routes[1], Ecn::NotEct, &other);
        pair.network.inject(routes[0], Ecn::NotEct, &reset);
        pair.run(Duration::from_millis(1));
        assert!(!pair.server.connection(0).unwrap().0.is_closing());
        pair.network.inject(routes[1], Ecn::NotEct, &reset);
        pair.run(Duration::from_millis(1));
        let (connection, log) = pair.server.connection(0).unwrap();
        assert_eq!(connection.is_closing(), is_reset);
        let ended = Event::Closed(CloseReason::StatelessReset);
        assert_eq!(log.events.contains(&ended), is_reset);
        pair.run(SECOND);
        assert_eq!(pair.server.endpoint.is_empty(), is_reset);
    }
}

/// Whatever the order in which connections with the same token come and go, each is forgotten.
#[test]
fn reset_tokens_go_with_their_connections() {
    let mut pair = to_server();
    for sequence in 1..20_u8 {
        let frame = frames::new_connection_id(
            u64::from(sequence),
            u64::from(sequence),
            &[sequence; 8],
            [sequence; 16],
        );
        pair.client.send(Level::OneRtt, &frame);
        pair.run(SECOND / 10);
    }
    let route = Route {
        source: pair.network.address(CLIENT),
        destination: pair.network.address(SERVER),
    };
    let reset = |token: u8| [vec![0x51; 24], vec![token; 16]].concat();
    pair.network.inject(route, Ecn::NotEct, &reset(18));
    pair.run(Duration::from_millis(1));
    assert!(!pair.server.connection(0).unwrap().0.is_closing());
    pair.network.inject(route, Ecn::NotEct, &reset(19));
    pair.run(SECOND);
    assert!(pair.server.endpoint.is_empty());
    let dropped = pair.server.endpoint.stats().dropped;
    pair.network.inject(route, Ecn::NotEct, &[0x80; 40]);
    pair.network.inject(route, Ecn::NotEct, &reset(19));
    pair.run(Duration::from_millis(1));
    assert_eq!(pair.server.endpoint.stats().dropped, dropped + 1);
}

/// RFC 9000, 10.3.1: tokens come with NEW_CONNECTION_ID, too, and count as long as their ID is in use.
#[test]
fn each_connection_id_has_its_reset_token() {
    for (retired, is_reset) in [(0, false), (1, true), (2, false)] {
        let mut pair = to_client(Parameters::generous());
        let frames = [
            frames::new_connection_id(1, 0, b"11111111", [1; 16]),
            frames::new_connection_id(2, retired, b"22222222", [2; 16]),
        ]
        .concat();
        pair.server.send(Level::OneRtt, &frames);
        pair.run(SECOND);
        pair.server
            .send_datagram([[0x51; 24].as_slice(), &[1; 16]].concat());
        pair.run(SECOND);
        assert_eq!(pair.client.connection.is_closing(), is_reset);
    }
}
