//! Recycled buffers of one connection: bulk transfer takes what the last acknowledgement or read gave back.
//!
//! Last in, first out, so that the memory that is taken is the memory that is warm.

use std::time::{Duration, Instant};

use super::to_offset;
use crate::limits::{MOST_SPARE_CHUNKS, SPARE_CHUNKS, SPARE_SMALL_BUFFERS};

/// How long spare buffers that nobody takes are kept, about.
const SPARE_TIME: Duration = Duration::from_secs(1);

/// Bytes of a chunk.
pub(crate) const CHUNK: usize = 16 * 1024;

/// The most bytes that are held in a small buffer before chunks are used.
pub(crate) const SMALL: usize = 2 * 1024;

/// Spare buffers in two sizes: chunks of [`CHUNK`] bytes, and small ones of up to [`SMALL`] that grow as they need.
#[derive(Debug, Default)]
pub(crate) struct ChunkPool {
    chunks: Vec<Box<[u8]>>,
    /// How many of them, the lowest, nobody has wanted since.
    unwanted: usize,
    since: Option<Instant>,
    small: Vec<Vec<u8>>,
    /// A buffer was asked for since the time below was last brought up to date.
    is_used: bool,
    /// When a buffer was last asked for, as far as wake-ups tell.
    used: Option<Instant>,
    /// Separate pieces of all receive buffers that share the pool.
    pub(super) pieces: usize,
}

impl ChunkPool {
    /// A chunk with whatever it held before.
    #[inline]
    pub(super) fn take_chunk(&mut self) -> Box<[u8]> {
        self.is_used = true;
        let chunk = self.chunks.pop();
        self.unwanted = self.unwanted.min(self.chunks.len());
        chunk.unwrap_or_else(|| vec![0; CHUNK].into_boxed_slice())
    }

    #[inline]
    pub(super) fn give_chunk(&mut self, chunk: Box<[u8]>) {
        if self.chunks.len() < MOST_SPARE_CHUNKS {
            self.chunks.push(chunk);
        }
    }

    /// An empty small buffer.
    #[inline]
    pub(super) fn take_small(&mut self) -> Vec<u8> {
        self.is_used = true;
        self.small.pop().unwrap_or_default()
    }

    #[inline]
    pub(super) fn give_small(&mut self, mut buffer: Vec<u8>) {
        if self.small.len() < SPARE_SMALL_BUFFERS && buffer.capacity() > 0 {
            buffer.clear();
            self.small.push(buffer);
        }
    }

    /// Bytes of spare chunks.
    pub(crate) fn spare(&self) -> u64 {
        to_offset(self.chunks.len() * CHUNK)
    }

    /// A wake-up: frees everything spare if none of it was asked for in a while, since the connection has fallen idle, and
    /// many chunks that nobody wanted although others were. It isn't woken for that; its timers see to it that it is woken at
    /// some time.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant) {
        let is_long_ago = |then| now.saturating_duration_since(then) > SPARE_TIME;
        if std::mem::take(&mut self.is_used) {
            self.used = Some(now);
            if self.since.is_none_or(is_long_ago) {
                self.shed(now);
            }
        } else if self.used.is_some_and(is_long_ago) {
            self.trim();
        }
    }

    #[cold]
    fn shed(&mut self, now: Instant) {
        let surplus = self.chunks.len().saturating_sub(SPARE_CHUNKS);
        drop(self.chunks.drain(..self.unwanted.min(surplus)));
        self.unwanted = self.chunks.len();
        self.since = Some(now);
    }

    /// Frees everything spare.
    #[cold]
    pub(crate) fn trim(&mut self) {
        self.used = None;
        self.since = None;
        self.unwanted = 0;
        self.chunks = Vec::new();
        self.small = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{CHUNK, ChunkPool, SPARE_TIME};
    use crate::limits::{MOST_SPARE_CHUNKS, SPARE_CHUNKS, SPARE_SMALL_BUFFERS};

    #[test]
    fn spares_are_bounded() {
        let mut pool = ChunkPool::default();
        for _ in 0..=MOST_SPARE_CHUNKS {
            pool.give_chunk(vec![0; CHUNK].into_boxed_slice());
        }
        for _ in 0..=SPARE_SMALL_BUFFERS {
            pool.give_small(vec![0; 8]);
        }
        pool.small.pop();
        pool.give_small(Vec::new());
        assert_eq!(
            pool.small.len(),
            SPARE_SMALL_BUFFERS - 1,
            "nothing to recycle"
        );
        pool.give_small(vec![0; 8]);
        assert_eq!(pool.chunks.len(), MOST_SPARE_CHUNKS);
        assert_eq!(pool.small.len(), SPARE_SMALL_BUFFERS);
    }

    #[test]
    fn spares_that_nobody_wants_are_freed_at_a_wake_up() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do as an epoch")]
        let start = Instant::now();
        let mut pool = ChunkPool::default();
        let (chunk, small) = (pool.take_chunk(), pool.take_small());
        pool.give_chunk(chunk);
        pool.give_small(small);
        pool.give_small(vec![0; 8]);
        pool.settle(start);
        pool.settle(start + SPARE_TIME);
        assert_eq!((pool.chunks.len(), pool.small.len()), (1, 1));
        let chunk = pool.take_chunk();
        pool.settle(start + SPARE_TIME * 2);
        pool.give_chunk(chunk);
        pool.settle(start + SPARE_TIME * 3);
        assert_eq!(pool.chunks.len(), 1, "asked for a moment ago");
        pool.settle(start + SPARE_TIME * 4);
        assert_eq!((pool.chunks.len(), pool.small.len()), (0, 0));
        pool.settle(start + SPARE_TIME * 9);
    }

    #[test]
    fn many_chunks_that_nobody_wanted_in_a_while_go_though_others_were() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do as an epoch")]
        let start = Instant::now();
        let mut pool = ChunkPool::default();
        let use_chunks = |pool: &mut ChunkPool, count: usize, at| {
            let chunks: Vec<_> = (0..count).map(|_| pool.take_chunk()).collect();
            for chunk in chunks {
                pool.give_chunk(chunk);
            }
            pool.settle(at);
        };
        use_chunks(&mut pool, SPARE_CHUNKS + 9, start);
        for second in [SPARE_TIME / 2, SPARE_TIME] {
            use_chunks(&mut pool, SPARE_CHUNKS + 4, start + second);
        }
        assert_eq!(pool.chunks.len(), SPARE_CHUNKS + 9, "not yet");
        use_chunks(&mut pool, 2, start + SPARE_TIME + SPARE_TIME / 4);
        assert_eq!(pool.chunks.len(), SPARE_CHUNKS + 4);
        use_chunks(&mut pool, 2, start + 3 * SPARE_TIME);
        use_chunks(&mut pool, 2, start + 5 * SPARE_TIME);
        assert_eq!(
            pool.chunks.len(),
            SPARE_CHUNKS,
            "no fewer while some are used"
        );
    }

    #[test]
    fn a_small_buffer_comes_back_empty() {
        let mut pool = ChunkPool::default();
        pool.give_small(vec![1, 2, 3]);
        let buffer = pool.take_small();
        assert!(buffer.is_empty() && buffer.capacity() >= 3);
    }
}
