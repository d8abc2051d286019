//! What a path carries can change under a connection.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, BatchHead, Ecn};
use quic_transport::{Application, CloseReason, MAX_DATAGRAM, TransportErrorCode};
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Arrivals, Chance, Link, Party, Transmit};
use test_fixture::{Bulk, CLIENT, Pair, SERVER};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

fn link() -> Link {
    Link {
        bandwidth: Some(20_000_000),
        queue: 100_000,
        ..Link::delayed(Duration::from_millis(10))
    }
}

fn started(download: u64, upload: u64) -> Bulks {
    let mut pair = Bulks::new(&Settings::default(), link());
    pair.handshake();
    pair.client.request(download, upload).unwrap();
    pair
}

/// RFC 9000, 14.3: when the path starts to drop what it carried before, datagrams become small again.
#[test]
fn a_path_that_carries_less_than_before_is_noticed() {
    for (download, upload) in [(4_000_000, 0), (0, 4_000_000), (4_000_000, 4_000_000)] {
        let mut pair = started(download, upload);
        pair.run(Duration::from_millis(500));
        assert_eq!(pair.client.connection.stats().path_mtu, 1452);
        let narrow = Link {
            largest: 1300,
            ..link()
        };
        pair.network.set_links(narrow);
        let start = pair.network.now();
        pair.run_until(|pair| pair.client.application.complete == 1);
        let elapsed = pair.network.now() - start;
        assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    }
}

/// What is small still arrives then, and is acknowledged, so that timeouts alone don't tell.
#[test]
fn small_packets_do_not_hide_that_large_ones_are_lost() {
    let mut pair = started(0, 1000);
    pair.run(Duration::from_millis(500));
    assert_eq!(pair.client.connection.stats().path_mtu, 1452);
    let narrow = Link {
        largest: 1300,
        ..link()
    };
    pair.network.set_links(narrow);
    pair.client.request(0, 1500).unwrap();
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.client.application.complete, 2);
}

/// A party whose system sends no datagram larger than `largest`.
#[derive(Debug)]
struct Limited<P> {
    party: P,
    largest: usize,
    refused: u32,
}

impl<P> Limited<P> {
    const fn new(party: P, largest: usize) -> Self {
        Self {
            party,
            largest,
            refused: 0,
        }
    }
}

/// What is told of a batch that was refused.
trait Refuse: Party {
    fn refuse(&mut self, head: &BatchHead);
}

impl<A: Application> Refuse for Client<A> {
    fn refuse(&mut self, head: &BatchHead) {
        self.connection.on_batch_refused(head);
    }
}

impl<A: Application + Default> Refuse for Server<A> {
    fn refuse(&mut self, head: &BatchHead) {
        self.endpoint.on_batch_refused(head);
    }
}

impl<P: Refuse> Party for Limited<P> {
    fn receive(&mut self, datagrams: Arrivals<'_>, now: Instant) {
        self.party.receive(datagrams, now);
    }

    fn transmit(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Transmit {
        loop {
            match self.party.transmit(now, buffer) {
                Transmit::Batch(head) if head.segment > self.largest => {
                    self.party.refuse(&head);
                    self.refused += 1;
                }
                other @ (Transmit::Batch(_) | Transmit::Callback(_) | Transmit::Nothing) => {
                    return other;
                }
            }
        }
    }
}

fn limited(largest: usize) -> Pair<Limited<Client<Bulk>>, Limited<Server<Bulk>>> {
    let mut settings = Settings::default();
    settings.client.max_datagram = MAX_DATAGRAM;
    settings.server.max_datagram = MAX_DATAGRAM;
    let pair = Bulks::new(&settings, link());
    Pair {
        network: pair.network,
        client: Limited::new(pair.client, largest),
        server: Limited::new(pair.server, largest),
    }
}

/// A probe that the system refuses has failed at once: nothing waits for it, nothing is repeated for it.
#[test]
fn what_the_system_refuses_costs_no_time() {
    let mut pair = limited(1452);
    pair.run(Duration::from_secs(1));
    pair.client.party.request(200_000, 200_000).unwrap();
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.party.application.complete, 1);
    let client = pair.client.party.connection.stats();
    let server = pair.server.party.connection(0).unwrap().0.stats();
    for stats in [client, server] {
        assert_eq!((stats.path_mtu, stats.probe_timeouts), (1452, 0));
        assert_eq!(stats.packets_lost, 0);
    }
    // The maximum, and what lies between it and Ethernet's.
    assert!((1..12).contains(&pair.client.refused) && (1..12).contains(&pair.server.refused));
}

/// An interface's MTU is made smaller, and smaller again, in mid-transfer, at either end.
#[test]
fn a_smaller_interface_makes_datagrams_smaller() {
    for (download, upload) in [(6_000_000, 0), (0, 6_000_000)] {
        let mut pair = limited(1472);
        pair.run(Duration::from_secs(1));
        pair.client.party.request(download, upload).unwrap();
        for largest in [1472, 1400, 1252] {
            (pair.client.largest, pair.server.largest) = (largest, largest);
            pair.run(Duration::from_millis(500));
            let sender = if upload > 0 {
                &pair.client.party.connection
            } else {
                pair.server.party.connection(0).unwrap().0
            };
            let mtu = usize::from(sender.stats().path_mtu);
            assert!(mtu <= largest && mtu > largest - 80, "{mtu} of {largest}");
        }
        pair.run_until(|pair| pair.client.party.application.complete == 1);
        assert!(!pair.client.party.application.is_wrong);
    }
}

/// RFC 9000, 14.2: where 1200 bytes don't leave there is no QUIC, and only that is still said.
#[test]
fn a_path_below_the_minimum_ends_the_connection() {
    let mut pair = limited(1452);
    pair.run(Duration::from_secs(1));
    pair.server.largest = 1180;
    pair.client.party.request(100_000, 0).unwrap();
    pair.run(Duration::from_secs(1));
    let closed = pair.client.party.application.closed.clone();
    assert!(
        matches!(closed, Some(CloseReason::Peer { code, .. }) if code == TransportErrorCode::NO_VIABLE_PATH),
        "{closed:?}"
    );
    assert!(pair.server.party.endpoint.is_empty());

    // What is told of somebody else's batch, or too late, changes nothing.
    let mut pair = started(0, 0);
    pair.run(Duration::from_secs(1));
    let head = BatchHead {
        remote: pair.network.address(CLIENT),
        local: None,
        ecn: Ecn::NotEct,
        length: 1100,
        segment: 1100,
    };
    pair.server.endpoint.on_batch_refused(&head);
    pair.run(Duration::from_secs(1));
    assert!(!pair.client.connection.is_closing());
    pair.client.connection.close(0, b"");
    pair.client.connection.on_batch_refused(&head);
    pair.run(Duration::from_secs(1));
    let closed = &pair.client.application.closed;
    assert_eq!(*closed, Some(CloseReason::Application { code: 0 }));
}

/// RFC 9000, 13.4.2: marking goes on as long as the counts of the peer are right.
#[test]
fn marking_goes_on_on_a_path_that_carries_marks() {
    for (download, upload) in [(10_000_000, 0), (0, 10_000_000)] {
        let mut pair = started(download, upload);
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.client.application.complete, 0);
        let marking = Link {
            mark: Chance::percent(1),
            ..link()
        };
        pair.network.set_links(marking);
        pair.run(Duration::from_secs(1));
        let (from, to) = if download > 0 {
            (SERVER, CLIENT)
        } else {
            (CLIENT, SERVER)
        };
        let marked = pair.network.passed(from, to).marked;
        assert!(marked > 0, "nothing of the bulk could be marked");
    }
}
