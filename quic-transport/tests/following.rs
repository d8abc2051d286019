//! How a server follows a client that sends from another address, packet by packet.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

mod moving;

use quic_common::Ecn;
use quic_transport::{Application, CloseReason, Connection, Event, PathEvent, PathNews, PathStats};
use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Instant;
use test_fixture::ends::{Log, Server, Settings};
use test_fixture::network::Route;
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, SeenPacket, frames,
};
use test_fixture::{CLIENT, Pair, SERVER};

use moving::{MS, SECOND, link, other_host, other_port};

type ToServer = Pair<ScriptedPeer, Server<Log>>;

fn in_use(connection: &Connection) -> PathStats {
    connection.paths().next().unwrap()
}

fn to_server() -> ToServer {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.handshake();
    pair.run(SECOND);
    pair
}

/// The scripted client, with spare connection IDs given to the server.
fn supplied() -> ToServer {
    let mut pair = to_server();
    for sequence in 1..4_u8 {
        let frame = frames::new_connection_id(sequence.into(), 0, &[sequence; 8], [sequence; 16]);
        pair.client.send(Level::OneRtt, &frame);
    }
    pair.run(SECOND);
    pair.client.forget();
    pair
}

fn challenges(packets: &[SeenPacket]) -> Vec<[u8; 8]> {
    let frames = packets.iter().flat_map(|packet| &packet.frames);
    frames
        .filter_map(|frame| match frame {
            SeenFrame::PathChallenge(data) => Some(*data),
            _ => None,
        })
        .collect()
}

fn path_events(pair: &mut ToServer) -> Vec<PathEvent> {
    let (_, log) = pair.server.connection(0).unwrap();
    let events = log.events.iter();
    events
        .filter_map(|event| match event {
            Event::Path(event) => Some(**event),
            _ => None,
        })
        .collect()
}

/// RFC 9000, 9.3 and 8.2.1: the first packet to the new address has a challenge, in a datagram of 1200 bytes as far as
/// three times what came permits; and until that is answered nothing goes beyond.
#[test]
fn the_first_packet_has_a_challenge_and_the_limit_holds() {
    for size in [30, 100, 400, 1200] {
        let mut pair = supplied();
        let (connection, _) = pair.server.connection(0).unwrap();
        let id = connection
            .open(quic_transport::Direction::Unidirectional)
            .unwrap();
        pair.client.acknowledges = false;
        pair.network.rebind(CLIENT, other_host());
        let before = pair.network.passed(SERVER, CLIENT).sent_bytes;
        let packet = pair.client.seal(&Draft {
            size,
            ..Draft::new(Level::OneRtt, &frames::ping())
        });
        let received = packet.len();
        pair.client.send_datagram(packet);
        pair.run(MS * 15);
        let (connection, _) = pair.server.connection(0).unwrap();
        connection.stream_send(id, &vec![1; 50_000]).unwrap();
        pair.run(MS * 900);
        let sent = pair.network.passed(SERVER, CLIENT).sent_bytes - before;
        assert!(
            sent <= 3 * u64::try_from(received).unwrap(),
            "{sent} for {received}"
        );
        let first = &pair.client.packets()[0];
        assert_eq!(
            challenges(std::slice::from_ref(first)).len(),
            1,
            "{first:?}"
        );
        assert_eq!(
            first.datagram_length >= 1200,
            received * 3 >= 1200,
            "{received}"
        );
    }
}

/// RFC 9000, 8.2.3: an answer to a small datagram validates the address; then the MTU is validated, too.
#[test]
fn a_validation_in_a_small_datagram_is_followed_by_a_full_one() {
    let mut pair = supplied();
    pair.network.rebind(CLIENT, other_host());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 30);
    let [small] = challenges(pair.client.packets())[..] else {
        panic!("{:?}", pair.client.packets());
    };
    assert!(pair.client.packets()[0].datagram_length < 1200);
    pair.client.forget();
    pair.client
        .send(Level::OneRtt, &frames::path_response(small));
    pair.run(MS * 30);
    let [full] = challenges(pair.client.packets())[..] else {
        panic!("{:?}", pair.client.packets());
    };
    assert_ne!(small, full, "unpredictable data each time");
    assert!(pair.client.packets()[0].datagram_length >= 1200);
    pair.client.forget();
    pair.client
        .send(Level::OneRtt, &frames::path_response(full));
    pair.run(SECOND * 2);
    assert_eq!(challenges(pair.client.packets()), [[0; 8]; 0]);
}

