//! What a peer may do, but not too often, too slowly or too much of: each bound at the cap, and one more.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code"
)]

mod common;

use std::time::Duration;

use common::raw::{
    Client, DATA, GREASE, HEADERS, SETTINGS, Server, bidirectional, frame, headers, request,
    response, serve, varint,
};
use quic_http3::{Code, Field, ServerEvent};
use quic_transport::{Direction, Side, StreamId};

/// The bound on interim responses: at the cap, and one more.
#[test]
fn the_limit_on_interim_responses_is_exact() {
    for (count, failed) in [(64, None), (65, Some(Code::EXCESSIVE_LOAD))] {
        let mut client = Client::new("GET");
        client.get(&response("103").repeat(count), false);
        client.get(&response("200"), true);
        assert_eq!(client.failed(), failed);
        assert_eq!(client.is_finished(), failed.is_none());
    }
}

/// RFC 9114, 9: unknown frames are skipped wherever they are, however long, and nothing of them is kept.
#[test]
fn unknown_frames_are_skipped() {
    let grease = frame(GREASE, &[0xff; 1000]);
    let bytes = [
        grease.clone(),
        request(&[]),
        grease.clone(),
        frame(DATA, b"x"),
        grease,
    ]
    .concat();
    let server = serve(&bytes, true);
    assert_eq!(server.closed(), None);
    assert_eq!(
        server.events.last(),
        Some(&ServerEvent::Finished {
            id: bidirectional(0)
        })
    );

    let mut server = Server::new();
    let endless = [varint(GREASE), varint((1 << 62) - 1)].concat();
    server.get(bidirectional(0), &endless, false);
    for _ in 0..1000 {
        server.get(bidirectional(0), &[0x00; 1000], false);
    }
    assert_eq!((server.closed(), server.events.len()), (None, 0));
}

/// A flood of unknown frames is stopped: at the cap of the bucket, and one more.
#[test]
fn the_limit_on_unknown_frames_is_exact() {
    for control in [false, true] {
        let mut server = Server::new();
        let mut bytes = if control { vec![0x00] } else { vec![] };
        let settings = frame(SETTINGS, &[]);
        bytes.extend(if control { settings } else { request(&[]) });
        bytes.extend(frame(GREASE, &[]).repeat(10_000));
        let id = if control {
            StreamId::new(Side::Client, Direction::Unidirectional, 0)
        } else {
            bidirectional(0)
        };
        server.get(id, &bytes, false);
        assert_eq!(server.closed(), None);
        // Time forgives.
        server.now += Duration::from_secs(1);
        server.get(id, &frame(GREASE, &[]).repeat(330), false);
        assert_eq!(server.closed(), None);
        server.get(id, &frame(GREASE, &[]), false);
        server.assert_closed(Code::EXCESSIVE_LOAD);
    }
}

/// Requests made and reset at once cost the peer its tokens, and the application nothing.
#[test]
fn the_limit_on_resets_is_exact() {
    let mut server = Server::new();
    for index in 0..10_000 {
        server.end.deliver_reset(bidirectional(index), 0x10c);
        server.run();
    }
    assert_eq!((server.closed(), server.events.len()), (None, 0));
    assert_eq!(server.session.active(), 0);
    server.end.deliver_reset(bidirectional(10_000), 0x10c);
    server.run();
    server.assert_closed(Code::EXCESSIVE_LOAD);
}

/// RFC 9114, 6.2.3: unknown streams are refused one by one, and stopped being read.
#[test]
fn unknown_streams_are_stopped() {
    let mut server = Server::new();
    for index in 0..200 {
        server.unidirectional(index, &[0x40, 0x54, 1, 2, 3], index % 2 == 0);
    }
    assert_eq!(server.closed(), None);
    assert_eq!(server.end.stops.len(), 200);
    assert!(server.end.stops.iter().all(|(_, code)| *code == 0x103));
}

