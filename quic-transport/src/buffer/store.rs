//! Bytes at absolute stream offsets, in memory that follows what is held.
//!
//! Little data lies in one small buffer; once it spans more than that, in chunks, of which only those that hold
//! something exist. Which offsets are valid is the business of the buffer around it.

use std::collections::VecDeque;

use super::pool::{CHUNK, ChunkPool, SMALL};
use super::{to_length, to_offset};

/// See the module. Empty when both `small` and `chunks` are.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// The offset of the first byte of `small`, or of the first chunk.
    base: u64,
    small: Vec<u8>,
    chunks: VecDeque<Option<Box<[u8]>>>,
    /// Chunks have been needed before, so a small buffer would only be copied out of again.
    large: bool,
}

impl Store {
    /// Puts `data` at `offset`. Nothing below `floor` is held any more, and `floor <= offset`.
    #[inline]
    pub(crate) fn write(&mut self, offset: u64, data: &[u8], floor: u64, pool: &mut ChunkPool) {
        if data.is_empty() || offset < floor {
            debug_assert!(data.is_empty(), "a write below the floor");
            return;
        }
        if self.write_in_chunk(offset, data) {
            return;
        }
        if self.chunks.is_empty() && !self.write_small(offset, data, floor, pool) {
            self.enlarge(floor, pool);
        }
        if !self.chunks.is_empty() {
            self.write_chunks(offset, data, pool);
        }
    }

    /// Copies bytes from `offset` on into `target`; returns how many were there.
    #[inline]
    pub(crate) fn copy_to(&self, offset: u64, target: &mut [u8]) -> usize {
        let source = self.slice(offset, target.len());
        if source.len() == target.len() {
            target.copy_from_slice(source);
            return source.len();
        }
        self.copy_pieces(offset, target)
    }

    /// [`Self::copy_to`] for bytes that don't all lie together.
    #[inline(never)]
    fn copy_pieces(&self, offset: u64, target: &mut [u8]) -> usize {
        let mut copied = 0;
        let mut at = offset;
        while let Some(rest) = target.get_mut(copied..).filter(|rest| !rest.is_empty()) {
            let source = self.slice(at, rest.len());
            let Some(space) = rest.get_mut(..source.len()).filter(|s| !s.is_empty()) else {
                break;
            };
            space.copy_from_slice(source);
            copied += source.len();
            at = at.saturating_add(to_offset(source.len()));
        }
        copied
    }

    /// Up to `length` bytes from `offset` on that lie together.
    #[inline]
    pub(crate) fn slice(&self, offset: u64, length: usize) -> &[u8] {
        let Some(position) = offset.checked_sub(self.base).map(to_length) else {
            return &[];
        };
        let (bytes, start): (&[u8], usize) = if self.chunks.is_empty() {
            (&self.small, position)
        } else {
            match self.chunks.get(position / CHUNK) {
                Some(Some(chunk)) => (chunk, position % CHUNK),
                Some(None) | None => return &[],
            }
        };
        let end = start.saturating_add(length).min(bytes.len());
        bytes.get(start..end).unwrap_or_default()
    }

    /// Gives back what lies below `floor`; [`Self::clear`] does more when that is everything.
    #[inline]
    pub(crate) fn release(&mut self, floor: u64, pool: &mut ChunkPool) {
        if self.chunks.is_empty() {
            if !self.small.is_empty()
                && floor >= self.base.saturating_add(to_offset(self.small.len()))
            {
                pool.give_small(std::mem::take(&mut self.small));
            }
            return;
        }
        while !self.chunks.is_empty() && floor - self.base.min(floor) >= to_offset(CHUNK) {
            if let Some(Some(chunk)) = self.chunks.pop_front() {
                pool.give_chunk(chunk);
            }
            self.base += to_offset(CHUNK);
        }
    }

    /// Gives everything back.
    pub(crate) fn clear(&mut self, pool: &mut ChunkPool) {
        pool.give_small(std::mem::take(&mut self.small));
        for chunk in self.chunks.drain(..).flatten() {
            pool.give_chunk(chunk);
        }
    }

    /// Gives everything back, and the list of chunks with it.
    pub(crate) fn free(&mut self, pool: &mut ChunkPool) {
        self.clear(pool);
        *self = Self::default();
    }

    /// Writes into the small buffer if it can hold the data.
    fn write_small(&mut self, offset: u64, data: &[u8], floor: u64, pool: &mut ChunkPool) -> bool {
        if self.small.is_empty() {
            if self.large || to_length(offset - floor).saturating_add(data.len()) > SMALL {
                return false;
            }
            self.base = floor;
            self.small = pool.take_small();
        } else if to_length(offset - self.base.min(offset)).saturating_add(data.len()) > SMALL {
            let stale = to_length(floor - self.base.min(floor)).min(self.small.len());
            if to_length(offset - floor).saturating_add(data.len()) > SMALL {
                return false;
            }
            self.small.drain(..stale);
            self.base = floor;
        }
        let position = to_length(offset - self.base.min(offset));
        if position == self.small.len() {
            self.small.extend_from_slice(data);
            return true;
        }
        let end = position + data.len();
        self.small.resize(self.small.len().max(end), 0);
        if let Some(space) = self.small.get_mut(position..end) {
            space.copy_from_slice(data);
        }
        true
    }

