//! A scripted peer breaks the rules of frames after the handshake; the connection closes with the code of the RFC.
//!
//! The limits are the defaults: 1 MiB for a stream, 1.5 MiB for the connection, 100 streams.

use std::time::Duration;

use quic_transport::{Direction, Side, StreamId};
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames};

const FLOW_CONTROL: u64 = 3;
const STREAM_LIMIT: u64 = 4;
const STREAM_STATE: u64 = 5;
const FINAL_SIZE: u64 = 6;
const FRAME_ENCODING: u64 = 7;
const CID_LIMIT: u64 = 9;
const PROTOCOL: u64 = 10;

const STREAM_WINDOW: u64 = 1 << 20;
const CONNECTION_WINDOW: u64 = 3 << 19;

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

fn to_server() -> ToServer {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.handshake();
    pair
}

fn to_client() -> ToClient {
    let mut pair = ToClient::scripted_server(&Settings::default(), Parameters::generous(), link());
    pair.handshake();
    pair
}

/// What a server says to frames of a client, each in a packet of its own.
fn server_says(packets: &[Vec<u8>]) -> Option<u64> {
    let mut pair = to_server();
    for frames in packets {
        pair.client.send(Level::OneRtt, frames);
    }
    pair.run(Duration::from_secs(1));
    pair.client.close_code()
}

/// What a client says to frames of a server.
fn client_says(packets: &[Vec<u8>]) -> Option<u64> {
    let mut pair = to_client();
    for frames in packets {
        pair.server.send(Level::OneRtt, frames);
    }
    pair.run(Duration::from_secs(1));
    pair.server.close_code()
}

/// RFC 9000, 19.3: numbers that were never sent or that lie below zero.
#[test]
fn acknowledging_what_cannot_be_is_an_error() {
    let beyond = [frames::ack(&[0..=10_000])];
    assert_eq!(server_says(&beyond), Some(PROTOCOL));
    assert_eq!(client_says(&beyond), Some(PROTOCOL));
    let below = [frames::raw_ack(1, 0, 2, &[])];
    assert_eq!(server_says(&below), Some(FRAME_ENCODING));
    let gap_below = [frames::raw_ack(3, 0, 0, &[(2, 0)])];
    assert_eq!(server_says(&gap_below), Some(FRAME_ENCODING));
}

/// RFC 9000, 13.2.5: a delay is only a hint, however absurd.
#[test]
fn an_absurd_acknowledgement_delay_does_no_harm() {
    let mut pair = to_server();
    pair.client.acknowledges = false;
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.stream_send(id, b"to be acknowledged").unwrap();
    pair.run(Duration::from_millis(15));
    let last = pair.client.packets().last().unwrap().number;
    pair.client
        .send(Level::OneRtt, &frames::raw_ack(last, (1 << 62) - 1, 0, &[]));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.close_code(), None);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert!(connection.stats().smoothed_rtt < Duration::from_secs(1));
}

/// RFC 9000, 21.4: an optimistic acknowledgement meets a number that was skipped.
#[test]
fn acknowledging_a_skipped_number_is_an_error() {
    let mut pair = to_server();
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    let mut skipped = None;
    while skipped.is_none() {
        assert!(pair.client.packets().len() < 10_000);
        let (connection, _) = pair.server.connection(0).unwrap();
        connection.stream_send(id, &[7; 10_000]).unwrap();
        pair.run(Duration::from_millis(20));
        skipped = missing_number(&pair.client);
    }
    let skipped = skipped.unwrap();
    pair.client
        .send(Level::OneRtt, &frames::ack(&[skipped..=skipped]));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.close_code(), Some(PROTOCOL));
}

/// The first number between those of 1-RTT packets that no packet had.
fn missing_number(peer: &ScriptedPeer) -> Option<u64> {
    let packets = peer.packets().iter();
    let packets = packets.filter(|packet| packet.level == Level::OneRtt);
    let mut expected = None;
    for number in packets.map(|packet| packet.number) {
        if expected.is_some_and(|expected| expected < number) {
            return expected;
        }
        expected = Some(number + 1);
    }
    None
}

/// RFC 9000, 4.5: a final size stands once it is known.
#[test]
fn a_final_size_that_changes_is_an_error() {
    let stream = frames::stream;
    for packets in [
        [stream(0, 0, b"abc", true), stream(0, 3, b"d", false)],
        [stream(0, 0, b"abc", true), stream(0, 0, b"ab", true)],
        [stream(0, 0, b"abc", false), stream(0, 0, b"ab", true)],
        [stream(0, 0, b"abc", true), frames::reset_stream(0, 0, 2)],
        [stream(0, 0, b"abc", false), frames::reset_stream(0, 0, 2)],
        [frames::reset_stream(0, 0, 5), frames::reset_stream(0, 0, 6)],
        [frames::reset_stream(0, 0, 5), stream(0, 5, b"a", false)],
    ] {
        assert_eq!(server_says(&packets), Some(FINAL_SIZE), "{packets:?}");
    }
    let again = [stream(0, 0, b"abc", true), stream(0, 0, b"abc", true)];
    assert_eq!(server_says(&again), None);
}

