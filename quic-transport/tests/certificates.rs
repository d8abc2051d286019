//! A client that doesn't trust the server, or speaks another protocol, says so with the alert of TLS, and delivers
//! nothing.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::Random;
use quic_transport::{ApiError, CloseReason, Config, Connection, Event, tls};
use test_fixture::certificates::{Algorithm, Certificate, Leaf, TestCa, WALL_CLOCK, ed25519};
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{client_config, server_config};
use test_fixture::{Pair, network};

const BAD_CERTIFICATE: u64 = 42;
const CERTIFICATE_EXPIRED: u64 = 45;
const UNKNOWN_CA: u64 = 48;
const NO_APPLICATION_PROTOCOL: u64 = 120;

type Both = Pair<Client<Log>, Server<Log>>;

/// Connects to `name` with these roots and protocols, and returns how each end sees the outcome.
fn connect(certificate: Certificate, root: &Certificate, name: &str, alpn: &[&[u8]]) -> Both {
    let settings = Settings {
        certificate,
        ..Settings::default()
    };
    let network = network(&settings, Link::delayed(Duration::from_millis(10)));
    let remote = network.address(test_fixture::SERVER);
    let root = root.chain.last().unwrap().clone();
    let tls = tls::ClientConfig::with_roots([root], alpn).unwrap();
    let tls = tls.wall_clock(tls::WallClock::manual(WALL_CLOCK));
    let random = Random::from_seed([3; 32]);
    let mut pair = Pair {
        client: Client::with_tls(
            &tls,
            &Config::default(),
            (name, remote),
            random,
            network.now(),
        ),
        server: Server::new(&settings, network.now()),
        network,
    };
    pair.run(Duration::from_millis(500));
    pair
}

/// The code that the client closed with, which the server has heard.
fn refused(mut pair: Both) -> u64 {
    let events = &pair.client.application.events;
    assert!(!events.contains(&Event::Connected));
    let code = own_code(events);
    let (server, log) = pair.server.connection(0).unwrap();
    assert!(server.is_closing());
    assert_eq!(code, peer_code(&log.events));
    assert!(
        !log.events.contains(&Event::Connected),
        "nobody is connected"
    );
    code.unwrap()
}

/// The code that an end closed with.
fn own_code(events: &[Event]) -> Option<u64> {
    events.iter().find_map(|event| {
        if let Event::Closed(CloseReason::Local(error)) = event {
            Some(error.code.value())
        } else {
            None
        }
    })
}

/// The code that the other end closed with.
fn peer_code(events: &[Event]) -> Option<u64> {
    events.iter().find_map(|event| {
        if let Event::Closed(CloseReason::Peer { code, .. }) = event {
            Some(code.value())
        } else {
            None
        }
    })
}

fn leaf(authority: &TestCa, names: &[&str], expired: bool) -> (Certificate, Certificate) {
    let mut leaf = authority.certificate(&Leaf {
        names,
        expired,
        ..Leaf::default()
    });
    let mut root = leaf.copy();
    root.chain = vec![authority.root().clone()];
    // Some servers send the root, too.
    leaf.chain.push(authority.root().clone());
    (leaf, root)
}

/// The control: names and addresses that are in the certificate.
#[test]
fn what_the_certificate_is_for_is_trusted() {
    let authority = TestCa::new(Algorithm::Ed25519);
    for name in ["localhost", "192.0.2.2", "2001:db8::1"] {
        let (certificate, root) = leaf(&authority, &[name], false);
        let pair = connect(certificate, &root, name, &[ALPN]);
        assert!(
            pair.client.application.events.contains(&Event::Connected),
            "{name}"
        );
    }
}

/// RFC 9001, 4.4 and 4.8: the alert as an error code.
#[test]
fn other_names_are_not() {
    let authority = TestCa::new(Algorithm::Ed25519);
    for (names, name) in [
        (&["localhost"][..], "example.org"),
        (&["localhost"], "192.0.2.2"),
        (&["192.0.2.2"], "192.0.2.3"),
        (&["192.0.2.2"], "localhost"),
        (&[], "localhost"),
    ] {
        let (certificate, root) = leaf(&authority, names, false);
        let pair = connect(certificate, &root, name, &[ALPN]);
        assert_eq!(refused(pair), 0x100 + BAD_CERTIFICATE, "{names:?} {name}");
    }
}

