//! What a peer can make an end hold has bounds, measured with the counting allocator.
//!
//! The scripted peer lives in the same thread: packets go in at the endpoint, by no network, and what it would keep is
//! thrown away.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, Ecn};
use quic_transport::{CloseReason, Direction, Event, Output};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Arrivals, Link, Party as _, Route};
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, frames};
use test_fixture::{
    Allocations, Bulk, CLIENT, CountingAllocator, Pair, SERVER, allocations, held_bytes,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const SECOND: Duration = Duration::from_secs(1);
const STREAM_WINDOW: u64 = 1 << 20;
const CONNECTION_WINDOW: u64 = 3 << 19;
/// Separate pieces of all streams together.
const CONNECTION_PIECES: u64 = 24_576;

struct Bench {
    pair: Pair<ScriptedPeer, Server<Log>>,
    route: Route,
    now: Instant,
    buffer: BatchBuffer,
    /// What the server has sent, in datagrams.
    answers: usize,
}

impl Bench {
    fn new(parameters: Parameters) -> Self {
        let settings = Settings::default();
        let link = Link::delayed(Duration::from_millis(1));
        let mut pair =
            Pair::<ScriptedPeer, Server<Log>>::scripted_client(&settings, parameters, link);
        pair.handshake();
        pair.run(SECOND);
        Self {
            route: Route {
                source: pair.network.address(CLIENT),
                destination: pair.network.address(SERVER),
            },
            now: pair.network.now(),
            pair,
            buffer: BatchBuffer::new(),
            answers: 0,
        }
    }

    /// Gives a 1-RTT packet to the server, and throws its answers away.
    fn input(&mut self, frames: &[u8]) {
        let mut packet = self.pair.client.seal(&Draft::new(Level::OneRtt, frames));
        let length = packet.len();
        let arrivals = Arrivals::new(self.route, Ecn::NotEct, length, &mut packet);
        self.pair.server.receive(arrivals, self.now);
        self.drain();
    }

    /// As [`Self::input`], again and again; returns what the server allocates for it.
    fn flood(&mut self, count: usize, mut frames: impl FnMut(usize) -> Vec<u8>) -> Allocations {
        let mut total = Allocations::default();
        for round in 0..count {
            let frames = frames(round);
            let mut packet = self.pair.client.seal(&Draft::new(Level::OneRtt, &frames));
            let length = packet.len();
            let counted = allocations(|| {
                let arrivals = Arrivals::new(self.route, Ecn::NotEct, length, &mut packet);
                self.pair.server.receive(arrivals, self.now);
                self.drain();
            });
            total.count += counted.count;
            total.bytes += counted.bytes;
        }
        total
    }

    fn drain(&mut self) {
        while let Output::Datagrams(batch) = self
            .pair
            .server
            .endpoint
            .process_output(self.now, &mut self.buffer)
        {
            self.answers += batch.segments().len();
        }
    }

    /// The code that the server has closed with.
    fn close_code(&mut self) -> Option<u64> {
        let (connection, log) = self.pair.server.connection(0).unwrap();
        connection.is_closing().then(|| {
            let closed = log.events.iter().find_map(|event| {
                if let Event::Closed(CloseReason::Local(error)) = event {
                    Some(error.code.value())
                } else {
                    None
                }
            });
            closed.unwrap_or(u64::MAX)
        })
    }
}

/// RFC 9000, 21.7: single bytes on all streams that there may be, each as far ahead as the connection's window
/// lets it: as many pieces as all streams may have together, and then one more.
#[test]
fn all_streams_in_single_bytes_take_four_windows_at_most() {
    let mut bench = Bench::new(Parameters::generous());
    let start = held_bytes();
    let mut most = 0;
    let mut pieces = 0;
    let end = CONNECTION_WINDOW / 200 - 1;
    let mut input = |payload: &mut Vec<u8>, count: u64| {
        if bench.close_code().is_some() {
            return false;
        }
        pieces += count;
        bench.input(payload);
        payload.clear();
        most = most.max(held_bytes() - start);
        true
    };
    let mut payload = Vec::new();
    // One byte at the end of each takes a chunk for it.
    for stream in 0..200_u64 {
        let id = 4 * (stream / 2) + 2 * (stream % 2);
        payload.extend(frames::stream(id, end, b"x", false));
        input(&mut payload, 1);
    }
    'all: for offset in (1..end - 1).step_by(2) {
        for streams in 0..2_u64 {
            for stream in 0..100 {
                let id = 4 * stream + 2 * streams;
                payload.extend(frames::stream(id, offset, b"x", false));
            }
            if !input(&mut payload, 100) {
                break 'all;
            }
        }
    }
    println!("{most} bytes for {pieces} pieces");
    assert_eq!(bench.close_code(), Some(10));
    assert!((CONNECTION_PIECES..CONNECTION_PIECES + 200).contains(&pieces));
    let window = i64::try_from(CONNECTION_WINDOW).unwrap();
    assert!(most < 4 * window, "{most}");
}

