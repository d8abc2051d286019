//! What an application learns of what it sent: room, arrival, resets, and how much of a stream came through; and that
//! what it lends is let go of.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

use std::time::Duration;

use quic_transport::{Bytes, Direction, Event, StreamEvent, StreamId, StreamStats};
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Chance, Link};

type Logs = Pair<Client<Log>, Server<Log>>;

const MS: Duration = Duration::from_millis(1);

fn connected(link: Link) -> Logs {
    let mut pair = Logs::new(&Settings::default(), link);
    pair.handshake();
    pair.run(MS * 100);
    forget(&mut pair);
    pair
}

fn forget(pair: &mut Logs) {
    pair.client.application.events.clear();
    pair.server.connection(0).unwrap().1.events.clear();
}

fn open(pair: &mut Logs) -> StreamId {
    let opened = pair.client.connection.open(Direction::Bidirectional);
    opened.unwrap()
}

/// What the client has been told of streams.
fn told(pair: &Logs) -> Vec<StreamEvent> {
    let events = pair.client.application.events.iter();
    events
        .filter_map(|event| match event {
            Event::Stream(event) => Some(*event),
            _ => None,
        })
        .collect()
}

/// Everything that the server can read of a stream.
fn read(pair: &mut Logs, id: StreamId, out: &mut Vec<u8>) {
    let (connection, _) = pair.server.connection(0).unwrap();
    while let Ok(fill) = connection.fill(id)
        && !fill.data.is_empty()
    {
        out.extend_from_slice(fill.data);
        let length = fill.data.len();
        connection.consume(id, length).unwrap();
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 251).to_le_bytes()[0]).collect()
}

/// Over a path that loses one packet in ten, a megabyte that is lent arrives, and every piece is let go of.
#[test]
fn what_is_lent_arrives_over_a_path_that_loses_packets() {
    let link = Link {
        loss: Chance::percent(10),
        ..Link::delayed(MS * 5)
    };
    let mut pair = connected(link);
    let id = open(&mut pair);
    let data = pattern(1_000_000);
    let pieces: Vec<_> = data.chunks(30_000).map(Bytes::copy_from_slice).collect();
    let mut rest = pieces.clone();
    rest.reverse();
    let mut arrived = Vec::new();
    let mut refused = 0;
    while let Some(mut piece) = rest.pop() {
        pair.client
            .connection
            .stream_send_bytes(id, &mut piece)
            .unwrap();
        if !piece.is_empty() {
            rest.push(piece);
            refused += 1;
            pair.run_until(|pair| told(pair).contains(&StreamEvent::Writable(id)));
            forget(&mut pair);
            read(&mut pair, id, &mut arrived);
        }
    }
    assert!(refused > 2, "the backlog is far smaller than the data");
    pair.client.connection.finish(id).unwrap();
    for _ in 0..1000 {
        pair.run(MS * 10);
        read(&mut pair, id, &mut arrived);
        if told(&pair).contains(&StreamEvent::Finished(id)) {
            break;
        }
    }
    assert!(arrived == data);
    assert_eq!(told(&pair), [StreamEvent::Finished(id)]);
    assert!(pieces.iter().all(Bytes::is_unique), "all are let go of");
    let stats = pair.client.connection.stream_stats(id).unwrap();
    assert_eq!((stats.sent, stats.delivered), (1_000_000, 1_000_000));
    assert!(stats.retransmitted > 50_000, "{stats:?}");
}

/// A reset in the middle of a transfer: what is lent is let go of at once, and the event tells how much had arrived, which
/// the peer has at least.
#[test]
fn a_reset_tells_how_much_came_through() {
    let link = Link {
        bandwidth: Some(10_000_000),
        queue: 1_000_000,
        ..Link::delayed(MS * 10)
    };
    for is_stopped in [false, true] {
        let mut pair = connected(link);
        let id = open(&mut pair);
        let data = Bytes::from(pattern(200_000));
        let mut lent = data.clone();
        let taken = pair.client.connection.stream_send_bytes(id, &mut lent);
        assert_eq!(taken, Ok(200_000));
        pair.run(MS * 80);
        assert_eq!(told(&pair), []);
        if is_stopped {
            let (connection, _) = pair.server.connection(0).unwrap();
            connection.stop(id, 33).unwrap();
            pair.run_until(|pair| !told(pair).is_empty());
        } else {
            pair.client.connection.reset(id, 33).unwrap();
        }
        assert!(data.is_unique(), "nobody else has it any more");
        let StreamStats { received, .. } = pair
            .server
            .connection(0)
            .unwrap()
            .0
            .stream_stats(id)
            .unwrap_or_default();
        pair.run(MS * 200);
        let mut events = told(&pair);
        let Some(StreamEvent::ResetAcknowledged { id: of, delivered }) = events.pop() else {
            panic!("{:?}", told(&pair))
        };
        let stopped = StreamEvent::Stopped { id, code: 33 };
        assert_eq!(events, if is_stopped { vec![stopped] } else { vec![] });
        assert_eq!(of, id);
        assert!(
            (10_000..200_000).contains(&delivered),
            "{delivered} of {received}"
        );
        let stats = pair.client.connection.stream_stats(id);
        assert_eq!(stats.map(|stats| stats.delivered), Some(delivered));
    }
}

/// The mark is the application's: with one at 100 kB it is told five times where half of the backlog would do for ten.
#[test]
fn room_is_told_at_the_mark() {
    let link = Link {
        bandwidth: Some(10_000_000),
        queue: 1_000_000,
        ..Link::delayed(MS * 10)
    };
    for (mark, times) in [(0, 8), (200_000, 5), (1, 1000)] {
        let mut pair = connected(link);
        let id = open(&mut pair);
        let connection = &mut pair.client.connection;
        connection.set_low_water_mark(id, mark).unwrap();
        let mut left = 1_200_000;
        let mut count = 0;
        loop {
            let data = vec![7; left];
            let taken = pair.client.connection.stream_send(id, &data).unwrap();
            assert!(taken >= usize::try_from(mark).unwrap().min(left));
            left -= taken;
            if left == 0 {
                break;
            }
            let mut sink = Vec::new();
            pair.run_until(|pair| {
                read(pair, id, &mut sink);
                told(pair).contains(&StreamEvent::Writable(id))
            });
            forget(&mut pair);
            count += 1;
        }
        assert!(count <= times, "{count} times for a mark of {mark}");
        assert!(mark != 1 || count > 20, "{count}");
    }
}