#[test]
fn an_expired_certificate_is_not() {
    let authority = TestCa::new(Algorithm::Ed25519);
    let (certificate, root) = leaf(&authority, &[NAME], true);
    let pair = connect(certificate, &root, NAME, &[ALPN]);
    assert_eq!(refused(pair), 0x100 + CERTIFICATE_EXPIRED);
}

#[test]
fn nor_one_of_an_unknown_authority() {
    let authority = TestCa::new(Algorithm::P256);
    let (certificate, _) = leaf(&authority, &[NAME], false);
    let pair = connect(certificate, &ed25519(&[NAME]), NAME, &[ALPN]);
    assert_eq!(refused(pair), 0x100 + UNKNOWN_CA);
}

/// RFC 9001, 8.1: without a protocol in common the server closes with no_application_protocol.
#[test]
fn protocols_have_to_match() {
    let others: [&[&[u8]]; 2] = [&[b"other"], &[b"other", b"tes"]];
    for alpn in others {
        let mut pair = connect(ed25519(&[NAME]), &ed25519(&[NAME]), NAME, alpn);
        let code = peer_code(&pair.client.application.events);
        assert_eq!(code, Some(0x100 + NO_APPLICATION_PROTOCOL));
        let (_, log) = pair.server.connection(0).unwrap();
        assert!(!log.events.contains(&Event::Connected));
    }
}

/// What is no name is the caller's mistake.
#[test]
fn what_is_no_name_is_refused_at_once() {
    let root = ed25519(&[NAME]).chain.last().unwrap().clone();
    let tls = tls::ClientConfig::with_roots([root], &[ALPN]).unwrap();
    for name in ["", "a b", "-", "1.2.3", &"a".repeat(300)] {
        let made = Connection::client(
            &Config::default(),
            &tls,
            name,
            ([192, 0, 2, 2], 443).into(),
            Random::from_seed([0; 32]),
            network(&Settings::default(), Link::default()).now(),
        );
        assert!(matches!(made, Err(ApiError::ServerName)), "{name}");
    }
}

/// TLS settings that were made elsewhere serve as well; those that can't speak QUIC are refused at once.
#[test]
fn settings_of_rustls_are_taken_as_they_are() {
    let settings = Settings::default();
    let certificate = settings.certificate.copy();
    let root = certificate.chain.last().unwrap();
    let protocols: [&[u8]; 2] = [b"first", ALPN];
    let long = [b'a'; 256];
    let unusable: [&[&[u8]]; 3] = [&[], &[b""], &[&long]];
    for wrong in unusable {
        let config = tls::ClientConfig::from_rustls(client_config(root, wrong));
        assert!(matches!(config, Err(ApiError::Config(_))));
        let config = tls::ServerConfig::from_rustls(server_config(&certificate, wrong));
        assert!(matches!(config, Err(ApiError::Config(_))));
    }
    let ready = tls::ServerConfig::from_rustls(server_config(&certificate, &protocols)).unwrap();
    assert!(ready.alpn().eq(protocols));
    let asked = tls::ClientConfig::from_rustls(client_config(root, &protocols)).unwrap();
    assert!(asked.alpn().eq(protocols) && !asked.is_insecure());
    let asked = asked.wall_clock(tls::WallClock::manual(WALL_CLOCK));
    let network = network(&settings, Link::delayed(Duration::from_millis(10)));
    let remote = network.address(test_fixture::SERVER);
    let random = Random::from_seed([3; 32]);
    let mut pair = Both {
        client: Client::with_tls(
            &asked,
            &Config::default(),
            (NAME, remote),
            random,
            network.now(),
        ),
        server: Server::new(&settings, network.now()),
        network,
    };
    pair.handshake();
    assert_eq!(pair.client.connection.alpn(), Some(ALPN));
    assert_eq!(pair.client.connection.server_name(), None);
    let (server, _) = pair.server.connection(0).unwrap();
    assert_eq!(
        (server.alpn(), server.server_name()),
        (Some(ALPN), Some(NAME))
    );
    assert!(!server.is_resumed());
    let narrowed = asked.cipher_suites(&[tls::CipherSuite::Aes128Gcm]);
    assert!(narrowed.is_err(), "they are not ours to change");
}