/// A window of bytes that begin at the end takes one window.
#[test]
fn data_from_the_end_takes_what_it_spans() {
    let mut bench = Bench::new(Parameters::generous());
    let start = held_bytes();
    let mut offset = STREAM_WINDOW;
    while offset > 1000 {
        offset -= 1000;
        bench.input(&frames::stream(0, offset, &[1; 1000], false));
    }
    let held = held_bytes() - start;
    assert_eq!(bench.close_code(), None);
    assert!(held < 5 << 18, "{held}");
    // One byte in each chunk of the window costs no more than the window.
    let mut bench = Bench::new(Parameters::generous());
    let start = held_bytes();
    for offset in (1..STREAM_WINDOW).step_by(4096) {
        bench.input(&frames::stream(0, offset, b"x", false));
    }
    let held = held_bytes() - start;
    assert!(held < 5 << 18, "{held}");
}

/// RFC 9000, 7.5: CRYPTO data in 1-RTT packets, in pieces and far ahead.
#[test]
fn crypto_data_after_the_handshake_is_bounded() {
    const CRYPTO_BUFFER_EXCEEDED: u64 = 0x0d;
    for (offset, code) in [
        (65_535, None),
        (65_536, Some(CRYPTO_BUFFER_EXCEEDED)),
        ((1 << 62) - 2, Some(CRYPTO_BUFFER_EXCEEDED)),
    ] {
        let mut bench = Bench::new(Parameters::generous());
        bench.input(&frames::crypto(offset, b"x"));
        assert_eq!(bench.close_code(), code, "{offset}");
    }
    let mut bench = Bench::new(Parameters::generous());
    let start = held_bytes();
    for offset in (1..65_000).step_by(16) {
        bench.input(&frames::crypto(offset, b"x"));
    }
    assert_eq!(bench.close_code(), None);
    let held = held_bytes() - start;
    assert!(held < 512 << 10, "{held}");
}

/// A handshake message that never ends is refused, whatever TLS makes of it.
#[test]
fn endless_tls_messages_are_refused() {
    let mut bench = Bench::new(Parameters::generous());
    let start = held_bytes();
    let mut stream = vec![4, 0xff, 0xff, 0xff];
    stream.resize(1000, 0);
    let mut offset = 0;
    while bench.close_code().is_none() {
        bench.input(&frames::crypto(offset, &stream));
        offset += 1000;
        stream.fill(0);
        assert!(offset < 1 << 20, "TLS takes all of it");
        let held = held_bytes() - start;
        assert!(held < 512 << 10, "{held}");
    }
    let code = bench.close_code().unwrap();
    assert!((0x100..0x200).contains(&code) || code == 0x0d, "{code:#x}");
}

