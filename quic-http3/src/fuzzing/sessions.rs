//! A session whose peer sends any bytes on any streams, under an application that does a bit of everything.

use std::time::Instant;

use quic_common::Reader;
use quic_transport::{Side, StreamId};

use super::memory::Memory;
use crate::client::{ClientEvent, ClientSession};
use crate::error::{ApiError, Code};
use crate::field::{Field, Fields};
use crate::server::{ServerEvent, ServerSession};

/// Lets a server's session work on what the bytes say that a client sends.
pub fn server_session(bytes: &[u8]) {
    run(bytes, ServerSession::new(), Side::Server);
}

/// Lets a client's session, which makes requests, work on what the bytes say that a server sends.
pub fn client_session(bytes: &[u8]) {
    run(bytes, ClientSession::new(), Side::Client);
}

/// What both sessions can do; the events are taken and acted on inside.
trait Session {
    /// Takes all events, and goes on with what they are about; `choice` says how.
    fn work(&mut self, end: &mut Memory, choice: usize, now: Instant);
    /// Something that the application does of its own accord.
    fn act(&mut self, end: &mut Memory, choice: usize, id: StreamId);
    fn shutdown(&mut self, end: &mut Memory) -> Result<(), ApiError>;
    fn active(&self) -> usize;
}

#[expect(clippy::disallowed_methods, reason = "a fuzzer has to begin somewhere")]
fn run(bytes: &[u8], mut session: impl Session, side: Side) {
    let now = Instant::now();
    let mut end = Memory::new(side);
    let mut input = Reader::new(bytes);
    session.work(&mut end, 0, now);
    while step(&mut input, &mut session, &mut end, now).is_some() {}
    end.drain();
    session.work(&mut end, 0, now);
    assert!(
        session.active() <= 64,
        "there are no more streams than that"
    );
}

fn step(
    input: &mut Reader<'_>,
    session: &mut impl Session,
    end: &mut Memory,
    now: Instant,
) -> Option<()> {
    let operation = usize::from(input.u8().ok()?);
    let id = StreamId::try_from(u64::from(input.u8().ok()? % 64)).ok()?;
    match operation % 16 {
        0..=9 => {
            let length = usize::from(input.u8().ok()?);
            let data = input.bytes(length.min(input.remaining())).ok()?;
            end.deliver(id, data, operation & 16 != 0);
        }
        10 => end.deliver_reset(id, operation.try_into().ok()?),
        11 => end.deliver_stop(id, operation.try_into().ok()?),
        12 => end.lent = 1 + usize::from(input.u8().ok()?),
        13 => end.drain(),
        14 if operation >= 240 => {
            // Before the transport gives it streams it can't, and afterwards it can.
            let _outcome = session.shutdown(end);
        }
        _ => session.act(end, operation / 16, id),
    }
    // Sometimes several things happen before the session gets a turn.
    if operation < 192 {
        session.work(end, operation / 16, now);
    }
    Some(())
}

const BODY: [u8; 3000] = [b'x'; 3000];

impl Session for ServerSession {
    fn work(&mut self, end: &mut Memory, choice: usize, now: Instant) {
        while let Some(event) = end.next_event() {
            self.on_event(end, event);
        }
        let was_closed = end.closed.is_some();
        while let Some(event) = self.next_event(end, now) {
            assert!(!was_closed, "{event:?} after the end");
            match event {
                ServerEvent::Request { id, fields } => {
                    check(&fields, &[":method"]);
                    if choice.is_multiple_of(2) {
                        self.recycle(fields);
                    }
                    self.act(end, choice, id);
                }
                ServerEvent::Data { id } => loop {
                    let count = self.fill(end, id).unwrap().len();
                    if count == 0 {
                        break;
                    }
                    self.consume(end, id, count.min(1 + choice * 50)).unwrap();
                },
                ServerEvent::Trailers { fields, .. } => check(&fields, &[]),
                ServerEvent::Finished { id } | ServerEvent::Writable { id } => {
                    self.act(end, choice, id);
                }
                ServerEvent::Closed(error) => {
                    assert_eq!(end.closed, Some(error.code.value()), "{error}");
                }
                ServerEvent::Reset { .. }
                | ServerEvent::Stopped { .. }
                | ServerEvent::Failed { .. }
                | ServerEvent::GoAway => {}
            }
        }
    }

