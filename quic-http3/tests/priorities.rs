//! Whose turn it is among responses, RFC 9218: by a field of the request, and by PRIORITY_UPDATE frames.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code"
)]

mod common;

use common::raw::{Client, SETTINGS, Server, bidirectional, frame, request, varint};
use quic_http3::{Code, Field};
use quic_transport::{Direction, Side, StreamId};

const UPDATE: u64 = 0xf0700;
const PUSH_UPDATE: u64 = 0xf0701;

/// A server whose client has sent its settings.
fn server() -> Server {
    let mut server = Server::new();
    server.unidirectional(0, &[vec![0x00], frame(SETTINGS, &[])].concat(), false);
    server.end.priorities.clear();
    server
}

fn update(id: u64, value: &str) -> Vec<u8> {
    frame(UPDATE, &[varint(id), value.as_bytes().to_vec()].concat())
}

/// What was said of requests, and not of our own streams.
fn of_requests(server: &mut Server) -> Vec<(u64, u8, bool)> {
    let all = server.end.priorities.drain(..);
    all.filter(|(id, ..)| id.direction() == Direction::Bidirectional)
        .map(|(id, urgency, incremental)| (id.index(), urgency, incremental))
        .collect()
}

/// RFC 9218, 5: the field of a request; without one nothing is said.
#[test]
fn a_field_of_the_request_counts() {
    let mut server = server();
    let field = |value| request(&[Field::new("priority", value)]);
    server.get(bidirectional(0), &field("u=1, i"), true);
    server.get(bidirectional(1), &field("i"), true);
    server.get(bidirectional(2), &request(&[]), true);
    let two = [Field::new("priority", "u=6"), Field::new("priority", "i")];
    server.get(bidirectional(3), &request(&two), true);
    assert_eq!(
        of_requests(&mut server),
        [(0, 1, true), (1, 3, true), (3, 6, true)]
    );
}

/// RFC 9218, 7: a frame counts more than the field, before the request and after.
#[test]
fn a_frame_counts_more() {
    let mut server = server();
    server.unidirectional(0, &update(4, "u=7"), false);
    server.unidirectional(0, &update(4, "u=2"), false);
    assert_eq!(of_requests(&mut server), []);
    let field = request(&[Field::new("priority", "u=5")]);
    server.get(bidirectional(1), &field, true);
    assert_eq!(of_requests(&mut server), [(1, 2, false)]);
    server.unidirectional(0, &update(4, "u=0, i"), false);
    assert_eq!(of_requests(&mut server), [(1, 0, true)]);
    // Members that are left out have their defaults.
    server.unidirectional(0, &update(4, ""), false);
    assert_eq!(of_requests(&mut server), [(1, 3, false)]);
    // A request that hasn't begun to be told, and one that is over.
    server.get(bidirectional(2), &field[..3], false);
    server.unidirectional(0, &update(8, "u=1"), false);
    server.get(bidirectional(2), &field[3..], true);
    assert_eq!(of_requests(&mut server), [(2, 1, false)]);
    let id = bidirectional(2);
    server
        .session
        .cancel(&mut server.end, id, Code::NO_ERROR)
        .unwrap();
    server.unidirectional(0, &update(8, "u=1"), false);
    assert_eq!(of_requests(&mut server), []);
    assert_eq!(server.closed(), None);
}

/// RFC 9218, 7.2: what the frame may be for, and from whom, and how long it may be.
#[test]
fn other_frames_close_the_connection() {
    let cases = [
        (update(1, "u=1"), Code::ID_ERROR),
        (update(2, "u=1"), Code::ID_ERROR),
        (update(4000, "u=1"), Code::ID_ERROR),
        (frame(PUSH_UPDATE, &[0]), Code::ID_ERROR),
        (frame(UPDATE, &[]), Code::FRAME_ERROR),
        (frame(UPDATE, &[0x40]), Code::FRAME_ERROR),
        (frame(UPDATE, &[b'a'; 265]), Code::EXCESSIVE_LOAD),
    ];
    for (bytes, code) in cases {
        let mut server = server();
        server.unidirectional(0, &bytes, false);
        server.assert_closed(code);
    }
    let mut server = server();
    let longest = [update(3996, &"u".repeat(256)), update(0, "no dictionary,")].concat();
    server.unidirectional(0, &longest, false);
    assert_eq!(server.closed(), None);
    // On a request stream, and from a server.
    let mut server = self::server();
    server.get(bidirectional(0), &update(0, ""), false);
    assert_eq!(server.closed(), Some(Code::FRAME_UNEXPECTED));
    for kind in [UPDATE, PUSH_UPDATE] {
        let mut client = Client::new("GET");
        let bytes = [vec![0x00], frame(SETTINGS, &[]), frame(kind, &[0])].concat();
        client.unidirectional(0, &bytes);
        assert_eq!(client.closed(), Some(Code::FRAME_UNEXPECTED));
    }
}

/// What is kept for requests to come is bounded, and so is how often priorities change.
#[test]
fn priorities_are_bounded() {
    let mut server = server();
    for index in 0..65 {
        server.unidirectional(0, &update(4 * index, "u=1"), false);
    }
    for index in 0..65 {
        server.get(bidirectional(index), &request(&[]), true);
    }
    assert_eq!(of_requests(&mut server).len(), 64);
    let mut server = self::server();
    server.unidirectional(0, &update(0, "i").repeat(10_000), false);
    assert_eq!(server.closed(), None);
    server.unidirectional(0, &update(0, "i"), false);
    server.assert_closed(Code::EXCESSIVE_LOAD);
}

/// A client's frame is one that our server understands.
#[test]
fn a_client_says_what_is_urgent() {
    let mut client = Client::new("GET");
    let id = client.id;
    client
        .session
        .prioritize(&mut client.end, id, 5, true)
        .unwrap();
    client
        .session
        .prioritize(&mut client.end, id, 9, false)
        .unwrap();
    let unknown = client
        .session
        .prioritize(&mut client.end, bidirectional(7), 1, true);
    assert!(unknown.is_err());
    let control = StreamId::new(Side::Client, Direction::Unidirectional, 0);
    let said = client.end.sent(control).0;
    let mut server = Server::new();
    server.get(id, &request(&[]), true);
    server.end.priorities.clear();
    server.unidirectional(0, &said, false);
    assert_eq!(of_requests(&mut server), [(0, 5, true), (0, 7, false)]);
}
