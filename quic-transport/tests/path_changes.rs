//! What a path carries can change under a connection.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Chance, Link};
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
    let Client {
        connection,
        application,
    } = &mut pair.client;
    application.request(connection, download, upload).unwrap();
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
    let Client {
        connection,
        application,
    } = &mut pair.client;
    application.request(connection, 0, 1500).unwrap();
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.client.application.complete, 2);
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
