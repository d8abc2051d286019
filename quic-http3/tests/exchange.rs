//! Whole requests and responses between two sessions.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code"
)]

mod common;

use common::Pair;
use quic_http3::{ApiError, ClientEvent, Code, Field, Fields, ServerEvent};
use quic_transport::StreamId;

fn get<'a>(path: &'a str, more: &[Field<'a>]) -> Vec<Field<'a>> {
    let base = [
        Field::new(":method", "GET"),
        Field::new(":scheme", "https"),
        Field::new(":authority", "example.com"),
        Field::new(":path", path),
    ];
    [&base[..], more].concat()
}

fn post<'a>(more: &[Field<'a>]) -> Vec<Field<'a>> {
    let mut fields = get("/upload", more);
    fields[0].value = b"POST";
    fields
}

fn ok<'a>(more: &[Field<'a>]) -> Vec<Field<'a>> {
    [&[Field::new(":status", "200")], more].concat()
}

fn list(fields: &[Field<'_>]) -> Fields {
    fields.iter().copied().collect()
}

#[test]
fn a_get_gets_its_response() {
    let mut pair = Pair::new();
    let request = get("/", &[Field::new("user-agent", "test")]);
    let id = pair
        .client
        .request(&mut pair.client_end, &request, true)
        .unwrap();
    pair.run();
    assert_eq!(pair.requests[&id].head, Some(list(&request)));
    assert!(pair.requests[&id].is_finished);
    let response = ok(&[Field::new("content-length", "5")]);
    let taken = pair
        .server
        .respond_with(&mut pair.server_end, id, &response, b"hello");
    assert_eq!(taken, Ok(5));
    pair.run();
    let message = &pair.responses[&id];
    assert_eq!(message.head, Some(list(&response)));
    assert_eq!(message.body, b"hello");
    assert!(message.is_finished);
    assert_eq!((pair.client.active(), pair.server.active()), (0, 0));
    assert!(pair.client_events.is_empty() && pair.server_events.is_empty());
    assert!(pair.client.peer_settings().is_some() && pair.server.peer_settings().is_some());
}

/// Everything that a message can have, in both directions, cut and lent in all ways.
#[test]
fn messages_come_whole_through_any_cut() {
    let body: Vec<u8> = (0..300_u32).map(|i| i.to_le_bytes()[0]).collect();
    for (step, lent) in (1..60).flat_map(|step| [(step, usize::MAX), (step, 1), (usize::MAX, step)])
    {
        let mut pair = Pair::new();
        (pair.step, pair.client_end.lent, pair.server_end.lent) = (step, lent, lent);
        let request = post(&[Field::new("x", "y")]);
        let id = pair
            .client
            .request(&mut pair.client_end, &request, false)
            .unwrap();
        let trailer = [Field::new("checksum", "1")];
        for part in body.chunks(100) {
            assert_eq!(
                pair.client.send_body(&mut pair.client_end, id, part),
                Ok(100)
            );
        }
        pair.client
            .send_trailers(&mut pair.client_end, id, &trailer)
            .unwrap();
        pair.run();
        let message = &pair.requests[&id];
        assert_eq!(message.head, Some(list(&request)));
        assert_eq!(message.body, body);
        assert_eq!(message.trailers, Some(list(&trailer)));
        assert!(message.is_finished);

        let interim = [Field::new(":status", "103"), Field::new("link", "</a>")];
        pair.server
            .respond(&mut pair.server_end, id, &interim)
            .unwrap();
        pair.server
            .respond(&mut pair.server_end, id, &ok(&[]))
            .unwrap();
        assert_eq!(
            pair.server.send_body(&mut pair.server_end, id, &body),
            Ok(300)
        );
        pair.server
            .send_trailers(&mut pair.server_end, id, &trailer)
            .unwrap();
        pair.run();
        let message = &pair.responses[&id];
        assert_eq!(message.interim, [list(&interim)]);
        assert_eq!(message.head, Some(list(&ok(&[]))));
        assert_eq!(message.body, body);
        assert_eq!(message.trailers, Some(list(&trailer)));
        assert!(message.is_finished);
        assert_eq!((pair.client.active(), pair.server.active()), (0, 0));
    }
}

/// A body of known length goes into one DATA frame, in whatever pieces it is written and taken.
#[test]
fn a_body_of_known_length_is_one_frame() {
    let mut pair = Pair::new();
    let id = pair
        .client
        .request(&mut pair.client_end, &get("/", &[]), true)
        .unwrap();
    pair.run();
    let body = vec![7; 50_000];
    let response = ok(&[Field::new("content-length", "50000")]);
    pair.server
        .respond(&mut pair.server_end, id, &response)
        .unwrap();
    let (head, _) = pair.server_end.sent(id);
    pair.client_end.deliver(id, &head, false);
    pair.server_end.window = 1000;
    let (mut written, mut wire) = (0, Vec::new());
    while written < body.len() {
        let end = body.len().min(written + 7000);
        let part = &body[written..end];
        written += pair
            .server
            .send_body(&mut pair.server_end, id, part)
            .unwrap();
        wire.extend(pair.server_end.sent(id).0);
        pair.run();
    }
    pair.server.finish(&mut pair.server_end, id).unwrap();
    assert_eq!(wire.len(), 1 + 4 + body.len());
    assert_eq!(wire[..5], [0x00, 0x80, 0, 0xc3, 0x50]);
}

#[test]
fn writers_are_told_when_there_is_room() {
    let mut pair = Pair::new();
    pair.client_end.window = 10;
    pair.server_end.window = 10;
    let id = pair
        .client
        .request(&mut pair.client_end, &post(&[]), false)
        .unwrap();
    // The header section alone fills the window; nothing of the body is taken.
    assert_eq!(
        pair.client
            .send_body(&mut pair.client_end, id, b"0123456789abcdef"),
        Ok(0)
    );
    let mut rest = &b"0123456789abcdef"[..];
    while !rest.is_empty() {
        pair.run();
        let event = pair.client_events.pop();
        assert_eq!(event, Some(ClientEvent::Writable { id }));
        let taken = pair
            .client
            .send_body(&mut pair.client_end, id, rest)
            .unwrap();
        assert!(taken > 0, "told of room where there is none");
        rest = &rest[taken..];
    }
    pair.client.finish(&mut pair.client_end, id).unwrap();
    pair.run();
    assert_eq!(pair.requests[&id].body, b"0123456789abcdef");
    assert!(pair.requests[&id].is_finished);
    pair.server
        .respond_with(&mut pair.server_end, id, &ok(&[]), &[9; 1000])
        .unwrap();
    pair.run();
    assert_eq!(pair.responses[&id].body, [9; 1000]);
    assert!(pair.responses[&id].is_finished);
}

#[test]
fn many_requests_go_at_once() {
    let mut pair = Pair::new();
    pair.client_end.bidirectional = 1000;
    let ids: Vec<StreamId> = (0..1000)
        .map(|i| {
            let path = format!("/{i}");
            let fields = get(&path, &[]);
            pair.client
                .request(&mut pair.client_end, &fields, true)
                .unwrap()
        })
        .collect();
    let over = pair
        .client
        .request(&mut pair.client_end, &get("/", &[]), true);
    assert_eq!(over, Err(ApiError::StreamLimit));
    pair.run();
    for id in ids.iter().rev() {
        let path = pair.requests[id]
            .head
            .as_ref()
            .unwrap()
            .path()
            .unwrap()
            .to_vec();
        pair.server
            .respond_with(&mut pair.server_end, *id, &ok(&[]), &path)
            .unwrap();
    }
    pair.run();
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(pair.responses[id].body, format!("/{i}").as_bytes());
        assert!(pair.responses[id].is_finished);
    }
    assert_eq!((pair.client.active(), pair.server.active()), (0, 0));
}