/// RFC 9000, 4.1.
#[test]
fn data_at_the_limit_passes_and_one_byte_more_is_an_error() {
    let end = |id, end| frames::stream(id, end - 1, b"x", false);
    assert_eq!(server_says(&[end(0, STREAM_WINDOW)]), None);
    assert_eq!(
        server_says(&[end(0, STREAM_WINDOW + 1)]),
        Some(FLOW_CONTROL)
    );
    let half = CONNECTION_WINDOW / 2;
    assert_eq!(server_says(&[end(0, half), end(4, half)]), None);
    assert_eq!(
        server_says(&[end(0, half), end(4, half + 1)]),
        Some(FLOW_CONTROL)
    );
    assert_eq!(
        server_says(&[frames::reset_stream(0, 0, STREAM_WINDOW + 1)]),
        Some(FLOW_CONTROL)
    );
    assert_eq!(client_says(&[end(3, STREAM_WINDOW)]), None);
    assert_eq!(
        client_says(&[end(3, STREAM_WINDOW + 1)]),
        Some(FLOW_CONTROL)
    );
    let last = (1 << 62) - 1;
    assert_eq!(
        server_says(&[frames::stream(0, last, b"x", false)]),
        Some(FRAME_ENCODING)
    );
}

/// RFC 9000, 4.6: every frame that opens a stream counts.
#[test]
fn a_stream_beyond_the_limit_is_an_error() {
    let (last, beyond) = (4 * 99, 4 * 100);
    for open in [
        |id| frames::stream(id, 0, b"x", false),
        |id| frames::reset_stream(id, 0, 0),
        |id| frames::stream_data_blocked(id, 0),
        |id| frames::max_stream_data(id, 10),
        |id| frames::stop_sending(id, 0),
    ] {
        assert_eq!(server_says(&[open(last)]), None);
        assert_eq!(server_says(&[open(beyond)]), Some(STREAM_LIMIT));
        assert_eq!(client_says(&[open(beyond + 1)]), Some(STREAM_LIMIT));
    }
    let unidirectional = frames::stream(beyond + 2, 0, b"x", false);
    assert_eq!(server_says(&[unidirectional]), Some(STREAM_LIMIT));
    for limit in [frames::max_streams, frames::streams_blocked] {
        assert_eq!(server_says(&[limit(1 << 60)]), None);
        assert_eq!(server_says(&[limit((1 << 60) + 1)]), Some(FRAME_ENCODING));
    }
}

/// RFC 9000, 3 and 19: frames that go the wrong way, or name a stream that we would have to open.
#[test]
fn a_frame_that_the_stream_forbids_is_an_error() {
    let ours = [1, 3];
    for id in ours {
        for frame in [
            frames::stream(id, 0, b"x", false),
            frames::reset_stream(id, 0, 0),
            frames::stop_sending(id, 0),
            frames::max_stream_data(id, 10),
            frames::stream_data_blocked(id, 0),
        ] {
            assert_eq!(server_says(&[frame]), Some(STREAM_STATE), "{id}");
        }
    }
    let receive_only = [frames::max_stream_data(2, 10), frames::stop_sending(2, 0)];
    for frame in receive_only {
        assert_eq!(server_says(&[frame]), Some(STREAM_STATE));
    }
    let mut pair = to_server();
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    assert_eq!(
        id,
        StreamId::new(Side::Server, Direction::Unidirectional, 0)
    );
    pair.client
        .send(Level::OneRtt, &frames::stream(3, 0, b"x", false));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.close_code(), Some(STREAM_STATE));
}

/// RFC 9000, 2.2: the first copy of a byte counts.
#[test]
fn data_that_overlaps_is_taken_once() {
    let mut pair = to_server();
    for frame in [
        frames::stream(0, 4, b"efgh", true),
        frames::stream(0, 0, b"abcdXX", false),
    ] {
        pair.client.send(Level::OneRtt, &frame);
    }
    pair.run(Duration::from_secs(1));
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    let mut data = [0; 20];
    let read = connection.stream_read(id, &mut data).unwrap();
    assert_eq!(
        (data.get(..read.length), read.fin),
        (Some(&b"abcdefgh"[..]), true)
    );
}

/// RFC 9000, 19.7 and 19.20: only a server sends these.
#[test]
fn frames_of_a_server_are_an_error_from_a_client() {
    assert_eq!(server_says(&[frames::handshake_done()]), Some(PROTOCOL));
    assert_eq!(server_says(&[frames::new_token(b"token")]), Some(PROTOCOL));
    assert_eq!(client_says(&[frames::handshake_done()]), None);
    assert_eq!(client_says(&[frames::new_token(b"token")]), None);
    assert_eq!(client_says(&[frames::new_token(b"")]), Some(FRAME_ENCODING));
}

