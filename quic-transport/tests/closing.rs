//! How connections end: which packets say so, and how long what is left stays.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::{Duration, Instant};

use quic_transport::{Application, Connection};
use test_fixture::ends::{Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, SeenClose, frames};
use test_fixture::scripted_pairs::{ROUND_TRIP, ToServer, to_client, to_server};
use test_fixture::{CLIENT, Pair, SERVER};

const SECOND: Duration = Duration::from_secs(1);
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
const APPLICATION_ERROR: u64 = 12;

/// Three PTOs at least: the RTT's variance comes on top (RFC 9002, 6.2.1).
fn three_ptos(pair: &mut ToServer) -> Duration {
    let (connection, _) = pair.server.connection(0).unwrap();
    3 * (connection.stats().smoothed_rtt + MAX_ACK_DELAY)
}

/// The CONNECTION_CLOSE frames that a peer has seen, with their levels.
fn closes(peer: &ScriptedPeer) -> Vec<(Level, SeenClose)> {
    let mut found = Vec::new();
    for packet in peer.packets() {
        let closes = packet.frames.iter().filter_map(|frame| frame.as_close());
        found.extend(closes.map(|close| (packet.level, close.clone())));
    }
    found
}

/// RFC 9000, 10.2: the closing state lasts for three PTOs, and leaves nothing.
#[test]
fn closing_lasts_three_ptos() {
    let mut pair = to_server();
    pair.handshake();
    pair.run(SECOND);
    let time = three_ptos(&mut pair);
    let (connection, _) = pair.server.connection(0).unwrap();
    connection.close(1, b"");
    pair.run(time);
    assert_eq!(pair.server.endpoint.len(), 1);
    pair.client.forget();
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(ROUND_TRIP);
    assert_eq!(pair.client.close_code(), Some(1), "still there to answer");
    pair.run(SECOND);
    assert_eq!(pair.server.endpoint.len(), 0);
}

/// RFC 9000, 10.2 and 10.2.2: so does the draining state, in which nothing is sent whatever comes.
#[test]
fn draining_lasts_three_ptos_in_silence() {
    let mut pair = to_server();
    pair.handshake();
    pair.run(SECOND);
    let time = three_ptos(&mut pair);
    let sent = pair.network.passed(SERVER, CLIENT).sent;
    pair.client
        .send(Level::OneRtt, &frames::application_close(1, b"over"));
    pair.run(Duration::from_millis(10));
    for _ in 0..20 {
        pair.client.send(Level::OneRtt, &frames::ping());
        let close = frames::application_close(2, b"once more");
        pair.client.send(Level::OneRtt, &close);
    }
    pair.run(time);
    assert_eq!(pair.server.endpoint.len(), 1);
    pair.run(SECOND);
    assert_eq!(pair.server.endpoint.len(), 0);
    assert_eq!(pair.network.passed(SERVER, CLIENT).sent, sent);
}

/// Wants nothing of a connection that is over, as applications do unless they say otherwise.
#[derive(Debug, Default)]
struct Leaver;

impl Application for Leaver {
    fn process(&mut self, connection: &mut Connection, _: Instant) {
        while connection.next_event().is_some() {}
    }
}

