//! What a peer may not do, and the code that it gets for it: raw bytes on raw streams against one session.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod common;

use common::raw::{
    Client, DATA, GOAWAY, GREASE, HEADERS, MAX_PUSH_ID, PUSH_PROMISE, SETTINGS, Server,
    bidirectional, frame, headers, request, request_lines, response, section, serve, varint,
};
use quic_http3::{Code, Field, ServerEvent};
use quic_transport::{Direction, Side, StreamEvent, StreamId};

/// RFC 9114, 4.1: DATA first, HEADERS after trailers, frames of other streams, frames of HTTP/2 (7.2.8).
#[test]
fn frames_out_of_order_on_a_request_close_the_connection() {
    let trailers = headers(&[Field::new("a", "b")]);
    let after_trailers = [request(&[]), trailers.clone(), trailers.clone()].concat();
    let data_last = [request(&[]), trailers, frame(DATA, b"x")].concat();
    for bytes in [frame(DATA, b"x"), after_trailers, data_last] {
        serve(&bytes, false).assert_closed(Code::FRAME_UNEXPECTED);
    }
    for kind in [
        0x03,
        SETTINGS,
        PUSH_PROMISE,
        GOAWAY,
        MAX_PUSH_ID,
        0x02,
        0x06,
        0x08,
        0x09,
    ] {
        let foreign = [request(&[]), frame(kind, &[0])].concat();
        serve(&foreign, false).assert_closed(Code::FRAME_UNEXPECTED);
        serve(&frame(kind, &[0]), true).assert_closed(Code::FRAME_UNEXPECTED);
    }
}

/// RFC 9114, 7.1 and 4.1: a stream that ends inside a frame, or before a request.
#[test]
fn streams_that_end_early_are_errors() {
    let whole = [request(&[]), frame(DATA, b"body"), frame(GREASE, b"grease")].concat();
    let boundaries = [request(&[]).len(), request(&[]).len() + 6, whole.len()];
    for cut in 1..=whole.len() {
        let server = serve(&whole[..cut], true);
        if boundaries.contains(&cut) {
            assert_eq!(server.closed(), None);
            let id = bidirectional(0);
            assert_eq!(server.events.last(), Some(&ServerEvent::Finished { id }));
        } else {
            server.assert_closed(Code::FRAME_ERROR);
        }
    }
    serve(&[], true).assert_failed(Code::REQUEST_INCOMPLETE);
    serve(&frame(GREASE, b"x"), true).assert_failed(Code::REQUEST_INCOMPLETE);
}

/// Section 3 of RFC 9204, 2.2: what can't be decompressed closes the connection.
#[test]
fn undecodable_sections_close_the_connection() {
    for section in [
        &[][..],
        &[0x00],
        &[0x02, 0x81, 0x80],
        &[0xff, 0x02, 0x00, 0x80],
        &[0x00, 0x80],
        &[0x00, 0x00, 0x80],
        &[0x00, 0x00, 0x10],
        &[0x00, 0x00, 0xff, 0x24],
        &[0x00, 0x00, 0x51, 0x83, 0xff, 0xff, 0xff],
        &[
            0x00, 0x00, 0x51, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f,
        ],
    ] {
        serve(&frame(HEADERS, section), false).assert_closed(Code::QPACK_DECOMPRESSION_FAILED);
    }
}

/// A field section over the limit fails its stream: by the length of the frame, before any of it arrives, or by what it decodes to.
#[test]
fn large_sections_fail_their_stream() {
    for length in [64 * 1024 + 1, 1 << 30, (1 << 62) - 1] {
        let header = [varint(HEADERS), varint(length)].concat();
        serve(&header, false).assert_failed(Code::EXCESSIVE_LOAD);
    }
    let header = [varint(HEADERS), varint(64 * 1024)].concat();
    assert_eq!(serve(&header, false).end.resets, []);

    let mut bomb = section(&request_lines(&[]));
    bomb.resize(40_000, 0xd1);
    serve(&frame(HEADERS, &bomb), false).assert_failed(Code::EXCESSIVE_LOAD);

    let base: u64 = request_lines(&[]).iter().map(Field::size).sum();
    for (over, fails) in [(0, false), (1, true)] {
        let length = usize::try_from(64 * 1024 - base - 33 + over).unwrap();
        // Bytes that Huffman codes make no shorter would make the frame too long; these have 5 bits.
        let value = vec![b'0'; length];
        let mut server = serve(&request(&[Field::new("x", &value)]), true);
        if fails {
            server.assert_failed(Code::EXCESSIVE_LOAD);
        } else {
            assert!(matches!(server.events[0], ServerEvent::Request { .. }));
        }
    }
}