/// RFC 9000, 9.3.2: when the new address doesn't answer, the last one that did is used again.
#[test]
fn without_an_answer_the_server_returns() {
    let mut pair = supplied();
    pair.client.acknowledges = false;
    let home = pair.network.address(CLIENT);
    let packet = pair.client.seal(&Draft {
        size: 1200,
        ..Draft::new(Level::OneRtt, &frames::ping())
    });
    let route = Route {
        source: other_host(),
        destination: pair.network.address(SERVER),
    };
    pair.network.inject(route, Ecn::NotEct, &packet);
    pair.run(SECOND * 2);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), other_host());
    // RFC 9000, 9.3.3: the old path is asked at once.
    let asked = challenges(pair.client.packets());
    assert!(!asked.is_empty());
    assert!(
        pair.network.unroutable() <= 3,
        "{}",
        pair.network.unroutable()
    );
    pair.run(SECOND * 2);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
    assert!(!connection.is_closing());
    let news: Vec<_> = path_events(&mut pair)
        .iter()
        .map(|e| (e.remote, e.news))
        .collect();
    let expected = [
        (other_host(), PathNews::InUse),
        (home, PathNews::InUse),
        (other_host(), PathNews::Failed),
    ];
    assert_eq!(news, expected);
    pair.client.forget();
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND);
    assert!(!pair.client.packets().is_empty());
}

thread_local! {
    /// Whether a server's connection of this thread has ended because the client answered nowhere.
    static HAD_NO_PATH: Cell<bool> = const { Cell::new(false) };
}

/// Waits for that.
#[derive(Default)]
struct Watcher;

impl Application for Watcher {
    fn process(&mut self, connection: &mut Connection, _: Instant) {
        while let Some(event) = connection.next_event() {
            if event == Event::Closed(CloseReason::NoPath) {
                HAD_NO_PATH.set(true);
            }
        }
    }
}

/// RFC 9000, 9.3.2: without a path that it could return to, because the client took back the connection ID for it, the
/// server gives up, and says nothing to an address that may be anyone's.
#[test]
fn without_any_path_the_connection_ends_in_silence() {
    let (settings, parameters) = (Settings::default(), Parameters::generous());
    let mut pair =
        Pair::<ScriptedPeer, Server<Watcher>>::scripted_client(&settings, parameters, link());
    pair.handshake();
    let spare = |retired| frames::new_connection_id(1, retired, &[1; 8], [1; 16]);
    pair.client.send(Level::OneRtt, &spare(0));
    pair.run(SECOND);
    pair.network.rebind(CLIENT, other_host());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    pair.client.send(Level::OneRtt, &spare(1));
    pair.run(SECOND * 5);
    assert!(HAD_NO_PATH.get());
    assert!(pair.server.connection(0).is_none());
    assert_eq!(pair.client.close_code(), None);
}

/// B22. RFC 9000, 9.3: an older packet that comes late from the old address doesn't lead back there; a newer one does.
#[test]
fn only_the_newest_packet_tells_where_the_client_is() {
    let mut pair = supplied();
    let home = pair.network.address(CLIENT);
    let late = pair
        .client
        .seal(&Draft::new(Level::OneRtt, &frames::ping()));
    pair.network.rebind(CLIENT, other_port());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    let route = Route {
        source: home,
        destination: pair.network.address(SERVER),
    };
    pair.network.inject(route, Ecn::NotEct, &late);
    pair.run(MS * 50);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), other_port());
    let newer = pair
        .client
        .seal(&Draft::new(Level::OneRtt, &frames::ping()));
    pair.network.inject(route, Ecn::NotEct, &newer);
    pair.run(MS * 50);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
    assert!(in_use(connection).is_validated, "it was known before");
}

