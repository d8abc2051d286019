//! What is counted: two ends in memory, on virtual time.

use std::time::Duration;

use quic_common::Random;
use quic_transport::{Connection, tls};
use test_fixture::certificates::WALL_CLOCK;
use test_fixture::ends::{ALPN, Client, NAME, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::{Allocations, Bulk, Http3, Pair, SERVER, allocations};

/// Packets after which windows, rings and pools have their size.
const WARM_UP: u64 = 10_000;
/// More bytes than any run takes.
const ENDLESS: u64 = 1 << 50;

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;
type Http3s = Pair<Client<Http3>, Server<Http3>>;

/// Something to do so many times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// What is counted is divided by their number.
    pub(crate) unit: &'static str,
    pub(crate) count: u64,
    /// Prepares, and returns what so many units allocate.
    pub(crate) run: fn(u64) -> Allocations,
}

pub(crate) const WORKLOADS: [Workload; 6] = [
    Workload {
        name: "download",
        unit: "packet of 1200 bytes",
        count: 10_000,
        run: |count| bulk(Link::default(), (ENDLESS, 0), count),
    },
    Workload {
        name: "upload",
        unit: "packet of 1200 bytes",
        count: 10_000,
        run: |count| bulk(Link::default(), (0, ENDLESS), count),
    },
    Workload {
        name: "lossy",
        unit: "packet of 1200 bytes, 2 % lost and 2 % reordered",
        count: 10_000,
        run: |count| bulk(lossy(), (ENDLESS, 0), count),
    },
    Workload {
        name: "parallel",
        unit: "HTTP/3 request of 1 byte, 100 at a time",
        count: 5000,
        run: |count| requests(100, count),
    },
    Workload {
        name: "sequential",
        unit: "HTTP/3 request of 1 byte, one at a time",
        count: 2000,
        run: |count| requests(1, count),
    },
    Workload {
        name: "handshake",
        unit: "connection with one HTTP/3 request",
        count: 20,
        run: handshakes,
    },
];

fn lossy() -> Link {
    Link {
        bandwidth: Some(100_000_000),
        queue: 100_000,
        loss: Chance::percent(2),
        reorder: Chance::percent(2),
        reorder_delay: Duration::from_millis(4),
        ..Link::delayed(Duration::from_millis(5))
    }
}

/// Counts the packets that carry data.
fn bulk(link: Link, (download, upload): (u64, u64), count: u64) -> Allocations {
    let mut settings = Settings::default();
    settings.client.max_datagram = 1200;
    settings.server.max_datagram = 1200;
    let mut pair = Bulks::new(&settings, link);
    pair.handshake();
    pair.client.application.skips_check = true;
    pair.client.request(download, upload).unwrap();
    let packets = |pair: &Bulks| {
        let stats = pair.client.connection.stats();
        if download > 0 {
            stats.packets_received
        } else {
            stats.packets_sent
        }
    };
    let mut transfer = |count| {
        let first = packets(&pair);
        pair.run_until(|pair| packets(pair) - first >= count);
    };
    transfer(WARM_UP);
    allocations(|| transfer(count))
}

fn requests(parallel: u64, count: u64) -> Allocations {
    let mut pair = Http3s::new(&Settings::default(), Link::default());
    pair.handshake();
    let mut make = |count| {
        let Client {
            connection,
            application,
        } = &mut pair.client;
        let end = application.complete + count;
        application.wanted = count;
        application.parallel = parallel;
        application.request(connection);
        pair.run_until(|pair| pair.client.application.complete == end);
    };
    make(1000);
    allocations(|| make(count))
}

/// One after the other, each closed and forgotten by both ends before the next.
fn handshakes(count: u64) -> Allocations {
    let settings = Settings::default();
    let mut pair = Http3s::new(&settings, Link::default());
    let root = settings.certificate.chain.last().unwrap().clone();
    let tls = tls::ClientConfig::with_roots([root], &[ALPN]).unwrap();
    let tls = tls
        .key_exchange(&[tls::KeyExchange::X25519])
        .unwrap()
        .wall_clock(tls::WallClock::manual(WALL_CLOCK))
        .without_resumption();
    let mut connect = |count: u64| {
        for number in 0..count {
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
            pair.client.application.wanted = 1;
            pair.client.application.parallel = 1;
            pair.run_until(|pair| pair.client.application.complete == 1);
            pair.client.connection.close(0, b"");
            pair.run_until(is_forgotten);
        }
    };
    connect(5);
    allocations(|| connect(count))
}

fn is_forgotten(pair: &mut Http3s) -> bool {
    let is_closed = Connection::is_closed(&pair.client.connection);
    let last = pair.server.handles.len() - 1;
    is_closed && pair.server.connection(last).is_none()
}
