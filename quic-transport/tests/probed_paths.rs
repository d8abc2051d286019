//! What a client hears of the paths that it probes: those it has been on, others, and those that its system won't send on.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

use std::net::SocketAddr;
use std::time::Duration;

use quic_common::{BatchBuffer, BatchHead};
use quic_transport::{Event, Output, PathId, PathNews};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Link, Verdict};
use test_fixture::{CLIENT, Pair, SERVER};

type Logs = Pair<Client<Log>, Server<Log>>;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn second() -> SocketAddr {
    ([198, 51, 100, 7], 6000).into()
}

fn third() -> SocketAddr {
    ([198, 51, 100, 9], 7000).into()
}

/// A client whose handshake is confirmed, with two more addresses.
fn ready() -> Logs {
    let mut pair = Logs::new(&Settings::default(), Link::delayed(MS * 10));
    pair.handshake();
    pair.run(SECOND);
    pair.network.add_address(CLIENT, second());
    pair.network.add_address(CLIENT, third());
    pair
}

fn probe(pair: &mut Logs, local: SocketAddr) -> PathId {
    let now = pair.network.now();
    pair.client.connection.probe(local, now).unwrap()
}

fn migrate(pair: &mut Logs, path: PathId) {
    let now = pair.network.now();
    pair.client.connection.migrate(path, now).unwrap();
}

/// What has been told since this was last asked.
fn news(pair: &mut Logs) -> Vec<(PathId, PathNews)> {
    let events = pair.client.application.events.drain(..);
    let news = events.filter_map(|event| match event {
        Event::Path(event) => Some((event.path, event.news)),
        _ => None,
    });
    news.collect()
}

fn client_at(pair: &mut Logs) -> SocketAddr {
    pair.server.connection(0).unwrap().0.remote()
}

fn in_use(pair: &Logs) -> PathId {
    pair.client.connection.paths().next().unwrap().path
}

/// The next batch, which the system won't send.
fn refused(pair: &mut Logs) -> BatchHead {
    let mut buffer = BatchBuffer::new();
    let now = pair.network.now();
    let Output::Datagrams(batch) = pair.client.connection.process_output(now, &mut buffer) else {
        panic!("nothing to send");
    };
    batch.head()
}

/// RFC 9000, 9.1: what is found out about another path does nothing to the one in use.
#[test]
fn a_refused_probe_fails_and_the_connection_goes_on() {
    let mut pair = ready();
    let path = probe(&mut pair, second());
    let head = refused(&mut pair);
    assert_eq!((head.local, head.segment), (Some(second()), 1200));
    pair.client.connection.on_batch_refused(&head);
    pair.run(MS);
    assert_eq!(news(&mut pair), [(path, PathNews::Failed)]);
    assert!(!pair.client.connection.is_closing());
    assert_eq!(pair.client.connection.paths().count(), 1);
}

/// RFC 9000, 9.3.2: a client that moved first and probes on the way returns at once.
#[test]
fn a_client_returns_from_where_its_system_sends_nothing() {
    let mut pair = ready();
    let home = in_use(&pair);
    let path = probe(&mut pair, second());
    migrate(&mut pair, path);
    let head = refused(&mut pair);
    assert_eq!((head.local, head.segment), (Some(second()), 1200));
    pair.client.connection.on_batch_refused(&head);
    pair.run(MS);
    let expected = [
        (path, PathNews::InUse),
        (home, PathNews::InUse),
        (path, PathNews::Failed),
    ];
    assert_eq!(news(&mut pair), expected);
    assert_eq!(in_use(&pair), home);
    assert!(!pair.client.connection.is_closing());
}

