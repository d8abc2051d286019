//! What has ended is freed: after any number of handshakes, streams and clients that never come back the heap is where
//! it was.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, Datagram, Ecn, Random};
use quic_transport::{Application, CloseReason, Config, Connection, Direction, tls};
use test_fixture::certificates::WALL_CLOCK;
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::{Link, Party as _, Transmit};
use test_fixture::{Bulk, CLIENT, CountingAllocator, Pair, SERVER, held_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A few seconds in a debug build.
const HANDSHAKES: u64 = 800;
const ABANDONED: u64 = 4_000;
const STREAMS: u64 = 5_000;

/// What a heap may differ by that has seen the same before: maps and queues that are larger or smaller by a step.
const SLACK: i64 = 32 << 10;

const SECOND: Duration = Duration::from_secs(1);

/// A client of the pair's server; each index has its own connection IDs.
fn client<A>(index: u64, pair: &Pair<Client<A>, Server<A>>, tls: &tls::ClientConfig) -> Client<A>
where
    A: Application + Default,
{
    let mut seed = [9; 32];
    seed[..8].copy_from_slice(&index.to_be_bytes());
    let remote = (NAME, pair.network.address(SERVER));
    let random = Random::from_seed(seed);
    Client::with_tls(tls, &Config::default(), remote, random, pair.network.now())
}

fn client_tls(settings: &Settings) -> tls::ClientConfig {
    let root = settings.certificate.chain.last().unwrap().clone();
    tls::ClientConfig::with_roots([root], &[ALPN])
        .unwrap()
        .wall_clock(tls::WallClock::manual(WALL_CLOCK))
        .without_resumption()
}

/// Wants nothing of a connection that is over.
#[derive(Debug, Default)]
struct Leaver;

impl Application for Leaver {
    fn process(&mut self, connection: &mut Connection, _: Instant) {
        while connection.next_event().is_some() {}
    }
}

/// Makes a server keep few sessions, so that a heap that has seen some handshakes has no more to hold.
fn forget<A>(server: &mut Server<A>) {
    let sessions = Arc::new(tls::SessionCache::new(64));
    server.tls = server.tls.clone().sessions(sessions);
}

/// Connects, moves something each way, and ends in one of several ways.
fn visit(index: u64, pair: &mut Pair<Client<Bulk>, Server<Bulk>>, tls: &tls::ClientConfig) {
    pair.client = client(index, pair, tls);
    pair.handshake();
    pair.client.request(3_000, 3_000).unwrap();
    pair.run_until(|pair| pair.client.application.complete == 1);
    match index % 4 {
        0 => pair.client.connection.close(0, b"done"),
        1 => pair.server.connection(0).unwrap().0.close(0, b"done"),
        2 => {
            // In the middle of something, which is never read.
            let connection = &mut pair.client.connection;
            let id = connection.open(Direction::Unidirectional).unwrap();
            connection.stream_send(id, &vec![1; 50_000]).unwrap();
            pair.run(Duration::from_micros(100));
            pair.client.connection.close(1, b"enough");
        }
        // Without a word.
        _ => pair.client.connection.abandon(CloseReason::IdleTimeout),
    }
    pair.run(SECOND * 40);
    assert_eq!(pair.server.endpoint.len(), 0);
    pair.server.handles.clear();
}

/// Handshakes, and what they leave behind when the connections have ended.
#[test]
fn handshakes_leave_the_heap_where_it_was() {
    let settings = Settings::default();
    let tls = client_tls(&settings);
    let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&settings, Link::default());
    forget(&mut pair.server);
    let warm_up = HANDSHAKES.min(400);
    for index in 0..warm_up {
        visit(index, &mut pair, &tls);
    }
    let start = held_bytes();
    for index in warm_up..warm_up + HANDSHAKES {
        visit(index, &mut pair, &tls);
    }
    let more = held_bytes() - start;
    println!("{HANDSHAKES} handshakes: {more} bytes more");
    assert!(more.abs() < SLACK, "{more}");
}

/// Connects, may move so that all connection IDs are given, and closes.
fn depart(index: u16, moves: bool, pair: &mut Pair<Client<Leaver>, Server<Leaver>>) {
    const MOMENT: Duration = Duration::from_micros(50);
    let tls = client_tls(&Settings::default());
    pair.server.handles.clear();
    pair.client = client(index.into(), pair, &tls);
    pair.handshake();
    if moves {
        let elsewhere = ([203, 0, 113, 1], 1000 + index).into();
        pair.network.rebind(CLIENT, elsewhere);
        let connection = &mut pair.client.connection;
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.stream_send(id, b"from here").unwrap();
        pair.run(MOMENT);
    }
    pair.client.connection.close(0, b"");
    pair.run(MOMENT);
}

