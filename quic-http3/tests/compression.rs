//! QPACK's dynamic tables between sessions, RFC 9204: what becomes shorter, what waits, and what is told about it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod common;

use std::time::Duration;

use common::raw::{
    Client, HEADERS, SETTINGS, Server, bidirectional, frame, headers, request, request_lines,
    section,
};
use quic_http3::{Code, Field, ServerEvent};
use quic_transport::{Direction, Side, StreamId};

/// A capacity of 4096, and `x-name: a value`.
const INSTRUCTIONS: &[u8] = b"\x02\x3f\xe1\x1f\x46x-name\x07a value";

/// The settings of a peer that allows a table of 4096 bytes, and no streams that wait.
const ALLOWED: &[u8] = &[0x00, 0x04, 0x03, 0x01, 0x50, 0x00];

/// A request whose last line is the first one of the dynamic table.
fn dynamic_request() -> Vec<u8> {
    let mut section = section(&request_lines(&[]));
    section[..2].copy_from_slice(&[0x02, 0x00]);
    section.push(0x80);
    frame(HEADERS, &section)
}

fn requests(server: &Server) -> Vec<StreamId> {
    let requests = server.events.iter().filter_map(|event| {
        let ServerEvent::Request { id, fields } = event else {
            return None;
        };
        assert_eq!(fields.value("x-name"), Some(&b"a value"[..]));
        Some(*id)
    });
    requests.collect()
}

/// What an end of ours has said on its decoder stream, behind the type.
fn told(end: &mut common::Mock, side: Side) -> Vec<u8> {
    let id = StreamId::new(side, Direction::Unidirectional, 2);
    end.sent(id).0
}

/// RFC 9204, 2.2.1 and 4.4: a request that comes before the lines that it needs waits, and then is acknowledged; so is one
/// that comes after.
#[test]
fn a_request_waits_for_its_lines() {
    for step in [1, 1000] {
        let mut server = Server::new();
        for part in dynamic_request().chunks(step) {
            server.get(bidirectional(0), part, false);
        }
        server.get(bidirectional(0), &frame(0x00, b"body"), true);
        assert_eq!(server.events, []);
        for part in INSTRUCTIONS.chunks(step) {
            server.unidirectional(0, part, false);
        }
        let id = bidirectional(0);
        assert_eq!(requests(&server), [id]);
        assert_eq!(server.events.last(), Some(&ServerEvent::Finished { id }));
        assert_eq!(told(&mut server.end, Side::Server), [0x03, 0x80]);
        server.get(bidirectional(1), &dynamic_request(), true);
        assert_eq!(requests(&server), [id, bidirectional(1)]);
        assert_eq!(told(&mut server.end, Side::Server), [0x84]);
        assert_eq!(server.closed(), None);
    }
}

/// RFC 9204, 2.1.2 and 2.2.1: as many streams wait as our settings say, and no more.
#[test]
fn the_streams_that_wait_are_counted() {
    let mut server = Server::new();
    for index in 0..100 {
        server.get(bidirectional(index), &dynamic_request(), true);
    }
    assert_eq!(server.closed(), None);
    server.get(bidirectional(100), &dynamic_request(), true);
    server.assert_closed(Code::QPACK_DECOMPRESSION_FAILED);
}

/// A request whose lines never come is given up in time, and makes room for another.
#[test]
fn lines_have_to_come_in_time() {
    let mut server = Server::new();
    server.get(bidirectional(0), &dynamic_request(), true);
    server.now += Duration::from_secs(10);
    server.run();
    let rejected = Code::REQUEST_REJECTED.value();
    assert_eq!(server.end.resets, [(bidirectional(0), rejected)]);
    assert_eq!(told(&mut server.end, Side::Server), [0x03, 0x40]);
    server.unidirectional(0, INSTRUCTIONS, false);
    assert_eq!((server.events.len(), server.closed()), (0, None));
}