/// RFC 9000, 10.2: a draining connection is held no longer than the application wants it; what comes late still leads to
/// no answer, for three PTOs, and then nothing is left.
#[test]
fn a_drained_connection_leaves_traces_that_answer_nothing() {
    let link = Link::delayed(ROUND_TRIP / 2);
    let parameters = Parameters::generous();
    let mut pair = Pair::<ScriptedPeer, Server<Leaver>>::scripted_client(
        &Settings::default(),
        parameters,
        link,
    );
    pair.handshake();
    pair.run(SECOND);
    let (connection, _) = pair.server.connection(0).unwrap();
    let time = 3 * (connection.stats().smoothed_rtt + MAX_ACK_DELAY);
    let held = pair.server.endpoint.memory();
    let sent = pair.network.passed(SERVER, CLIENT).sent;
    pair.client
        .send(Level::OneRtt, &frames::application_close(1, b"over"));
    pair.run(ROUND_TRIP);
    assert!(pair.server.connection(0).is_none());
    assert!(pair.server.endpoint.memory() < held / 100);
    // Short ones, and those that are long enough to be answered with a stateless reset.
    for padding in [0, 100, 1000] {
        let late = [frames::ping(), frames::padding(padding)].concat();
        for _ in 0..20 {
            pair.client.send(Level::OneRtt, &late);
        }
    }
    pair.run(time);
    assert_eq!(pair.server.endpoint.len(), 1);
    assert_eq!(pair.network.passed(SERVER, CLIENT).sent, sent);
    pair.run(SECOND);
    let endpoint = &pair.server.endpoint;
    assert_eq!((endpoint.len(), endpoint.memory()), (0, 0));
}

/// RFC 9000, 10.2.3: after confirmation a 1-RTT packet says it, in the application's words.
#[test]
fn a_confirmed_connection_closes_in_a_1_rtt_packet() {
    let words = SeenClose {
        code: 7,
        frame: None,
        reason: b"enough".to_vec(),
    };
    let mut pair = to_server();
    pair.handshake();
    pair.run(SECOND);
    let (connection, _) = pair.server.connection(0).unwrap();
    connection.close(7, b"enough");
    pair.run(ROUND_TRIP);
    assert_eq!(closes(&pair.client), [(Level::OneRtt, words.clone())]);

    let mut pair = to_client();
    pair.handshake();
    pair.client.connection.close(7, b"enough");
    pair.run(ROUND_TRIP);
    assert_eq!(closes(&pair.server), [(Level::OneRtt, words)]);
}

/// RFC 9000, 10.2.3 and 12.5: before that, packets of all types do that the peer may be able to read; those of the
/// handshake don't give the application away.
#[test]
fn an_unconfirmed_connection_closes_in_every_packet_type() {
    let anonymous = |level| {
        let close = SeenClose {
            code: APPLICATION_ERROR,
            frame: Some(0),
            reason: Vec::new(),
        };
        (level, close)
    };
    let words = SeenClose {
        code: 7,
        frame: None,
        reason: b"secret".to_vec(),
    };
    let mut pair = to_server();
    pair.client.is_automatic = false;
    let hello = pair.client.take_crypto(Level::Initial);
    pair.client.send(Level::Initial, &frames::crypto(0, &hello));
    pair.run(ROUND_TRIP);
    let (connection, _) = pair.server.connection(0).unwrap();
    connection.close(7, b"secret");
    pair.run(ROUND_TRIP);
    let expected = [
        anonymous(Level::Initial),
        anonymous(Level::Handshake),
        (Level::OneRtt, words.clone()),
    ];
    assert_eq!(closes(&pair.client), expected);

    let mut pair = to_client();
    pair.run_until(|pair| pair.server.is_complete());
    pair.server.is_automatic = false;
    pair.run(ROUND_TRIP);
    pair.client.connection.close(7, b"secret");
    pair.run(ROUND_TRIP);
    let expected = [anonymous(Level::Handshake), (Level::OneRtt, words)];
    assert_eq!(closes(&pair.server), expected);
}

/// RFC 9000, 10.2.3: a client that has not got that far closes in a full datagram with an Initial.
#[test]
fn a_client_closes_in_an_initial() {
    let mut pair = to_client();
    pair.server.is_automatic = false;
    pair.run(ROUND_TRIP);
    pair.server.forget();
    pair.client.connection.close(7, b"secret");
    pair.run(ROUND_TRIP);
    let packet = pair.server.packets().first().unwrap();
    assert_eq!(
        (packet.level, packet.datagram_length),
        (Level::Initial, 1200)
    );
    assert_eq!(pair.server.close_code(), Some(APPLICATION_ERROR));
}
