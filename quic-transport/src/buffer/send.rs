//! What the application has written, kept until the peer has acknowledged it.
//!
//! Offsets only: everything below `base` is acknowledged, `next` is the first byte never sent. What is acknowledged
//! or lost out of order goes into range sets, which stay empty while nothing is lost.

use std::ops::Range;

use bytes::Bytes;

use super::mixed::Mixed;
use super::{ChunkPool, RangeSet, Store, to_length, to_offset};

/// A part of the buffer that is on its way into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Where it belongs in the stream.
    pub(crate) offset: u64,
    /// Its bytes.
    pub(crate) length: usize,
}

/// Where the bytes lie.
#[derive(Debug)]
enum Content {
    /// Copies of what was written.
    Copied(Store),
    /// Some of them were lent.
    Mixed(Box<Mixed>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Copied(Store::default())
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    content: Content,
    base: u64,
    next: u64,
    end: u64,
    /// `None` until something is lost or acknowledged out of order.
    holes: Option<Box<Holes>>,
}

/// What isn't in order.
#[derive(Debug, Default)]
struct Holes {
    /// Acknowledged, beyond `base`.
    acked: RangeSet,
    /// To be sent again.
    lost: RangeSet,
    /// Bytes that were sent again.
    sent_again: u64,
}

impl SendBuffer {
    /// Appends `data`; the caller has decided how much is accepted.
    #[inline]
    pub(crate) fn write(&mut self, data: &[u8], pool: &mut ChunkPool) {
        match &mut self.content {
            Content::Copied(store) => store.write(self.end, data, self.base, pool),
            Content::Mixed(mixed) => mixed.write(self.end, data, self.base, pool),
        }
        self.end += to_offset(data.len());
    }

    /// Appends `bytes`, which are kept where they are until they, and what was written before, are acknowledged.
    pub(crate) fn lend(&mut self, bytes: Bytes) {
        let length = to_offset(bytes.len());
        if length > 0 {
            self.content.lend(self.end, bytes);
            self.end += length;
        }
    }

    /// The offset behind the last byte written.
    #[inline]
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// The offset behind the last byte ever sent.
    #[inline]
    pub(crate) const fn sent(&self) -> u64 {
        self.next
    }

    /// Bytes written and never sent.
    #[inline]
    pub(crate) const fn unsent(&self) -> u64 {
        self.end - self.next
    }

    /// The offset behind the bytes from the start on that have been acknowledged without a gap.
    #[inline]
    pub(crate) const fn acked_in_order(&self) -> u64 {
        self.base
    }

    /// Whether everything sent has been acknowledged.
    #[inline]
    pub(crate) const fn is_sent_acked(&self) -> bool {
        self.base == self.next
    }

    /// Whether everything written has been acknowledged.
    #[inline]
    pub(crate) const fn is_acked(&self) -> bool {
        self.base == self.end
    }

    /// Bytes sent and not acknowledged, lost ones included.
    pub(crate) fn unacked(&self) -> u64 {
        let range = self.base..self.next;
        self.holes
            .as_ref()
            .map_or(range.end - range.start, |holes| {
                holes.acked.gaps(range).fold(0, |sum, gap| {
                    sum.saturating_add(gap.end.saturating_sub(gap.start))
                })
            })
    }

    /// Bytes that were sent again, counted each time.
    pub(crate) fn sent_again(&self) -> u64 {
        self.holes.as_ref().map_or(0, |holes| holes.sent_again)
    }

    /// Whether lost bytes wait to be sent again.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        self.holes
            .as_ref()
            .is_some_and(|holes| !holes.lost.is_empty())
    }

    /// The lowest lost bytes.
    #[inline]
    pub(crate) fn first_lost(&self) -> Option<Range<u64>> {
        self.holes.as_ref()?.lost.first()
    }

    /// Takes up to `limit` lost bytes to be sent again, the lowest first.
    pub(crate) fn take_lost(&mut self, limit: usize) -> Option<Chunk> {
        let holes = self.holes.as_mut()?;
        let Range { start, end } = holes.lost.first()?;
        let length = to_length(end - start).min(limit);
        holes.lost.remove(start..start + to_offset(length));
        holes.sent_again = holes.sent_again.saturating_add(to_offset(length));
        (length > 0).then_some(Chunk {
            offset: start,
            length,
        })
    }

    /// Takes up to `limit` bytes that have never been sent.
    #[inline]
    pub(crate) fn take_new(&mut self, limit: usize) -> Option<Chunk> {
        let length = to_length(self.unsent()).min(limit);
        let offset = self.next;
        self.next += to_offset(length);
        (length > 0).then_some(Chunk { offset, length })
    }

