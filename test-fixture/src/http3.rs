//! Requests of one byte over HTTP/3, as an application of both ends.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the events of the library are non-exhaustive"
)]

use std::time::Instant;

use quic_http3::{ClientEvent, ClientSession, Field, ServerEvent, ServerSession};
use quic_transport::{Application, Connection, Event, Side, StreamEvent};

fn request() -> [Field<'static>; 4] {
    [
        Field::new(":method", "GET"),
        Field::new(":scheme", "https"),
        Field::new(":authority", "localhost"),
        Field::new(":path", "/1"),
    ]
}

fn response() -> [Field<'static>; 3] {
    [
        Field::new(":status", "200"),
        Field::new("content-type", "application/octet-stream"),
        Field::new("content-length", "1"),
    ]
}

/// Either end. The client makes as many requests as it is told to, the server answers.
#[derive(Debug, Default)]
pub struct Http3 {
    session: Option<Session>,
    /// Requests to be made from now on.
    pub wanted: u64,
    /// How many of them may be under way at a time.
    pub parallel: u64,
    /// Requests that are answered.
    pub complete: u64,
    active: u64,
}

#[derive(Debug)]
enum Session {
    Client(ClientSession),
    Server(ServerSession),
}

impl Session {
    fn new(side: Side) -> Self {
        match side {
            Side::Client => Self::Client(ClientSession::new()),
            Side::Server => Self::Server(ServerSession::new()),
        }
    }

    fn on_event(&mut self, connection: &mut Connection, event: StreamEvent) {
        match self {
            Self::Client(session) => session.on_event(connection, event),
            Self::Server(session) => session.on_event(connection, event),
        }
    }
}

impl Http3 {
    /// Makes as many requests as it may.
    pub fn request(&mut self, connection: &mut Connection) {
        let Some(Session::Client(session)) = &mut self.session else {
            return;
        };
        while self.wanted > 0
            && self.active < self.parallel
            && session.request(connection, &request(), true).is_ok()
        {
            self.wanted -= 1;
            self.active += 1;
        }
    }

    fn client(&mut self, connection: &mut Connection, now: Instant) {
        self.request(connection);
        while let Some(Session::Client(session)) = &mut self.session
            && let Some(event) = session.next_event(connection, now)
        {
            match event {
                ClientEvent::Response { fields, .. } => session.recycle(fields),
                ClientEvent::Data { id } => {
                    while let length @ 1.. = session.fill(connection, id).unwrap().len() {
                        session.consume(connection, id, length).unwrap();
                    }
                }
                ClientEvent::Finished { .. } => {
                    self.complete += 1;
                    self.active -= 1;
                    self.request(connection);
                }
                ClientEvent::Available => self.request(connection),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn serve(session: &mut ServerSession, connection: &mut Connection, now: Instant) {
    while let Some(event) = session.next_event(connection, now) {
        if let ServerEvent::Request { id, fields } = event {
            session
                .respond_with(connection, id, &response(), b"x")
                .unwrap();
            session.recycle(fields);
        }
    }
}

impl Application for Http3 {
    fn rest(&mut self) {
        match &mut self.session {
            Some(Session::Client(session)) => session.rest(),
            Some(Session::Server(session)) => session.rest(),
            None => {}
        }
    }

    fn process(&mut self, connection: &mut Connection, now: Instant) {
        let side = connection.side();
        let session = self.session.get_or_insert_with(|| Session::new(side));
        while let Some(event) = connection.next_event() {
            if let Event::Stream(event) = event {
                session.on_event(connection, event);
            }
        }
        match session {
            Session::Client(_) => self.client(connection, now),
            Session::Server(session) => serve(session, connection, now),
        }
    }
}
