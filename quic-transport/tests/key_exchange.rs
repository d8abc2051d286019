//! Key exchange groups, and ClientHellos that are longer than a datagram (A18).

use std::time::Duration;

use quic_transport::RetryPolicy;
use quic_transport::tls::KeyExchange;
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, SeenFrame};

type Ours = Pair<Client<Log>, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

const DELAY: Duration = Duration::from_millis(10);
const ROUND_TRIP: Duration = Duration::from_millis(20);

fn with(groups: &[KeyExchange]) -> Settings {
    Settings {
        key_exchange: groups.to_vec(),
        ..Settings::default()
    }
}

#[test]
fn the_group_is_the_one_that_both_want_most() {
    for group in KeyExchange::ALL {
        let mut pair = Ours::new(&with(&[group]), Link::delayed(DELAY));
        pair.handshake();
        assert_eq!(pair.client.connection.key_exchange_group(), group.name());
        let (server, _) = pair.server.connection(0).unwrap();
        assert_eq!(server.key_exchange_group(), group.name());
    }
}

/// The client's first share serves a server that knows only half of it: there is no second round trip.
#[test]
fn x25519_alone_costs_no_round_trip() {
    let mut pair = Ours::new(&with(&KeyExchange::ALL), Link::delayed(DELAY));
    pair.server = Server::new(&Settings::default(), pair.network.now());
    pair.handshake();
    let client = &pair.client.connection;
    assert_eq!(client.key_exchange_group(), "X25519");
    assert_eq!(client.stats().handshake_time, Some(ROUND_TRIP));
}

/// A server that wants another group than the one of the client's share asks for it (RFC 8446, 4.1.4).
#[test]
fn another_group_costs_a_round_trip() {
    let groups = [KeyExchange::X25519, KeyExchange::Secp384r1];
    let mut pair = Ours::new(&with(&groups), Link::delayed(DELAY));
    let server = with(&[KeyExchange::Secp384r1]);
    pair.server = Server::new(&server, pair.network.now());
    pair.handshake();
    let client = &pair.client.connection;
    assert_eq!(client.key_exchange_group(), "secp384r1");
    assert_eq!(client.stats().handshake_time, Some(2 * ROUND_TRIP));
}

/// A ClientHello in several Initial packets, with Retry and without, over links that lose, repeat and reorder.
#[test]
fn a_long_client_hello_survives_a_bad_network() {
    for seed in 0..100 {
        let settings = Settings {
            seed,
            retry: if seed % 2 == 0 {
                RetryPolicy::Never
            } else {
                RetryPolicy::Always
            },
            ..with(&KeyExchange::ALL)
        };
        let link = Link {
            loss: Chance::percent(15),
            duplicate: Chance::percent(20),
            reorder: Chance::percent(30),
            reorder_delay: DELAY,
            ..Link::delayed(DELAY)
        };
        let mut pair = Ours::new(&settings, link);
        pair.handshake();
        let group = pair.client.connection.key_exchange_group();
        assert_eq!(group, "X25519MLKEM768", "seed {seed}");
    }
}

/// RFC 9000, 14.1: every datagram of a long ClientHello is full, and all of them go at once.
#[test]
fn a_long_client_hello_takes_two_full_datagrams() {
    let settings = with(&KeyExchange::ALL);
    let link = Link::delayed(DELAY);
    let mut pair = ToClient::scripted_server(&settings, Parameters::generous(), link);
    pair.server.is_automatic = false;
    pair.run(DELAY + DELAY / 2);
    let packets = pair.server.packets();
    assert_eq!(packets.len(), 2);
    for packet in packets {
        assert_eq!(packet.level, Level::Initial);
        assert!(packet.datagram_length >= 1200);
        let is_crypto = |frame: &SeenFrame| matches!(frame, SeenFrame::Crypto { .. });
        assert!(packet.frames.iter().any(is_crypto));
    }
    pair.server.is_automatic = true;
    pair.handshake();
}
