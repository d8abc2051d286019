//! Packets of the phases before and after a key update, in any order.

use std::time::Duration;

use quic_transport::Direction;
use test_fixture::Pair;
use test_fixture::ends::{Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames};

type ToServer = Pair<ScriptedPeer, Server<Log>>;

const SECOND: Duration = Duration::from_secs(1);
const KEY_UPDATE_ERROR: u64 = 0x0e;

fn to_server() -> ToServer {
    let link = Link::delayed(Duration::from_millis(10));
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link);
    pair.handshake();
    pair.run(SECOND);
    pair
}

/// Whether the server acknowledges the packet `number`.
fn is_acknowledged(pair: &ToServer, number: u64) -> bool {
    pair.client.frames(Level::OneRtt).any(|frame| {
        let SeenFrame::Ack { ranges, .. } = frame else {
            return false;
        };
        ranges.iter().any(|range| range.contains(&number))
    })
}

/// RFC 9001, 6.1: the peer follows, and until it has acknowledged the new keys there is no other update.
#[test]
fn an_update_of_ours_is_followed() {
    let mut pair = to_server();
    for round in 1..6 {
        let (connection, _) = pair.server.connection(0).unwrap();
        let id = connection.open(Direction::Unidirectional).unwrap();
        assert_eq!(connection.update_keys(), Ok(()));
        assert!(
            connection.update_keys().is_err(),
            "not before it is answered"
        );
        connection.stream_send(id, b"new keys").unwrap();
        pair.run(SECOND * 2);
        assert_eq!(pair.client.phases(), (round, round));
        assert_eq!(pair.client.unreadable().len(), 0);
    }
    assert_eq!(pair.client.close_code(), None);
}

/// RFC 9001, 6.5: packets of the old phase that come late are read, for three probe timeouts.
#[test]
fn late_packets_of_the_old_phase_are_read_for_a_while() {
    for (delay, expected) in [(Duration::from_millis(20), true), (SECOND * 3, false)] {
        let mut pair = to_server();
        let number = pair.client.next_number(Level::OneRtt);
        let late = pair
            .client
            .seal(&Draft::new(Level::OneRtt, &frames::ping()));
        pair.client.update_keys();
        pair.client.send(Level::OneRtt, &frames::ping());
        pair.run(delay);
        pair.client.send_datagram(late);
        pair.run(SECOND);
        assert_eq!(is_acknowledged(&pair, number), expected, "{delay:?}");
        assert_eq!(pair.client.close_code(), None);
        // Whatever came late, the new keys stay.
        assert_eq!(pair.client.phases(), (1, 1));
    }
}

/// RFC 9001, 6.4: old keys are never tried on a number above those of the new ones, so such a packet can't be opened.
#[test]
fn old_keys_open_nothing_newer() {
    let mut pair = to_server();
    let mut draft = Draft::new(Level::OneRtt, &[1]);
    let number = pair.client.next_number(Level::OneRtt) + 5;
    draft.number = Some(number);
    let back = pair.client.seal(&draft);
    pair.client.update_keys();
    let mut draft = Draft::new(Level::OneRtt, &[1]);
    draft.number = Some(pair.client.next_number(Level::OneRtt) - 3);
    let new = pair.client.seal(&draft);
    pair.client.send_datagram(new);
    pair.run(Duration::from_millis(15));
    pair.client.send_datagram(back);
    pair.run(SECOND);
    assert!(!is_acknowledged(&pair, number));
    assert_eq!(pair.client.close_code(), None);
}

/// RFC 9001, 6.2: an update before the last one was acknowledged is an error.
#[test]
fn an_update_before_the_last_is_acknowledged_is_an_error() {
    let mut pair = to_server();
    pair.client.update_keys();
    let first = pair.client.seal(&Draft::new(Level::OneRtt, &[1]));
    pair.client.update_keys();
    let second = pair.client.seal(&Draft::new(Level::OneRtt, &[1]));
    pair.client.send_datagram(first);
    pair.client.send_datagram(second);
    pair.run(SECOND);
    assert_eq!(pair.client.close_code(), Some(KEY_UPDATE_ERROR));
}
