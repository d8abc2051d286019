//! Acknowledgments that the other end asks for (draft-ietf-quic-ack-frequency-14).
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_transport::{Config, Direction, Stats, StreamId};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::scripted::parameters::{MAX_ACK_DELAY, MIN_ACK_DELAY};
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, SeenFrame, frames};
use test_fixture::{Bulk, Pair};

const FRAME_ENCODING: u64 = 7;
const TRANSPORT_PARAMETER: u64 = 8;
const PROTOCOL: u64 = 10;

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;
type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

fn asking(ack_frequency: bool) -> Settings {
    let config = Config {
        ack_frequency,
        ..Config::default()
    };
    Settings {
        client: config.clone(),
        server: config,
        ..Settings::default()
    }
}

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

/// 100 Mbit/s with a round trip of 40 ms.
fn wide() -> Link {
    Link {
        bandwidth: Some(100_000_000),
        queue: 500_000,
        ..Link::delayed(Duration::from_millis(20))
    }
}

/// Downloads 20 MB: the server's figures, the client's, and how long it took.
fn download(ack_frequency: bool, link: Link) -> (Stats, Stats, Duration) {
    let mut pair = Bulks::new(&asking(ack_frequency), link);
    pair.handshake();
    pair.client.request(20_000_000, 0).unwrap();
    pair.run_until(|pair| pair.client.application.complete == 1);
    assert!(!pair.client.application.is_wrong);
    let elapsed = pair.network.elapsed();
    let (server, _) = pair.server.connection(0).unwrap();
    (server.stats(), pair.client.connection.stats(), elapsed)
}

/// The client offers 10 kB of a stream every 5 ms, so many times.
fn speak(pair: &mut ToClient, times: u32) -> StreamId {
    let connection = &mut pair.client.connection;
    let id = connection.open(Direction::Unidirectional).unwrap();
    for _ in 0..times {
        let connection = &mut pair.client.connection;
        let _taken = connection.stream_send(id, &[7; 10_000]).unwrap();
        pair.run(Duration::from_millis(5));
    }
    id
}

/// With it a transfer takes a fraction of the acknowledgments, and no longer.
#[test]
fn fewer_acknowledgments_move_as_much() {
    let (server, client, with) = download(true, wide());
    let (server_without, client_without, without) = download(false, wide());
    println!(
        "20 MB at 100 Mbit/s and 40 ms: {} ACKs for {} packets in {with:?} with ACK_FREQUENCY, {} for {} in {without:?} without",
        client.acks_sent,
        server.packets_sent,
        client_without.acks_sent,
        server_without.packets_sent,
    );
    assert!(client.acks_sent * 5 < client_without.acks_sent);
    assert!(with < without + without / 10, "{with:?} {without:?}");
    assert!(server.ack_requests_sent > 0 && client.ack_requests_received > 0);
    assert_eq!(server_without.ack_requests_sent, 0);
    assert!(server.packets_lost * 20 < server.packets_sent);
}

#[test]
fn everything_arrives_over_a_bad_link() {
    let lossy = Link {
        loss: Chance::percent(2),
        reorder: Chance::percent(3),
        reorder_delay: Duration::from_millis(5),
        ..wide()
    };
    let (_, _, with) = download(true, lossy);
    let (_, _, without) = download(false, lossy);
    assert!(with < without * 3 / 2, "{with:?} {without:?}");
}

/// 3: the parameter is offered when the setting is on, and the peer's is used only then.
#[test]
fn the_setting_turns_it_off() {
    for on in [true, false] {
        let mut pair = ToClient::scripted_server(&asking(on), Parameters::generous(), link());
        pair.handshake();
        let offered = pair.server.remote_parameters().unwrap().to_vec();
        let id = frames::varint(MIN_ACK_DELAY);
        let is_there = offered.windows(id.len()).any(|window| window == id);
        assert_eq!(is_there, on);
    }
}

/// 4: what a scripted sender asks for is what it gets.
fn acknowledgments(requests: &[Vec<u8>], packets: usize) -> usize {
    let mut pair = ToServer::scripted_client(&asking(true), Parameters::generous(), link());
    pair.handshake();
    pair.run(Duration::from_secs(1));
    for request in requests {
        pair.client.send(Level::OneRtt, request);
        pair.run(Duration::from_secs(1));
    }
    pair.client.forget();
    for _ in 0..packets {
        // Each arrives at a time of its own.
        pair.client.send(Level::OneRtt, &frames::ping());
        pair.run(Duration::from_micros(100));
    }
    pair.run(Duration::from_millis(500));
    assert_eq!(pair.client.close_code(), None);
    let acks = pair.client.frames(Level::OneRtt);
    acks.filter(|frame| matches!(frame, SeenFrame::Ack { .. }))
        .count()
}

