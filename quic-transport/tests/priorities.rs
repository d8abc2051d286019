//! Who goes first and who shares (RFC 9218), as the receiver of a slow path sees it.
#![expect(clippy::expect_used, clippy::panic, reason = "test code")]

use std::time::Duration;

use quic_transport::{Direction, StreamId};
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;

type Logs = Pair<Client<Log>, Server<Log>>;

const MS: Duration = Duration::from_millis(1);

/// What each stream carries, in bytes; all of it is written at once.
const BYTES: u64 = 100_000;

/// What the receiver may see at a time of streams that take turns by the packet, beyond equal shares.
const TURN: u64 = 2 * 1500;

/// A pair with a path of 10 Mbit/s, and the server's streams with these priorities, written in this order.
fn streams(priorities: &[(u8, bool)]) -> (Logs, Vec<StreamId>) {
    let link = Link {
        bandwidth: Some(10_000_000),
        queue: 1_000_000,
        ..Link::delayed(MS * 10)
    };
    let mut pair = Logs::new(&Settings::default(), link);
    pair.handshake();
    pair.run(MS * 100);
    let opened = priorities.iter().map(|priority| open(&mut pair, *priority));
    let ids = opened.collect();
    (pair, ids)
}

fn open(pair: &mut Logs, (urgency, incremental): (u8, bool)) -> StreamId {
    let (connection, _) = pair.server.connection(0).expect("one client");
    let id = connection
        .open(Direction::Unidirectional)
        .expect("100 are permitted");
    let set = connection.set_priority(id, urgency, incremental);
    assert_eq!(set, Ok(()));
    let data = vec![7; BYTES.try_into().expect("little")];
    assert_eq!(connection.stream_send(id, &data), Ok(data.len()));
    assert_eq!(connection.finish(id), Ok(()));
    id
}

/// What the client has of each stream.
fn received(pair: &mut Logs, ids: &[StreamId]) -> Vec<u64> {
    let connection = &mut pair.client.connection;
    ids.iter()
        .map(|id| {
            let stats = connection.stream_stats(*id);
            stats.map_or(0, |stats| stats.received)
        })
        .collect()
}

/// Calls `check` with what the client has of each stream, again and again until that is everything.
fn watch(pair: &mut Logs, ids: &[StreamId], mut check: impl FnMut(&[u64])) {
    for _ in 0..2000 {
        pair.run(MS * 2);
        let progress = received(pair, ids);
        check(&progress);
        if progress.iter().all(|bytes| *bytes == BYTES) {
            return;
        }
    }
    panic!("not everything arrives: {:?}", received(pair, ids));
}

/// RFC 9218, 10: incremental streams of one urgency get equal shares.
#[test]
fn equals_that_share_have_equal_shares() {
    let (mut pair, ids) = streams(&[(3, true); 8]);
    let mut shared = 0;
    watch(&mut pair, &ids, |progress| {
        let (least, most) = (progress.iter().min(), progress.iter().max());
        let spread = most.zip(least).map_or(0, |(most, least)| most - least);
        assert!(spread <= TURN, "{progress:?}");
        shared += usize::from(progress.iter().all(|bytes| (1..BYTES).contains(bytes)));
    });
    assert!(shared > 100, "{shared} looks at streams that share");
}

/// The same when nobody has said anything of priorities.
#[test]
fn streams_share_unless_told_otherwise() {
    let (mut pair, _) = streams(&[]);
    let (connection, _) = pair.server.connection(0).expect("one client");
    let mut ids = Vec::new();
    for _ in 0..4 {
        let id = connection.open(Direction::Unidirectional);
        let id = id.expect("100 are permitted");
        let sent = connection.stream_send(id, &[7; 10_000]);
        assert_eq!(sent, Ok(10_000));
        ids.push(id);
    }
    pair.run(MS * 18);
    let progress = received(&mut pair, &ids);
    assert!(
        progress.iter().all(|bytes| (1..10_000).contains(bytes)),
        "{progress:?}"
    );
}

/// RFC 9218, 10: others of one urgency come one after the other, in the order of their numbers.
#[test]
fn equals_that_do_not_share_take_their_turns() {
    let (mut pair, ids) = streams(&[(3, false); 8]);
    watch(&mut pair, &ids, |progress| {
        let first = progress.iter().position(|bytes| *bytes < BYTES);
        let behind = first.and_then(|first| progress.get(first + 1..));
        assert!(
            behind.is_none_or(|behind| behind.iter().all(|bytes| *bytes == 0)),
            "{progress:?}"
        );
    });
}

/// RFC 9218, 10: the more urgent come first, whatever was written first and whoever shares.
#[test]
fn the_urgent_come_first() {
    let (mut pair, ids) = streams(&[(7, true), (5, false), (5, true), (0, true), (0, false)]);
    watch(&mut pair, &ids, |progress| {
        let [last, middle @ .., one, other] = progress else {
            panic!("five streams")
        };
        let urgent_over = *one == BYTES && *other == BYTES;
        let middle_over = middle.iter().all(|bytes| *bytes == BYTES);
        let middle_begun = middle.iter().any(|bytes| *bytes > 0);
        assert!(urgent_over || !middle_begun, "{progress:?}");
        assert!(middle_over || *last == 0, "{progress:?}");
    });
}

/// A stream that comes late and is urgent waits only for what is in flight already.
#[test]
fn what_is_urgent_overtakes_what_was_written_before() {
    let (mut pair, mut ids) = streams(&[(3, true), (3, true)]);
    pair.run(MS * 40);
    let before: u64 = received(&mut pair, &ids).iter().sum();
    let (connection, _) = pair.server.connection(0).expect("one client");
    let flying = connection.stats().bytes_in_flight;
    ids.push(open(&mut pair, (0, false)));
    let mut when_over = None;
    watch(&mut pair, &ids, |progress| {
        let (urgent, others) = progress.split_last().expect("three streams");
        if *urgent == BYTES {
            when_over.get_or_insert_with(|| others.iter().sum::<u64>());
        }
    });
    let meanwhile = when_over.expect("it arrived") - before;
    assert!(
        meanwhile <= flying + TURN,
        "{meanwhile} with {flying} in flight"
    );
}

/// A change counts from the next packet on.
#[test]
fn a_stream_that_becomes_urgent_is_served_at_once() {
    let (mut pair, ids) = streams(&[(3, true), (3, true), (3, true)]);
    pair.run(MS * 40);
    let [_, _, last] = ids[..] else {
        panic!("three streams")
    };
    let (connection, _) = pair.server.connection(0).expect("one client");
    assert_eq!(connection.set_priority(last, 0, true), Ok(()));
    let mut first_over = None;
    watch(&mut pair, &ids, |progress| {
        let over = progress.iter().position(|bytes| *bytes == BYTES);
        first_over = first_over.or(over);
    });
    assert_eq!(first_over, Some(2));
}