/// RFC 9000, 13.2.1: a peer that sends for ever and acknowledges nothing costs a bounded number of packets in
/// flight, and then the connection.
#[test]
fn a_peer_that_never_acknowledges_does_not_fill_memory() {
    let mut bench = Bench::new(Parameters::generous());
    bench.pair.client.is_automatic = false;
    let start = held_bytes();
    let mut most = 0;
    let mut packets = 0_u64;
    while bench.close_code().is_none() {
        bench.input(&[1]);
        packets += 1;
        bench.now += Duration::from_micros(20);
        most = most.max(held_bytes() - start);
        assert!(packets < 2_000_000, "{most} bytes");
    }
    assert!(most < 24 << 20, "{most}");
    assert!(packets > 100_000, "{packets}");
    assert_eq!(bench.close_code(), Some(10));
}

/// What is sent and not acknowledged is bounded, whatever the application offers.
#[test]
fn the_send_buffer_is_bounded() {
    let mut bench = Bench::new(Parameters::generous());
    bench.pair.client.is_automatic = false;
    let start = held_bytes();
    let mut written = 0;
    for _ in 0..50 {
        let (connection, _) = bench.pair.server.connection(0).unwrap();
        let Some(id) = connection.open(Direction::Unidirectional) else {
            break;
        };
        while let Ok(taken @ 1..) = connection.stream_send(id, &[1; 10_000]) {
            written += taken;
        }
        bench.drain();
    }
    let held = held_bytes() - start;
    assert!(held < 20 << 20, "{held} of {written}");
}

/// RFC 9000, 19.3: many ACK frames of many ranges, again and again, cost neither memory nor much time.
#[test]
fn acknowledgments_in_many_ranges_are_cheap() {
    let mut bench = Bench::new(Parameters::generous());
    let pairs: Vec<_> = (0..500).map(|_| (0, 0)).collect();
    // Below zero after a few numbers: an error, not an underflow.
    bench.input(&frames::raw_ack(20, 0, 0, &pairs));
    assert_eq!(bench.close_code(), Some(7));

    let mut bench = Bench::new(Parameters::generous());
    let start = held_bytes();
    let zero = frames::raw_ack(0, (1 << 62) - 1, 0, &[]);
    let many: Vec<u8> = std::iter::repeat_n(zero, 90).flatten().collect();
    for _ in 0..1000 {
        bench.input(&many);
    }
    assert_eq!(bench.close_code(), None);
    assert!(held_bytes() - start < 100_000);
    assert!(
        bench.answers <= 1,
        "acknowledgments elicit none: {}",
        bench.answers
    );
}

/// A hundred thousand streams, opened and reset at once: memory stays where it is.
#[test]
fn streams_that_are_reset_leave_nothing_behind() {
    let Bench { mut pair, .. } = Bench::new(Parameters::generous());
    let mut next = 0;
    let mut churn = |streams: u64| {
        let end = next + streams;
        while next < end {
            for index in next..next + 50 {
                let id = 4 * index + 2;
                let stream = frames::stream(id, 0, b"x", false);
                let reset = frames::reset_stream(id, 7, 1);
                pair.client.send(Level::OneRtt, &[stream, reset].concat());
            }
            next += 50;
            pair.run(Duration::from_millis(30));
            assert_eq!(pair.client.close_code(), None);
            pair.client.forget();
            pair.server.connection(0).unwrap().1.events.clear();
        }
        held_bytes()
    };
    let start = churn(10_000);
    let more = churn(100_000) - start;
    assert!(more < 64 << 10, "{more}");
}

/// Credit for streams comes back once the application is done with its part, not when the peer is with its own.
#[test]
fn a_reset_by_the_peer_alone_gives_no_credit() {
    const STREAM_LIMIT: u64 = 4;
    for is_done in [false, true] {
        let mut bench = Bench::new(Parameters::generous());
        for index in 0..100 {
            let id = 4 * index;
            bench.input(&frames::stream(id, 0, b"x", false));
            bench.input(&frames::reset_stream(id, 7, 1));
            bench.input(&frames::stop_sending(id, 7));
            if is_done {
                let (connection, _) = bench.pair.server.connection(0).unwrap();
                let news: Vec<_> = std::iter::from_fn(|| connection.next_event()).collect();
                drop(news);
            }
        }
        // Without an acknowledgment of the resets the streams aren't over.
        bench.input(&frames::stream(400, 0, b"x", false));
        assert_eq!(bench.close_code(), Some(STREAM_LIMIT), "{is_done}");
    }
}