/// 4: more packets than the threshold, or the delay.
#[test]
fn a_receiver_does_as_it_is_asked() {
    let ask = |threshold, delay| frames::ack_frequency(1, threshold, delay, 1);
    assert_eq!(acknowledgments(&[], 100), 50);
    assert_eq!(acknowledgments(&[ask(0, 25_000)], 100), 100);
    assert_eq!(acknowledgments(&[ask(9, 25_000)], 100), 10);
    assert_eq!(acknowledgments(&[ask(1000, 400_000)], 100), 1);
    // 100 packets in 10 ms, and each acknowledgment after 5.
    let by_delay = acknowledgments(&[ask(1000, 5000)], 100);
    assert!((2..=3).contains(&by_delay), "{by_delay}");
    // The highest number counts.
    let both = [
        frames::ack_frequency(7, 9, 25_000, 1),
        frames::ack_frequency(6, 0, 25_000, 1),
    ];
    assert_eq!(acknowledgments(&both, 100), 10);
}

/// 5: an acknowledgment at once.
#[test]
fn an_immediate_acknowledgment_is_given() {
    let mut pair = ToServer::scripted_client(&asking(true), Parameters::generous(), link());
    pair.handshake();
    pair.run(Duration::from_secs(1));
    pair.client.forget();
    pair.client.send(Level::OneRtt, &frames::immediate_ack());
    pair.run(Duration::from_millis(21));
    assert_eq!(pair.client.packets().len(), 1);
}

/// 3 and 4: values that can't be MUST be errors; and frames of an extension that was not offered are unknown.
#[test]
fn requests_that_cannot_be_are_errors() {
    let says = |on, frames: &[u8]| {
        let mut pair = ToServer::scripted_client(&asking(on), Parameters::generous(), link());
        pair.handshake();
        pair.client.send(Level::OneRtt, frames);
        pair.run(Duration::from_secs(1));
        pair.client.close_code()
    };
    let ask = |delay| frames::ack_frequency(1, 10, delay, 3);
    assert_eq!(says(true, &ask(1000)), None);
    assert_eq!(says(true, &ask(999)), Some(PROTOCOL));
    assert_eq!(says(true, &ask(16_383_999)), None);
    assert_eq!(says(true, &ask(16_384_000)), Some(PROTOCOL));
    assert_eq!(says(true, &ask((1 << 62) - 1)), Some(PROTOCOL));
    assert_eq!(says(false, &ask(1000)), Some(FRAME_ENCODING));
    assert_eq!(says(false, &frames::immediate_ack()), Some(FRAME_ENCODING));

    let mut parameters = Parameters::generous();
    parameters.set(MAX_ACK_DELAY, 20).set(MIN_ACK_DELAY, 20_001);
    let mut pair = ToClient::scripted_server(&asking(true), parameters, link());
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.server.close_code(), Some(TRANSPORT_PARAMETER));
}

/// 4 and 7: numbers grow, a probe asks for an answer at once, and a peer that can't be asked isn't.
#[test]
fn a_sender_asks_only_who_can_be_asked() {
    for can in [true, false] {
        let mut parameters = Parameters::generous();
        if can {
            parameters.set(MIN_ACK_DELAY, 2000);
        }
        let mut pair = ToClient::scripted_server(&asking(true), parameters, link());
        pair.handshake();
        let id = speak(&mut pair, 300);
        let mut sequences = Vec::new();
        for frame in pair.server.frames(Level::OneRtt) {
            if let SeenFrame::AckFrequency {
                sequence,
                threshold,
                max_delay,
                reordering,
            } = frame
            {
                sequences.push(*sequence);
                assert!(*threshold >= 1 && (2000..=25_000).contains(max_delay));
                assert_eq!(*reordering, 3);
            }
        }
        assert_eq!(sequences.is_empty(), !can, "{sequences:?}");
        assert!(sequences.is_sorted_by(|one, next| one < next));

        pair.run(Duration::from_secs(1));
        pair.server.acknowledges = false;
        pair.server.forget();
        let _taken = pair
            .client
            .connection
            .stream_send(id, b"unanswered")
            .unwrap();
        pair.run(Duration::from_secs(1));
        let mut all = pair.server.frames(Level::OneRtt);
        assert_eq!(all.any(|frame| *frame == SeenFrame::ImmediateAck), can);
    }
}

/// 7: until a request is acknowledged, probes wait for the longer of the delays.
#[test]
fn a_shorter_delay_counts_once_the_peer_knows() {
    let mut parameters = Parameters::generous();
    parameters.set(MIN_ACK_DELAY, 1000).set(MAX_ACK_DELAY, 400);
    let mut pair = ToClient::scripted_server(&asking(true), parameters, link());
    pair.handshake();
    // A round trip of 20 ms: a probe comes after about 60 ms and the delay.
    let probe_after = |pair: &mut ToClient| {
        pair.server.acknowledges = false;
        pair.server.forget();
        let id = pair
            .client
            .connection
            .open(Direction::Unidirectional)
            .unwrap();
        pair.client.connection.stream_send(id, b"x").unwrap();
        let start = pair.network.elapsed();
        pair.run_until(|pair| pair.server.packets().len() > 1);
        pair.server.acknowledges = true;
        pair.network.elapsed().saturating_sub(start)
    };
    let before = probe_after(&mut pair);
    assert!(before > Duration::from_millis(400), "{before:?}");
    pair.run(Duration::from_secs(3));
    speak(&mut pair, 200);
    pair.run(Duration::from_secs(1));
    assert!(pair.client.connection.stats().ack_requests_sent > 0);
    let after = probe_after(&mut pair);
    assert!(after < Duration::from_millis(150), "{after:?}");
}