/// RFC 9000, 9.1: packets of probing frames only don't move the connection, and are answered where they came from.
#[test]
fn a_probe_is_answered_on_its_path_and_moves_nothing() {
    let mut pair = supplied();
    let (home, second) = (pair.network.address(CLIENT), other_host());
    pair.network.add_address(CLIENT, second);
    pair.client.set_local(second);
    pair.client.acknowledges = false;
    let packet = pair.client.seal(&Draft {
        size: 1200,
        ..Draft::new(Level::OneRtt, &frames::path_challenge([7; 8]))
    });
    pair.client.send_datagram(packet);
    pair.run(MS * 50);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
    let there = |packet: &&SeenPacket| packet.to == Some(second);
    let probes: Vec<_> = pair.client.packets().iter().filter(there).collect();
    let [probe] = probes[..] else {
        panic!("{probes:?}");
    };
    assert!(probe.frames.contains(&SeenFrame::PathResponse([7; 8])));
    assert!(probe.datagram_length >= 1200);
    assert_eq!(
        probe.destination, [1; 8],
        "a connection ID that was never used"
    );
    // RFC 9000, 9.6.3: it is asked in turn, and may answer from anywhere (8.2.2, B24).
    let [question] = challenges(pair.client.packets())[..] else {
        panic!("{probe:?}");
    };
    pair.client.set_local(home);
    pair.client
        .send(Level::OneRtt, &frames::path_response([9; 8]));
    pair.run(MS * 50);
    let is_validated = |pair: &mut ToServer| {
        let (connection, _) = pair.server.connection(0).unwrap();
        let path = connection
            .paths()
            .find(|path| path.remote == second)
            .unwrap();
        path.is_validated
    };
    assert!(!is_validated(&mut pair));
    pair.client
        .send(Level::OneRtt, &frames::path_response(question));
    pair.run(MS * 50);
    assert!(is_validated(&mut pair));
}

/// RFC 9000, 9.5 and 5.1.2: another connection ID on the new path, and the one of the old path is retired in the end;
/// where there is none to spare, a client that didn't change its own gets the same again.
#[test]
fn the_new_path_has_a_new_connection_id_if_there_is_any() {
    let mut pair = supplied();
    let home = pair.client.local_cid().to_vec();
    pair.network.rebind(CLIENT, other_host());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    let there = |packet: &&SeenPacket| packet.destination == [1; 8];
    let new: Vec<_> = pair.client.packets().iter().filter(there).collect();
    let answer = challenges(&[new[0].clone()])[0];
    pair.client
        .send(Level::OneRtt, &frames::path_response(answer));
    pair.run(SECOND * 8);
    let retired = SeenFrame::RetireConnectionId { sequence: 0 };
    assert!(
        pair.client
            .frames(Level::OneRtt)
            .any(|frame| *frame == retired)
    );

    let mut pair = to_server();
    pair.client.forget();
    pair.network.rebind(CLIENT, other_host());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    assert!(
        pair.client
            .packets()
            .iter()
            .all(|packet| packet.destination == home)
    );
    assert!(!challenges(pair.client.packets()).is_empty());
}

/// RFC 9000, 9.3: a client that uses another connection ID has moved on purpose, and gets nothing before it has given
/// one to answer with.
#[test]
fn a_deliberate_move_waits_for_a_connection_id() {
    let mut pair = to_server();
    let given = pair
        .client
        .frames(Level::OneRtt)
        .find_map(|frame| match frame {
            SeenFrame::NewConnectionId { cid, .. } => Some(cid.clone()),
            _ => None,
        });
    pair.client.set_remote_cid(&given.unwrap());
    pair.client.forget();
    pair.network.rebind(CLIENT, other_host());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    assert!(
        pair.client.packets().is_empty(),
        "{:?}",
        pair.client.packets()
    );
    let spare = frames::new_connection_id(1, 0, &[1; 8], [1; 16]);
    pair.client.send(Level::OneRtt, &spare);
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    assert!(
        pair.client
            .packets()
            .iter()
            .all(|packet| packet.destination == [1; 8])
    );
    assert!(!challenges(pair.client.packets()).is_empty());
}