/// RFC 9110, 9.3.2 and 15.4.5: some responses have a content-length and no content.
#[test]
fn a_response_to_head_has_no_body() {
    let mut pair = Pair::new();
    let mut request = get("/", &[]);
    request[0].value = b"HEAD";
    let id = pair
        .client
        .request(&mut pair.client_end, &request, true)
        .unwrap();
    pair.run();
    let response = ok(&[Field::new("content-length", "1000")]);
    pair.server
        .respond(&mut pair.server_end, id, &response)
        .unwrap();
    let body = pair.server.send_body(&mut pair.server_end, id, b"x");
    assert_eq!(body, Err(ApiError::Length));
    pair.server.finish(&mut pair.server_end, id).unwrap();
    pair.run();
    assert!(pair.responses[&id].is_finished);
}

#[test]
fn what_cant_be_is_refused_and_changes_nothing() {
    let mut pair = Pair::new();
    let malformed = get("/", &[Field::new("Upper", "x")]);
    let result = pair.client.request(&mut pair.client_end, &malformed, true);
    assert!(matches!(result, Err(ApiError::Malformed(_))));
    let short = post(&[Field::new("content-length", "5")]);
    let result = pair.client.request(&mut pair.client_end, &short, true);
    assert_eq!(result, Err(ApiError::Length));

    let id = pair
        .client
        .request(&mut pair.client_end, &short, false)
        .unwrap();
    let end = &mut pair.client_end;
    assert_eq!(
        pair.client.send_body(end, id, b"123456"),
        Err(ApiError::Length)
    );
    assert_eq!(pair.client.send_body(end, id, b"1234"), Ok(4));
    assert_eq!(pair.client.finish(end, id), Err(ApiError::Length));
    assert_eq!(pair.client.send_body(end, id, b"5"), Ok(1));
    assert_eq!(pair.client.finish(end, id), Ok(()));
    assert!(matches!(
        pair.client.finish(end, id),
        Err(ApiError::Order(_))
    ));
    assert!(matches!(
        pair.client.send_body(end, id, b"x"),
        Err(ApiError::Order(_))
    ));
    pair.run();
    assert_eq!(pair.requests[&id].body, b"12345");
}