    fn act(&mut self, end: &mut Memory, choice: usize, id: StreamId) {
        let head = [Field::new(":status", "200"), Field::new("server", "x")];
        // Much of this is refused: the request is unknown, or not at that point.
        let _outcome = match choice % 9 {
            0 => self.respond_with(end, id, &head, &BODY[..100]).map(drop),
            1 => self.respond(end, id, &head),
            2 => self.respond(end, id, &[Field::new(":status", "103")]),
            3 => self.send_body(end, id, &BODY).map(drop),
            4 => self.finish(end, id),
            5 => self.send_trailers(end, id, &[Field::new("checksum", "1")]),
            6 => self.stop(end, id, Code::NO_ERROR),
            7 => self.cancel(end, id, Code::REQUEST_CANCELLED),
            _ => self.respond_with(end, id, &head, &BODY).map(drop),
        };
    }

    fn shutdown(&mut self, end: &mut Memory) -> Result<(), ApiError> {
        self.shutdown(end)
    }

    fn active(&self) -> usize {
        self.active()
    }
}

impl Session for ClientSession {
    fn work(&mut self, end: &mut Memory, choice: usize, now: Instant) {
        while let Some(event) = end.next_event() {
            self.on_event(end, event);
        }
        let was_closed = end.closed.is_some();
        while let Some(event) = self.next_event(end, now) {
            assert!(!was_closed, "{event:?} after the end");
            match event {
                ClientEvent::Response { fields, .. } | ClientEvent::Interim { fields, .. } => {
                    check(&fields, &[":status"]);
                    self.recycle(fields);
                }
                ClientEvent::Data { id } => loop {
                    let count = self.fill(end, id).unwrap().len();
                    if count == 0 {
                        break;
                    }
                    self.consume(end, id, count.min(1 + choice * 50)).unwrap();
                },
                ClientEvent::Trailers { fields, .. } => check(&fields, &[]),
                ClientEvent::Writable { id } => self.act(end, choice, id),
                ClientEvent::Closed(error) => {
                    assert_eq!(end.closed, Some(error.code.value()), "{error}");
                }
                ClientEvent::Finished { .. }
                | ClientEvent::Reset { .. }
                | ClientEvent::Stopped { .. }
                | ClientEvent::Failed { .. }
                | ClientEvent::Available
                | ClientEvent::GoAway { .. } => {}
            }
        }
    }

    fn act(&mut self, end: &mut Memory, choice: usize, id: StreamId) {
        let head = [
            Field::new(":method", if choice == 8 { "HEAD" } else { "GET" }),
            Field::new(":scheme", "https"),
            Field::new(":authority", "example.com"),
            Field::new(":path", "/"),
        ];
        let _outcome = match choice % 8 {
            0 => self.request(end, &head, true).map(drop),
            1 => self.request(end, &head, false).map(drop),
            2 => self.send_body(end, id, &BODY).map(drop),
            3 => self.finish(end, id),
            4 => self.send_trailers(end, id, &[Field::new("checksum", "1")]),
            5 => self.stop(end, id, Code::REQUEST_CANCELLED),
            6 => self.cancel(end, id, Code::REQUEST_CANCELLED),
            _ => self.request(end, &head[..2], true).map(drop),
        };
    }

    fn shutdown(&mut self, end: &mut Memory) -> Result<(), ApiError> {
        self.shutdown(end)
    }

    fn active(&self) -> usize {
        self.active()
    }
}

/// What the application is given is well-formed, pseudo-header fields first.
fn check(fields: &Fields, needed: &[&str]) {
    let mut is_regular = false;
    for field in fields {
        let is_pseudo = field.name.starts_with(b":");
        assert!(!(is_pseudo && is_regular), "{fields:?}");
        is_regular |= !is_pseudo;
        assert!(!field.name.iter().any(u8::is_ascii_uppercase));
        assert!(!field.value.iter().any(|byte| b"\0\r\n".contains(byte)));
        assert!(
            is_regular || !needed.is_empty(),
            "no place for a pseudo-header field"
        );
    }
    assert!(needed.iter().all(|name| fields.value(name).is_some()));
}
