//! The records of all frames in flight in a packet number space, end to end in one ring.
//!
//! A sent packet remembers where its records start and how many they are. Packets are settled roughly in order, so
//! the ring is released from its old end and keeps its memory.

use std::{collections::VecDeque, ops::Range};

use super::SentFrame;

/// Records that a connection without bulk data has in flight at most, as a rule.
const USUAL_FRAMES: usize = 32;

/// The records of the frames of a space's packets, addressed by an index that only grows.
#[derive(Debug, Default)]
pub(crate) struct FrameLog {
    frames: VecDeque<SentFrame>,
    /// The index of the oldest record kept.
    base: u64,
}

impl FrameLog {
    /// An empty log.
    pub(crate) const fn new() -> Self {
        Self {
            frames: VecDeque::new(),
            base: 0,
        }
    }

    /// Adds a record.
    #[inline]
    pub(crate) fn push(&mut self, frame: SentFrame) {
        if self.frames.capacity() == 0 {
            self.frames.reserve(USUAL_FRAMES);
        }
        self.frames.push_back(frame);
    }

    /// The index that the next record gets.
    #[inline]
    pub(crate) fn next_index(&self) -> u64 {
        self.base.saturating_add(length(&self.frames))
    }

    /// The records of these indices; those released already are left out.
    #[inline]
    pub(crate) fn range(&self, indices: Range<u64>) -> impl ExactSizeIterator<Item = SentFrame> {
        let first = self.position(indices.start);
        let last = self.position(indices.end).max(first);
        self.frames.range(first..last).copied()
    }

    /// The record at `index`, unless it is forgotten or still to come.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<SentFrame> {
        let at = usize::try_from(index.checked_sub(self.base)?).ok()?;
        self.frames.get(at).copied()
    }

    /// Forgets all records before `index`.
    #[inline]
    pub(crate) fn release_to(&mut self, index: u64) {
        let released = self.position(index);
        if released == self.frames.len() {
            self.base = self.next_index();
            self.frames.clear();
        } else if released > 0 {
            self.base = index;
            drop(self.frames.drain(..released));
        }
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.frames.shrink_to_fit();
    }

    /// Takes back the records from `index` on, of a packet that needs none.
    pub(super) fn truncate_to(&mut self, index: u64) {
        let kept = self.position(index);
        self.frames.truncate(kept);
    }

    /// Where in the ring `index` is, or the end that it lies beyond.
    #[inline]
    fn position(&self, index: u64) -> usize {
        usize::try_from(index.saturating_sub(self.base))
            .map_or(self.frames.len(), |at| at.min(self.frames.len()))
    }
}

/// The length of the ring, as an index.
#[inline]
fn length(frames: &VecDeque<SentFrame>) -> u64 {
    u64::try_from(frames.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{FrameLog, SentFrame};

    fn acks(log: &FrameLog, start: u64, count: u16) -> Vec<u64> {
        log.range(start..start.saturating_add(count.into()))
            .map(|frame| {
                let SentFrame::Ack { largest } = frame else {
                    panic!("{frame:?}")
                };
                largest
            })
            .collect()
    }

    #[test]
    fn indexes_survive_release() {
        let mut log = FrameLog::new();
        for largest in 0..10 {
            assert_eq!(log.next_index(), largest);
            log.push(SentFrame::Ack { largest });
        }
        log.release_to(4);
        assert_eq!(acks(&log, 5, 3), [5, 6, 7]);
        assert_eq!(log.next_index(), 10);
        log.release_to(2);
        assert_eq!(acks(&log, 4, 1), [4], "an older index releases nothing");
        log.release_to(10);
        assert_eq!(log.next_index(), 10);
        log.push(SentFrame::Ack { largest: 10 });
        assert_eq!(acks(&log, 10, 1), [10]);
    }

    #[test]
    fn a_range_beyond_either_end_is_cut() {
        let mut log = FrameLog::new();
        for largest in 0..4 {
            log.push(SentFrame::Ack { largest });
        }
        log.release_to(2);
        assert_eq!(acks(&log, 0, 4), [2, 3]);
        assert_eq!(acks(&log, 3, 100), [3]);
        assert_eq!(acks(&log, u64::MAX, u16::MAX), [0; 0]);
        log.release_to(u64::MAX);
        assert_eq!(log.next_index(), 4, "no index is skipped");
    }

    #[test]
    fn the_ring_keeps_its_memory() {
        let mut log = FrameLog::new();
        for _ in 0..64 {
            log.push(SentFrame::Ping);
        }
        let capacity = log.frames.capacity();
        for _ in 0..100_000 {
            log.push(SentFrame::Ping);
            log.release_to(log.next_index() - 60);
        }
        assert!(log.frames.capacity() <= 2 * capacity);
    }
}