#[test]
fn responses_that_cant_be_are_refused_and_change_nothing() {
    let mut pair = Pair::new();
    let id = pair
        .client
        .request(&mut pair.client_end, &get("/", &[]), true)
        .unwrap();
    pair.run();
    let end = &mut pair.server_end;
    let unknown = StreamId::try_from(400).unwrap();
    assert_eq!(
        pair.server.respond(end, unknown, &ok(&[])),
        Err(ApiError::UnknownStream)
    );
    assert!(matches!(
        pair.server.send_body(end, id, b"x"),
        Err(ApiError::Order(_))
    ));
    assert!(matches!(
        pair.server.respond(end, id, &[]),
        Err(ApiError::Malformed(_))
    ));
    pair.server.respond(end, id, &ok(&[])).unwrap();
    assert!(matches!(
        pair.server.respond(end, id, &ok(&[])),
        Err(ApiError::Order(_))
    ));
    assert_eq!(pair.server.finish(end, id), Ok(()));
}

/// RFC 9114, 4.1.1 and 4.1.2: a cancelled request ends for the server, a refused upload leaves the response alone.
#[test]
fn requests_are_cancelled_and_uploads_refused() {
    let mut pair = Pair::new();
    let first = pair
        .client
        .request(&mut pair.client_end, &post(&[]), false)
        .unwrap();
    let second = pair
        .client
        .request(&mut pair.client_end, &post(&[]), false)
        .unwrap();
    pair.run();
    pair.client
        .cancel(&mut pair.client_end, first, Code::REQUEST_CANCELLED)
        .unwrap();
    pair.server
        .respond_with(&mut pair.server_end, second, &ok(&[]), b"no")
        .unwrap();
    pair.server
        .stop(&mut pair.server_end, second, Code::NO_ERROR)
        .unwrap();
    pair.run();
    let reset = ServerEvent::Reset {
        id: first,
        code: Code::REQUEST_CANCELLED,
    };
    assert_eq!(pair.server_events, [reset]);
    let stopped = ClientEvent::Stopped {
        id: second,
        code: Code::NO_ERROR,
    };
    assert_eq!(pair.client_events, [stopped]);
    assert_eq!(pair.responses[&second].body, b"no");
    assert!(pair.responses[&second].is_finished);
    assert_eq!((pair.client.active(), pair.server.active()), (0, 0));
}

