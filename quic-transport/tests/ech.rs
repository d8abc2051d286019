//! Encrypted ClientHello on the wire ([RFC 9849](https://www.rfc-editor.org/rfc/rfc9849)); with ring, that it is refused.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::{Duration, Instant};

use quic_common::Random;
use quic_transport::tls::{self, EchStatus};
use quic_transport::{ApiError, Application, CloseReason, Config, Connection, Event};
use test_fixture::certificates::ed25519;
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::Link;
use test_fixture::{Pair, SERVER, network};

type Ours = Pair<Client<Worker>, Server<Worker>>;

const DELAY: Duration = Duration::from_millis(10);
const PUBLIC: &str = "public.example";
const SECRET: &str = "secret.example";

/// The alert ech_required, as a transport error code.
const ECH_REQUIRED: u64 = 0x100 + 121;

/// An ECHConfigList with one configuration, for X25519 and AES-128-GCM.
fn list() -> Vec<u8> {
    let mut contents = vec![7, 0, 0x20, 0, 32, 9];
    contents.extend([0; 31]);
    contents.extend([0, 4, 0, 1, 0, 1, 0, 14]);
    contents.extend(PUBLIC.as_bytes());
    contents.extend([0, 0]);
    let length = u8::try_from(contents.len()).unwrap();
    let mut list = vec![0, length + 4, 0xfe, 0x0d, 0, length];
    list.extend(contents);
    list
}

/// Keeps events, and works the steps of TLS out that are lent.
#[derive(Debug, Default)]
struct Worker {
    events: Vec<Event>,
    server_name: Option<String>,
}

impl Application for Worker {
    /// Tests look at it afterwards.
    fn outlives_its_peer(&self) -> bool {
        true
    }

    fn process(&mut self, connection: &mut Connection, now: Instant) {
        while let Some(event) = connection.next_event() {
            if event == Event::HandshakeJob {
                let job = connection.take_handshake_job().unwrap();
                connection.return_handshake_job(job, now).unwrap();
            }
            self.events.push(event);
        }
        self.server_name = connection.server_name().map(str::to_owned);
    }
}

/// A client with these settings and a server whose certificate is for `name`; `None` without HPKE.
fn meet(
    name: &str,
    config: Config,
    change: fn(tls::ClientConfig) -> Result<tls::ClientConfig, ApiError>,
) -> Option<Ours> {
    let settings = Settings {
        certificate: ed25519(&[name]),
        client: config,
        ..Settings::default()
    };
    let tls = match change(settings.client_tls()) {
        Ok(tls) => tls,
        Err(error) => {
            let line = "invalid configuration: Encrypted ClientHello needs the feature `aws-lc-rs` of quic-transport";
            assert_eq!(error.to_string(), line);
            return None;
        }
    };
    let network = network(&settings, Link::delayed(DELAY));
    let random = Random::from_seed([5; 32]);
    let server = (SECRET, network.address(SERVER));
    let client = Client::with_tls(&tls, &settings.client, server, random, network.now());
    let server = Server::new(&settings, network.now());
    let mut pair = Pair {
        client,
        server,
        network,
    };
    pair.run(4 * DELAY);
    Some(pair)
}

/// 6.1.6: no data goes to a server that has proved only to be who has the public name, and it is told why.
#[test]
fn a_server_without_ech_is_closed_with_ech_required() {
    for (split_client_hello, lends_handshake) in [(false, false), (true, false), (false, true)] {
        let config = Config {
            split_client_hello,
            lends_handshake,
            ..Config::default()
        };
        let Some(mut pair) = meet(PUBLIC, config, |tls| tls.ech(&list())) else {
            return;
        };
        let events = &pair.client.application.events;
        assert!(!events.contains(&Event::Connected));
        let Some(Event::Closed(CloseReason::Local(error))) = events.last() else {
            panic!("{events:?}");
        };
        assert_eq!(error.code.value(), ECH_REQUIRED);
        let rejected = EchStatus::Rejected {
            retry_configs: Box::default(),
        };
        assert_eq!(pair.client.connection.ech_status(), rejected);
        let (_, server) = pair.server.connection(0).unwrap();
        assert_eq!(server.server_name.as_deref(), Some(PUBLIC));
        let closed = server.events.iter().find_map(|event| {
            let Event::Closed(CloseReason::Peer { code, .. }) = event else {
                return None;
            };
            Some(code.value())
        });
        assert_eq!(closed, Some(ECH_REQUIRED));
    }
}

/// 6.2.
#[test]
fn grease_connects_as_without() {
    let Some(mut pair) = meet(SECRET, Config::default(), tls::ClientConfig::ech_grease) else {
        return;
    };
    assert!(pair.client.application.events.contains(&Event::Connected));
    assert_eq!(pair.client.connection.ech_status(), EchStatus::Grease);
    let (server, _) = pair.server.connection(0).unwrap();
    assert_eq!(server.server_name(), Some(SECRET));
    assert_eq!(server.ech_status(), EchStatus::NotOffered);
}
