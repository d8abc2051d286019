//! The sessions on real connections: a client and an endpoint, datagrams carried by hand, time that only the test moves.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, Datagram, Ecn, Random};
use quic_http3::{ClientEvent, ClientSession, Code, Field, ServerEvent, ServerSession};
use quic_transport::{
    Application, Bytes, CloseReason, Config, Connection, Endpoint, EndpointConfig, Event, Output,
    StreamId, tls,
};
use test_fixture::certificates::{Algorithm, Leaf, TestCa};

/// Answers every request: a GET with as many bytes as its path says, a POST with the number of bytes that it got.
#[derive(Default)]
struct Responder {
    session: ServerSession,
    /// Bytes still to send.
    downloads: BTreeMap<StreamId, u64>,
    uploads: BTreeMap<StreamId, u64>,
}

static ZEROS: [u8; 16_000] = [0; 16_000];

impl Responder {
    fn send(&mut self, connection: &mut Connection, id: StreamId) {
        let left = self.downloads.get_mut(&id).unwrap();
        while *left > 0 {
            let count = usize::try_from(*left).unwrap().min(ZEROS.len());
            // Every other response is lent.
            let sent = if id.index().is_multiple_of(2) {
                let mut piece = Bytes::from_static(&ZEROS[..count]);
                self.session.send_body_bytes(connection, id, &mut piece)
            } else {
                self.session.send_body(connection, id, &ZEROS[..count])
            };
            let sent = sent.unwrap();
            if sent == 0 {
                return;
            }
            *left -= u64::try_from(sent).unwrap();
        }
        self.session.finish(connection, id).unwrap();
        self.downloads.remove(&id);
    }

    fn on_event(&mut self, connection: &mut Connection, event: ServerEvent) {
        match event {
            ServerEvent::Request { id, fields } if fields.method() == Some(b"GET") => {
                let path = fields.path().unwrap()[1..].to_vec();
                let length = String::from_utf8(path).unwrap();
                let response = [
                    Field::new(":status", "200"),
                    Field::new("content-length", &length),
                ];
                self.session.respond(connection, id, &response).unwrap();
                self.downloads.insert(id, length.parse().unwrap());
                self.send(connection, id);
                self.session.recycle(fields);
            }
            ServerEvent::Request { id, .. } => {
                self.uploads.insert(id, 0);
            }
            ServerEvent::Data { id } => {
                while let Ok(data) = self.session.fill(connection, id)
                    && !data.is_empty()
                {
                    let count = data.len();
                    self.session.consume(connection, id, count).unwrap();
                    *self.uploads.get_mut(&id).unwrap() += u64::try_from(count).unwrap();
                }
            }
            ServerEvent::Finished { id } => {
                if let Some(got) = self.uploads.remove(&id) {
                    let body = got.to_string();
                    let response = [Field::new(":status", "200")];
                    let body = body.as_bytes();
                    self.session
                        .respond_with(connection, id, &response, body)
                        .unwrap();
                }
            }
            ServerEvent::Writable { id } => self.send(connection, id),
            ServerEvent::Closed(_) => {}
            event => panic!("{event:?}"),
        }
    }
}

impl Application for Responder {
    fn process(&mut self, connection: &mut Connection, now: Instant) {
        while let Some(event) = connection.next_event() {
            if let Event::Stream(event) = event {
                self.session.on_event(connection, event);
            }
        }
        while let Some(event) = self.session.next_event(connection, now) {
            self.on_event(connection, event);
        }
    }
}