/// RFC 9114, 4.1.2: malformed requests, each a stream error; the rules are tested one by one beside the code.
#[test]
fn malformed_requests_fail_their_stream() {
    for line in [
        Field::new("Upper", "x"),
        Field::new("connection", "close"),
        Field::new("x", "a\r\nb"),
        Field::new(":path", "/again"),
        Field::new("content-length", "1x"),
        Field::new("host", "other.example"),
    ] {
        let mut server = serve(&request(&[line]), true);
        assert_eq!(server.events.len(), 1, "only the failure is told");
        server.assert_failed(Code::MESSAGE_ERROR);
    }
    let pseudo = headers(&[Field::new(":path", "/")]);
    let trailers = [request(&[]), pseudo].concat();
    serve(&trailers, true).assert_failed(Code::MESSAGE_ERROR);
}

/// RFC 9114, 4.1.2: the body is as long as content-length says, neither shorter nor longer, however it is framed.
#[test]
fn a_body_of_the_wrong_length_is_never_complete() {
    let length = [Field::new("content-length", "5")];
    for body in [
        frame(DATA, b"1234"),
        frame(DATA, b"123456"),
        [frame(DATA, b"123"), frame(DATA, b"456")].concat(),
        vec![],
    ] {
        let bytes = [request(&length), body].concat();
        serve(&bytes, true).assert_failed(Code::MESSAGE_ERROR);
    }
    // A frame that says too much fails before its bytes arrive.
    let too_much = [request(&length), varint(DATA), varint(1 << 40)].concat();
    serve(&too_much, false).assert_failed(Code::MESSAGE_ERROR);
    let right = [request(&length), frame(DATA, b"12"), frame(DATA, b"345")].concat();
    let server = serve(&right, true);
    assert_eq!(
        server.events.last(),
        Some(&ServerEvent::Finished {
            id: bidirectional(0)
        })
    );
}

/// RFC 9114, 6.2.1: the control stream begins with SETTINGS, and is one.
#[test]
fn control_streams_have_rules() {
    let settings = frame(SETTINGS, &[]);
    let grease = frame(GREASE, b"x");
    let cases: [(&[&[u8]], Code); 9] = [
        (&[&grease, &settings], Code::MISSING_SETTINGS),
        (&[&frame(GOAWAY, &[0])], Code::MISSING_SETTINGS),
        (&[&settings, &settings], Code::FRAME_UNEXPECTED),
        (&[&settings, &frame(DATA, b"x")], Code::FRAME_UNEXPECTED),
        (&[&settings, &request(&[])], Code::FRAME_UNEXPECTED),
        (&[&frame(SETTINGS, &[0x02, 0x00])], Code::SETTINGS_ERROR),
        (
            &[&frame(SETTINGS, &[0x06, 1, 0x06, 1])],
            Code::SETTINGS_ERROR,
        ),
        (&[&frame(SETTINGS, &[0x33, 2])], Code::SETTINGS_ERROR),
        (&[&varint(SETTINGS), &varint(1 << 20)], Code::EXCESSIVE_LOAD),
    ];
    for (frames, code) in cases {
        let mut server = Server::new();
        let bytes = [&[0x00], frames.concat().as_slice()].concat();
        server.unidirectional(0, &bytes, false);
        server.assert_closed(code);
    }
}

/// RFC 9114, 6.2 and RFC 9204, 4.2: one of each, none of them ever closed.
#[test]
fn critical_streams_are_single_and_stay_open() {
    let first = |kind| match kind {
        0x00 => [&[0x00][..], &frame(SETTINGS, &[])].concat(),
        kind => vec![kind],
    };
    for kind in [0x00, 0x02, 0x03] {
        let mut server = Server::new();
        server.unidirectional(0, &first(kind), false);
        assert_eq!(server.closed(), None);
        server.unidirectional(1, &first(kind), false);
        server.assert_closed(Code::STREAM_CREATION_ERROR);

        let mut server = Server::new();
        server.unidirectional(0, &first(kind), true);
        server.assert_closed(Code::CLOSED_CRITICAL_STREAM);

        let mut server = Server::new();
        server.unidirectional(0, &first(kind), false);
        server.unidirectional(0, &[], true);
        server.assert_closed(Code::CLOSED_CRITICAL_STREAM);

        let mut server = Server::new();
        server.unidirectional(0, &first(kind), false);
        let id = StreamId::new(Side::Client, Direction::Unidirectional, 0);
        server.end.deliver_reset(id, 0x10c);
        server.run();
        server.assert_closed(Code::CLOSED_CRITICAL_STREAM);
    }
    for index in 0..3 {
        let mut server = Server::new();
        server.get(bidirectional(0), &request(&[]), true);
        let id = StreamId::new(Side::Server, Direction::Unidirectional, index);
        server.end.deliver_stop(id, 0x100);
        server.run();
        server.assert_closed(Code::CLOSED_CRITICAL_STREAM);
    }
}