    /// Goes over to chunks, with what the small buffer holds.
    #[cold]
    fn enlarge(&mut self, floor: u64, pool: &mut ChunkPool) {
        let small = std::mem::take(&mut self.small);
        let base = self.base;
        self.large = true;
        self.base = floor;
        self.chunks.push_back(None);
        let stale = to_length(floor.saturating_sub(base));
        if let Some(live) = small.get(stale..) {
            self.write_chunks(base.max(floor), live, pool);
        }
        pool.give_small(small);
    }

    /// Writes into a chunk that is there, if the data lies in one: so does most of it.
    #[inline]
    fn write_in_chunk(&mut self, offset: u64, data: &[u8]) -> bool {
        let Some(position) = offset.checked_sub(self.base).map(to_length) else {
            return false;
        };
        let start = position % CHUNK;
        let Some(Some(chunk)) = self.chunks.get_mut(position / CHUNK) else {
            return false;
        };
        let Some(space) = chunk.get_mut(start..start + data.len()) else {
            return false;
        };
        space.copy_from_slice(data);
        true
    }

    fn write_chunks(&mut self, offset: u64, data: &[u8], pool: &mut ChunkPool) {
        let mut position = to_length(offset - self.base.min(offset));
        let mut rest = data;
        while !rest.is_empty() {
            let (index, start) = (position / CHUNK, position % CHUNK);
            if self.chunks.len() <= index {
                self.chunks.resize_with(index + 1, || None);
            }
            let Some(place) = self.chunks.get_mut(index) else {
                return;
            };
            let chunk = place.get_or_insert_with(|| pool.take_chunk());
            let (now, later) = rest.split_at(rest.len().min(CHUNK - start));
            if let Some(space) = chunk.get_mut(start..start + now.len()) {
                space.copy_from_slice(now);
            }
            position += now.len();
            rest = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, ChunkPool, SMALL, Store, to_offset};

    fn read(store: &Store, offset: u64, length: usize) -> Vec<u8> {
        let mut target = vec![0; length];
        let copied = store.copy_to(offset, &mut target);
        target.truncate(copied);
        target
    }

    #[test]
    fn a_small_buffer_slides_before_it_becomes_chunks() {
        let mut pool = ChunkPool::default();
        let mut store = Store::default();
        store.write(100, &[1; SMALL], 100, &mut pool);
        assert!(store.chunks.is_empty());
        let floor = 100 + 1000;
        store.release(floor, &mut pool);
        store.write(100 + 2048, &[2; 1000], floor, &mut pool);
        assert!(store.chunks.is_empty());
        assert_eq!(
            read(&store, floor, 2048),
            [[1; 1048].as_slice(), &[2; 1000]].concat()
        );
        store.write(100 + 3048, &[3], floor, &mut pool);
        assert_eq!(store.chunks.len(), 1);
        assert_eq!(read(&store, 100 + 3047, 2), [2, 3]);
        assert_eq!(read(&store, floor, 1), [1]);
    }

    #[test]
    fn only_chunks_that_hold_something_exist() {
        let mut pool = ChunkPool::default();
        let mut store = Store::default();
        let far = 10 * to_offset(CHUNK) - 1;
        store.write(far, &[7, 8], 0, &mut pool);
        assert_eq!(store.chunks.iter().flatten().count(), 2);
        assert_eq!(read(&store, far, 2), [7, 8]);
        assert_eq!(store.slice(far, 2), [7]);
        store.release(far + 1, &mut pool);
        assert_eq!(store.chunks.len(), 1);
        store.free(&mut pool);
        assert!(store.slice(far, 1).is_empty());
    }

    #[test]
    fn bytes_stay_in_place_while_the_small_buffer_has_room() {
        let mut pool = ChunkPool::default();
        let mut store = Store::default();
        store.write(100, &[1; SMALL - 1000], 100, &mut pool);
        store.write(100 + 1048, &[2; 1000], 500, &mut pool);
        assert_eq!((store.base, store.small.len()), (100, SMALL));
        store.write(100 + 2048, &[3], 500, &mut pool);
        assert_eq!((store.base, store.small.len()), (500, SMALL - 399));
    }

    #[test]
    fn an_empty_write_takes_no_memory() {
        let mut pool = ChunkPool::default();
        let mut store = Store::default();
        store.write(5, &[], 0, &mut pool);
        assert!(store.small.is_empty() && store.chunks.is_empty());
    }

    #[test]
    fn what_is_cleared_goes_back_to_the_pool() {
        let mut pool = ChunkPool::default();
        let mut store = Store::default();
        store.write(0, b"abc", 0, &mut pool);
        store.clear(&mut pool);
        assert!(store.slice(0, 3).is_empty());
        let small = pool.take_small();
        assert!(small.capacity() > 0);

        store.write(0, &[7; CHUNK], 0, &mut pool);
        store.clear(&mut pool);
        assert!(store.chunks.is_empty());
        assert_eq!(pool.take_chunk()[0], 7);
        store.write(0, b"abc", 0, &mut pool);
        assert_eq!(store.chunks.len(), 1, "it has been large before");
        store.free(&mut pool);
        store.write(0, b"abc", 0, &mut pool);
        assert_eq!(store.small, b"abc");
    }

    #[test]
    fn nothing_is_kept_once_all_is_released() {
        let mut pool = ChunkPool::default();
        let mut store = Store::default();
        store.write(0, b"abc", 0, &mut pool);
        store.release(2, &mut pool);
        assert_eq!(read(&store, 2, 5), b"c");
        store.release(3, &mut pool);
        assert_eq!(store.small.capacity(), 0);
        store.write(3, b"d", 3, &mut pool);
        assert_eq!(read(&store, 3, 5), b"d");
    }
}