/// RFC 9000, 12.4 and 19: what can't be decoded.
#[test]
fn what_is_no_frame_is_an_error() {
    let cases = [
        (vec![0x21], FRAME_ENCODING),
        (frames::varint(0x4000), FRAME_ENCODING),
        (frames::long_varint(1, 2), PROTOCOL),
        (vec![0x40], FRAME_ENCODING),
        (frames::numbers(0x0a, &[0, 1000]), FRAME_ENCODING),
        (frames::numbers(4, &[0, 0]), FRAME_ENCODING),
        (frames::numbers(0x1c, &[0, 0, 5]), FRAME_ENCODING),
        (vec![0x1a, 1, 2, 3], FRAME_ENCODING),
    ];
    for (frame, code) in cases {
        let packets = [frame];
        assert_eq!(server_says(&packets), Some(code), "{packets:?}");
        assert_eq!(client_says(&packets), Some(code), "{packets:?}");
    }
    assert_eq!(server_says(&[frames::padding(100)]), None);
}

/// RFC 9000, 12.4: a packet has to hold a frame.
#[test]
fn a_packet_without_frames_is_an_error() {
    assert_eq!(server_says(&[Vec::new()]), Some(PROTOCOL));
    assert_eq!(client_says(&[Vec::new()]), Some(PROTOCOL));
}

/// RFC 9000, 17.3.1: reserved bits are zero under the protection, and the fixed bit is one.
#[test]
fn header_bits_are_checked() {
    for (flip, expected) in [
        (0x08, Some(PROTOCOL)),
        (0x10, Some(PROTOCOL)),
        (0x40, None),
        (0x20, None),
    ] {
        let mut pair = to_server();
        let mut draft = Draft::new(Level::OneRtt, &[1]);
        draft.flip = flip;
        let packet = pair.client.seal(&draft);
        pair.client.send_datagram(packet);
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.client.close_code(), expected, "{flip:#x}");
    }
}

/// RFC 9000, 19.15: what NEW_CONNECTION_ID may not say.
#[test]
fn connection_ids_that_contradict_are_an_error() {
    let new = |sequence, retire, cid: &[u8]| {
        frames::new_connection_id(sequence, retire, cid, [u8::try_from(sequence).unwrap(); 16])
    };
    assert_eq!(server_says(&[new(1, 0, b"12345678")]), None);
    let cases = [
        (vec![new(1, 2, b"12345678")], FRAME_ENCODING),
        (vec![new(1, 0, b"")], FRAME_ENCODING),
        (vec![new(1, 0, &[1; 21])], FRAME_ENCODING),
        (
            vec![new(1, 0, b"12345678"), new(1, 0, b"87654321")],
            PROTOCOL,
        ),
        (
            vec![new(1, 0, b"12345678"), new(2, 0, b"12345678")],
            PROTOCOL,
        ),
        (vec![frames::retire_connection_id(100)], PROTOCOL),
    ];
    for (packets, code) in cases {
        assert_eq!(server_says(&packets), Some(code), "{packets:?}");
    }
}

/// RFC 9000, 5.1.1: no more than the limit of 8, the first included; 5.1.2: retiring makes room.
#[test]
fn connection_ids_beyond_the_limit_are_an_error() {
    let new = |sequence: u8, retire| {
        frames::new_connection_id(sequence.into(), retire, &[sequence; 8], [sequence; 16])
    };
    let to = |last| {
        (1..=last)
            .map(|sequence| new(sequence, 0))
            .collect::<Vec<_>>()
    };
    assert_eq!(server_says(&to(7)), None);
    assert_eq!(server_says(&to(8)), Some(CID_LIMIT));
    let churn: Vec<_> = (1..=100)
        .map(|sequence| new(sequence, sequence.into()))
        .collect();
    let mut pair = to_server();
    pair.client.acknowledges = false;
    for frame in churn {
        pair.client.send(Level::OneRtt, &frame);
    }
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.close_code(), Some(CID_LIMIT));
}

/// RFC 9000, 8.2.2: a challenge is answered once, and a flood of them not at all times.
#[test]
fn challenges_are_answered_within_bounds() {
    let mut pair = to_server();
    pair.client
        .send(Level::OneRtt, &frames::path_challenge(*b"12345678"));
    pair.run(Duration::from_secs(1));
    let answers = |peer: &ScriptedPeer| {
        let is_answer = |frame: &&SeenFrame| matches!(frame, SeenFrame::PathResponse(_));
        peer.frames(Level::OneRtt).filter(is_answer).count()
    };
    assert_eq!(answers(&pair.client), 1);
    let flood: Vec<u8> = (0..100)
        .flat_map(|_| frames::path_challenge([9; 8]))
        .collect();
    for _ in 0..10 {
        pair.client.send(Level::OneRtt, &flood);
    }
    pair.run(Duration::from_secs(1));
    assert!(answers(&pair.client) < 50, "{}", answers(&pair.client));
    assert_eq!(pair.client.close_code(), None);
}
