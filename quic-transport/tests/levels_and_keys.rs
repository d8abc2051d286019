//! Packets and the keys of their level: when keys come and go, what waits for them, and what each level may hold.
#![expect(clippy::indexing_slicing, reason = "test code")]

use std::collections::BTreeMap;
use std::time::Duration;

use quic_transport::{CloseReason, Direction, Event, StreamEvent};
use test_fixture::network::Verdict;
use test_fixture::scripted::{Level, ScriptedPeer, SeenFrame, frames};
use test_fixture::scripted_pairs::{ROUND_TRIP, to_client, to_server, to_waiting_server};
use test_fixture::{CLIENT, SERVER};

const SECOND: Duration = Duration::from_secs(1);
const PROTOCOL: u64 = 10;

/// RFC 9001, 4.9.2: nor are Handshake packets taken once the handshake is confirmed.
#[test]
fn handshake_keys_go_when_the_handshake_is_confirmed() {
    let close = frames::connection_close(2, 0, b"");
    let mut pair = to_server();
    pair.handshake();
    pair.client.send(Level::Handshake, &close);
    pair.run(ROUND_TRIP);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert!(!connection.is_closing());

    let mut pair = to_client();
    pair.run_until(|pair| pair.server.is_complete());
    pair.server.is_automatic = false;
    pair.run(SECOND);
    assert!(
        !pair.client.connection.is_handshaking(),
        "complete, and not confirmed"
    );
    for (frames, is_closed) in [(frames::handshake_done(), false), (Vec::new(), true)] {
        let mut pair = to_client();
        pair.run_until(|pair| pair.server.is_complete());
        pair.server.is_automatic = false;
        pair.run(SECOND);
        if !frames.is_empty() {
            pair.server.send(Level::OneRtt, &frames);
        }
        pair.server.send(Level::Handshake, &close);
        pair.run(ROUND_TRIP);
        assert_eq!(pair.client.connection.is_closing(), is_closed);
    }
}

/// RFC 9000, 13.3 and 19.20, RFC 9001, 4.1.2: as soon as the handshake is complete, not before, and until it is
/// acknowledged.
#[test]
fn handshake_done_comes_again_until_acknowledged() {
    let done = |peer: &ScriptedPeer| {
        let frames = peer.frames(Level::OneRtt);
        frames
            .filter(|frame| **frame == SeenFrame::HandshakeDone)
            .count()
    };
    let mut pair = to_waiting_server();
    pair.run(SECOND);
    assert_eq!(done(&pair.client), 0);
    let finished = pair.client.take_crypto(Level::Handshake);
    pair.client
        .send(Level::Handshake, &frames::crypto(0, &finished));
    pair.network
        .set_filter(SERVER, CLIENT, Box::new(|_, _| Verdict::Drop));
    pair.run(ROUND_TRIP);
    assert_eq!(done(&pair.client), 0, "it was lost");
    pair.network.clear_filter(SERVER, CLIENT);
    pair.client.is_automatic = true;
    pair.run(SECOND * 10);
    assert!(done(&pair.client) > 0, "again");
    pair.client.forget();
    pair.run(SECOND * 10);
    assert_eq!(done(&pair.client), 0, "no more");
    pair = to_waiting_server();
    let finished = pair.client.take_crypto(Level::Handshake);
    pair.client
        .send(Level::Handshake, &frames::crypto(0, &finished));
    pair.run(ROUND_TRIP);
    assert_eq!(done(&pair.client), 1, "at once");
}

/// RFC 9000, 12.4, table 3, and 17.2.4: a Handshake packet holds CRYPTO, ACK, PING, PADDING and the transport's close.
#[test]
fn handshake_packets_hold_their_frames_only() {
    for frame in [
        frames::stream(0, 0, b"early", false),
        frames::reset_stream(0, 0, 0),
        frames::stop_sending(0, 0),
        frames::max_data(5),
        frames::max_stream_data(0, 5),
        frames::max_streams(5),
        frames::data_blocked(5),
        frames::stream_data_blocked(0, 5),
        frames::streams_blocked(5),
        frames::handshake_done(),
        frames::new_token(b"token"),
        frames::application_close(1, b"early"),
        frames::path_challenge([1; 8]),
        frames::path_response([1; 8]),
        frames::new_connection_id(1, 0, b"12345678", [1; 16]),
        frames::retire_connection_id(0),
    ] {
        let mut pair = to_waiting_server();
        pair.client.send(Level::Handshake, &frame);
        pair.run(ROUND_TRIP);
        assert_eq!(pair.client.close_code(), Some(PROTOCOL), "{frame:?}");
    }
    let mut pair = to_waiting_server();
    pair.client.send(
        Level::Handshake,
        &[frames::ping(), frames::padding(9)].concat(),
    );
    pair.run(ROUND_TRIP);
    assert_eq!(pair.client.close_code(), None);
}

/// RFC 9001, 4.1.3: once TLS has gone on to the next level, more data at the last one is a violation; the same data again
/// is not.
#[test]
fn data_of_a_level_that_has_ended_is_an_error() {
    let mut pair = to_waiting_server();
    let hello = pair.client.take_crypto(Level::Initial);
    pair.client.send(Level::Initial, &frames::crypto(0, &hello));
    pair.run(ROUND_TRIP);
    assert_eq!(pair.client.close_code(), None);
    let end = u64::try_from(hello.len()).unwrap();
    pair.client
        .send(Level::Initial, &frames::crypto(end, b"more"));
    pair.run(ROUND_TRIP);
    assert_eq!(pair.client.close_code(), Some(PROTOCOL));
}

