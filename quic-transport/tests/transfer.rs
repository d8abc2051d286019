//! A client and a server that move bytes on virtual time.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::{BatchBuffer, BatchHead, MAX_BATCH_BYTES};
use quic_transport::Config;
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Chance, Link, Party as _, Transmit};
use test_fixture::{Bulk, Pair};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

fn transfer(link: Link, download: u64, upload: u64) -> Bulks {
    let mut pair = Bulks::new(&Settings::default(), link);
    pair.handshake();
    pair.client.request(download, upload).unwrap();
    pair.run_until(|pair| pair.client.application.complete == 1);
    assert_eq!(pair.client.application.received, download);
    assert!(!pair.client.application.is_wrong);
    let (_, server) = pair.server.connection(0).unwrap();
    assert_eq!(server.received, upload + 8);
    assert!(!server.is_wrong);
    pair
}

#[test]
fn a_perfect_link_moves_everything_at_once() {
    transfer(Link::default(), 10_000_000, 10_000_000);
}

#[test]
fn a_long_fat_link_is_filled() {
    let link = Link {
        bandwidth: Some(100_000_000),
        queue: 1_000_000,
        ..Link::delayed(Duration::from_millis(20))
    };
    let pair = transfer(link, 20_000_000, 0);
    let elapsed = pair.network.elapsed();
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
}

#[test]
fn everything_arrives_over_a_bad_link() {
    let link = Link {
        loss: Chance::percent(5),
        duplicate: Chance::percent(2),
        corrupt: Chance::percent(2),
        reorder: Chance::percent(5),
        reorder_delay: Duration::from_millis(8),
        ..Link::delayed(Duration::from_millis(10))
    };
    transfer(link, 1_000_000, 1_000_000);
}

/// The first probe of the MTU may be larger than the window, and is nobody's reason to wait.
#[test]
fn a_probe_of_the_mtu_holds_nothing_up() {
    let config = Config {
        max_datagram: 65_507,
        ..Config::default()
    };
    let settings = Settings {
        client: config.clone(),
        server: config,
        ..Settings::default()
    };
    for largest in [usize::MAX, 1500] {
        let link = Link {
            largest,
            ..Link::delayed(Duration::from_millis(1))
        };
        let mut pair = Bulks::new(&settings, link);
        pair.handshake();
        let start = pair.network.elapsed();
        pair.client.request(1, 0).unwrap();
        pair.run_until(|pair| pair.client.application.complete == 1);
        let elapsed = pair.network.elapsed().saturating_sub(start);
        // A round trip takes 2 ms; a delayed acknowledgment would take 25 more.
        assert!(elapsed < Duration::from_millis(10), "{elapsed:?}");
    }
}

/// Paths from the smallest to the largest MTU work, and are used nearly as far as they go.
#[test]
fn paths_of_any_mtu_work() {
    for (largest, least) in [(1200, 1200), (1300, 1220), (9000, 8972), (65_507, 65_507)] {
        let mut settings = Settings::default();
        settings.client.max_datagram = quic_transport::MAX_DATAGRAM;
        settings.server.max_datagram = quic_transport::MAX_DATAGRAM;
        let link = Link {
            largest,
            ..Link::delayed(Duration::from_millis(5))
        };
        let mut pair = Bulks::new(&settings, link);
        pair.handshake();
        pair.client.request(20_000_000, 0).unwrap();
        pair.run_until(|pair| pair.client.application.complete == 1);
        assert!(!pair.client.application.is_wrong);
        let (server, _) = pair.server.connection(0).unwrap();
        let mtu = usize::from(server.stats().path_mtu);
        assert!((least..=largest).contains(&mtu), "{mtu} of {largest}");
    }
}

/// A stream takes a few batches ahead. One who fills before each batch what the last has made room for sends all that the
/// peer's first window for a stream permits, a mebibyte, in whole batches, and waits for no acknowledgment before.
#[test]
fn an_upload_fills_whole_batches_up_to_the_window() {
    let mut pair = transfer(Link::delayed(Duration::from_millis(10)), 0, 20_000_000);
    pair.run(Duration::from_millis(100));
    pair.client.request(0, 8_000_000).unwrap();
    let (now, mut buffer) = (pair.network.now(), BatchBuffer::new());
    for number in 0..(1 << 20) / MAX_BATCH_BYTES {
        let transmit = pair.client.transmit(now, &mut buffer);
        let is_whole = |head: &BatchHead| head.length > MAX_BATCH_BYTES - head.segment;
        assert!(
            matches!(&transmit, Transmit::Batch(head) if is_whole(head)),
            "{number}: {transmit:?}"
        );
    }
}

/// AES-GCM takes whole blocks in one go, so a full packet holds nothing else: 1424 bytes where the path carries 1452, behind
/// a header of ten bytes or eleven, and before the tag.
#[test]
fn full_packets_hold_whole_blocks_of_the_cipher() {
    let mut pair = transfer(Link::delayed(Duration::from_millis(10)), 0, 20_000_000);
    pair.run(Duration::from_millis(100));
    pair.client.request(0, 8_000_000).unwrap();
    let (now, mut buffer) = (pair.network.now(), BatchBuffer::new());
    let mut segments = Vec::new();
    while let Transmit::Batch(head) = pair.client.transmit(now, &mut buffer) {
        segments.push(head.segment);
    }
    segments.dedup();
    // Numbers take two bytes once more than half of what one can tell apart are not acknowledged.
    assert_eq!(
        segments.get(..2),
        Some(&[10 + 1424 + 16, 11 + 1424 + 16][..])
    );
    assert_eq!(pair.client.connection.stats().path_mtu, 1452);
}
