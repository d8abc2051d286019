//! One end of a connection in memory, whose peer is the fuzzer.

use std::collections::{BTreeMap, VecDeque};

use quic_transport::{Direction, Fill, Side, StreamError, StreamEvent, StreamId};

use crate::transport::Transport;

/// Bytes that a stream takes before it is full.
const WINDOW: usize = 4000;

/// The streams, and what the session does with them.
#[derive(Debug)]
pub(super) struct Memory {
    side: Side,
    receiving: BTreeMap<StreamId, Receiving>,
    sending: BTreeMap<StreamId, Sending>,
    events: VecDeque<StreamEvent>,
    opened: [u64; 2],
    /// How many bytes are lent at a time.
    pub(super) lent: usize,
    /// The code that the connection was closed with.
    pub(super) closed: Option<u64>,
}

#[derive(Debug, Default)]
struct Receiving {
    data: VecDeque<u8>,
    is_ended: bool,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Sending {
    held: usize,
    is_over: bool,
    is_blocked: bool,
}

impl Memory {
    pub(super) const fn new(side: Side) -> Self {
        Self {
            side,
            receiving: BTreeMap::new(),
            sending: BTreeMap::new(),
            events: VecDeque::new(),
            opened: [0; 2],
            lent: usize::MAX,
            closed: None,
        }
    }

    pub(super) fn next_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Whether the peer can send on a stream: it is one that it opens, or one of ours that exists.
    fn arrives(&mut self, id: StreamId) -> bool {
        if self.receiving.contains_key(&id) {
            return true;
        }
        if id.initiator() == self.side {
            return false;
        }
        self.receiving.insert(id, Receiving::default());
        if id.direction() == Direction::Bidirectional {
            self.sending.insert(id, Sending::default());
        }
        self.tell(StreamEvent::Opened(id));
        true
    }

    fn tell(&mut self, event: StreamEvent) {
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    pub(super) fn deliver(&mut self, id: StreamId, data: &[u8], end: bool) {
        if !self.arrives(id) {
            return;
        }
        let stream = self.receiving.entry(id).or_default();
        if !stream.is_over && !stream.is_ended {
            stream.data.extend(data);
            stream.is_ended = end;
            self.tell(StreamEvent::Readable(id));
        }
    }

    pub(super) fn deliver_reset(&mut self, id: StreamId, code: u64) {
        if !self.arrives(id) {
            return;
        }
        let stream = self.receiving.entry(id).or_default();
        if !stream.is_over && !stream.is_ended {
            stream.is_over = true;
            stream.data.clear();
            self.tell(StreamEvent::Reset { id, code });
        }
    }

    pub(super) fn deliver_stop(&mut self, id: StreamId, code: u64) {
        if let Some(stream) = self.sending.get_mut(&id).filter(|stream| !stream.is_over) {
            stream.is_over = true;
            self.tell(StreamEvent::Stopped { id, code });
        }
    }

    /// Everything that was sent arrives.
    pub(super) fn drain(&mut self) {
        for (id, stream) in &mut self.sending {
            stream.held = 0;
            if std::mem::take(&mut stream.is_blocked) && !stream.is_over {
                self.events.push_back(StreamEvent::Writable(*id));
            }
        }
    }
}

impl Transport for Memory {
    fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let place = usize::from(direction == Direction::Unidirectional);
        let index = self.opened[place];
        if index >= [20, 3][place] {
            return None;
        }
        self.opened[place] += 1;
        let id = StreamId::new(self.side, direction, index);
        self.sending.insert(id, Sending::default());
        if direction == Direction::Bidirectional {
            self.receiving.insert(id, Receiving::default());
        }
        Some(id)
    }

    fn send(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError> {
        let stream = self
            .sending
            .get_mut(&id)
            .ok_or(StreamError::UnknownStream)?;
        if stream.is_over {
            return Err(StreamError::Finished);
        }
        let count = data.len().min(WINDOW - stream.held);
        stream.held += count;
        stream.is_blocked |= count < data.len();
        Ok(count)
    }

    fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        let stream = self
            .sending
            .get_mut(&id)
            .ok_or(StreamError::UnknownStream)?;
        if std::mem::replace(&mut stream.is_over, true) {
            return Err(StreamError::Finished);
        }
        Ok(())
    }

    fn reset(&mut self, id: StreamId, _: u64) {
        if let Some(stream) = self.sending.get_mut(&id) {
            stream.is_over = true;
        }
    }

    fn stop(&mut self, id: StreamId, _: u64) {
        if let Some(stream) = self.receiving.get_mut(&id) {
            stream.is_over = true;
            stream.data.clear();
        }
    }

    fn fill(&mut self, id: StreamId) -> Result<Fill<'_>, StreamError> {
        let lent = self.lent;
        let stream = self
            .receiving
            .get_mut(&id)
            .filter(|stream| !stream.is_over)
            .ok_or(StreamError::UnknownStream)?;
        let all = stream.data.make_contiguous();
        let data = &all[..all.len().min(lent)];
        Ok(Fill {
            fin: stream.is_ended && data.len() == all.len(),
            data,
        })
    }

    fn consume(&mut self, id: StreamId, count: usize) {
        let stream = self.receiving.get_mut(&id).unwrap();
        assert!(
            count <= stream.data.len().min(self.lent),
            "more taken than lent"
        );
        stream.data.drain(..count);
        stream.is_over |= stream.is_ended && stream.data.is_empty();
    }

    fn set_priority(&mut self, id: StreamId, _: u8, _: bool) {
        assert!(self.sending.contains_key(&id));
    }

    fn close(&mut self, code: u64, reason: &'static str) {
        assert_eq!(self.closed, None, "closed twice");
        assert!(!reason.is_empty());
        self.closed = Some(code);
    }
}