/// RFC 9001, 5.7: a server does nothing about 1-RTT packets before the handshake is complete, and takes them then.
#[test]
fn early_1_rtt_packets_wait_for_the_handshake() {
    let is_opened = |event: &Event| matches!(event, Event::Stream(StreamEvent::Opened(_)));
    let mut pair = to_waiting_server();
    pair.client
        .send(Level::OneRtt, &frames::stream(0, 0, b"early", true));
    pair.run(SECOND);
    let (_, log) = pair.server.connection(0).unwrap();
    assert!(!log.events.iter().any(is_opened));
    assert!(
        !pair
            .client
            .frames(Level::OneRtt)
            .any(|f| matches!(f, SeenFrame::Ack { .. }))
    );
    let finished = pair.client.take_crypto(Level::Handshake);
    pair.client
        .send(Level::Handshake, &frames::crypto(0, &finished));
    pair.run(SECOND);
    let (_, log) = pair.server.connection(0).unwrap();
    assert!(log.events.iter().any(is_opened));
}

/// RFC 9001, 5.7: neither does a client.
#[test]
fn a_client_takes_no_1_rtt_packet_before_the_finished() {
    let is_opened = |event: &Event| matches!(event, Event::Stream(StreamEvent::Opened(_)));
    let mut pair = to_client();
    pair.server.is_automatic = false;
    pair.run(ROUND_TRIP);
    pair.server
        .send(Level::OneRtt, &frames::stream(1, 0, b"early", true));
    pair.run(ROUND_TRIP);
    for level in [Level::Initial, Level::Handshake] {
        let events = &pair.client.application.events;
        assert!(!events.iter().any(is_opened));
        let flight = pair.server.take_crypto(level);
        pair.server.send(level, &frames::crypto(0, &flight));
        pair.run(ROUND_TRIP);
    }
    assert!(pair.client.application.events.iter().any(is_opened));
}

/// RFC 9001, 4.9: data that is lost is sent again at the level that it was first sent at.
#[test]
fn lost_handshake_data_keeps_its_level() {
    let mut pair = to_waiting_server();
    let crypto = |peer: &ScriptedPeer, level| {
        let mut found = BTreeMap::new();
        for frame in peer.frames(level) {
            if let SeenFrame::Crypto { offset, data } = frame {
                found.insert(*offset, data.clone());
            }
        }
        found
    };
    let first = [Level::Initial, Level::Handshake].map(|level| crypto(&pair.client, level));
    pair.client.forget();
    // The address isn't validated, so that what comes again needs datagrams to answer.
    for _ in 0..3 {
        pair.client.send(Level::Initial, &frames::ping());
        pair.run(SECOND * 2);
    }
    let again = [Level::Initial, Level::Handshake].map(|level| crypto(&pair.client, level));
    assert_eq!(again, first);
}

/// RFC 9001, 4.8: any alert of TLS ends the connection.
#[test]
fn a_handshake_that_fails_ends_the_connection() {
    let mut pair = to_waiting_server();
    // A Finished of zeros.
    let finished = [&[20, 0, 0, 32][..], &[0; 32]].concat();
    pair.client
        .send(Level::Handshake, &frames::crypto(0, &finished));
    pair.run(ROUND_TRIP);
    assert!(
        pair.client
            .close_code()
            .is_some_and(|code| code & !0xff == 0x100)
    );
    let (_, log) = pair.server.connection(0).unwrap();
    assert!(matches!(
        log.events.last(),
        Some(Event::Closed(CloseReason::Local(_)))
    ));
}

/// The acknowledgments of 1-RTT packets: the largest number, and the delay in microseconds.
fn acknowledgments(peer: &ScriptedPeer) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for frame in peer.frames(Level::OneRtt) {
        if let SeenFrame::Ack { ranges, delay, .. } = frame {
            found.push((*ranges[0].end(), *delay << 3));
        }
    }
    found
}

/// RFC 9000, 13.2.5: the delay in our ACK holds the time that a packet waited for its keys.
#[test]
fn the_wait_for_keys_is_in_the_delay() {
    let mut pair = to_waiting_server();
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND);
    let finished = pair.client.take_crypto(Level::Handshake);
    pair.client
        .send(Level::Handshake, &frames::crypto(0, &finished));
    pair.run(SECOND);
    let (number, delay) = acknowledgments(&pair.client)[0];
    assert_eq!((number, delay / 10_000), (0, 100));
}

/// RFC 9002, 5.3: an ACK that waited for its keys measures the round trip up to when it arrived.
#[test]
fn the_wait_for_keys_is_not_in_the_sample() {
    let mut pair = to_waiting_server();
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.stream_send(id, b"early").unwrap();
    pair.run(ROUND_TRIP);
    let is_data = |frame: &SeenFrame| matches!(frame, SeenFrame::Stream { .. });
    let mut packets = pair.client.packets().iter();
    let packet = packets.find(|packet| packet.frames.iter().any(is_data));
    let number = packet.unwrap().number;
    pair.client
        .send(Level::OneRtt, &frames::ack(&[number..=number]));
    pair.run(SECOND);
    let finished = pair.client.take_crypto(Level::Handshake);
    pair.client
        .send(Level::Handshake, &frames::crypto(0, &finished));
    pair.run(SECOND / 100 * 2);
    let (connection, _) = pair.server.connection(0).unwrap();
    // It left when the data had arrived long since.
    assert_eq!(
        connection.stats().min_rtt,
        Some(Duration::from_millis(10) + ROUND_TRIP)
    );
}
