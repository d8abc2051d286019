//! A client that makes a number of requests on one connection, some at a time.

use std::{net::SocketAddr, time::Instant};

use quic_bin::event_loop::{EventLoop, Output, Protocol, SocketId};
use quic_bin::pattern::Source;
use quic_common::{BatchBuffer, IdMap, Random};
use quic_http3::{ClientEvent, ClientSession, Code, Field};
use quic_transport::{Config, Connection, Event, MAX_DATAGRAM, StreamId, tls};
use quic_udp::{Datagrams, Socket};

use crate::Service;

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Requests in all.
    pub requests: usize,
    /// Of them under way at a time, if the server permits.
    pub parallel: usize,
    /// Bytes of each response.
    pub response: u64,
    /// Bytes of each request's body; none makes it a GET.
    pub request: Option<u64>,
}

/// The client, connected.
#[derive(Debug)]
pub struct Load {
    client: Client,
    events: EventLoop,
}

#[derive(Debug)]
struct Client {
    connection: Connection,
    session: ClientSession,
    path: String,
    plan: Plan,
    made: usize,
    complete: usize,
    received: u64,
    uploads: IdMap<StreamId, Source>,
    is_connected: bool,
    is_closing: bool,
}

impl Load {
    /// Completes a handshake with `service`, on a socket of its own.
    #[must_use]
    pub fn connect(service: &Service, seed: u64) -> Self {
        let mut bytes = [0; 32];
        if let Some(start) = bytes.first_chunk_mut() {
            *start = seed.to_le_bytes();
        }
        let mut events = EventLoop::new().unwrap();
        let socket = Socket::bind_for(service.address).unwrap();
        events.add(socket).unwrap();
        let config = Config {
            max_datagram: MAX_DATAGRAM,
            ..Config::default()
        };
        let random = Random::from_seed(bytes);
        let mut load = Self::open(events, service.address, &service.tls, &config, random);
        load.finish_handshake();
        load
    }

    /// A client of the server at `address`, over the first of these sockets. Its first requests go along with the end of
    /// its handshake, unless that is [finished](Self::finish_handshake) before.
    #[must_use]
    pub fn open(
        events: EventLoop,
        address: SocketAddr,
        tls: &tls::ClientConfig,
        config: &Config,
        random: Random,
    ) -> Self {
        let now = Instant::now();
        let connection =
            Connection::client(config, tls, "localhost", address, random, now).unwrap();
        let client = Client {
            connection,
            session: ClientSession::new(),
            path: String::new(),
            plan: Plan {
                requests: 0,
                parallel: 0,
                response: 0,
                request: None,
            },
            made: 0,
            complete: 0,
            received: 0,
            uploads: IdMap::default(),
            is_connected: false,
            is_closing: false,
        };
        Self { client, events }
    }

    /// Completes the handshake.
    pub fn finish_handshake(&mut self) {
        self.events.run(&mut self.client).unwrap();
    }

    /// The connection, for what can be asked about it.
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.client.connection
    }

    /// Carries out a plan; returns the bytes of all response bodies.
    pub fn run(&mut self, plan: Plan) -> u64 {
        let client = &mut self.client;
        client.path = plan
            .request
            .map_or_else(|| format!("/{}", plan.response), |_| "/upload".to_owned());
        client.plan = plan;
        client.made = 0;
        client.complete = 0;
        client.received = 0;
        self.events.run(client).unwrap();
        self.client.received
    }

    /// Says goodbye.
    pub fn close(&mut self) {
        self.client.is_closing = true;
        self.client.connection.close(Code::NO_ERROR.value(), b"");
        self.events.run(&mut self.client).unwrap();
    }

    /// The sockets, for another connection.
    #[must_use]
    pub fn into_events(self) -> EventLoop {
        self.events
    }
}

impl Client {
    fn request(&mut self) {
        let Plan {
            requests,
            parallel,
            request,
            ..
        } = self.plan;
        while self.made < requests && self.made - self.complete < parallel {
            let method = if request.is_some() { "POST" } else { "GET" };
            let fields = [
                Field::new(":method", method),
                Field::new(":scheme", "https"),
                Field::new(":authority", "localhost"),
                Field::new(":path", &self.path),
            ];
            let Ok(id) = self
                .session
                .request(&mut self.connection, &fields, request.is_none())
            else {
                return;
            };
            self.made += 1;
            if let Some(length) = request {
                self.uploads.insert(id, Source::new(length));
                self.upload(id);
            }
        }
    }

    fn upload(&mut self, id: StreamId) {
        let Some(source) = self.uploads.get_mut(&id) else {
            return;
        };
        let (session, connection) = (&mut self.session, &mut self.connection);
        source.write(|piece| {
            session.send_body_bytes(connection, id, piece).unwrap();
        });
        if source.is_done() {
            self.uploads.remove(&id);
            self.session.finish(&mut self.connection, id).unwrap();
        }
    }

    fn on_event(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Data { id } => loop {
                let data = self.session.fill(&mut self.connection, id).unwrap();
                let length = data.len();
                if length == 0 {
                    break;
                }
                self.received += u64::try_from(length).unwrap();
                self.session
                    .consume(&mut self.connection, id, length)
                    .unwrap();
            },
            ClientEvent::Response { fields, .. } => self.session.recycle(fields),
            ClientEvent::Finished { .. } => self.complete += 1,
            ClientEvent::Writable { id } => self.upload(id),
            ClientEvent::Available | ClientEvent::Interim { .. } => {}
            other => assert!(self.is_closing, "{other:?}"),
        }
    }
}

impl Protocol for Client {
    fn input(&mut self, _: SocketId, datagrams: Datagrams<'_>, now: Instant) {
        self.connection.process_multiple_input(datagrams, now);
    }

    fn process(&mut self, now: Instant) {
        self.connection.settle(now);
        while let Some(event) = self.connection.next_event() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::Stream(event) => self.session.on_event(&mut self.connection, event),
                other => assert!(self.is_closing, "{other:?}"),
            }
        }
        if self.is_closing {
            return;
        }
        self.request();
        while let Some(event) = self.session.next_event(&mut self.connection, now) {
            self.on_event(event);
            self.request();
        }
    }

    fn output(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Output {
        // The last batch has made room: filled before the next one, so that it is whole.
        if self.connection.has_events() {
            self.process(now);
        }
        self.connection.process_output(now, buffer).into()
    }

    fn is_done(&self) -> bool {
        self.is_closing || (self.is_connected && self.complete == self.plan.requests)
    }
}
