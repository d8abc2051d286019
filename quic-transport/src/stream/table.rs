//! The streams that exist, by number and by slot.
//!
//! Slots of ended streams are used again, so memory follows the most streams that were open at once. Streams that the
//! peer may open, or has skipped, take no slot. In a silence the table is packed: each stream keeps the parts that it has,
//! and no places are free.

use quic_common::IdMap;

use super::flags::Flags;
use super::receive::ReceiveStream;
use super::send::SendStream;
use crate::wire::StreamId;

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u32);

impl Slot {
    #[inline]
    pub(super) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A stream: one or both of its parts, and what is to be done for it.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    pub(super) send: Option<SendStream>,
    pub(super) receive: Option<ReceiveStream>,
    /// Frames to be sent, see [`owed`](super::output::owed).
    pub(super) owed: Flags,
    /// Events to be told, see [`news`](super::events::news).
    pub(super) news: Flags,
}

const _: () = assert!(
    size_of::<Option<Stream>>() <= 448,
    "an idle stream, its links and its entry in the map take less than 512 bytes"
);

impl Stream {
    /// Whether RESET_STREAM_AT is to be sent now.
    pub(super) fn owes_reset_at(&self) -> bool {
        self.send
            .as_ref()
            .is_some_and(|send| send.reset_at_frame().is_some())
    }

    /// Whether both parts are over and the application knows.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.news.is_empty()
            && self.send.as_ref().is_none_or(SendStream::is_over)
            && self.receive.as_ref().is_none_or(ReceiveStream::is_over)
    }
}

/// Room that is made with the first stream: HTTP/3 has seven with its first request.
const USUAL: usize = 7;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Table {
    streams: Vec<Option<Stream>>,
    free: Vec<Slot>,
    slots: IdMap<u64, Slot>,
    /// The stream that was last asked for.
    last: Option<(StreamId, Slot)>,
    /// All streams, in place of the above, since the last silence.
    packed: Option<Box<[Packed]>>,
}

/// A stream of a table that is packed.
#[derive(Debug)]
struct Packed {
    id: StreamId,
    slot: Slot,
    owed: Flags,
    news: Flags,
    send: Option<Box<SendStream>>,
    receive: Option<Box<ReceiveStream>>,
}

impl Packed {
    fn new(slot: Slot, stream: Stream) -> Self {
        Self {
            id: stream.id,
            slot,
            owed: stream.owed,
            news: stream.news,
            send: stream.send.map(Box::new),
            receive: stream.receive.map(Box::new),
        }
    }

    fn unpack(self) -> Stream {
        Stream {
            id: self.id,
            send: self.send.map(|send| *send),
            receive: self.receive.map(|receive| *receive),
            owed: self.owed,
            news: self.news,
        }
    }
}

impl Table {
    /// How many streams there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len() + self.packed.as_ref().map_or(0, |packed| packed.len())
    }

    /// Where the stream is, if it exists.
    #[inline]
    pub(super) fn find(&mut self, id: StreamId) -> Option<Slot> {
        if let Some((last, slot)) = self.last
            && last == id
        {
            return Some(slot);
        }
        let Some(slot) = self.slots.get(&id.value()).copied() else {
            return self.find_packed(id);
        };
        self.last = Some((id, slot));
        Some(slot)
    }

    /// Where the stream is that was last asked for.
    #[inline]
    pub(super) fn last(&self) -> Option<Slot> {
        self.last.map(|(_, slot)| slot)
    }

    fn find_packed(&mut self, id: StreamId) -> Option<Slot> {
        self.packed.is_some().then(|| self.unpack())?;
        self.slots.get(&id.value()).copied()
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Option<&Stream> {
        self.streams.get(slot.index())?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Stream> {
        self.streams.get_mut(slot.index())?.as_mut()
    }

    /// Adds a stream. There are never 2^32 at once: the limits of both ends are far below.
    pub(super) fn insert(&mut self, stream: Stream) -> Option<Slot> {
        self.unpack();
        if self.streams.capacity() == 0 {
            self.streams.reserve_exact(USUAL);
            self.slots.reserve(USUAL);
        }
        let id = stream.id;
        let slot = if let Some(slot) = self.free.pop() {
            slot
        } else {
            let slot = Slot(u32::try_from(self.streams.len()).ok()?);
            self.streams.push(None);
            slot
        };
        *self.streams.get_mut(slot.index())? = Some(stream);
        self.slots.insert(id.value(), slot);
        self.last = Some((id, slot));
        Some(slot)
    }

    /// Takes a stream out; its slot may be used again at once.
    pub(super) fn remove(&mut self, slot: Slot) -> Option<Stream> {
        let stream = self.streams.get_mut(slot.index())?.take()?;
        self.slots.remove(&stream.id.value());
        self.free.push(slot);
        self.last = None;
        Some(stream)
    }

    /// Packs all streams; nobody may hold a slot.
    pub(super) fn rest(&mut self) {
        if self.packed.is_some() {
            return;
        }
        let slots = self.slots();
        let streams = std::mem::take(&mut self.streams).into_iter();
        let packed = slots
            .zip(streams)
            .filter_map(|(slot, stream)| Some(Packed::new(slot, stream?)));
        *self = Self {
            packed: Some(packed.collect()),
            ..Self::default()
        };
    }

    /// Puts all streams where they were before they were packed.
    fn unpack(&mut self) {
        let Some(packed) = self.packed.take() else {
            return;
        };
        for packed in packed {
            // They come in the order of their slots.
            while self.streams.len() < packed.slot.index() {
                let free = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
                self.free.push(Slot(free));
                self.streams.push(None);
            }
            self.slots.insert(packed.id.value(), packed.slot);
            self.streams.push(Some(packed.unpack()));
        }
    }

    /// All streams, in no order: for what happens once in a connection.
    pub(super) fn slots(&mut self) -> impl Iterator<Item = Slot> + use<> {
        self.unpack();
        (0..u32::try_from(self.streams.len()).unwrap_or(u32::MAX)).map(Slot)
    }
}