/// RFC 9000, 14.2: datagrams become smaller on the path that they were for.
#[test]
fn what_was_refused_before_a_move_says_nothing_of_the_new_path() {
    let mut pair = ready();
    let large = BatchHead {
        remote: pair.network.address(SERVER),
        local: None,
        ecn: quic_common::Ecn::NotEct,
        length: 1452,
        segment: 1452,
    };
    let path = probe(&mut pair, second());
    pair.run(MS * 100);
    migrate(&mut pair, path);
    pair.run(SECOND);
    let mtu = |pair: &Logs| pair.client.connection.paths().next().unwrap().path_mtu;
    assert_eq!(mtu(&pair), 1452);
    pair.client.connection.on_batch_refused(&large);
    assert_eq!(mtu(&pair), 1452);
    let own = BatchHead {
        local: Some(second()),
        ..large
    };
    pair.client.connection.on_batch_refused(&own);
    assert_eq!(mtu(&pair), 1200);
    let small = BatchHead {
        segment: 1200,
        ..large
    };
    pair.client.connection.on_batch_refused(&small);
    assert!(!pair.client.connection.is_closing());
    pair.run(SECOND * 10);
    let small = BatchHead {
        segment: 1200,
        ..own
    };
    pair.client.connection.on_batch_refused(&small);
    assert!(pair.client.connection.is_closing());
}

/// A client's first path is sent on from wherever the system likes; that it arrives at a known address tells it apart.
#[test]
fn a_third_address_is_not_the_first() {
    let mut pair = ready();
    let home = in_use(&pair);
    let path = probe(&mut pair, second());
    pair.run(MS * 100);
    migrate(&mut pair, path);
    pair.run(MS * 30);
    let expected = [(path, PathNews::Validated), (path, PathNews::InUse)];
    assert_eq!(news(&mut pair), expected);
    let next = probe(&mut pair, third());
    assert!(next != home && next != path);
    pair.run(MS * 30);
    assert_eq!(news(&mut pair), [(next, PathNews::Validated)]);
    migrate(&mut pair, next);
    pair.run(MS * 30);
    assert_eq!(client_at(&mut pair), third());
}

/// While the first path is still known, what arrives elsewhere is answered from there.
#[test]
fn the_server_reaches_a_third_address_too() {
    let mut pair = ready();
    let path = probe(&mut pair, second());
    pair.run(MS * 100);
    migrate(&mut pair, path);
    pair.run(MS * 30);
    probe(&mut pair, third());
    pair.run(MS * 60);
    let (connection, _) = pair.server.connection(0).unwrap();
    let mut paths = connection.paths();
    assert!(paths.any(|known| known.remote == third() && known.is_validated));
}

/// A probe is answered, whatever is known already; the path stays until it is used or abandoned.
#[test]
fn a_path_that_was_left_is_probed_again() {
    let mut pair = ready();
    let (home, home_id) = (pair.network.address(CLIENT), in_use(&pair));
    let path = probe(&mut pair, second());
    pair.run(MS * 100);
    migrate(&mut pair, path);
    pair.run(MS * 30);
    news(&mut pair);
    for _ in 0..2 {
        assert_eq!(probe(&mut pair, home), home_id);
        pair.run(MS * 30);
        assert_eq!(news(&mut pair), [(home_id, PathNews::Validated)]);
    }
    pair.run(SECOND * 10);
    assert_eq!(news(&mut pair), []);
    migrate(&mut pair, home_id);
    pair.run(MS * 30);
    assert_eq!(client_at(&mut pair), home);
    assert_eq!(news(&mut pair), [(home_id, PathNews::InUse)]);
    pair.run(SECOND * 10);
    assert_eq!(news(&mut pair), [], "a path that was left goes in silence");
    assert_eq!(pair.client.connection.paths().count(), 1);
}

/// What was reached once needn't be reached again.
#[test]
fn a_path_that_is_gone_by_now_fails() {
    let mut pair = ready();
    let home = in_use(&pair);
    let path = probe(&mut pair, second());
    pair.run(MS * 100);
    assert_eq!(news(&mut pair), [(path, PathNews::Validated)]);
    let swallow = |_: &mut Vec<u8>, _| Verdict::Drop;
    pair.network.set_filter(CLIENT, SERVER, Box::new(swallow));
    assert_eq!(probe(&mut pair, second()), path);
    pair.run(SECOND * 5);
    pair.network.clear_filter(CLIENT, SERVER);
    pair.run(SECOND * 5);
    assert_eq!(news(&mut pair), [(path, PathNews::Failed)]);
    assert_eq!(in_use(&pair), home);
    assert_eq!(pair.client.connection.paths().count(), 1);
}
