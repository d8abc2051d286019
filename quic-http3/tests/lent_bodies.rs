//! Bodies that are lent: by the application, which makes the same bytes on the wire as bodies that are copied, and by the
//! transport.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code"
)]

mod common;

use common::Pair;
use quic_http3::{ClientEvent, Field, Transport as _};
use quic_transport::{Bytes, StreamId};

const BODY: usize = 50_000;

fn request() -> [Field<'static>; 4] {
    [
        Field::new(":method", "GET"),
        Field::new(":scheme", "https"),
        Field::new(":authority", "example.com"),
        Field::new(":path", "/"),
    ]
}

/// The wire image of a response whose body is written in pieces, over a transport that takes `window` bytes at a time.
fn response(window: usize, piece: usize, is_declared: bool, is_lent: bool) -> Vec<u8> {
    let mut pair = Pair::new();
    let id = pair
        .client
        .request(&mut pair.client_end, &request(), true)
        .unwrap();
    pair.run();
    let length = BODY.to_string();
    let fields = [
        Field::new(":status", "200"),
        Field::new("content-length", &length),
    ];
    let count = if is_declared { 2 } else { 1 };
    pair.server
        .respond(&mut pair.server_end, id, &fields[..count])
        .unwrap();
    let (mut wire, _) = pair.server_end.sent(id);
    pair.server_end.window = window;
    let mut rest = (0..BODY)
        .map(|at| (at / 251).to_le_bytes()[0])
        .collect::<Bytes>();
    while !rest.is_empty() {
        let mut part = rest.slice(..rest.len().min(piece));
        let offered = part.len();
        let taken = if is_lent {
            let taken = write_lent(&mut pair, id, &mut part);
            assert_eq!(part.len(), offered - taken);
            taken
        } else {
            pair.server
                .send_body(&mut pair.server_end, id, &part)
                .unwrap()
        };
        drop(rest.split_to(taken));
        wire.extend(pair.server_end.sent(id).0);
        pair.run();
    }
    pair.server.finish(&mut pair.server_end, id).unwrap();
    wire.extend(pair.server_end.sent(id).0);
    wire
}

fn write_lent(pair: &mut Pair, id: StreamId, part: &mut Bytes) -> usize {
    pair.server
        .send_body_bytes(&mut pair.server_end, id, part)
        .unwrap()
}

#[test]
fn lent_bodies_are_framed_as_copied_ones() {
    for window in [7, 1000, usize::MAX] {
        for piece in [1, 900, 7000, BODY] {
            for is_declared in [false, true] {
                let [copied, lent] =
                    [false, true].map(|is_lent| response(window, piece, is_declared, is_lent));
                assert!(copied.len() > BODY);
                assert!(copied == lent, "{window} {piece} {is_declared}");
            }
        }
    }
}

/// A body is read where the transport holds it.
#[test]
fn bodies_are_lent_from_the_transports_own_memory() {
    let mut pair = Pair::new();
    let id = pair
        .client
        .request(&mut pair.client_end, &request(), true)
        .unwrap();
    pair.run();
    let status = [Field::new(":status", "200")];
    pair.server
        .respond_with(&mut pair.server_end, id, &status, &[7; 5000])
        .unwrap();
    let (wire, _) = pair.server_end.sent(id);
    pair.client_end.deliver(id, &wire, false);
    while let Some(event) = pair.client_end.events.pop_front() {
        pair.client.on_event(&mut pair.client_end, event);
    }
    let mut is_there = false;
    while let Some(event) = pair.client.next_event(&mut pair.client_end, pair.now) {
        is_there |= event == ClientEvent::Data { id };
        if is_there {
            break;
        }
    }
    let body = pair.client.fill(&mut pair.client_end, id).unwrap();
    assert_eq!(body, [7; 5000]);
    let body = body.as_ptr_range();
    let held = pair.client_end.fill(id).unwrap().data.as_ptr_range();
    assert!(held.start <= body.start && body.end <= held.end);
}
