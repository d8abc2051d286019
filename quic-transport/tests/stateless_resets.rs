//! Resets by servers that have lost their state: a key that outlives them ends the connections of before
//! (RFC 9000, 10.3).
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_transport::tls::ResetKey;
use quic_transport::{CloseReason, Direction, Endpoint, EndpointConfig, Event};
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;

const SECOND: Duration = Duration::from_secs(1);

type Own = Pair<Client<Log>, Server<Log>>;

/// A client whose server was started anew: with `key`, and those `earlier`.
fn restarted(key: u8, earlier: &[u8]) -> Own {
    let link = Link::delayed(Duration::from_millis(10));
    let settings = Settings::default();
    let mut pair = Own::new(&settings, link);
    pair.server.endpoint = endpoint(1, 1, &[]);
    pair.handshake();
    pair.run(SECOND);
    pair.server = Server::new(&settings, pair.network.now());
    pair.server.endpoint = endpoint(2, key, earlier);
    pair
}

fn endpoint(seed: u8, key: u8, earlier: &[u8]) -> Endpoint<Log> {
    let mut random = quic_common::Random::from_seed([seed; 32]);
    let mut config = EndpointConfig::new(&mut random);
    config.clock = quic_transport::tls::WallClock::manual(test_fixture::certificates::WALL_CLOCK);
    config.reset_key = ResetKey::new([key; 32]);
    config.earlier_reset_keys = earlier
        .iter()
        .map(|key| ResetKey::new([*key; 32]))
        .collect();
    Endpoint::new(config, random)
}

/// The client speaks, and hears what its server makes of it, for some probe timeouts.
fn is_reset(pair: &mut Own) -> bool {
    let connection = &mut pair.client.connection;
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.stream_send(id, &[1; 500]).unwrap();
    pair.run(SECOND * 20);
    let ended = Event::Closed(CloseReason::StatelessReset);
    pair.client.application.events.contains(&ended)
}

/// RFC 9000, 10.3.2: the tokens follow from the key, which can be kept in a file and shared.
#[test]
fn a_server_that_was_started_anew_resets_old_connections() {
    let mut pair = restarted(1, &[]);
    assert!(is_reset(&mut pair));
    assert!(pair.server.endpoint.is_empty());
}

#[test]
fn a_server_with_another_key_can_not() {
    assert!(!is_reset(&mut restarted(7, &[])));
    assert!(!is_reset(&mut restarted(7, &[8, 9])));
}

/// Keys that are out of use still make resets, as nobody can tell which one a connection had.
#[test]
fn keys_can_be_changed() {
    for earlier in [&[1][..], &[8, 1], &[8, 9, 1]] {
        assert!(is_reset(&mut restarted(7, earlier)), "{earlier:?}");
    }
    let beyond = [8, 9, 10, 1];
    assert!(!is_reset(&mut restarted(7, &beyond)), "too long ago");

    for (changes, is_known) in [(3_u8, true), (4, false)] {
        let mut pair = restarted(1, &[]);
        for key in 0..changes {
            let key = ResetKey::new([100 + key; 32]);
            pair.server.endpoint.change_reset_key(key);
        }
        assert_eq!(is_reset(&mut pair), is_known, "{changes} changes");
    }
}

/// A key that is changed under way: connections keep their tokens, and new ones have others.
#[test]
fn a_changed_key_ends_nothing() {
    let link = Link::delayed(Duration::from_millis(10));
    let mut pair = Own::new(&Settings::default(), link);
    pair.handshake();
    pair.server
        .endpoint
        .change_reset_key(ResetKey::new([9; 32]));
    assert!(!is_reset(&mut pair));
    assert!(!pair.client.connection.is_closing());
}