/// RFC 9204, 3.2.3, 4.3 and 4.4, with dynamic tables that are empty.
#[test]
fn qpack_streams_have_rules() {
    let long = [&[0x02, 0x4a, 0x7f][..], &[0xff; 9]].concat();
    let cases: [(&[u8], Code); 8] = [
        (&[0x02, 0x3f, 0xe2, 0x1f], Code::QPACK_ENCODER_STREAM_ERROR),
        (&[0x02, 0xc0, 0x0f], Code::QPACK_ENCODER_STREAM_ERROR),
        (&long, Code::QPACK_ENCODER_STREAM_ERROR),
        (&[0x02, 0x00], Code::QPACK_ENCODER_STREAM_ERROR),
        (&[0x03, 0x84], Code::QPACK_DECODER_STREAM_ERROR),
        (&[0x03, 0x00], Code::QPACK_DECODER_STREAM_ERROR),
        (&[0x03, 0x01], Code::QPACK_DECODER_STREAM_ERROR),
        (
            &[
                0x03, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            ],
            Code::QPACK_DECODER_STREAM_ERROR,
        ),
    ];
    for (bytes, code) in cases {
        let mut server = Server::new();
        server.unidirectional(0, bytes, false);
        server.assert_closed(code);
    }
    let mut server = Server::new();
    server.unidirectional(0, &[0x02, 0x20, 0x3f, 0xe1, 0x1f], false);
    server.unidirectional(1, &[0x03, 0x48, 0x7f, 0x00], false);
    assert_eq!(server.closed(), None);
}

/// RFC 9114, 4.6, 6.2.2, 7.2.3, 7.2.5 and 7.2.7: nobody asked for pushes.
#[test]
fn pushes_are_refused() {
    let mut server = Server::new();
    server.unidirectional(0, &[0x01, 0x00], false);
    server.assert_closed(Code::STREAM_CREATION_ERROR);

    let mut client = Client::new("GET");
    client.unidirectional(0, &[0x01, 0x00]);
    assert_eq!(client.closed(), Some(Code::ID_ERROR));

    let mut client = Client::new("GET");
    client.get(&frame(PUSH_PROMISE, &[0, 0, 0]), false);
    assert_eq!(client.closed(), Some(Code::ID_ERROR));

    for frames in [
        frame(0x03, &[0]),
        [frame(MAX_PUSH_ID, &[5]), frame(MAX_PUSH_ID, &[4])].concat(),
    ] {
        let mut server = Server::new();
        let bytes = [&[0x00], frame(SETTINGS, &[]).as_slice(), &frames].concat();
        server.unidirectional(0, &bytes, false);
        server.assert_closed(Code::ID_ERROR);
    }
    let mut client = Client::new("GET");
    client.unidirectional(
        0,
        &[
            &[0x00],
            frame(SETTINGS, &[]).as_slice(),
            &frame(MAX_PUSH_ID, &[5]),
        ]
        .concat(),
    );
    assert_eq!(client.closed(), Some(Code::FRAME_UNEXPECTED));
}

/// RFC 9114, 5.2: the ID names a request, and only goes down.
#[test]
fn goaway_has_rules() {
    for ids in [&[1][..], &[2], &[3], &[4, 8]] {
        let frames: Vec<u8> = ids.iter().flat_map(|id| frame(GOAWAY, &[*id])).collect();
        let mut client = Client::new("GET");
        client.unidirectional(
            0,
            &[&[0x00], frame(SETTINGS, &[]).as_slice(), &frames].concat(),
        );
        assert_eq!(client.closed(), Some(Code::ID_ERROR), "{ids:?}");
    }
    let mut server = Server::new();
    let frames = [
        frame(SETTINGS, &[]),
        frame(GOAWAY, &[3]),
        frame(GOAWAY, &[4]),
    ]
    .concat();
    server.unidirectional(0, &[&[0x00], frames.as_slice()].concat(), false);
    server.assert_closed(Code::ID_ERROR);
}

