//! In steady state neither end allocates anything, over ten thousand packets of each kind.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Chance, Link, Network};
use test_fixture::{Allocations, Bulk, CountingAllocator, Pair, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const PACKETS: u64 = 10_000;

/// After so many packets rings and pools have the size that this traffic asks for.
const WARM_UP: u64 = 80_000;

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

/// Runs a transfer until buffers have their size, and then counts.
fn count(link: Link, download: u64, upload: u64) -> (Allocations, u64) {
    count_of(link, download, upload, |pair| {
        let stats = pair.client.connection.stats();
        stats.packets_sent + stats.packets_received
    })
}

/// The same, for packets of one kind: `packets` tells how many there have been.
fn count_of(
    link: Link,
    download: u64,
    upload: u64,
    packets: impl Fn(&mut Bulks) -> u64,
) -> (Allocations, u64) {
    let mut pair = Bulks::new(&Settings::default(), link);
    pair.handshake();
    pair.client.request(download, upload).unwrap();
    pair.run_until(|pair| packets(pair) >= WARM_UP);
    let start = packets(&mut pair);
    let counted = allocations(|| pair.run_until(|pair| packets(pair) >= start + PACKETS));
    (counted, packets(&mut pair) - start)
}

/// A path whose queue bounds the window.
fn wire() -> Link {
    Link {
        bandwidth: Some(100_000_000),
        queue: 100_000,
        ..Link::delayed(Duration::from_millis(5))
    }
}

#[test]
fn a_download_allocates_nothing() {
    for link in [Link::default(), wire()] {
        let (counted, packets) = count(link, 1 << 40, 0);
        assert_eq!(counted, Allocations::default(), "{packets} packets");
    }
}

#[test]
fn an_upload_allocates_nothing() {
    let (counted, packets) = count(Link::default(), 0, 1 << 40);
    assert_eq!(counted, Allocations::default(), "{packets} packets");
}

/// A client that downloads sends nothing but acknowledgments.
#[test]
fn acknowledgments_allocate_nothing() {
    let (counted, packets) = count_of(wire(), 1 << 40, 0, |pair| {
        let stats = pair.client.connection.stats();
        assert!(stats.acks_sent + 100 > stats.packets_sent, "{stats:?}");
        stats.packets_sent
    });
    assert_eq!(counted, Allocations::default(), "{packets} packets");
}

/// The datagrams of two connections come to the endpoint in turns.
#[test]
fn two_connections_at_one_endpoint_allocate_nothing() {
    let settings = Settings::default();
    let address = |port: u16| SocketAddr::from(([192, 0, 2, 1], port));
    let mut network = Network::new(1, &[address(1), address(2), address(3)]);
    network.set_links(wire());
    let mut server = Server::<Bulk>::new(&settings, network.now());
    let mut clients = [2, 3].map(|seed| {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        Client::<Bulk>::new(&settings, address(3), network.now())
    });
    let mut run_to = |packets: u64, clients: &mut [Client<Bulk>; 2]| {
        let [first, second] = clients;
        while first.connection.stats().packets_received + second.connection.stats().packets_received
            < packets
        {
            assert!(network.step(&mut [first, second, &mut server]));
        }
    };
    run_to(4, &mut clients);
    for client in &mut clients {
        client.request(1 << 40, 0).unwrap();
    }
    run_to(WARM_UP, &mut clients);
    let counted = allocations(|| run_to(WARM_UP + PACKETS, &mut clients));
    assert_eq!(counted, Allocations::default());
    let share = clients.map(|client| client.connection.stats().packets_received);
    assert!(
        share.iter().all(|packets| *packets > PACKETS / 2),
        "{share:?}"
    );
}

#[test]
fn losses_and_reordering_allocate_nothing() {
    let link = Link {
        loss: Chance::percent(2),
        reorder: Chance::percent(2),
        reorder_delay: Duration::from_millis(4),
        ..wire()
    };
    let lost = Cell::new(0);
    let (counted, packets) = count_of(link, 1 << 40, 0, |pair| {
        let stats = pair.server.connection(0).unwrap().0.stats();
        lost.set(stats.packets_lost);
        stats.packets_sent
    });
    assert_eq!(counted, Allocations::default(), "{packets} packets");
    assert!(lost.get() > WARM_UP / 100, "{lost:?}");
}