struct Rig {
    now: Instant,
    client: Connection,
    session: ClientSession,
    endpoint: Endpoint<Responder>,
    config: Config,
    tls: tls::ServerConfig,
    buffer: BatchBuffer,
    bodies: BTreeMap<StreamId, Vec<u8>>,
    statuses: BTreeMap<StreamId, u16>,
    finished: Vec<StreamId>,
    /// Bytes of the client's upload that are not sent yet.
    upload: Option<(StreamId, usize)>,
    closed: Option<CloseReason>,
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

impl Rig {
    fn new(config: Config) -> Self {
        let mut random = Random::from_seed([1; 32]);
        let ca = TestCa::new(Algorithm::Ed25519);
        let leaf = Leaf {
            names: &["localhost"],
            ..Leaf::default()
        };
        let certificate = ca.certificate(&leaf);
        let tls = tls::ServerConfig::new(certificate.chain, certificate.key, &[b"h3"]).unwrap();
        let client_tls = tls::ClientConfig::with_roots([ca.root().clone()], &[b"h3"]).unwrap();
        #[expect(clippy::disallowed_methods, reason = "an instant to count from")]
        let now = Instant::now();
        let client = Connection::client(
            &config,
            &client_tls,
            "localhost",
            address(2),
            random.fork(),
            now,
        );
        let endpoint = Endpoint::new(EndpointConfig::new(&mut random), random.fork());
        Self {
            now,
            client: client.unwrap(),
            session: ClientSession::new(),
            endpoint,
            config,
            tls,
            buffer: BatchBuffer::new(),
            bodies: BTreeMap::new(),
            statuses: BTreeMap::new(),
            finished: Vec::new(),
            upload: None,
            closed: None,
        }
    }

    fn client_events(&mut self) {
        while let Some(event) = self.client.next_event() {
            match event {
                Event::Stream(event) => self.session.on_event(&mut self.client, event),
                Event::Closed(reason) => self.closed = Some(reason),
                _ => {}
            }
        }
        while let Some(event) = self.session.next_event(&mut self.client, self.now) {
            match event {
                ClientEvent::Response { id, fields } => {
                    self.statuses.insert(id, fields.status().unwrap());
                    self.session.recycle(fields);
                }
                ClientEvent::Data { id } => {
                    let body = self.bodies.entry(id).or_default();
                    while let Ok(data) = self.session.fill(&mut self.client, id)
                        && !data.is_empty()
                    {
                        body.extend_from_slice(data);
                        let count = data.len();
                        self.session.consume(&mut self.client, id, count).unwrap();
                    }
                }
                ClientEvent::Finished { id } => self.finished.push(id),
                ClientEvent::Writable { .. } => self.send_upload(),
                ClientEvent::Available => {}
                event => panic!("{event:?}"),
            }
        }
    }

    fn send_upload(&mut self) {
        let Some((id, left)) = self.upload.as_mut() else {
            return;
        };
        while *left > 0 {
            let count = ZEROS.len().min(*left);
            let sent = self
                .session
                .send_body(&mut self.client, *id, &ZEROS[..count]);
            let sent = sent.unwrap();
            if sent == 0 {
                return;
            }
            *left -= sent;
        }
        self.session.finish(&mut self.client, *id).unwrap();
        self.upload = None;
    }

    /// Carries datagrams, with 1 ms between flights, until `done`.
    fn run(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            self.client_events();
            if done(self) {
                return;
            }
            let mut wait = Duration::from_secs(1);
            let (there, timer) = drain(&mut self.buffer, |b| {
                self.client.process_output(self.now, b)
            });
            wait = wait.min(timer);
            for mut payload in there {
                self.endpoint.input(datagram(1, &mut payload), self.now);
            }
            while let Some(incoming) = self.endpoint.next_incoming() {
                let application = Responder::default();
                self.endpoint
                    .accept(incoming, &self.config, &self.tls, application, self.now)
                    .unwrap();
            }
            let (back, timer) = drain(&mut self.buffer, |b| {
                self.endpoint.process_output(self.now, b)
            });
            wait = wait.min(timer);
            let quiet = back.is_empty();
            for mut payload in back {
                self.client.input(datagram(2, &mut payload), self.now);
            }
            self.now += if quiet {
                wait.max(Duration::from_micros(1))
            } else {
                Duration::from_micros(100)
            };
        }
        panic!("not done after {:?}", self.closed);
    }