/// RFC 9114, 6.1: servers open no bidirectional streams.
#[test]
fn a_bidirectional_stream_from_a_server_closes_the_connection() {
    let mut client = Client::new("GET");
    let id = StreamId::new(Side::Server, Direction::Bidirectional, 0);
    client.end.deliver(id, &[], false);
    client.run();
    assert_eq!(client.closed(), Some(Code::STREAM_CREATION_ERROR));
}

/// RFC 9114, 4.1 and 4.1.2, from the client's side.
#[test]
fn malformed_responses_fail_their_stream() {
    for bytes in [
        response("101"),
        response("20"),
        headers(&[]),
        headers(&[Field::new(":status", "200"), Field::new(":path", "/")]),
        vec![],
        response("103"),
        [headers(&[
            Field::new(":status", "200"),
            Field::new("content-length", "1"),
        ])]
        .concat(),
        [headers(&[Field::new(":status", "204")]), frame(DATA, b"x")].concat(),
    ] {
        let mut client = Client::new("GET");
        client.get(&bytes, true);
        assert_eq!(client.failed(), Some(Code::MESSAGE_ERROR), "{bytes:?}");
        assert_eq!(client.closed(), None);
        assert!(!client.is_finished());
        assert_eq!(client.session.active(), 0);
    }
    for bytes in [
        frame(DATA, b"x"),
        [response("103"), frame(DATA, b"x")].concat(),
    ] {
        let mut client = Client::new("GET");
        client.get(&bytes, false);
        assert_eq!(client.closed(), Some(Code::FRAME_UNEXPECTED));
    }
    let mut client = Client::new("HEAD");
    client.get(&[response("200"), frame(DATA, b"x")].concat(), true);
    assert_eq!(client.failed(), Some(Code::MESSAGE_ERROR));
}

/// RFC 9114, 4.4: in a tunnel there is only DATA.
#[test]
fn a_tunnel_has_no_trailers() {
    let mut client = Client::new("CONNECT");
    let trailers = headers(&[Field::new("a", "b")]);
    client.get(
        &[response("200"), frame(DATA, b"x"), trailers].concat(),
        false,
    );
    assert_eq!(client.closed(), Some(Code::FRAME_UNEXPECTED));
}

/// Nothing that happens after a failure matters.
#[test]
fn a_failed_session_is_silent() {
    let mut server = serve(&frame(DATA, b"x"), false);
    let events = server.events.len();
    server.get(bidirectional(1), &request(&[]), true);
    server.end.deliver_reset(bidirectional(0), 1);
    server.run();
    assert_eq!(server.events.len(), events);
    let mut client = Client::new("GET");
    client.get(&frame(DATA, b"x"), false);
    let more = client
        .session
        .request(&mut client.end, &request_lines(&[]), true);
    assert_eq!(more, Err(quic_http3::ApiError::Closed));
    let unknown = StreamEvent::Readable(bidirectional(77));
    client.session.on_event(&mut client.end, unknown);
    assert_eq!(client.session.next_event(&mut client.end, client.now), None);
}

/// Any bytes on any streams, in any pieces: no panic, no endless step, at most one close.
#[test]
fn random_streams_never_panic() {
    let mut random = quic_common::Random::from_seed([11; 32]);
    let good = [
        request(&[Field::new("content-length", "4")]),
        frame(DATA, b"body"),
        headers(&[Field::new("a", "b")]),
        frame(GREASE, b"x"),
        response("200"),
        frame(SETTINGS, &[0x06, 0x40, 0x40]),
        frame(GOAWAY, &[0]),
        vec![0x00],
        vec![0x02],
        vec![0x03],
    ];
    for _ in 0..20_000 {
        let mut server = Server::new();
        let mut client = Client::new("GET");
        for _ in 0..random.below(12) {
            let pick = usize::try_from(random.below(10)).unwrap();
            let mut bytes = good[pick].clone();
            if random.below(4) == 0 && !bytes.is_empty() {
                let at =
                    usize::try_from(random.below(u64::try_from(bytes.len()).unwrap())).unwrap();
                bytes[at] = random.array::<1>()[0];
            }
            if random.below(8) == 0 {
                bytes.truncate(bytes.len() / 2);
            }
            let end = random.below(6) == 0;
            match random.below(3) {
                0 => server.unidirectional(random.below(3), &bytes, end),
                1 => server.get(bidirectional(random.below(3)), &bytes, end),
                _ => client.get(&bytes, end),
            }
        }
    }
}
