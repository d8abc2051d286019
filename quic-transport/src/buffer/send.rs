//! What the application has written, kept until the peer has acknowledged it.
//!
//! Offsets only: everything below `base` is acknowledged, `next` is the first byte never sent. What is acknowledged
//! or lost out of order goes into range sets, which stay empty while nothing is lost.

use std::ops::Range;

use super::{ChunkPool, RangeSet, Store, to_length, to_offset};

/// A part of the buffer that is on its way into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Where it belongs in the stream.
    pub(crate) offset: u64,
    /// Its bytes.
    pub(crate) length: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    store: Store,
    base: u64,
    next: u64,
    end: u64,
    acked: RangeSet,
    lost: RangeSet,
}

impl SendBuffer {
    /// Appends `data`; the caller has decided how much is accepted.
    #[inline]
    pub(crate) fn write(&mut self, data: &[u8], pool: &mut ChunkPool) {
        self.store.write(self.end, data, self.base, pool);
        self.end += to_offset(data.len());
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
        self.acked.gaps(self.base..self.next).fold(0, |sum, gap| {
            sum.saturating_add(gap.end.saturating_sub(gap.start))
        })
    }

    /// Whether lost bytes wait to be sent again.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The lowest lost bytes.
    #[inline]
    pub(crate) fn first_lost(&self) -> Option<Range<u64>> {
        self.lost.first()
    }

    /// Takes up to `limit` lost bytes to be sent again, the lowest first.
    pub(crate) fn take_lost(&mut self, limit: usize) -> Option<Chunk> {
        let Range { start, end } = self.lost.first()?;
        let length = to_length(end - start).min(limit);
        self.lost.remove(start..start + to_offset(length));
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
    pub(crate) fn copy_to(&self, offset: u64, target: &mut [u8]) {
        let copied = self.store.copy_to(offset, target);
        debug_assert_eq!(copied, target.len(), "a chunk outside of the buffer");
    }

    /// The peer has `range`; returns how many bytes of it were not known to be there.
    #[inline]
    pub(crate) fn on_acked(&mut self, range: Range<u64>, pool: &mut ChunkPool) -> u64 {
        let (start, end) = (range.start.max(self.base), range.end.min(self.next));
        if start >= end {
            return 0;
        }
        if !self.lost.is_empty() {
            self.lost.remove(start..end);
        }
        let fresh = if start == self.base {
            self.on_base_acked(end)
        } else {
            return self.acked.insert(start..end);
        };
        if self.is_acked() {
            self.store.clear(pool);
        } else {
            self.store.release(self.base, pool);
        }
        fresh
    }

    /// A packet with `range` was lost: what of it has not been acknowledged is to be sent again.
    pub(crate) fn on_lost(&mut self, range: Range<u64>) {
        let (start, end) = (range.start.max(self.base), range.end.min(self.next));
        if start >= end {
            return;
        }
        for gap in self.acked.gaps(start..end) {
            self.lost.insert(gap);
        }
    }

    /// Gives up what lies behind `end`, sent or not, but for what has been acknowledged in order.
    pub(crate) fn truncate(&mut self, end: u64) {
        let end = end.max(self.base);
        self.end = self.end.min(end);
        if self.next > end {
            self.next = end;
            self.acked.remove(end..u64::MAX);
            self.lost.remove(end..u64::MAX);
        }
        // What is acknowledged out of order up to the new end counts once the bytes before it do.
    }

    /// Takes back all that was sent, of which nothing may have been acknowledged; what was discarded never was.
    pub(crate) fn restart(&mut self) {
        debug_assert!(
            self.base == 0 || self.base == self.end,
            "nothing was acknowledged"
        );
        self.acked.clear();
        self.lost.clear();
        if self.base == self.end {
            self.end = 0;
        }
        self.base = 0;
        self.next = 0;
    }

    /// Gives all memory back; the offsets stay.
    pub(crate) fn discard(&mut self, pool: &mut ChunkPool) {
        self.store.free(pool);
        self.acked.clear();
        self.lost.clear();
        self.base = self.next;
        self.end = self.next;
    }

    #[inline]
    fn on_base_acked(&mut self, end: u64) -> u64 {
        if self.acked.is_empty() {
            let fresh = end - self.base;
            self.base = end;
            return fresh;
        }
        let fresh = self.acked.insert(self.base..end);
        self.base = self.acked.absorb(self.base);
        fresh
    }
}

#[cfg(test)]
mod tests {
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
                        buffer.write(&data, &mut pool);
                        written.extend(data);
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
