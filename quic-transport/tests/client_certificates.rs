//! Clients that prove who they are, and secrets exported from TLS.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::Random;
use quic_transport::tls::{self, ClientCertificates};
use quic_transport::{ApiError, CloseReason, Config, Event};
use test_fixture::certificates::{Algorithm, Certificate, Leaf, TestCa, WALL_CLOCK};
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::Link;

use test_fixture::{Pair, SERVER, network};

type Ours = Pair<Client<Log>, Server<Log>>;

const DELAY: Duration = Duration::from_millis(10);

/// TLS' alerts, as transport error codes.
const DECRYPT_ERROR: u64 = 0x100 + 51;
const CERTIFICATE_REQUIRED: u64 = 0x100 + 116;

/// A server that asks for certificates that lead to `root`, and a client that has `certificate`.
fn meet(certificates: ClientCertificates, root: &TestCa, certificate: Option<Certificate>) -> Ours {
    let settings = Settings::default();
    let network = network(&settings, Link::delayed(DELAY));
    let server_root = settings.certificate.chain.last().unwrap().clone();
    let tls = tls::ClientConfig::with_roots([server_root], &[ALPN]).unwrap();
    let mut tls = tls.wall_clock(tls::WallClock::manual(WALL_CLOCK));
    if let Some(Certificate { chain, key }) = certificate {
        tls = tls.certificate(chain, key).unwrap();
    }
    let random = Random::from_seed([5; 32]);
    let remote = network.address(SERVER);
    let config = Config::default();
    let client = Client::with_tls(&tls, &config, (NAME, remote), random, network.now());
    let Certificate { chain, key } = settings.certificate.copy();
    let roots = [root.root().clone()];
    let tls = tls::ServerConfig::new(chain, key, &[ALPN])
        .and_then(|tls| tls.client_roots(roots, certificates))
        .unwrap();
    let mut pair = Pair {
        client,
        server: Server::with_tls(&settings, tls),
        network,
    };
    pair.run(Duration::from_millis(500));
    pair
}

fn certificate_of(authority: &TestCa) -> Certificate {
    authority.certificate(&Leaf {
        names: &["client.example"],
        is_client: true,
        ..Leaf::default()
    })
}

fn closed_with(pair: &Ours) -> Option<u64> {
    pair.client.application.events.iter().find_map(|event| {
        let Event::Closed(CloseReason::Peer { code, .. }) = event else {
            return None;
        };
        Some(code.value())
    })
}

/// A client's certificate leads to the server's root, and the server can read it.
#[test]
fn a_client_with_a_certificate_is_known() {
    for certificates in [ClientCertificates::Required, ClientCertificates::Optional] {
        let root = TestCa::new(Algorithm::Ed25519);
        let own = certificate_of(&root);
        let chain = own.chain.clone();
        let mut pair = meet(certificates, &root, Some(own));
        assert_eq!(closed_with(&pair), None);
        let (server, _) = pair.server.connection(0).unwrap();
        assert!(!server.is_handshaking());
        let seen: Vec<_> = server.peer_certificates().map(<[u8]>::to_vec).collect();
        let sent: Vec<_> = chain
            .iter()
            .map(|certificate| certificate.to_vec())
            .collect();
        assert_eq!(seen, sent);
        let servers = Settings::default().certificate.chain;
        let seen = pair.client.connection.peer_certificates();
        assert!(seen.eq(servers.iter().map(AsRef::as_ref)));
    }
}

#[test]
fn a_client_without_a_certificate_is_turned_away_where_it_is_required() {
    let root = TestCa::new(Algorithm::Ed25519);
    let pair = meet(ClientCertificates::Required, &root, None);
    assert_eq!(closed_with(&pair), Some(CERTIFICATE_REQUIRED));
    let mut pair = meet(ClientCertificates::Optional, &root, None);
    assert_eq!(closed_with(&pair), None);
    let (server, _) = pair.server.connection(0).unwrap();
    assert!(!server.is_handshaking());
    assert_eq!(server.peer_certificates().count(), 0);
}

#[test]
fn a_certificate_of_somebody_else_is_turned_away() {
    for certificates in [ClientCertificates::Required, ClientCertificates::Optional] {
        let root = TestCa::new(Algorithm::P256);
        let own = certificate_of(&TestCa::new(Algorithm::Ed25519));
        let pair = meet(certificates, &root, Some(own));
        assert_eq!(closed_with(&pair), Some(DECRYPT_ERROR));
    }
}

/// RFC 8446, 7.5: both ends derive the same, by label, context and length, once the handshake is complete.
#[test]
fn both_ends_export_the_same() {
    let mut pair = Ours::new(&Settings::default(), Link::delayed(DELAY));
    let mut early = [0; 32];
    let refused = pair
        .client
        .connection
        .export_keying_material(&mut early, b"label", None);
    assert_eq!(refused, Err(ApiError::HandshakeIncomplete));
    pair.handshake();
    let mut seen = Vec::new();
    for (label, context) in [
        (&b"one"[..], None),
        (b"one", Some(&b""[..])),
        (b"one", Some(b"context")),
        (b"two", None),
    ] {
        let (mut client, mut server) = ([0; 32], [0; 32]);
        pair.client
            .connection
            .export_keying_material(&mut client, label, context)
            .unwrap();
        let (connection, _) = pair.server.connection(0).unwrap();
        connection
            .export_keying_material(&mut server, label, context)
            .unwrap();
        assert_eq!(client, server);
        seen.push(client);
    }
    // An empty context is as good as none (RFC 8446, 7.5).
    assert_eq!(seen.first(), seen.get(1));
    seen.dedup();
    assert_eq!(seen.len(), 3);
    let mut long = vec![0; 255 * 32 + 1];
    let refused = pair
        .client
        .connection
        .export_keying_material(&mut long, b"one", None);
    assert_eq!(refused, Err(ApiError::TooLarge));
}