/// Floods of small frames allocate nothing and elicit no more than acknowledgments.
#[test]
fn floods_of_small_frames_cost_little() {
    const PACKETS: usize = 2000;
    type Make = fn(u64) -> Vec<u8>;
    let floods: [(&str, Make); 9] = [
        ("PING", |_| frames::ping()),
        ("MAX_DATA", |n| frames::max_data((1 << 40) + n)),
        ("MAX_STREAM_DATA", |n| {
            frames::max_stream_data(0, (1 << 40) + n)
        }),
        ("MAX_STREAMS", |n| frames::max_streams((1 << 40) + n)),
        ("DATA_BLOCKED", frames::data_blocked),
        ("STREAM_DATA_BLOCKED", |n| frames::stream_data_blocked(0, n)),
        ("STREAMS_BLOCKED", frames::streams_blocked),
        ("RESET_STREAM", |_| frames::reset_stream(4, 7, 1)),
        ("STOP_SENDING", |_| frames::stop_sending(4, 7)),
    ];
    for (name, make) in floods {
        let mut bench = Bench::new(Parameters::generous());
        bench.input(&frames::stream(0, 0, b"x", false));
        bench.input(&frames::stream(4, 0, b"x", false));
        let payload = |round: usize| {
            let first = u64::try_from(round).unwrap() * 50;
            (first..first + 50).flat_map(make).collect()
        };
        bench.flood(200, payload);
        bench.answers = 0;
        let start = held_bytes();
        let counted = bench.flood(PACKETS, |round| payload(round + 200));
        assert_eq!(bench.close_code(), None, "{name}");
        assert!(
            bench.answers <= PACKETS / 2 + 20,
            "{name}: {}",
            bench.answers
        );
        // What grows is the record of packets sent, as nobody acknowledges any here.
        assert!(counted.count < 30, "{name}: {counted:?}");
        let more = held_bytes() - start;
        assert!(more < 256 << 10, "{name}: {more}");
    }
}

/// RFC 9000, 10.2.1: after a close a hundred thousand packets elicit ever fewer answers, and no memory.
#[test]
fn a_flood_after_the_close_is_hardly_answered() {
    let mut bench = Bench::new(Parameters::generous());
    bench
        .pair
        .server
        .connection(0)
        .unwrap()
        .0
        .close(5, b"enough");
    bench.drain();
    bench.answers = 0;
    let counted = bench.flood(100_000, |_| frames::ping());
    assert!((1..=18).contains(&bench.answers), "{}", bench.answers);
    assert!(counted.count < 100, "{counted:?}");
    // And three PTOs after it nothing is left.
    bench.now += SECOND * 2;
    bench.drain();
    assert_eq!(bench.pair.server.endpoint.len(), 0);
}

/// What a transfer needed is given back once the connection has been silent for a while.
#[test]
fn an_idle_connection_keeps_no_spare_buffers() {
    let mut settings = Settings::default();
    settings.client.keep_alive = Some(SECOND * 5);
    let link = Link {
        bandwidth: Some(100_000_000),
        queue: 1_000_000,
        ..Link::delayed(Duration::from_millis(20))
    };
    let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&settings, link);
    pair.handshake();
    pair.run(SECOND);
    let Client {
        connection,
        application,
    } = &mut pair.client;
    application
        .request(connection, 5_000_000, 5_000_000)
        .unwrap();
    pair.run_until(|pair| pair.client.application.complete == 1);
    let busy = held_bytes();
    pair.run(SECOND * 12);
    let idle = held_bytes();
    assert!(idle + (1 << 20) < busy, "{idle} of {busy}");
}
