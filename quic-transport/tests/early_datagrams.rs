//! Datagrams in 0-RTT packets, RFC 9221, 3: a client that comes back sends them under what the server took the last time.

use std::time::Duration;

use quic_transport::{Config, DatagramError, DatagramSettings};
use test_fixture::ends::Settings;
use test_fixture::visit::{DELAY, Visit, settings};

const SECOND: Duration = Duration::from_secs(1);

/// Ends with early data, of which the server takes datagrams in frames of so many bytes.
fn taking(max_frame_size: u16) -> Settings {
    let settings = settings();
    Settings {
        server: Config {
            datagrams: DatagramSettings {
                max_frame_size,
                ..DatagramSettings::default()
            },
            ..settings.server
        },
        ..settings
    }
}

/// What became of the client's datagrams: acknowledged, lost, never sent.
fn outcomes(visit: &Visit) -> [u64; 3] {
    let stats = visit.client().stats().datagram_frames;
    assert_eq!(stats.sent, stats.acked + stats.lost);
    [stats.acked, stats.lost, stats.dropped]
}

#[test]
fn a_datagram_arrives_half_a_round_trip_after_it_was_sent() {
    let mut visit = Visit::new(&taking(1000));
    visit.come_back();
    assert!(visit.client().is_sending_early_data());
    assert_eq!(visit.client().max_datagram_length(), Some(997));
    let start = visit.pair.network.now();
    visit
        .pair
        .client
        .connection
        .send_datagram(b"early")
        .unwrap();
    visit.request(10, 10);
    visit.pair.run_until(|pair| {
        let server = pair.server.connection(0);
        server.is_some_and(|(server, _)| server.stats().datagram_frames.received > 0)
    });
    assert_eq!(visit.pair.network.now() - start, DELAY);
    let (server, _) = visit.pair.server.connection(0).unwrap();
    assert!(server.is_handshaking(), "it may be a replay");
    assert_eq!(server.receive_datagram(), Some(&b"early"[..]));
    visit.finish(1, 18);
    assert!(visit.client().is_early_data_accepted());
    assert_eq!(outcomes(&visit), [1, 0, 0]);
}

#[test]
fn the_largest_early_datagram_waits_for_a_packet_that_holds_it() {
    let mut visit = Visit::new(&taking(u16::MAX));
    visit.come_back();
    assert!(visit.client().is_sending_early_data());
    let most = visit.client().max_datagram_length().unwrap();
    for length in [most, 1] {
        let data = vec![7; length];
        visit.pair.client.connection.send_datagram(&data).unwrap();
    }
    visit.pair.run(SECOND);
    let (server, _) = visit.pair.server.connection(0).unwrap();
    assert_eq!(server.receive_datagram().map(<[u8]>::len), Some(most));
    assert_eq!(server.receive_datagram(), Some(&[7][..]));
}

#[test]
fn rejected_datagrams_are_lost_and_not_sent_again() {
    let mut visit = Visit::new(&taking(1000));
    visit.pair.server.config.early_data = false;
    visit.come_back();
    assert!(visit.client().is_sending_early_data());
    visit
        .pair
        .client
        .connection
        .send_datagram(b"early")
        .unwrap();
    visit.pair.run(SECOND);
    assert_eq!(outcomes(&visit), [0, 1, 0]);
    let (server, _) = visit.pair.server.connection(0).unwrap();
    assert!(server.is_resumed() && !server.is_early_data_accepted());
    assert_eq!(server.receive_datagram(), None);
}

/// A server that takes smaller frames than it said when it gave the session does not accept early data, and what waits
/// that is too large for it now is never sent.
#[test]
fn a_server_that_takes_smaller_datagrams_rejects_early_data() {
    for (now, most) in [(500, Some(497)), (0, None)] {
        let mut visit = Visit::new(&taking(1000));
        visit.pair.server.config.datagrams.max_frame_size = now;
        visit.come_back();
        assert!(visit.client().is_sending_early_data());
        let connection = &mut visit.pair.client.connection;
        for _ in 0..40 {
            connection.send_datagram(&[1; 900]).unwrap();
        }
        visit.pair.run(SECOND);
        assert!(!visit.client().is_early_data_accepted());
        let [acked, lost, dropped] = outcomes(&visit);
        assert_eq!((acked, lost + dropped), (0, 40));
        assert!(lost > 0 && dropped > 0, "{lost} {dropped}");
        assert_eq!(visit.client().max_datagram_length(), most);
        let (server, _) = visit.pair.server.connection(0).unwrap();
        assert_eq!(server.receive_datagram(), None);
    }
}

#[test]
fn nothing_is_remembered_of_a_server_that_takes_none() {
    let mut visit = Visit::new(&taking(0));
    visit.come_back();
    assert!(visit.client().is_sending_early_data());
    assert_eq!(visit.client().max_datagram_length(), None);
    let refused = visit.pair.client.connection.send_datagram(b"early");
    assert_eq!(refused, Err(DatagramError::Unsupported));
}