/// RFC 9204, 4.4.2: whatever ends the reading of a stream, the encoder is told.
#[test]
fn streams_that_are_given_up_are_cancelled() {
    let id = bidirectional(0);
    let mut server = Server::new();
    server.get(id, &dynamic_request(), false);
    server
        .end
        .deliver_reset(id, Code::REQUEST_CANCELLED.value());
    server.run();
    assert_eq!(told(&mut server.end, Side::Server), [0x03, 0x40]);

    // A malformed request.
    let mut server = Server::new();
    server.get(id, &headers(&[Field::new("a", "b")]), false);
    server.assert_failed(Code::MESSAGE_ERROR);
    assert_eq!(told(&mut server.end, Side::Server), [0x03, 0x40]);

    // Nobody wants the rest of a request, or all of an exchange.
    for cancels in [false, true] {
        let mut server = Server::new();
        server.get(id, &request(&[]), false);
        let code = Code::REQUEST_CANCELLED;
        if cancels {
            server.session.cancel(&mut server.end, id, code).unwrap();
        } else {
            server.session.stop(&mut server.end, id, code).unwrap();
        }
        server.run();
        assert_eq!(told(&mut server.end, Side::Server), [0x03, 0x40]);
    }

    // One that has come whole needs no word.
    let mut server = Server::new();
    server.get(id, &request(&[]), true);
    server
        .session
        .cancel(&mut server.end, id, Code::NO_ERROR)
        .unwrap();
    server.run();
    assert_eq!(told(&mut server.end, Side::Server), [0x03]);
}

/// RFC 9204, 2.1: a client inserts what comes again into the table that the server allows, and refers to it once that has
/// arrived; without a table every request is as long.
#[test]
fn requests_become_shorter() {
    for (settings, becomes_shorter) in [(ALLOWED, true), (&[0x00, 0x04, 0x00], false)] {
        let mut client = Client::new("GET");
        client.unidirectional(0, settings);
        let more = [Field::new(
            "user-agent",
            "a program/1.0 (a system; with several parts; 47)",
        )];
        let mut lengths = Vec::new();
        for round in 0..4 {
            let lines = request_lines(&more);
            let id = client
                .session
                .request(&mut client.end, &lines, true)
                .unwrap();
            lengths.push(client.end.sent(id).0.len());
            let encoder = StreamId::new(Side::Client, Direction::Unidirectional, 1);
            let said = client.end.sent(encoder).0;
            assert_eq!(said.len() > 10, round == 1 && becomes_shorter, "{said:?}");
            if round == 1 && becomes_shorter {
                // The line has arrived.
                client.unidirectional(1, &[0x03, 0x01]);
            }
        }
        assert_eq!(lengths[0], lengths[1]);
        assert_eq!(lengths[2], lengths[3]);
        assert_eq!(lengths[2] < lengths[1] - 15, becomes_shorter);
        assert_eq!(client.closed(), None);
    }
}

/// RFC 9204, 4.4.1 and 4.4.3: acknowledgments that nothing was sent for close the connection.
#[test]
fn acknowledgments_of_nothing_close_the_connection() {
    for news in [[0x03, 0x80], [0x03, 0x01]] {
        let mut client = Client::new("GET");
        client.unidirectional(0, ALLOWED);
        client.unidirectional(1, &news);
        assert_eq!(client.closed(), Some(Code::QPACK_DECODER_STREAM_ERROR));
    }
    assert_eq!(ALLOWED[1], u8::try_from(SETTINGS).unwrap());
}

/// A byte may have a long line copied: into the table again, or into a section. What is copied is counted, and a peer that
/// has it done again and again is closed; one that does it now and then isn't.
#[test]
fn copies_out_of_the_table_are_counted() {
    // A capacity of 4096, and a line of one and 4000 bytes.
    let line = [&b"\x02\x3f\xe1\x1f\x41a\x7f\xa1\x1e"[..], &[b'b'; 4000]].concat();
    let mut server = Server::new();
    server.unidirectional(0, &line, false);
    // 10 000 glitches of 64 KiB are 163 799 copies and some bytes.
    let duplicates = vec![0x00; 163_799];
    for part in duplicates.chunks(1000) {
        server.unidirectional(0, part, false);
    }
    assert_eq!(server.closed(), None);
    for _ in 0..20 {
        server.unidirectional(0, &[0x00], false);
    }
    server.assert_closed(Code::EXCESSIVE_LOAD);

    // Sections of 15 such lines each, which are no requests: each is a glitch by itself, and nearly another.
    let mut server = Server::new();
    server.unidirectional(0, &line, false);
    let section = [&[0x02, 0x00][..], &[0x80; 15]].concat();
    let mut streams = 0;
    while server.closed().is_none() {
        server.get(bidirectional(streams), &frame(HEADERS, &section), true);
        streams += 1;
    }
    server.assert_closed(Code::EXCESSIVE_LOAD);
    assert!((5000..5500).contains(&streams), "{streams}");
}
