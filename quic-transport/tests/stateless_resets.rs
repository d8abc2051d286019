//! Resets by servers that have lost their state: a key that outlives them ends the connections of before
//! (RFC 9000, 10.3).
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_transport::tls::ServerSecrets;
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
    let line = |key: &u8| format!("{key:02x}").repeat(32) + "\n";
    let lines: String = std::iter::once(&key).chain(earlier).map(line).collect();
    config.reset_key = ServerSecrets::parse(&lines).unwrap().reset_key();
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
}
