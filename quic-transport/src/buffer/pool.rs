//! Recycled buffers of one connection: bulk transfer takes what the last acknowledgement or read gave back.
//!
//! Last in, first out, so that the memory that is taken is the memory that is warm.

use crate::limits::{SPARE_CHUNKS, SPARE_SMALL_BUFFERS};

/// Bytes of a chunk.
pub(crate) const CHUNK: usize = 16 * 1024;

/// The most bytes that are held in a small buffer before chunks are used.
pub(crate) const SMALL: usize = 2 * 1024;

/// Spare buffers in two sizes: chunks of [`CHUNK`] bytes, and small ones of up to [`SMALL`] that grow as they need.
#[derive(Debug, Default)]
pub(crate) struct ChunkPool {
    chunks: Vec<Box<[u8]>>,
    small: Vec<Vec<u8>>,
    /// Separate pieces of all receive buffers that share the pool.
    pub(super) pieces: usize,
}

impl ChunkPool {
    /// A chunk with whatever it held before.
    #[inline]
    pub(super) fn take_chunk(&mut self) -> Box<[u8]> {
        self.chunks
            .pop()
            .unwrap_or_else(|| vec![0; CHUNK].into_boxed_slice())
    }

    #[inline]
    pub(super) fn give_chunk(&mut self, chunk: Box<[u8]>) {
        if self.chunks.len() < SPARE_CHUNKS {
            self.chunks.push(chunk);
        }
    }

    /// An empty small buffer.
    #[inline]
    pub(super) fn take_small(&mut self) -> Vec<u8> {
        self.small.pop().unwrap_or_default()
    }

    #[inline]
    pub(super) fn give_small(&mut self, mut buffer: Vec<u8>) {
        if self.small.len() < SPARE_SMALL_BUFFERS && buffer.capacity() > 0 {
            buffer.clear();
            self.small.push(buffer);
        }
    }

    /// Frees everything spare, as when the connection falls idle.
    #[cfg(test)]
    pub(crate) fn trim(&mut self) {
        self.chunks = Vec::new();
        self.small = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, ChunkPool};
    use crate::limits::{SPARE_CHUNKS, SPARE_SMALL_BUFFERS};

    #[test]
    fn spares_are_bounded() {
        let mut pool = ChunkPool::default();
        for _ in 0..=SPARE_CHUNKS {
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
        assert_eq!(pool.chunks.len(), SPARE_CHUNKS);
        assert_eq!(pool.small.len(), SPARE_SMALL_BUFFERS);
        pool.trim();
        assert_eq!(pool.chunks.len() + pool.small.len(), 0);
    }

    #[test]
    fn a_small_buffer_comes_back_empty() {
        let mut pool = ChunkPool::default();
        pool.give_small(vec![1, 2, 3]);
        let buffer = pool.take_small();
        assert!(buffer.is_empty() && buffer.capacity() >= 3);
    }
}
