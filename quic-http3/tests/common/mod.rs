//! A transport in memory, one for each end, and a pair of sessions on two of them.
#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::wildcard_enum_match_arm,
    clippy::struct_excessive_bools,
    reason = "test code, of which each binary uses a part"
)]

pub(crate) mod raw;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use quic_http3::{ClientEvent, ClientSession, Fields, ServerEvent, ServerSession, Transport};
use quic_transport::{Direction, Fill, Side, StreamError, StreamEvent, StreamId};

/// One direction of a stream, on the receiving end.
#[derive(Debug, Default)]
struct Inbound {
    data: Vec<u8>,
    read: usize,
    is_ended: bool,
    is_over: bool,
}

/// One direction of a stream, on the sending end.
#[derive(Debug, Default)]
struct Outbound {
    data: VecDeque<u8>,
    is_ended: bool,
    is_over: bool,
    is_blocked: bool,
    is_opened: bool,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Mock {
    side: Side,
    inbound: BTreeMap<StreamId, Inbound>,
    outbound: BTreeMap<StreamId, Outbound>,
    pub(crate) events: VecDeque<StreamEvent>,
    /// How many streams of each direction may still be opened.
    pub(crate) bidirectional: u64,
    pub(crate) unidirectional: u64,
    opened: [u64; 2],
    /// How many bytes a stream takes before they are delivered.
    pub(crate) window: usize,
    /// How many bytes are lent at a time.
    pub(crate) lent: usize,
    /// Calls of `send`.
    pub(crate) sends: usize,
    pub(crate) closed: Option<(u64, &'static str)>,
    /// What the session reset, and stopped.
    pub(crate) resets: Vec<(StreamId, u64)>,
    pub(crate) stops: Vec<(StreamId, u64)>,
    /// What was said of the urgency of streams.
    pub(crate) priorities: Vec<(StreamId, u8, bool)>,
    /// When it wants to be woken.
    pub(crate) alarm: Option<Instant>,
}

impl Mock {
    pub(crate) const fn new(side: Side) -> Self {
        Self {
            side,
            inbound: BTreeMap::new(),
            outbound: BTreeMap::new(),
            events: VecDeque::new(),
            bidirectional: 100,
            unidirectional: 3,
            opened: [0; 2],
            window: usize::MAX,
            lent: usize::MAX,
            sends: 0,
            closed: None,
            resets: Vec::new(),
            stops: Vec::new(),
            priorities: Vec::new(),
            alarm: None,
        }
    }

    /// The peer sends bytes on a stream, which it opens if need be.
    pub(crate) fn deliver(&mut self, id: StreamId, data: &[u8], end: bool) {
        if !self.inbound.contains_key(&id) {
            self.events.push_back(StreamEvent::Opened(id));
        }
        let inbound = self.inbound.entry(id).or_default();
        if inbound.is_over {
            return;
        }
        inbound.data.extend_from_slice(data);
        inbound.is_ended |= end;
        let readable = StreamEvent::Readable(id);
        if !self.events.contains(&readable) {
            self.events.push_back(readable);
        }
    }

    /// The peer resets a stream.
    pub(crate) fn deliver_reset(&mut self, id: StreamId, code: u64) {
        if !self.inbound.contains_key(&id) {
            self.events.push_back(StreamEvent::Opened(id));
        }
        self.inbound.entry(id).or_default().is_over = true;
        self.events.push_back(StreamEvent::Reset { id, code });
    }

    /// The peer stops a stream.
    pub(crate) fn deliver_stop(&mut self, id: StreamId, code: u64) {
        self.outbound.entry(id).or_default().is_over = true;
        self.events.push_back(StreamEvent::Stopped { id, code });
    }

    /// All that was sent on a stream and not yet taken away, and whether it has ended.
    pub(crate) fn sent(&mut self, id: StreamId) -> (Vec<u8>, bool) {
        let outbound = self.outbound.entry(id).or_default();
        let data = outbound.data.drain(..).collect();
        if std::mem::take(&mut outbound.is_blocked) {
            self.events.push_back(StreamEvent::Writable(id));
        }
        (data, outbound.is_ended)
    }

    /// Moves up to `step` bytes of each stream to the other end; returns whether anything moved.
    pub(crate) fn carry(&mut self, other: &mut Self, step: usize) -> bool {
        let mut moved = false;
        for (id, outbound) in &mut self.outbound {
            let count = outbound.data.len().min(step);
            let part: Vec<u8> = outbound.data.drain(..count).collect();
            let end = outbound.is_ended && outbound.data.is_empty() && !outbound.is_over;
            if count > 0 || end || !outbound.is_opened {
                outbound.is_opened = true;
                other.deliver(*id, &part, end);
                moved = true;
            }
            outbound.is_over |= end;
            if count > 0 && std::mem::take(&mut outbound.is_blocked) {
                self.events.push_back(StreamEvent::Writable(*id));
            }
        }
        for (id, code) in self.resets.drain(..) {
            other.deliver_reset(id, code);
            moved = true;
        }
        for (id, code) in self.stops.drain(..) {
            other.deliver_stop(id, code);
            moved = true;
        }
        moved
    }
}

impl Transport for Mock {
    fn wake_at(&mut self, at: Option<Instant>) {
        self.alarm = at;
    }

    fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let (left, place) = match direction {
            Direction::Bidirectional => (&mut self.bidirectional, 0),
            Direction::Unidirectional => (&mut self.unidirectional, 1),
        };
        *left = left.checked_sub(1)?;
        let id = StreamId::new(self.side, direction, self.opened[place]);
        self.opened[place] += 1;
        self.outbound.insert(id, Outbound::default());
        if direction == Direction::Bidirectional {
            self.inbound.insert(id, Inbound::default());
        }
        Some(id)
    }

    fn send(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError> {
        self.sends += 1;
        let outbound = self.outbound.entry(id).or_default();
        if outbound.is_ended || outbound.is_over {
            return Err(StreamError::Finished);
        }
        let count = data.len().min(self.window - outbound.data.len());
        outbound.data.extend(&data[..count]);
        outbound.is_blocked |= count < data.len();
        Ok(count)
    }

    fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        let outbound = self.outbound.entry(id).or_default();
        if outbound.is_ended || outbound.is_over {
            return Err(StreamError::Finished);
        }
        outbound.is_ended = true;
        Ok(())
    }

    fn reset(&mut self, id: StreamId, code: u64) {
        let outbound = self.outbound.entry(id).or_default();
        if !outbound.is_over {
            outbound.is_over = true;
            outbound.data.clear();
            self.resets.push((id, code));
        }
    }

    fn stop(&mut self, id: StreamId, code: u64) {
        let inbound = self.inbound.entry(id).or_default();
        if !inbound.is_over {
            inbound.is_over = true;
            self.stops.push((id, code));
        }
    }

    fn fill(&mut self, id: StreamId) -> Result<Fill<'_>, StreamError> {
        let lent = self.lent;
        let inbound = self
            .inbound
            .get_mut(&id)
            .ok_or(StreamError::UnknownStream)?;
        if inbound.is_over {
            return Err(StreamError::UnknownStream);
        }
        let all = &inbound.data[inbound.read..];
        let data = &all[..all.len().min(lent)];
        let end = inbound.is_ended && data.len() == all.len();
        Ok(Fill { data, fin: end })
    }