/// With as few connection IDs as there may be, and with as many.
#[test]
fn what_departed_connections_leave_is_counted() {
    const WARM_UP: u16 = 70;
    /// Of anything else.
    const CHANGE: i64 = 8 << 10;
    for moves in [false, true] {
        let mut pair =
            Pair::<Client<Leaver>, Server<Leaver>>::new(&Settings::default(), Link::default());
        forget(&mut pair.server);
        for index in 0..WARM_UP {
            depart(index, moves, &mut pair);
        }
        pair.run(SECOND * 2);
        assert_eq!(
            (pair.server.endpoint.len(), pair.server.endpoint.memory()),
            (0, 0)
        );
        let start = held_bytes();
        for index in 1..=300 {
            depart(WARM_UP + index, moves, &mut pair);
            let endpoint = &pair.server.endpoint;
            assert_eq!(endpoint.len(), usize::from(index));
            let counted = i64::try_from(endpoint.memory()).unwrap();
            let left = held_bytes() - start;
            println!("{index}: {left} bytes, counted as {counted}");
            assert!(left <= counted + CHANGE, "{index}: {left} for {counted}");
            assert!(
                counted / 2 <= left + CHANGE,
                "{index}: {left} for {counted}"
            );
        }
    }
}

/// A first Initial each, and then silence: half of them are accepted, half aren't even complete.
#[test]
fn abandoned_initials_leave_the_heap_where_it_was() {
    let settings = Settings::default();
    let tls = client_tls(&settings);
    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&settings, Link::default());
    let mut buffer = BatchBuffer::new();
    let mut abandon = |count: u64, from: u64| {
        for index in from..from + count {
            let now = pair.network.now();
            let mut client = client::<Log>(index, &pair, &tls);
            let Transmit::Batch(head) = client.transmit(now, &mut buffer) else {
                panic!("a client speaks first");
            };
            let mut bytes = buffer.bytes_mut()[..head.length].to_vec();
            if index % 2 == 0 {
                // Another destination: what can't be opened.
                bytes[6..14].copy_from_slice(&index.to_be_bytes());
            }
            let host = u8::try_from(index % 250).unwrap();
            let datagram = Datagram {
                remote: SocketAddr::from(([198, 51, 100, host], 50_000)),
                local: None,
                ecn: Ecn::NotEct,
                payload: &mut bytes,
            };
            pair.server.endpoint.input(datagram, now);
            pair.network.sleep(Duration::from_millis(1));
            let now = pair.network.now();
            while let Transmit::Batch(_) = pair.server.transmit(now, &mut buffer) {}
        }
        pair.network.sleep(SECOND * 60);
        let now = pair.network.now();
        let last = pair.server.transmit(now, &mut buffer);
        assert!(!matches!(last, Transmit::Batch(_)), "{last:?}");
        assert_eq!(pair.server.endpoint.len(), 0);
        assert_eq!(pair.server.endpoint.memory(), 0);
        pair.server.handles = Vec::new();
        held_bytes()
    };
    let start = abandon(ABANDONED, 0);
    let more = abandon(ABANDONED, ABANDONED) - start;
    println!("{ABANDONED} abandoned Initials: {more} bytes more");
    assert!(more.abs() < SLACK, "{more}");
}

/// Streams of a long connection.
#[test]
fn ended_streams_leave_the_heap_where_it_was() {
    let settings = Settings::default();
    let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&settings, Link::default());
    pair.handshake();
    let mut exchange = |count: u64| {
        for index in 0..count {
            let done = pair.client.application.complete + 1;
            let (down, up) = (index % 5 * 1000 + 1, index % 3 * 1000);
            pair.client.request(down, up).unwrap();
            pair.run_until(|pair| pair.client.application.complete == done);
        }
        pair.run(SECOND);
        held_bytes()
    };
    let start = exchange(STREAMS / 5);
    let more = exchange(STREAMS) - start;
    println!("{STREAMS} streams: {more} bytes more");
    assert!(more.abs() < SLACK, "{more}");
}
