//! What connections that do nothing cost a server: memory, and the speed of the one that does something.
//!
//! With a number as its argument it makes so many idle connections and measures nothing, for a profiler of memory.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for people"
)]

use std::ops::Range;
use std::time::{Duration, Instant};

use quic_common::Random;
use quic_transport::{Application, tls};
use test_fixture::certificates::WALL_CLOCK;
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::Link;
use test_fixture::{Bulk, CountingAllocator, Http3, Pair, SERVER, held_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Idle connections whose memory is measured.
const SOME: u64 = 200;
/// Idle connections beside one that isn't.
const BESIDE: [u64; 5] = [0, 9, 99, 999, 9_999];
const PACKETS: u64 = 10_000;
const ROUNDS: usize = 31;
/// Time in which everything is acknowledged.
const PAUSE: Duration = Duration::from_millis(30);
/// Time after which a connection rests.
const SILENCE: Duration = Duration::from_secs(2);

/// Connections that stay while others are opened.
fn settings() -> Settings {
    let mut settings = Settings {
        takes_crowds: true,
        ..Settings::default()
    };
    for config in [&mut settings.client, &mut settings.server] {
        config.idle_timeout = Duration::from_hours(10);
    }
    settings
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    if let Some(count) = std::env::args().find_map(|argument| argument.parse().ok()) {
        memory(count, &mut one_request);
        return;
    }
    let transport = memory(SOME, &mut handshake::<Log>);
    println!("| an idle server connection | bytes |\n| --- | --- |");
    println!("| QUIC alone | {transport} |");
    let http3 = memory(SOME, &mut one_request);
    println!("| after three HTTP/3 requests | {http3} |");
    println!("\n| idle connections beside one | ns for its packet of 1200 bytes |\n| --- | --- |");
    for (beside, speed) in BESIDE.into_iter().zip(speeds()) {
        println!("| {beside} | {speed:.0} |");
    }
}

type Pairs<A> = Pair<Client<A>, Server<A>>;

/// Opens connections with these numbers, each from a client that is gone afterwards; the server keeps them.
fn open<A: Application + Default>(
    pair: &mut Pairs<A>,
    settings: &Settings,
    numbers: Range<u64>,
    work: &mut dyn FnMut(&mut Pairs<A>),
) {
    let root = settings.certificate.chain.last().unwrap().clone();
    let tls = tls::ClientConfig::with_roots([root], &[ALPN]).unwrap();
    let tls = tls
        .wall_clock(tls::WallClock::manual(WALL_CLOCK))
        .without_resumption();
    for number in numbers {
        let mut seed = [1; 32];
        *seed.first_chunk_mut().unwrap() = number.to_le_bytes();
        let network = &pair.network;
        pair.client = Client::with_tls(
            &tls,
            &settings.client,
            (NAME, network.address(SERVER)),
            Random::from_seed(seed),
            network.now(),
        );
        work(pair);
    }
}

/// Until the server has nothing more to do for the client.
fn handshake<A: Application + Default>(pair: &mut Pairs<A>) {
    pair.handshake();
    pair.run(PAUSE);
}

fn one_request(pair: &mut Pairs<Http3>) {
    let application = &mut pair.client.application;
    application.wanted = 3;
    application.parallel = 1;
    pair.run_until(|pair| pair.client.application.complete == 3);
    pair.run(PAUSE);
}

/// Bytes that the server holds for each of so many connections, at rest after this work.
fn memory<A: Application + Default>(count: u64, work: &mut dyn FnMut(&mut Pairs<A>)) -> i64 {
    let settings = settings();
    let mut pair = Pairs::<A>::new(&settings, Link::default());
    let mut work = |pair: &mut Pairs<A>| {
        work(pair);
        pair.run(SILENCE);
    };
    open(&mut pair, &settings, 0..2, &mut work);
    let start = held_bytes();
    open(&mut pair, &settings, 2..count + 2, &mut work);
    (held_bytes() - start) / i64::try_from(count).unwrap()
}

/// Nanoseconds for a packet of a download, beside so many other connections.
fn speeds() -> [f64; BESIDE.len()] {
    let mut settings = settings();
    settings.client.max_datagram = 1200;
    settings.server.max_datagram = 1200;
    let mut pairs = BESIDE.map(|idle| {
        let mut pair = Pairs::<Bulk>::new(&settings, Link::default());
        open(&mut pair, &settings, 0..idle + 1, &mut handshake);
        pair.client.application.skips_check = true;
        pair.client.request(1 << 50, 0).unwrap();
        transfer(&mut pair, 2 * PACKETS);
        pair
    });
    let mut times = [[0.0; ROUNDS]; BESIDE.len()];
    for round in 0..ROUNDS {
        for (pair, times) in pairs.iter_mut().zip(&mut times) {
            *times.get_mut(round).unwrap() = transfer(pair, PACKETS);
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times.get(ROUNDS / 2).copied().unwrap()
    })
}

fn transfer(pair: &mut Pairs<Bulk>, count: u64) -> f64 {
    let packets = |pair: &Pairs<Bulk>| pair.client.connection.stats().packets_received;
    let first = packets(pair);
    let start = Instant::now();
    pair.run_until(|pair| packets(pair) - first >= count);
    let time = start.elapsed().as_secs_f64() * 1e9;
    time / f64::from(u32::try_from(packets(pair) - first).unwrap())
}
