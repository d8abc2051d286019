//! HTTP/3 in 0-RTT packets, RFC 9114, 7.2.4.2 and RFC 8470: on real connections, on virtual time.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

use std::time::{Duration, Instant};

use quic_common::Random;
use quic_http3::{ApiError, ClientEvent, ClientSession, Code, Field, ServerEvent, ServerSession};
use quic_transport::{Application, Config, Connection, Event, StreamId, tls};
use test_fixture::ends::{Client, NAME, Server, Settings};
use test_fixture::network::Link;
use test_fixture::{Pair, SERVER};

const DELAY: Duration = Duration::from_millis(20);
const SECOND: Duration = Duration::from_secs(1);

/// Answers each request with whether it was told of before the handshake was complete.
#[derive(Default)]
struct Responder {
    session: ServerSession,
    requests: Vec<(Vec<u8>, bool)>,
}

impl Application for Responder {
    fn process(&mut self, connection: &mut Connection, now: Instant) {
        while let Some(event) = connection.next_event() {
            if let Event::Stream(event) = event {
                self.session.on_event(connection, event);
            }
        }
        while let Some(event) = self.session.next_event(connection, now) {
            if let ServerEvent::Request { id, fields } = event {
                let is_early = connection.is_handshaking();
                self.requests
                    .push((fields.method().unwrap().to_vec(), is_early));
                let response = [Field::new(":status", "200")];
                let answered = self.session.respond_with(connection, id, &response, b"");
                assert_eq!(answered, Ok(0));
            }
        }
    }

    fn settings(&self) -> Vec<u8> {
        ServerSession::settings()
    }

    fn accepts_early_data(&self, settings: &[u8]) -> bool {
        ServerSession::accepts_early_data(settings)
    }
}

/// Counts answers.
#[derive(Default)]
struct Requester {
    session: ClientSession,
    answers: Vec<StreamId>,
    is_connected: bool,
    error: Option<Code>,
}

impl Application for Requester {
    fn process(&mut self, connection: &mut Connection, now: Instant) {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::Stream(event) => self.session.on_event(connection, event),
                _ => {}
            }
        }
        while let Some(event) = self.session.next_event(connection, now) {
            match event {
                ClientEvent::Finished { id } => self.answers.push(id),
                ClientEvent::Closed(error) => self.error = Some(error.code),
                _ => {}
            }
        }
    }
}

type Ends = Pair<Client<Requester>, Server<Responder>>;

/// A client that has been to the server before.
fn come_back() -> Ends {
    come_back_with(None)
}

/// A client that takes these settings for the server's.
fn come_back_with(remembered: Option<&[u8]>) -> Ends {
    let config = Config {
        early_data: true,
        ..Config::default()
    };
    let settings = Settings {
        client: config.clone(),
        server: config,
        ..Settings::default()
    };
    let mut pair = Ends::new(&settings, Link::delayed(DELAY));
    let tls = settings.client_tls();
    let client = |pair: &Ends, tls: &tls::ClientConfig, seed| {
        let remote = (NAME, pair.network.address(SERVER));
        let random = Random::from_seed([seed; 32]);
        let now = pair.network.now();
        Client::with_tls(tls, &settings.client, remote, random, now)
    };
    pair.client = client(&pair, &tls, 1);
    pair.run_until(|pair| pair.client.application.session.peer_settings().is_some());
    pair.run(SECOND);
    if let Some(settings) = remembered {
        pair.client.connection.remember(settings).unwrap();
    }
    pair.client.connection.close(0, b"");
    pair.run(SECOND * 10);
    pair.server.handles.clear();
    pair.client = client(&pair, &tls, 2);
    assert!(pair.client.connection.is_sending_early_data());
    pair
}