/// RFC 9114, 5.2.
#[test]
fn a_shutdown_lets_running_requests_end() {
    let mut pair = Pair::new();
    let first = pair
        .client
        .request(&mut pair.client_end, &get("/1", &[]), true)
        .unwrap();
    pair.run();
    pair.server.shutdown(&mut pair.server_end).unwrap();
    // On its way when the server stops taking requests.
    let second = pair
        .client
        .request(&mut pair.client_end, &get("/2", &[]), true)
        .unwrap();
    pair.run();
    assert!(!pair.requests.contains_key(&second));
    assert_eq!(pair.client_events[0], ClientEvent::GoAway { id: 4 });
    let rejected = ClientEvent::Reset {
        id: second,
        code: Code::REQUEST_REJECTED,
    };
    assert_eq!(pair.client_events[1], rejected);
    let third = pair
        .client
        .request(&mut pair.client_end, &get("/3", &[]), true);
    assert_eq!(third, Err(ApiError::GoingAway));
    pair.server
        .respond_with(&mut pair.server_end, first, &ok(&[]), b"bye")
        .unwrap();
    pair.run();
    assert!(pair.responses[&first].is_finished);
    assert_eq!((pair.client.active(), pair.server.active()), (0, 0));

    let mut pair = Pair::new();
    pair.client.shutdown(&mut pair.client_end).unwrap();
    let more = pair
        .client
        .request(&mut pair.client_end, &get("/", &[]), true);
    assert_eq!(more, Err(ApiError::GoingAway));
    pair.run();
    assert_eq!(pair.server_events, [ServerEvent::GoAway]);
}

#[test]
fn streams_that_the_peer_allows_late_are_opened_late() {
    let mut pair = Pair::new();
    pair.client_end.unidirectional = 0;
    let id = pair
        .client
        .request(&mut pair.client_end, &get("/", &[]), true)
        .unwrap();
    pair.run();
    assert!(pair.requests[&id].is_finished);
    assert_eq!(pair.server.peer_settings(), None);
    pair.client_end.unidirectional = 3;
    pair.run();
    assert!(pair.server.peer_settings().is_some());
}

#[test]
fn types_of_the_http_crate_go_through() {
    let mut pair = Pair::new();
    let request = http::Request::post("https://example.com/a?b")
        .header("x", "y")
        .body(())
        .unwrap();
    let id = pair
        .client
        .send_request(&mut pair.client_end, &request, true)
        .unwrap();
    pair.run();
    let head = pair.requests[&id]
        .head
        .clone()
        .unwrap()
        .into_request()
        .unwrap();
    assert_eq!(head.uri(), request.uri());
    assert_eq!(head.headers(), request.headers());
    let response = http::Response::builder().status(204).body(()).unwrap();
    pair.server
        .send_response(&mut pair.server_end, id, &response)
        .unwrap();
    pair.server.finish(&mut pair.server_end, id).unwrap();
    pair.run();
    let head = pair.responses[&id]
        .head
        .clone()
        .unwrap()
        .into_response()
        .unwrap();
    assert_eq!(head.status(), 204);
}
