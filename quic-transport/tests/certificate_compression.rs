//! Certificates that are sent compressed ([RFC 8879](https://www.rfc-editor.org/rfc/rfc8879)).
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::Random;
use quic_transport::{CloseReason, Config, Event, tls};
use test_fixture::certificates::{Algorithm, Certificate, Leaf, TestCa, WALL_CLOCK};
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::client_config;
use test_fixture::{Pair, SERVER, network};

type Ours = Pair<Client<Log>, Server<Log>>;

const DELAY: Duration = Duration::from_millis(10);

/// The alert bad_certificate, as a transport error code.
const BAD_CERTIFICATE: u64 = 0x100 + 42;

/// Bytes that a Certificate message may have when it is unpacked: what rustls takes.
const MOST: usize = 1 << 16;

/// A certificate with an extension of `padding` bytes, all alike.
fn certificate(padding: usize) -> Certificate {
    TestCa::new(Algorithm::Ed25519).certificate(&Leaf {
        names: &[NAME],
        padding,
        is_compressible: true,
        ..Leaf::default()
    })
}

/// A server that has this certificate, and a client that can unpack, or not.
fn meet(certificate: Certificate, unpacks: bool) -> Ours {
    let settings = Settings {
        certificate,
        ..Settings::default()
    };
    let network = network(&settings, Link::delayed(DELAY));
    let mut tls = client_config(TestCa::new(Algorithm::Ed25519).root(), &[ALPN]);
    if !unpacks {
        tls.cert_decompressors = Vec::new();
    }
    let tls = tls::ClientConfig::from_rustls(tls).unwrap();
    let tls = tls.wall_clock(tls::WallClock::manual(WALL_CLOCK));
    let random = Random::from_seed([5; 32]);
    let server = (NAME, network.address(SERVER));
    let client = Client::with_tls(&tls, &Config::default(), server, random, network.now());
    let server = Server::new(&settings, network.now());
    let mut pair = Pair {
        client,
        server,
        network,
    };
    pair.run(Duration::from_secs(1));
    pair
}

/// Bytes of all that the server has sent.
fn sent(pair: &mut Ours) -> u64 {
    assert!(pair.client.application.events.contains(&Event::Connected));
    let (server, _) = pair.server.connection(0).unwrap();
    server.stats().bytes_sent
}

/// What a client gets that can unpack is the same certificate in a few bytes; and it doesn't have to wait until a server
/// may send it more.
#[test]
fn a_compressed_certificate_saves_what_it_repeats() {
    let (mut packed, mut plain) = (
        meet(certificate(8000), true),
        meet(certificate(8000), false),
    );
    assert!(sent(&mut packed) + 7000 < sent(&mut plain));
    let (packed, plain) = (&packed.client.connection, &plain.client.connection);
    assert!(packed.stats().handshake_time < plain.stats().handshake_time);
    assert!(packed.peer_certificates().eq(plain.peer_certificates()));
}

/// RFC 8879, 4: a few bytes don't become more than a Certificate message may have.
#[test]
fn what_is_unpacked_has_a_bound() {
    // The message has 4 bytes of its own and 5 for each certificate, here the same one twice.
    let most = (MOST - 4) / 2 - 5;
    let padding = 8000 + most - certificate(8000).chain.first().unwrap().len();
    for (padding, expected) in [(padding, None), (padding + 1, Some(BAD_CERTIFICATE))] {
        let mut twice = certificate(padding);
        twice.chain.extend_from_within(..);
        let pair = meet(twice, true);
        let events = &pair.client.application.events;
        let closed = events.iter().find_map(|event| {
            let Event::Closed(CloseReason::Local(error)) = event else {
                return None;
            };
            Some(error.code.value())
        });
        assert_eq!(closed, expected);
        assert_eq!(events.contains(&Event::Connected), expected.is_none());
    }
}