fn request(pair: &mut Ends, method: &str) -> Result<StreamId, ApiError> {
    let fields = [
        Field::new(":method", method),
        Field::new(":scheme", "https"),
        Field::new(":authority", NAME),
        Field::new(":path", "/"),
    ];
    let Client {
        connection,
        application,
    } = &mut pair.client;
    application.session.request(connection, &fields, true)
}

#[test]
fn safe_requests_are_answered_before_the_handshake_is_complete() {
    let mut pair = come_back();
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        request(&mut pair, method).unwrap();
    }
    pair.run_until(|pair| pair.client.application.answers.len() == 4);
    assert!(pair.client.connection.is_early_data_accepted());
    let (_, responder) = pair.server.connection(0).unwrap();
    assert!(responder.requests.iter().all(|(_, is_early)| *is_early));
    pair.run(SECOND);
    assert_eq!(pair.client.application.error, None);
}

/// RFC 8470, 4: only safe requests are sent early.
#[test]
fn other_requests_wait_at_the_client() {
    let mut pair = come_back();
    for method in ["POST", "PUT", "DELETE", "PATCH", "GET2"] {
        assert_eq!(request(&mut pair, method), Err(ApiError::Early));
    }
    pair.run_until(|pair| pair.client.application.is_connected);
    request(&mut pair, "POST").unwrap();
    pair.run_until(|pair| pair.client.application.answers.len() == 1);
}

/// RFC 8470, 3: a server doesn't process what may be a replay before it knows better (C09).
#[test]
fn other_requests_wait_at_the_server() {
    let mut pair = come_back();
    let connection = &mut pair.client.connection;
    // A client that doesn't care: HEADERS with :method POST, https, "/" and an authority of one byte.
    let id = connection
        .open(quic_transport::Direction::Bidirectional)
        .unwrap();
    let head = [1, 8, 0, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, b'a'];
    connection.stream_send(id, &head).unwrap();
    connection.finish(id).unwrap();
    pair.run_until(|pair| {
        let server = pair.server.connection(0);
        server.is_some_and(|(_, responder)| !responder.requests.is_empty())
    });
    let (server, responder) = pair.server.connection(0).unwrap();
    assert!(server.is_early_data_accepted());
    assert_eq!(responder.requests, [(b"POST".to_vec(), false)]);
}

/// RFC 9114, 7.2.4.2 (C10): a server that accepts early data and then says less than it had promised.
#[test]
fn settings_that_shrink_are_an_error() {
    for (remembered, code) in [
        // MAX_FIELD_SECTION_SIZE of 2^30 - 1, 255 blocked streams.
        (&[0x06, 0xbf, 0xff, 0xff, 0xff][..], Code::SETTINGS_ERROR),
        (&[0x07, 0x40, 0xff], Code::SETTINGS_ERROR),
        // A QPACK table of 63 bytes.
        (&[0x01, 0x3f], Code::QPACK_DECODER_STREAM_ERROR),
    ] {
        let mut pair = come_back_with(Some(remembered));
        request(&mut pair, "GET").unwrap();
        pair.run(SECOND);
        assert_eq!(pair.client.application.error, Some(code));
    }
}

/// RFC 9114, 7.2.4.2: without early data, or when it was rejected, the server has promised nothing.
#[test]
fn settings_that_shrink_matter_only_to_accepted_early_data() {
    let mut pair = come_back_with(Some(&[0x06, 0xbf, 0xff, 0xff, 0xff]));
    pair.server.config.early_data = false;
    request(&mut pair, "GET").unwrap();
    pair.run(SECOND);
    assert!(!pair.client.connection.is_early_data_accepted());
    assert_eq!(pair.client.application.error, None);
    assert_eq!(pair.client.application.answers.len(), 1);
}

/// RFC 9114, 7.2.4.2: requests keep to the settings that are remembered.
#[test]
fn early_requests_keep_to_the_settings_remembered() {
    let mut pair = come_back_with(Some(&[0x06, 0x10]));
    assert_eq!(request(&mut pair, "GET"), Err(ApiError::FieldsTooLarge));
}
