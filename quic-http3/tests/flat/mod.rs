//! A transport in memory that allocates nothing once it is warm: both ends of each stream lie in one table.

use std::collections::VecDeque;
use std::time::Instant;

use quic_http3::Transport;
use quic_transport::{Direction, Fill, Side, StreamError, StreamEvent, StreamId};

/// One direction of a stream.
#[derive(Debug, Default)]
struct Pipe {
    data: Vec<u8>,
    read: usize,
    is_ended: bool,
}

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) struct Flat {
    /// By kind of stream and then by index, the direction from the initiator and the one back.
    streams: [Vec<[Pipe; 2]>; 4],
    opened: [u64; 4],
    /// For the client, and for the server.
    events: [VecDeque<StreamEvent>; 2],
}

/// An instant to count from.
#[expect(clippy::disallowed_methods, reason = "tests have to begin somewhere")]
pub(crate) fn epoch() -> Instant {
    Instant::now()
}

fn kind(id: StreamId) -> usize {
    usize::try_from(id.value() & 3).unwrap()
}

impl Flat {
    pub(crate) fn new() -> Self {
        Self {
            streams: Default::default(),
            opened: [0; 4],
            events: Default::default(),
        }
    }

    pub(crate) const fn client(&mut self) -> End<'_> {
        End {
            flat: self,
            side: Side::Client,
        }
    }

    pub(crate) const fn server(&mut self) -> End<'_> {
        End {
            flat: self,
            side: Side::Server,
        }
    }

    pub(crate) fn client_event(&mut self) -> Option<StreamEvent> {
        self.events[0].pop_front()
    }

    pub(crate) fn server_event(&mut self) -> Option<StreamEvent> {
        self.events[1].pop_front()
    }

    fn pipe(&mut self, id: StreamId, from: Side) -> &mut Pipe {
        let index = usize::try_from(id.index()).unwrap();
        let streams = &mut self.streams[kind(id)];
        // Streams far behind are over, and their places are used again.
        let place = index % WINDOW;
        while streams.len() <= place {
            streams.push(Default::default());
        }
        &mut streams[place][usize::from(id.initiator() != from)]
    }
}

/// How many streams are alive at most.
const WINDOW: usize = 128;

/// One end.
#[derive(Debug)]
pub(crate) struct End<'a> {
    flat: &'a mut Flat,
    side: Side,
}

impl End<'_> {
    fn tell(&mut self, event: StreamEvent) {
        self.flat.events[usize::from(self.side.is_client())].push_back(event);
    }
}

impl Transport for End<'_> {
    fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let kind = kind(StreamId::new(self.side, direction, 0));
        let id = StreamId::new(self.side, direction, self.flat.opened[kind]);
        self.flat.opened[kind] += 1;
        for side in [Side::Client, Side::Server] {
            let pipe = self.flat.pipe(id, side);
            pipe.data.clear();
            (pipe.read, pipe.is_ended) = (0, false);
        }
        self.tell(StreamEvent::Opened(id));
        Some(id)
    }

    fn send(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError> {
        let side = self.side;
        let pipe = self.flat.pipe(id, side);
        let first = pipe.data.len() == pipe.read;
        pipe.data.extend_from_slice(data);
        if first {
            self.tell(StreamEvent::Readable(id));
        }
        Ok(data.len())
    }

    fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        let side = self.side;
        let pipe = self.flat.pipe(id, side);
        pipe.is_ended = true;
        if pipe.data.len() == pipe.read {
            self.tell(StreamEvent::Readable(id));
        }
        Ok(())
    }

    fn reset(&mut self, id: StreamId, _: u64) {
        panic!("{id} is reset");
    }

    fn stop(&mut self, id: StreamId, _: u64) {
        panic!("{id} is stopped");
    }

    fn fill(&mut self, id: StreamId) -> Result<Fill<'_>, StreamError> {
        let pipe = self.flat.pipe(id, self.side.peer());
        Ok(Fill {
            data: &pipe.data[pipe.read..],
            fin: pipe.is_ended,
        })
    }

    fn consume(&mut self, id: StreamId, count: usize) {
        let pipe = self.flat.pipe(id, self.side.peer());
        pipe.read += count;
    }

    fn set_priority(&mut self, _: StreamId, _: u8, _: bool) {}

    fn close(&mut self, _: u64, reason: &'static str) {
        panic!("closed: {reason}");
    }
}