/// The bound on streams without a type: at the cap, and one more.
#[test]
fn the_limit_on_streams_without_a_type_is_exact() {
    let mut server = Server::new();
    for index in 0..128 {
        server.unidirectional(index, &[], false);
    }
    assert_eq!(server.closed(), None);
    server.unidirectional(128, &[], false);
    server.assert_closed(Code::EXCESSIVE_LOAD);

    // Streams that end, or are reset, before they have a type are gone.
    let mut server = Server::new();
    for index in 0..400 {
        server.unidirectional(index, &[0x40], index % 2 == 0);
        let id = StreamId::new(Side::Client, Direction::Unidirectional, index);
        if index % 2 == 1 {
            server.end.deliver_reset(id, 0x100);
            server.run();
        }
    }
    assert_eq!(server.closed(), None);
}

/// A server that is made to reset streams, by malformed requests or by STOP_SENDING with any code, stops in time.
#[test]
fn the_limit_on_streams_that_a_server_is_made_to_reset_is_exact() {
    let malformed = request(&[Field::new("connection", "close")]);
    let good = request(&[]);
    for kind in 0..3 {
        let mut server = Server::new();
        for index in 0..=10_000 {
            assert_eq!(server.closed(), None, "{index}");
            let id = bidirectional(index);
            match kind {
                0 => server.get(id, &malformed, true),
                1 => {
                    server.get(id, &good, true);
                    server.end.deliver_stop(id, Code::NO_ERROR.value());
                    server.run();
                }
                _ => {
                    let body = frame(DATA, b"longer than it says");
                    let head = request(&[Field::new("content-length", "4")]);
                    server.get(id, &[head, body].concat(), true);
                }
            }
        }
        server.assert_closed(Code::EXCESSIVE_LOAD);
        let resets = server.end.resets.len();
        assert!(kind == 1 || resets == 10_000, "{resets} of kind {kind}");
    }
}

/// A request whose header section isn't whole after 10 seconds is given up, whatever still comes of it; nobody is told,
/// and other requests go on.
#[test]
fn a_header_section_has_to_come_in_time() {
    let bytes = request(&[]);
    let mut server = Server::new();
    let start = server.now;
    let timeout = Duration::from_secs(10);
    server.get(bidirectional(0), &bytes[..1], false);
    assert_eq!(server.end.alarm, Some(start + timeout));
    server.now += timeout / 2;
    server.get(bidirectional(1), &bytes[..5], false);
    server.get(bidirectional(2), &bytes, false);
    server.get(bidirectional(0), &bytes[1..2], false);
    assert_eq!(server.end.alarm, Some(start + timeout));
    server.now = start + Duration::from_nanos(9_999_999_999);
    server.run();
    assert!(server.end.resets.is_empty());
    server.now = start + timeout;
    server.run();
    let rejected = Code::REQUEST_REJECTED.value();
    assert_eq!(server.end.resets, [(bidirectional(0), rejected)]);
    assert_eq!(server.end.stops, [(bidirectional(0), rejected)]);
    assert_eq!(server.end.alarm, Some(start + timeout * 3 / 2));
    // The second one comes in time; then nothing is waited for.
    server.get(bidirectional(1), &bytes[5..], true);
    assert_eq!(server.end.alarm, None);
    server.now += timeout * 5;
    server.run();
    assert_eq!(server.end.resets.len(), 1);
    assert_eq!(server.session.active(), 2);
    let requests = server.events.iter();
    let requests = requests.filter(|event| matches!(event, ServerEvent::Request { .. }));
    assert_eq!(requests.count(), 2);
}

