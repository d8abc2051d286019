//! What a request costs in allocations once the connection is warm, and that large bodies cost none.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

mod flat;

use flat::{Flat, epoch};
use quic_http3::{ClientEvent, ClientSession, Field, ServerEvent, ServerSession};
use test_fixture::allocations;

#[global_allocator]
static ALLOCATOR: test_fixture::CountingAllocator = test_fixture::CountingAllocator;

fn request() -> [Field<'static>; 5] {
    [
        Field::new(":method", "GET"),
        Field::new(":scheme", "https"),
        Field::new(":authority", "example.com"),
        Field::new(":path", "/index.html"),
        Field::new("user-agent", "test"),
    ]
}

fn response() -> [Field<'static>; 2] {
    [
        Field::new(":status", "200"),
        Field::new("content-length", "1"),
    ]
}

/// Makes requests in parallel and answers them; field lists go back for reuse if `recycle`.
fn round(
    client: &mut ClientSession,
    server: &mut ServerSession,
    flat: &mut Flat,
    count: usize,
    recycle: bool,
) {
    let now = epoch();
    for _ in 0..count {
        client
            .request(&mut flat.client(), &request(), true)
            .unwrap();
    }
    while let Some(event) = flat.server_event() {
        server.on_event(&mut flat.server(), event);
        while let Some(event) = server.next_event(&mut flat.server(), now) {
            if let ServerEvent::Request { id, fields } = event {
                let mut end = flat.server();
                server
                    .respond_with(&mut end, id, &response(), b"x")
                    .unwrap();
                if recycle {
                    server.recycle(fields);
                }
            }
        }
    }
    let mut finished = 0;
    while let Some(event) = flat.client_event() {
        client.on_event(&mut flat.client(), event);
        while let Some(event) = client.next_event(&mut flat.client(), now) {
            match event {
                ClientEvent::Response { fields, .. } if recycle => client.recycle(fields),
                ClientEvent::Data { id } => {
                    let mut end = flat.client();
                    assert_eq!(client.fill(&mut end, id), Ok(&b"x"[..]));
                    client.consume(&mut end, id, 1).unwrap();
                }
                ClientEvent::Finished { .. } => finished += 1,
                _ => {}
            }
        }
    }
    assert_eq!(finished, count);
}

/// None with recycled field lists, and one for each field list without.
#[test]
fn a_warm_request_allocates_only_its_field_lists() {
    let mut flat = Flat::new();
    let (mut client, mut server) = (ClientSession::new(), ServerSession::new());
    for _ in 0..3 {
        round(&mut client, &mut server, &mut flat, 100, true);
    }
    let warm = allocations(|| round(&mut client, &mut server, &mut flat, 50, true));
    assert_eq!(warm.count, 0);
    // The lists recycled so far run out first.
    round(&mut client, &mut server, &mut flat, 100, false);
    let warm = allocations(|| round(&mut client, &mut server, &mut flat, 50, false));
    assert_eq!(warm.count, 100);
    assert_eq!((client.active(), server.active()), (0, 0));
}

/// The `http` crate's types cost a shared buffer and a header map more.
#[test]
fn the_types_of_the_http_crate_cost_a_handful() {
    let fields: quic_http3::Fields = request().into_iter().collect();
    let mut copy = Some(fields);
    let counted = allocations(|| drop(copy.take().unwrap().into_request()));
    assert!(counted.count <= 6, "{counted:?}");
    let fields: quic_http3::Fields = response().into_iter().collect();
    let mut copy = Some(fields);
    let counted = allocations(|| drop(copy.take().unwrap().into_response()));
    assert!(counted.count <= 5, "{counted:?}");
}