    /// Copies the bytes of a chunk just taken.
    #[inline]
    pub(crate) fn copy_to(&mut self, offset: u64, target: &mut [u8]) {
        let copied = match &mut self.content {
            Content::Copied(store) => store.copy_to(offset, target),
            Content::Mixed(mixed) => mixed.copy_to(offset, target),
        };
        debug_assert_eq!(copied, target.len(), "a chunk outside of the buffer");
    }

    /// The peer has `range`; returns how many bytes of it were not known to be there.
    #[inline]
    pub(crate) fn on_acked(&mut self, range: Range<u64>, pool: &mut ChunkPool) -> u64 {
        let (start, end) = (range.start.max(self.base), range.end.min(self.next));
        if start >= end {
            return 0;
        }
        let is_next = start == self.base;
        let fresh = if is_next && self.holes.is_none() {
            self.base = end;
            end - start
        } else {
            self.fill_hole(start..end)
        };
        if !is_next {
            return fresh;
        }
        let is_acked = self.is_acked();
        match &mut self.content {
            Content::Copied(store) if is_acked => store.clear(pool),
            Content::Copied(store) => store.release(self.base, pool),
            Content::Mixed(mixed) if is_acked => mixed.clear(pool),
            Content::Mixed(mixed) => mixed.release(self.base, pool),
        }
        fresh
    }

    /// A packet with `range` was lost: what of it has not been acknowledged is to be sent again.
    pub(crate) fn on_lost(&mut self, range: Range<u64>) {
        let (start, end) = (range.start.max(self.base), range.end.min(self.next));
        if start >= end {
            return;
        }
        let Holes { acked, lost, .. } = &mut **self.holes.get_or_insert_default();
        for gap in acked.gaps(start..end) {
            lost.insert(gap);
        }
    }

    /// Gives up what lies behind `end`, sent or not, but for what has been acknowledged in order.
    pub(crate) fn truncate(&mut self, end: u64) {
        let end = end.max(self.base);
        self.end = self.end.min(end);
        if let Content::Mixed(mixed) = &mut self.content {
            mixed.truncate(self.end);
        }
        if self.next > end {
            self.next = end;
            if let Some(holes) = &mut self.holes {
                holes.acked.remove(end..u64::MAX);
                holes.lost.remove(end..u64::MAX);
            }
        }
        // What is acknowledged out of order up to the new end counts once the bytes before it do.
    }

    /// Takes back all that was sent, of which nothing may have been acknowledged; what was discarded never was.
    pub(crate) fn restart(&mut self) {
        debug_assert!(
            self.base == 0 || self.base == self.end,
            "nothing was acknowledged"
        );
        self.holes = None;
        if self.base == self.end {
            self.end = 0;
        }
        self.base = 0;
        self.next = 0;
    }

    /// Gives all memory back, to the application too. Nothing more is sent, but what was sent may still be acknowledged.
    pub(crate) fn give_up(&mut self, pool: &mut ChunkPool) {
        match std::mem::take(&mut self.content) {
            Content::Copied(mut store) => store.clear(pool),
            Content::Mixed(mut mixed) => mixed.clear(pool),
        }
        if let Some(holes) = &mut self.holes {
            holes.lost.clear();
        }
        self.end = self.next;
    }

    /// As [`Self::give_up`], and what was sent counts as acknowledged.
    pub(crate) fn discard(&mut self, pool: &mut ChunkPool) {
        self.give_up(pool);
        if let Some(holes) = &mut self.holes {
            holes.acked.clear();
        }
        self.base = self.next;
    }

    /// [`Self::on_acked`] for what isn't in order, or was not.
    #[inline(never)]
    fn fill_hole(&mut self, range: Range<u64>) -> u64 {
        let holes = self.holes.get_or_insert_default();
        if !holes.lost.is_empty() {
            holes.lost.remove(range.clone());
        }
        if range.start == self.base && holes.acked.is_empty() {
            self.base = range.end;
            return range.end - range.start;
        }
        let fresh = holes.acked.insert(range);
        self.base = holes.acked.absorb(self.base);
        fresh
    }
}