/// So has a trailer section that has begun; the body may take as long as it likes. The application is told.
#[test]
fn a_trailer_section_has_to_come_in_time() {
    let trailers = headers(&[Field::new("a", "b")]);
    let timeout = Duration::from_secs(10);
    let id = bidirectional(0);
    let begin = || {
        let mut server = Server::new();
        // A header section in two pieces has been waited for, too.
        let bytes = request(&[]);
        server.get(id, &bytes[..3], false);
        server.now += timeout / 2;
        server.get(id, &bytes[3..], false);
        server.get(id, &frame(DATA, b"body"), false);
        assert_eq!(server.end.alarm, None);
        server.get(id, &trailers[..3], false);
        assert_eq!(server.end.alarm, Some(server.now + timeout));
        server
    };
    let mut server = begin();
    server.now += Duration::from_nanos(9_999_999_999);
    server.run();
    assert_eq!(server.end.resets, []);
    server.now += Duration::from_nanos(1);
    server.get(bidirectional(1), &request(&[]), true);
    server.assert_failed_with(id, Code::REQUEST_INCOMPLETE);

    let mut server = begin();
    server.now += Duration::from_nanos(9_999_999_999);
    server.get(id, &trailers[3..], true);
    server.now += timeout;
    server.run();
    assert_eq!(server.end.alarm, None);
    let last = server.events.last();
    assert_eq!(last, Some(&ServerEvent::Finished { id }));

    // A body that pauses is waited for.
    let mut server = Server::new();
    server.get(id, &request(&[]), false);
    server.get(id, &frame(DATA, b"body")[..4], false);
    assert_eq!(server.end.alarm, None);
}

/// What streams hold of field sections that have come in part is bounded together; a request beyond fails alone.
#[test]
fn parts_of_field_sections_are_bounded_together() {
    let header = [varint(HEADERS), varint(64 * 1024)].concat();
    let part = [header, vec![0; 64 * 1024 - 1]].concat();
    let mut server = Server::new();
    for index in 0..16 {
        server.get(bidirectional(index), &part, false);
    }
    // 16 bytes are left.
    let small = [varint(HEADERS), varint(100), vec![0; 17]].concat();
    server.get(bidirectional(16), &small[..small.len() - 1], false);
    assert_eq!(server.end.resets, []);
    server.get(bidirectional(17), &small[..4], false);
    server.assert_failed_with(bidirectional(17), Code::EXCESSIVE_LOAD);
    // One that goes makes room.
    let code = Code::REQUEST_CANCELLED.value();
    server.end.deliver_reset(bidirectional(3), code);
    server.run();
    let resets = server.end.resets.len();
    server.get(bidirectional(18), &part, false);
    assert_eq!((server.end.resets.len(), server.closed()), (resets, None));
}

/// Empty DATA frames bring nothing: one may be how a sender ends, more are counted.
#[test]
fn empty_data_frames_are_counted() {
    let empty = frame(DATA, b"");
    let mut server = Server::new();
    for index in 0..10_001 {
        server.get(
            bidirectional(index),
            &[request(&[]), empty.clone()].concat(),
            true,
        );
    }
    assert_eq!(server.closed(), None);
    let mut server = Server::new();
    let id = bidirectional(0);
    server.get(id, &[request(&[]), empty.repeat(10_001)].concat(), false);
    assert_eq!(server.closed(), None);
    server.get(id, &empty, false);
    server.assert_closed(Code::EXCESSIVE_LOAD);
}

/// Requests that come in pieces, but in time, leave nothing behind; those that don't cost the peer its tokens.
#[test]
fn slow_requests_are_counted() {
    let bytes = request(&[]);
    let mut server = Server::new();
    for index in 0..1000 {
        server.get(bidirectional(index), &bytes[..3], false);
        server.get(bidirectional(index), &bytes[3..], true);
    }
    assert_eq!(server.end.alarm, None);
    for index in 1000..11_001 {
        server.get(bidirectional(index), &bytes[..3], false);
    }
    assert_eq!(server.closed(), None);
    server.now += Duration::from_secs(10);
    server.get(bidirectional(11_001), &bytes, true);
    server.assert_closed(Code::EXCESSIVE_LOAD);
}