/// A client that comes from another address with each packet.
#[test]
fn a_storm_of_moves_is_bounded() {
    let mut pair = supplied();
    for round in 0..20_000_u32 {
        let [_, a, b, c] = round.to_be_bytes();
        let source = SocketAddr::from(([203, a, b, c], 4000));
        let frame = if round % 2 == 0 {
            frames::ping()
        } else {
            frames::path_challenge([c; 8])
        };
        let packet = pair.client.seal(&Draft::new(Level::OneRtt, &frame));
        let route = Route {
            source,
            destination: pair.network.address(SERVER),
        };
        pair.network.inject(route, Ecn::NotEct, &packet);
        if round % 50 == 0 {
            pair.run(MS);
            let (connection, _) = pair.server.connection(0).unwrap();
            assert!(!connection.is_closing());
            assert!(connection.paths().count() <= 5);
        }
    }
    // All that was gained: three times the packets, and nothing that stays.
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND * 30);
    let home = pair.network.address(CLIENT);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
    assert_eq!(connection.paths().count(), 1);
    pair.client.forget();
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND);
    assert!(!pair.client.packets().is_empty());
}

/// Challenges from an address that isn't validated are answered within three times what came.
#[test]
fn a_flood_of_challenges_from_elsewhere_is_bounded() {
    let mut pair = supplied();
    pair.client.acknowledges = false;
    let second = other_host();
    pair.network.add_address(CLIENT, second);
    pair.client.set_local(second);
    let before = pair.network.passed(SERVER, CLIENT).sent_bytes;
    let mut received = 0;
    for round in 0..2000_u64 {
        let packet = pair.client.seal(&Draft::new(
            Level::OneRtt,
            &frames::path_challenge(round.to_be_bytes()),
        ));
        received += u64::try_from(packet.len()).unwrap();
        pair.client.send_datagram(packet);
        pair.run(MS);
    }
    let home = pair.network.address(CLIENT);
    let there = |packet: &&SeenPacket| packet.to == Some(second);
    let to_second = pair.client.packets().iter().filter(there);
    let sent: usize = to_second.map(|packet| packet.datagram_length).sum();
    assert!(
        u64::try_from(sent).unwrap() <= 3 * received,
        "{sent} for {received}"
    );
    let all = pair.network.passed(SERVER, CLIENT).sent_bytes - before;
    assert!(all < 4 * received, "{all}");
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
}

/// RFC 9000, 9: addresses stay during the handshake; what comes from elsewhere then changes nothing.
#[test]
fn nobody_moves_during_the_handshake() {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.client.is_automatic = false;
    let hello = pair.client.take_crypto(Level::Initial);
    pair.client.send(Level::Initial, &frames::crypto(0, &hello));
    pair.run(MS * 30);
    pair.client.forget();
    let home = pair.network.address(CLIENT);
    pair.network.rebind(CLIENT, other_host());
    let finished = pair.client.take_crypto(Level::Handshake);
    pair.client
        .send(Level::Handshake, &frames::crypto(0, &finished));
    pair.run(MS * 30);
    assert!(pair.client.packets().is_empty());
    let (connection, _) = pair.server.connection(0).unwrap();
    assert!(connection.is_handshaking() && connection.remote() == home);
}

/// RFC 9002, 6.2.2: the time between a challenge and its answer is no RTT sample.
#[test]
fn a_response_is_no_rtt_sample() {
    let mut pair = supplied();
    pair.client.acknowledges = false;
    pair.network.rebind(CLIENT, other_host());
    let packet = pair.client.seal(&Draft {
        size: 1200,
        ..Draft::new(Level::OneRtt, &frames::ping())
    });
    pair.client.send_datagram(packet);
    pair.run(MS * 50);
    let data = challenges(pair.client.packets())[0];
    pair.client
        .send(Level::OneRtt, &frames::path_response(data));
    pair.run(MS * 50);
    let (connection, _) = pair.server.connection(0).unwrap();
    let path = in_use(connection);
    assert!(path.is_validated);
    assert_eq!(path.smoothed_rtt, MS * 333);
}