impl Content {
    fn lend(&mut self, offset: u64, bytes: Bytes) {
        if let Self::Copied(store) = self {
            let mixed = Mixed::new(std::mem::take(store));
            *self = Self::Mixed(Box::new(mixed));
        }
        if let Self::Mixed(mixed) = self {
            mixed.lend(offset, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quic_common::Random;

    use super::{Chunk, ChunkPool, SendBuffer, to_offset};

    #[test]
    fn what_is_cut_off_is_neither_sent_nor_waited_for() {
        let (mut pool, mut buffer) = (ChunkPool::default(), SendBuffer::default());
        buffer.write(&[7; 1000], &mut pool);
        buffer.take_new(600);
        assert_eq!(buffer.on_acked(0..100, &mut pool), 100);
        assert_eq!(buffer.on_acked(400..500, &mut pool), 100);
        buffer.on_lost(100..600);
        assert_eq!((buffer.unacked(), buffer.unsent()), (400, 400));
        buffer.truncate(450);
        assert_eq!(
            (buffer.end(), buffer.sent(), buffer.unsent()),
            (450, 450, 0)
        );
        assert_eq!(buffer.unacked(), 300);
        assert_eq!(span(buffer.take_lost(1000)), 100..400);
        assert_eq!(buffer.take_lost(1000), None);
        buffer.on_lost(300..600);
        assert_eq!(span(buffer.take_lost(1000)), 300..400);
        assert_eq!(buffer.on_acked(100..600, &mut pool), 300);
        assert!(buffer.is_acked());

        // Nothing that is acknowledged can be taken back, and what was never sent up to the end still goes out.
        let (mut pool, mut buffer) = (ChunkPool::default(), SendBuffer::default());
        buffer.write(&[7; 1000], &mut pool);
        buffer.take_new(300);
        buffer.on_acked(0..300, &mut pool);
        buffer.truncate(400);
        assert_eq!(span(buffer.take_new(1000)), 300..400);
        buffer.truncate(200);
        assert_eq!((buffer.end(), buffer.unacked()), (300, 0));
        assert!(buffer.is_acked());
    }

    fn span(chunk: Option<Chunk>) -> std::ops::Range<u64> {
        let chunk = chunk.unwrap();
        chunk.offset..chunk.offset + to_offset(chunk.length)
    }

    #[test]
    fn lost_bytes_come_back_without_what_was_acked() {
        let (mut pool, mut buffer) = (ChunkPool::default(), SendBuffer::default());
        buffer.write(&[1; 100], &mut pool);
        assert_eq!(span(buffer.take_new(60)), 0..60);
        assert_eq!(buffer.on_acked(20..30, &mut pool), 10);
        buffer.on_lost(10..40);
        assert_eq!(buffer.unacked(), 50);
        assert_eq!(span(buffer.take_lost(4)), 10..14);
        assert_eq!(buffer.on_acked(14..16, &mut pool), 2);
        assert_eq!(span(buffer.take_lost(100)), 16..20);
        assert_eq!(span(buffer.take_lost(100)), 30..40);
        assert_eq!(buffer.take_lost(100), None);
        assert_eq!(span(buffer.take_new(100)), 60..100);
        assert_eq!(buffer.on_acked(0..200, &mut pool), 88);
        assert!(buffer.is_acked());
    }

    #[test]
    fn no_room_takes_nothing() {
        let (mut pool, mut buffer) = (ChunkPool::default(), SendBuffer::default());
        buffer.write(&[1; 10], &mut pool);
        assert_eq!(buffer.take_new(0), None);
        assert_eq!(span(buffer.take_new(5)), 0..5);
        buffer.on_lost(0..5);
        assert_eq!(buffer.take_lost(0), None);
    }

    #[test]
    fn what_is_discarded_is_neither_kept_nor_sent() {
        let (mut pool, mut buffer) = (ChunkPool::default(), SendBuffer::default());
        buffer.write(&[1; 100], &mut pool);
        assert_eq!(span(buffer.take_new(60)), 0..60);
        assert_eq!(buffer.on_acked(20..30, &mut pool), 10);
        buffer.on_lost(10..40);
        buffer.discard(&mut pool);
        assert!(buffer.is_acked() && buffer.is_sent_acked() && !buffer.has_lost());
        assert_eq!((buffer.sent(), buffer.end(), buffer.unacked()), (60, 60, 0));
        assert_eq!((buffer.take_lost(100), buffer.take_new(100)), (None, None));
        assert!(pool.take_small().capacity() >= 100);
    }

    /// Bytes to be lent, and what tells whether they still are: somebody else has them.
    fn lendable(length: usize) -> (Bytes, Bytes) {
        let bytes = Bytes::from(vec![7; length]);
        (bytes.clone(), bytes)
    }

    #[test]
    fn what_is_lent_is_let_go_of_with_its_last_byte() {
        let (mut pool, mut buffer) = (ChunkPool::default(), SendBuffer::default());
        let (first, first_memory) = lendable(100);
        let (second, second_memory) = lendable(100);
        buffer.lend(first);
        buffer.write(&[1; 10], &mut pool);
        buffer.lend(second);
        buffer.take_new(150);
        buffer.on_acked(50..150, &mut pool);
        assert!(!first_memory.is_unique(), "something is missing");
        buffer.on_acked(0..50, &mut pool);
        assert!(first_memory.is_unique());
        assert!(!second_memory.is_unique());
        buffer.take_new(60);
        buffer.on_acked(150..210, &mut pool);
        assert!(second_memory.is_unique());

        for is_cut_off in [false, true] {
            let mut buffer = SendBuffer::default();
            let (bytes, memory) = lendable(100);
            buffer.write(&[1; 100], &mut pool);
            buffer.lend(bytes);
            buffer.take_new(150);
            if is_cut_off {
                buffer.truncate(100);
            } else {
                buffer.discard(&mut pool);
            }
            assert!(memory.is_unique());
        }
    }

    #[test]
    fn what_is_lent_is_sent_again_after_a_restart() {
        let (mut pool, mut buffer) = (ChunkPool::default(), SendBuffer::default());
        buffer.write(b"copied", &mut pool);
        buffer.lend(Bytes::from_static(b"lent"));
        assert_eq!(span(buffer.take_new(8)), 0..8);
        buffer.restart();
        assert_eq!(span(buffer.take_new(100)), 0..10);
        let mut target = [0; 10];
        buffer.copy_to(0, &mut target);
        assert_eq!(&target, b"copiedlent");
    }

    #[test]
    fn an_ack_twice_counts_once() {
        let (mut pool, mut buffer) = (ChunkPool::default(), SendBuffer::default());
        buffer.write(&[1; 10], &mut pool);
        assert_eq!(span(buffer.take_new(10)), 0..10);
        assert_eq!(buffer.on_acked(5..10, &mut pool), 5);
        assert_eq!(buffer.on_acked(5..10, &mut pool), 0);
        assert_eq!(buffer.on_acked(0..10, &mut pool), 5);
        assert_eq!(buffer.on_acked(0..10, &mut pool), 0);
    }

    /// Seeded: writes, sends, losses and acknowledgements in any order deliver what was written, once.
    #[test]
    fn agrees_with_a_model() {
        for seed in 0..5 {
            let mut random = Random::from_seed([seed; 32]);
            let (mut pool, mut buffer) = (ChunkPool::default(), SendBuffer::default());
            let mut written: Vec<u8> = Vec::new();
            let mut acked: Vec<bool> = Vec::new();
            let mut flying: Vec<Chunk> = Vec::new();
            let mut target = vec![0; 5000];
            for _ in 0..3000 {
                match random.below(4) {
                    0 if written.len() < 200_000 => {
                        let length = usize::try_from(random.below(3000)).unwrap();
                        let mut data = vec![0; length];
                        random.fill(&mut data);
                        written.extend(&data);
                        if random.below(2) == 0 {
                            buffer.write(&data, &mut pool);
                        } else {
                            buffer.lend(data.into());
                        }
                        acked.resize(written.len(), false);
                    }
                    1 => {
                        let limit = usize::try_from(random.below(2500)).unwrap();
                        let lost = buffer.take_lost(limit);
                        if let Some(chunk) = lost.or_else(|| buffer.take_new(limit)) {
                            let start = usize::try_from(chunk.offset).unwrap();
                            let target = &mut target[..chunk.length];
                            buffer.copy_to(chunk.offset, target);
                            assert_eq!(target, &written[start..start + chunk.length]);
                            flying.push(chunk);
                        }
                    }
                    choice if !flying.is_empty() => {
                        let count = u64::try_from(flying.len()).unwrap();
                        let chunk =
                            flying.swap_remove(usize::try_from(random.below(count)).unwrap());
                        let range = chunk.offset..chunk.offset + to_offset(chunk.length);
                        if choice == 2 {
                            buffer.on_lost(range);
                            continue;
                        }
                        let start = usize::try_from(chunk.offset).unwrap();
                        let span = &mut acked[start..start + chunk.length];
                        let fresh = span.iter().filter(|acked| !**acked).count();
                        span.fill(true);
                        assert_eq!(buffer.on_acked(range, &mut pool), to_offset(fresh));
                    }
                    _ => {}
                }
                let base = acked.iter().position(|acked| !acked);
                assert_eq!(buffer.is_acked(), base.is_none());
            }
        }
    }
}
