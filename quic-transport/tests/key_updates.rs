//! Key updates on virtual time, RFC 9001, 6.

use std::time::Duration;

use quic_transport::ApiError;
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::{Bulk, Pair};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

/// RFC 9001, 6.1: an endpoint MUST NOT initiate a key update before the handshake is confirmed.
#[test]
fn no_update_before_the_handshake_is_confirmed() {
    let mut pair = Bulks::new(
        &Settings::default(),
        Link::delayed(Duration::from_millis(5)),
    );
    assert_eq!(
        pair.client.connection.update_keys(),
        Err(ApiError::KeyUpdate)
    );
}

/// RFC 9001, 6.1 and 6.5: the next update waits for an acknowledgment of this one, and for 3 PTO.
#[test]
fn updates_follow_each_other_no_faster_than_they_may() {
    let mut pair = Bulks::new(
        &Settings::default(),
        Link::delayed(Duration::from_millis(5)),
    );
    pair.handshake();
    pair.run(Duration::from_millis(100));
    pair.client.request(1000, 1000).unwrap();
    let connection = &mut pair.client.connection;
    connection.update_keys().unwrap();
    assert_eq!(connection.update_keys(), Err(ApiError::KeyUpdate));
    pair.run(Duration::from_millis(12));
    let connection = &mut pair.client.connection;
    assert_eq!(
        connection.update_keys(),
        Err(ApiError::KeyUpdate),
        "old keys are still held"
    );
    pair.run(Duration::from_secs(1));
    pair.client.connection.update_keys().unwrap();
    assert_eq!(pair.client.connection.key_updates(), 2);
}

#[test]
fn a_transfer_survives_updates_from_both_ends_on_a_bad_link() {
    let link = Link {
        loss: Chance::percent(3),
        reorder: Chance::percent(5),
        reorder_delay: Duration::from_millis(8),
        bandwidth: Some(20_000_000),
        queue: 100_000,
        ..Link::delayed(Duration::from_millis(10))
    };
    let mut pair = Bulks::new(&Settings::default(), link);
    pair.handshake();
    pair.client.request(5_000_000, 1_000_000).unwrap();
    let mut updates = 0;
    pair.run_until(|pair| {
        updates += u64::from(pair.client.connection.update_keys().is_ok());
        let (server, _) = pair.server.connection(0).unwrap();
        updates += u64::from(server.update_keys().is_ok());
        pair.client.application.complete == 1
    });
    assert!(!pair.client.application.is_wrong);
    assert!(updates > 4, "{updates}");
    let (client, server) = (
        &pair.client.connection,
        pair.server.connection(0).unwrap().0,
    );
    // Updates of both ends at once are one.
    assert!(client.key_updates().abs_diff(server.key_updates()) <= 1);
}