    fn consume(&mut self, id: StreamId, count: usize) {
        let inbound = self.inbound.get_mut(&id).unwrap();
        inbound.read += count;
        assert!(inbound.read <= inbound.data.len(), "more taken than lent");
        inbound.is_over |= inbound.is_ended && inbound.read == inbound.data.len();
        if inbound.read > 100_000 {
            inbound.data.drain(..std::mem::take(&mut inbound.read));
        }
    }

    fn set_priority(&mut self, id: StreamId, urgency: u8, incremental: bool) {
        self.priorities.push((id, urgency, incremental));
    }

    fn is_permitted(&self, id: StreamId) -> bool {
        id.index() < 1000
    }

    fn close(&mut self, code: u64, reason: &'static str) {
        assert_eq!(self.closed, None, "closed twice");
        self.closed = Some((code, reason));
    }
}

/// What one end has received of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) interim: Vec<Fields>,
    pub(crate) head: Option<Fields>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<Fields>,
    pub(crate) is_finished: bool,
}

/// A client and a server, joined.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) client: ClientSession,
    pub(crate) server: ServerSession,
    pub(crate) client_end: Mock,
    pub(crate) server_end: Mock,
    pub(crate) now: Instant,
    /// Bytes of each stream carried at a time.
    pub(crate) step: usize,
    pub(crate) responses: BTreeMap<StreamId, Message>,
    pub(crate) requests: BTreeMap<StreamId, Message>,
    /// Events that are no part of a message.
    pub(crate) client_events: Vec<ClientEvent>,
    pub(crate) server_events: Vec<ServerEvent>,
}

