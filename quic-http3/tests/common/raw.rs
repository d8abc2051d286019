//! Raw bytes on raw streams against one session.

use std::time::Instant;

use quic_http3::{ClientEvent, ClientSession, Code, Field, ServerEvent, ServerSession, qpack};
use quic_transport::{Direction, Side, StreamId};

use super::{Mock, epoch};

pub(crate) const DATA: u64 = 0x00;
pub(crate) const HEADERS: u64 = 0x01;
pub(crate) const SETTINGS: u64 = 0x04;
pub(crate) const PUSH_PROMISE: u64 = 0x05;
pub(crate) const GOAWAY: u64 = 0x07;
pub(crate) const MAX_PUSH_ID: u64 = 0x0d;
pub(crate) const GREASE: u64 = 0x21;

pub(crate) fn varint(value: u64) -> Vec<u8> {
    let mut space = [0; 8];
    let mut writer = quic_common::Writer::new(&mut space);
    assert!(writer.varint(value));
    writer.written().to_vec()
}

pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let length = u64::try_from(payload.len()).unwrap();
    [varint(kind), varint(length), payload.to_vec()].concat()
}

pub(crate) fn section(fields: &[Field<'_>]) -> Vec<u8> {
    let mut section = Vec::new();
    qpack::encode(fields.iter().copied(), &mut section);
    section
}

pub(crate) fn headers(fields: &[Field<'_>]) -> Vec<u8> {
    frame(HEADERS, &section(fields))
}

pub(crate) fn request_lines<'a>(more: &[Field<'a>]) -> Vec<Field<'a>> {
    let base = [
        Field::new(":method", "POST"),
        Field::new(":scheme", "https"),
        Field::new(":authority", "example.com"),
        Field::new(":path", "/"),
    ];
    [&base[..], more].concat()
}

pub(crate) fn request(more: &[Field<'_>]) -> Vec<u8> {
    headers(&request_lines(more))
}

pub(crate) fn response(status: &str) -> Vec<u8> {
    headers(&[Field::new(":status", status)])
}

pub(crate) const fn bidirectional(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

/// A server, and all that it said.
pub(crate) struct Server {
    pub(crate) session: ServerSession,
    pub(crate) end: Mock,
    pub(crate) now: Instant,
    pub(crate) events: Vec<ServerEvent>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            session: ServerSession::new(),
            end: Mock::new(Side::Server),
            now: epoch(),
            events: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self) {
        while let Some(event) = self.end.events.pop_front() {
            self.session.on_event(&mut self.end, event);
            while let Some(event) = self.session.next_event(&mut self.end, self.now) {
                if let ServerEvent::Data { id } = event {
                    while let Ok(data) = self.session.fill(&mut self.end, id)
                        && !data.is_empty()
                    {
                        let count = data.len();
                        self.session.consume(&mut self.end, id, count).unwrap();
                    }
                }
                self.events.push(event);
            }
        }
        assert_eq!(self.session.next_event(&mut self.end, self.now), None);
    }

    pub(crate) fn get(&mut self, id: StreamId, bytes: &[u8], end: bool) {
        self.end.deliver(id, bytes, end);
        self.run();
    }

    pub(crate) fn unidirectional(&mut self, index: u64, bytes: &[u8], end: bool) {
        let id = StreamId::new(Side::Client, Direction::Unidirectional, index);
        self.get(id, bytes, end);
    }

    pub(crate) fn closed(&self) -> Option<Code> {
        self.end.closed.map(|(code, _)| Code::new(code))
    }

    /// The connection is closed with a code, and the application knows.
    pub(crate) fn assert_closed(&self, code: Code) {
        assert_eq!(self.closed(), Some(code));
        let last = self.events.last().unwrap();
        assert!(matches!(last, ServerEvent::Closed(error) if error.code == code));
    }

    /// A request has failed with a code, of which the application has been told.
    pub(crate) fn assert_failed_with(&self, id: StreamId, code: Code) {
        assert_eq!(self.closed(), None);
        let failed = self.events.iter().any(|event| {
            matches!(event, ServerEvent::Failed { id: of, error } if *of == id && error.code == code)
        });
        assert!(failed, "{:?}", self.events);
        assert!(self.end.resets.contains(&(id, code.value())));
        assert!(self.end.stops.contains(&(id, code.value())));
    }

    /// The first request has failed with a code, in both directions, and the connection lives.
    pub(crate) fn assert_failed(&mut self, code: Code) {
        let id = bidirectional(0);
        assert_eq!(self.closed(), None);
        let last = self.events.last().unwrap();
        assert!(
            matches!(last, ServerEvent::Failed { error, .. } if error.code == code),
            "{last:?}"
        );
        assert_eq!(self.end.resets, [(id, code.value())]);
        assert!(!self.events.contains(&ServerEvent::Finished { id }));
        assert_eq!(self.session.active(), 0);
        self.get(bidirectional(9), &request(&[]), true);
        assert_eq!(self.closed(), None);
    }
}

/// What a request stream with these bytes does to a server.
pub(crate) fn serve(bytes: &[u8], end: bool) -> Server {
    let mut server = Server::new();
    server.get(bidirectional(0), bytes, end);
    // Byte by byte it does the same.
    let mut slow = Server::new();
    for byte in bytes {
        slow.get(bidirectional(0), &[*byte], false);
    }
    slow.get(bidirectional(0), &[], end);
    assert_eq!(slow.closed(), server.closed(), "cut differently");
    server
}

/// A client with one request made, and all that it said.
pub(crate) struct Client {
    pub(crate) session: ClientSession,
    pub(crate) end: Mock,
    pub(crate) now: Instant,
    pub(crate) events: Vec<ClientEvent>,
    pub(crate) id: StreamId,
}

impl Client {
    pub(crate) fn new(method: &str) -> Self {
        let mut session = ClientSession::new();
        let mut end = Mock::new(Side::Client);
        let mut lines = request_lines(&[]);
        lines[0] = Field::new(":method", method);
        if method == "CONNECT" {
            lines = vec![lines[0], Field::new(":authority", "a:1")];
        }
        let id = session.request(&mut end, &lines, false).unwrap();
        Self {
            session,
            end,
            now: epoch(),
            events: Vec::new(),
            id,
        }
    }

    pub(crate) fn run(&mut self) {
        while let Some(event) = self.end.events.pop_front() {
            self.session.on_event(&mut self.end, event);
            while let Some(event) = self.session.next_event(&mut self.end, self.now) {
                if let ClientEvent::Data { id } = event {
                    while let Ok(data) = self.session.fill(&mut self.end, id)
                        && !data.is_empty()
                    {
                        let count = data.len();
                        self.session.consume(&mut self.end, id, count).unwrap();
                    }
                }
                self.events.push(event);
            }
        }
    }

    pub(crate) fn get(&mut self, bytes: &[u8], end: bool) {
        self.end.deliver(self.id, bytes, end);
        self.run();
    }

    pub(crate) fn unidirectional(&mut self, index: u64, bytes: &[u8]) {
        let id = StreamId::new(Side::Server, Direction::Unidirectional, index);
        self.end.deliver(id, bytes, false);
        self.run();
    }

    pub(crate) fn closed(&self) -> Option<Code> {
        self.end.closed.map(|(code, _)| Code::new(code))
    }

    pub(crate) fn failed(&self) -> Option<Code> {
        self.events.iter().find_map(|event| match event {
            ClientEvent::Failed { error, .. } => Some(error.code),
            _ => None,
        })
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.events.contains(&ClientEvent::Finished { id: self.id })
    }
}