    fn connect(&mut self) {
        self.run(|rig| rig.session.peer_settings().is_some());
    }

    fn get(&mut self, path: &str) -> StreamId {
        let fields = [
            Field::new(":method", "GET"),
            Field::new(":scheme", "https"),
            Field::new(":authority", "localhost"),
            Field::new(":path", path),
        ];
        self.session
            .request(&mut self.client, &fields, true)
            .unwrap()
    }
}

fn datagram(port: u16, payload: &mut [u8]) -> Datagram<'_> {
    Datagram {
        remote: address(port),
        local: None,
        ecn: Ecn::NotEct,
        payload,
    }
}

/// All datagrams that are to be sent now, and how long to wait then.
fn drain(
    buffer: &mut BatchBuffer,
    mut output: impl FnMut(&mut BatchBuffer) -> Output<'_>,
) -> (VecDeque<Vec<u8>>, Duration) {
    let mut datagrams = VecDeque::new();
    loop {
        match output(buffer) {
            Output::Datagrams(batch) => datagrams.extend(batch.segments().map(<[u8]>::to_vec)),
            Output::Callback(wait) => return (datagrams, wait),
            Output::None => return (datagrams, Duration::MAX),
        }
    }
}

#[test]
fn downloads_and_uploads_of_every_size_are_whole() {
    let mut rig = Rig::new(Config::default());
    rig.connect();
    for size in [0, 1, 1000, 1200, 16_384, 1_000_000, 5_000_000] {
        let id = rig.get(&format!("/{size}"));
        rig.run(|rig| rig.finished.contains(&id));
        assert_eq!(rig.statuses[&id], 200);
        assert_eq!(rig.bodies.remove(&id).unwrap_or_default().len(), size);
    }
    let length = 3_000_000.to_string();
    let fields = [
        Field::new(":method", "POST"),
        Field::new(":scheme", "https"),
        Field::new(":authority", "localhost"),
        Field::new(":path", "/"),
        Field::new("content-length", &length),
    ];
    let id = rig
        .session
        .request(&mut rig.client, &fields, false)
        .unwrap();
    rig.upload = Some((id, 3_000_000));
    rig.send_upload();
    rig.run(|rig| rig.finished.contains(&id));
    assert_eq!(rig.bodies[&id], length.as_bytes());
    assert_eq!(rig.session.active(), 0);
}

#[test]
fn thousands_of_requests_share_a_connection() {
    let config = Config {
        max_streams_bidirectional: 2000,
        ..Config::default()
    };
    let mut rig = Rig::new(config);
    rig.connect();
    for _ in 0..3 {
        let ids: Vec<_> = (0..1000).map(|_| rig.get("/1")).collect();
        rig.run(|rig| rig.finished.len() == ids.len());
        assert!(ids.iter().all(|id| rig.bodies[id] == [0]));
        rig.finished.clear();
        assert_eq!(rig.session.active(), 0);
        // The streams are allowed again when they are acknowledged, some of them later than others.
        let later = rig.now + Duration::from_millis(100);
        rig.run(|rig| rig.now > later);
    }
}

/// RFC 9114, 8: an error closes the connection with its code, which the peer sees.
#[test]
fn the_code_of_an_error_reaches_the_peer() {
    let mut rig = Rig::new(Config::default());
    rig.connect();
    let stream = rig
        .client
        .open(quic_transport::Direction::Bidirectional)
        .unwrap();
    let data_first = [0x00, 0x01, b'x'];
    assert_eq!(rig.client.stream_send(stream, &data_first), Ok(3));
    rig.run(|rig| rig.closed.is_some());
    let Some(CloseReason::PeerApplication { code, .. }) = rig.closed else {
        panic!("{:?}", rig.closed);
    };
    assert_eq!(Code::new(code), Code::FRAME_UNEXPECTED);
}