/// An instant to count from.
#[expect(clippy::disallowed_methods, reason = "tests have to begin somewhere")]
pub(crate) fn epoch() -> Instant {
    Instant::now()
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self {
            client: ClientSession::new(),
            server: ServerSession::new(),
            client_end: Mock::new(Side::Client),
            server_end: Mock::new(Side::Server),
            now: epoch(),
            step: usize::MAX,
            responses: BTreeMap::new(),
            requests: BTreeMap::new(),
            client_events: Vec::new(),
            server_events: Vec::new(),
        }
    }

    /// Carries bytes and handles events until nothing moves.
    pub(crate) fn run(&mut self) {
        for _ in 0..1_000_000 {
            self.client();
            self.server();
            let there = self.client_end.carry(&mut self.server_end, self.step);
            let back = self.server_end.carry(&mut self.client_end, self.step);
            if !there && !back {
                return;
            }
        }
        panic!("no end in sight");
    }

    fn client(&mut self) {
        while let Some(event) = self.client_end.events.pop_front() {
            self.client.on_event(&mut self.client_end, event);
        }
        while let Some(event) = self.client.next_event(&mut self.client_end, self.now) {
            match event {
                ClientEvent::Interim { id, fields } => {
                    self.responses.entry(id).or_default().interim.push(fields);
                }
                ClientEvent::Response { id, fields } => {
                    self.responses.entry(id).or_default().head = Some(fields);
                }
                ClientEvent::Data { id } => {
                    let body = &mut self.responses.entry(id).or_default().body;
                    loop {
                        let data = self.client.fill(&mut self.client_end, id).unwrap();
                        if data.is_empty() {
                            break;
                        }
                        body.extend_from_slice(data);
                        let count = data.len();
                        self.client
                            .consume(&mut self.client_end, id, count)
                            .unwrap();
                    }
                }
                ClientEvent::Trailers { id, fields } => {
                    self.responses.entry(id).or_default().trailers = Some(fields);
                }
                ClientEvent::Finished { id } => {
                    self.responses.entry(id).or_default().is_finished = true;
                }
                event => self.client_events.push(event),
            }
        }
    }

    fn server(&mut self) {
        while let Some(event) = self.server_end.events.pop_front() {
            self.server.on_event(&mut self.server_end, event);
        }
        while let Some(event) = self.server.next_event(&mut self.server_end, self.now) {
            match event {
                ServerEvent::Request { id, fields } => {
                    self.requests.entry(id).or_default().head = Some(fields);
                }
                ServerEvent::Data { id } => {
                    let body = &mut self.requests.entry(id).or_default().body;
                    loop {
                        let data = self.server.fill(&mut self.server_end, id).unwrap();
                        if data.is_empty() {
                            break;
                        }
                        body.extend_from_slice(data);
                        let count = data.len();
                        self.server
                            .consume(&mut self.server_end, id, count)
                            .unwrap();
                    }
                }
                ServerEvent::Trailers { id, fields } => {
                    self.requests.entry(id).or_default().trailers = Some(fields);
                }
                ServerEvent::Finished { id } => {
                    self.requests.entry(id).or_default().is_finished = true;
                }
                event => self.server_events.push(event),
            }
        }
    }
}
