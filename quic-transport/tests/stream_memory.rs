//! What streams cost in memory, at both ends together, measured with the counting allocator.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_transport::{Direction, StreamId};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::{CountingAllocator, Pair, held_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

type Logs = Pair<Client<Log>, Server<Log>>;

const SECOND: Duration = Duration::from_secs(1);

/// A pair that has been idle for a while, whose server permits so many streams of each kind.
fn idle(permitted: u64) -> Logs {
    let mut settings = Settings::default();
    settings.server.max_streams_bidirectional = permitted;
    settings.server.max_streams_unidirectional = permitted;
    settings.server.idle_timeout = Duration::ZERO;
    settings.client.idle_timeout = Duration::ZERO;
    let mut pair = Logs::new(&settings, Link::delayed(Duration::from_millis(1)));
    pair.handshake();
    pair.run(SECOND * 5);
    forget(&mut pair);
    pair
}

/// Throws all events away, and their memory.
fn forget(pair: &mut Logs) {
    pair.client.application.events = Vec::new();
    pair.server.connection(0).unwrap().1.events = Vec::new();
}

/// Opens streams and says something on each in both directions, which is read; then both ends fall idle.
fn open(pair: &mut Logs, count: usize) -> Vec<StreamId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let connection = &mut pair.client.connection;
        let id = connection.open(Direction::Bidirectional).unwrap();
        connection.stream_send(id, &[1; 300]).unwrap();
        ids.push(id);
    }
    pair.run(SECOND);
    let (connection, _) = pair.server.connection(0).unwrap();
    for id in &ids {
        assert_eq!(
            connection.stream_read(*id, &mut [0; 1000]).unwrap().length,
            300
        );
        connection.stream_send(*id, &[2; 300]).unwrap();
    }
    pair.run(SECOND);
    let connection = &mut pair.client.connection;
    for id in &ids {
        assert_eq!(
            connection.stream_read(*id, &mut [0; 1000]).unwrap().length,
            300
        );
    }
    settle(pair);
    ids
}

/// Lets spare memory go: that rides on wake-ups after a while.
fn settle(pair: &mut Logs) {
    for _ in 0..4 {
        pair.run(SECOND * 2);
        let id = pair
            .client
            .connection
            .open(Direction::Unidirectional)
            .unwrap();
        pair.client.connection.finish(id).unwrap();
    }
    pair.run(SECOND * 2);
    forget(pair);
}

/// What the pair holds now, and then, in bytes.
fn growth(pair: &mut Logs, step: impl FnOnce(&mut Logs)) -> i64 {
    let start = held_bytes();
    step(pair);
    held_bytes() - start
}

#[test]
fn permitted_streams_cost_nothing_before_they_are_opened() {
    let held = [100, 1000].map(|permitted| {
        let start = held_bytes();
        let pair = idle(permitted);
        let held = held_bytes() - start;
        drop(pair);
        held
    });
    assert_eq!(held[0], held[1]);
}

#[test]
fn open_streams_that_are_idle_cost_little() {
    let mut pair = idle(1000);
    settle(&mut pair);
    let one = growth(&mut pair, |pair| drop(open(pair, 1)));
    let more = growth(&mut pair, |pair| drop(open(pair, 99)));
    println!(
        "both ends: {one} bytes for one stream, {} for a hundred",
        one + more
    );
    // Tables begin with room for four.
    assert!(one <= 6144, "{one}");
    // Less than 700 bytes for each stream at each end, with what tables have to spare.
    assert!(one + more <= 100 * 1400, "{more}");
}

/// What was lent is no memory of ours, but for its record.
#[test]
fn lent_bytes_are_not_held_twice() {
    let mut pair = idle(10);
    settle(&mut pair);
    let data = quic_transport::Bytes::from(vec![7; 200_000]);
    let id = pair
        .client
        .connection
        .open(Direction::Bidirectional)
        .unwrap();
    let copied = growth(&mut pair, |pair| {
        let taken = pair.client.connection.stream_send(id, &data);
        assert_eq!(taken, Ok(200_000));
    });
    let id = pair
        .client
        .connection
        .open(Direction::Bidirectional)
        .unwrap();
    let lent = growth(&mut pair, |pair| {
        let taken = pair
            .client
            .connection
            .stream_send_bytes(id, &mut data.clone());
        assert_eq!(taken, Ok(200_000));
    });
    println!("{copied} bytes copied, {lent} lent");
    assert!(copied >= 200_000, "{copied}");
    assert!(lent < 2000, "{lent}");
}
