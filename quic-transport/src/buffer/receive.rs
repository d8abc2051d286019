//! Reassembly: bytes go in at any offset and come out in order.
//!
//! The first copy of a byte wins. What is in order is one offset; what lies beyond a gap is a set of ranges whose
//! number is bounded, so that a peer can't make us keep a record for each byte
//! ([RFC 9000, section 21.7](https://www.rfc-editor.org/rfc/rfc9000#section-21.7)).

use super::{ChunkPool, RangeSet, Store, to_length, to_offset};
use crate::limits::{BYTES_PER_EXTRA_PIECE, CONNECTION_PIECES, REASSEMBLY_PIECES};

/// There are more separate pieces than an honest peer and network make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyPieces;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    store: Store,
    /// Everything below has been read.
    read: u64,
    /// Everything below has arrived.
    contiguous: u64,
    /// The end of the highest piece beyond a gap.
    highest: u64,
    /// What has arrived beyond `contiguous`.
    pieces: RangeSet,
}

impl ReceiveBuffer {
    /// Puts `data` at `offset`, where nothing has arrived before.
    ///
    /// # Errors
    ///
    /// When it leaves too many pieces; the caller closes the connection.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        offset: u64,
        data: &[u8],
        pool: &mut ChunkPool,
    ) -> Result<(), TooManyPieces> {
        let old = self.contiguous.saturating_sub(offset);
        let Some(fresh) = data.get(to_length(old)..).filter(|fresh| !fresh.is_empty()) else {
            return Ok(());
        };
        let start = offset.saturating_add(old);
        if start == self.contiguous && self.is_in_order() {
            self.append(fresh, pool);
            return Ok(());
        }
        self.insert_beyond(start, fresh, pool)
    }

    /// Whether all that has arrived is in order.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Puts the next bytes in order where [all is in order](Self::is_in_order).
    #[inline]
    pub(crate) fn append(&mut self, data: &[u8], pool: &mut ChunkPool) {
        self.store.write(self.contiguous, data, self.read, pool);
        self.contiguous = self.contiguous.saturating_add(to_offset(data.len()));
    }

    /// Bytes that can be read now.
    #[inline]
    pub(crate) const fn readable(&self) -> u64 {
        self.contiguous - self.read
    }

    /// The offset behind the last byte that has been read.
    #[inline]
    pub(crate) const fn read_offset(&self) -> u64 {
        self.read
    }

    /// The offset of the first byte that has not arrived.
    #[inline]
    pub(crate) const fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// The next bytes in order that lie together; empty when there are none.
    #[inline]
    pub(crate) fn fill(&self) -> &[u8] {
        self.store.slice(self.read, to_length(self.readable()))
    }

    /// Forgets the next `length` bytes, which have been used; returns how many there were.
    #[inline]
    pub(crate) fn consume(&mut self, length: usize, pool: &mut ChunkPool) -> u64 {
        let length = to_offset(length).min(self.readable());
        self.read += length;
        if self.read == self.contiguous && self.pieces.is_empty() {
            self.store.clear(pool);
        } else {
            self.store.release(self.read, pool);
        }
        length
    }

    /// Moves the next bytes into `target`; returns how many.
    #[inline]
    pub(crate) fn read(&mut self, target: &mut [u8], pool: &mut ChunkPool) -> usize {
        let length = target.len().min(to_length(self.readable()));
        let Some(target) = target.get_mut(..length).filter(|t| !t.is_empty()) else {
            return 0;
        };
        let copied = self.store.copy_to(self.read, target);
        self.consume(copied, pool);
        copied
    }

    /// Whether something has arrived beyond a gap.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn has_pieces(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Gives up what lies behind `end`, which has not been read; nothing may be put there any more.
    pub(crate) fn truncate(&mut self, end: u64, pool: &mut ChunkPool) {
        let others = pool.pieces.saturating_sub(self.pieces.pieces());
        self.pieces.remove(end..u64::MAX);
        pool.pieces = others.saturating_add(self.pieces.pieces());
        self.contiguous = self.contiguous.min(end.max(self.read));
        self.highest = self.highest.min(end);
    }

    /// Gives all memory back; what has not been read is lost.
    pub(crate) fn discard(&mut self, pool: &mut ChunkPool) {
        self.store.free(pool);
        pool.pieces = pool.pieces.saturating_sub(self.pieces.pieces());
        self.pieces.clear();
        self.read = self.contiguous;
    }

    fn insert_beyond(
        &mut self,
        start: u64,
        data: &[u8],
        pool: &mut ChunkPool,
    ) -> Result<(), TooManyPieces> {
        let end = start.saturating_add(to_offset(data.len()));
        for gap in self.pieces.gaps(start..end) {
            let span = to_length(gap.start - start)..to_length(gap.end - start);
            if let Some(fresh) = data.get(span) {
                self.store.write(gap.start, fresh, self.read, pool);
            }
        }
        self.highest = self.highest.max(end);
        let others = pool.pieces.saturating_sub(self.pieces.pieces());
        self.pieces.insert(start..end);
        self.contiguous = self.pieces.absorb(self.contiguous);
        pool.pieces = others.saturating_add(self.pieces.pieces());
        let span = to_length(self.highest.saturating_sub(self.read));
        let bound = REASSEMBLY_PIECES.saturating_add(span / BYTES_PER_EXTRA_PIECE);
        if self.pieces.pieces() > bound || pool.pieces > CONNECTION_PIECES {
            return Err(TooManyPieces);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::{ChunkPool, ReceiveBuffer, TooManyPieces, to_offset};
    use crate::limits::{BYTES_PER_EXTRA_PIECE, CONNECTION_PIECES, REASSEMBLY_PIECES};

    #[test]
    fn the_first_copy_of_a_byte_wins() {
        let (mut pool, mut buffer) = (ChunkPool::default(), ReceiveBuffer::default());
        buffer.insert(2, b"22", &mut pool).unwrap();
        buffer.insert(0, b"11111", &mut pool).unwrap();
        buffer.insert(0, b"333333", &mut pool).unwrap();
        assert_eq!(buffer.fill(), b"112213");
    }

    #[test]
    fn what_is_cut_off_counts_no_more() {
        let (mut pool, mut buffer) = (ChunkPool::default(), ReceiveBuffer::default());
        for offset in (100..1000).step_by(20) {
            buffer.insert(offset, &[7; 10], &mut pool).unwrap();
        }
        buffer.truncate(205, &mut pool);
        assert_eq!(pool.pieces, 6);
        buffer.insert(0, &[7; 205], &mut pool).unwrap();
        assert_eq!((buffer.contiguous(), pool.pieces), (205, 0));
        buffer.truncate(150, &mut pool);
        assert_eq!(buffer.readable(), 150);
        buffer.consume(120, &mut pool);
        buffer.truncate(50, &mut pool);
        assert_eq!((buffer.readable(), buffer.read_offset()), (0, 120));
    }

    #[test]
    fn pieces_are_bounded() {
        let (mut pool, mut buffer) = (ChunkPool::default(), ReceiveBuffer::default());
        let mut offset = 1;
        let bound = |offset: usize| REASSEMBLY_PIECES + (offset + 1) / BYTES_PER_EXTRA_PIECE;
        let mut pieces = 0;
        while pieces < bound(offset) {
            assert_eq!(buffer.insert(to_offset(offset), &[1], &mut pool), Ok(()));
            offset += 2;
            pieces += 1;
        }
        assert_eq!(
            buffer.insert(to_offset(offset), &[1], &mut pool),
            Err(TooManyPieces)
        );
    }

    #[test]
    fn pieces_of_all_buffers_are_bounded() {
        let mut pool = ChunkPool::default();
        let mut buffers: Vec<_> = (0..=CONNECTION_PIECES / REASSEMBLY_PIECES)
            .map(|_| ReceiveBuffer::default())
            .collect();
        for index in 0..CONNECTION_PIECES {
            let offset = to_offset(index % REASSEMBLY_PIECES * 2 + 1);
            let buffer = &mut buffers[index / REASSEMBLY_PIECES];
            assert_eq!(buffer.insert(offset, &[1], &mut pool), Ok(()));
        }
        let (last, others) = buffers.split_last_mut().unwrap();
        assert_eq!(last.insert(9, &[1], &mut pool), Err(TooManyPieces));
        // What is discarded, or becomes one piece, counts no more.
        others[0].discard(&mut pool);
        assert_eq!(last.insert(19, &[1], &mut pool), Ok(()));
        let all = vec![0; 2 * REASSEMBLY_PIECES + 2];
        others[1].insert(0, &all, &mut pool).unwrap();
        let rest = CONNECTION_PIECES - 2 * REASSEMBLY_PIECES + 2;
        assert_eq!(pool.pieces, rest);
    }

    /// Every second packet of the largest stream window missing is below the bound.
    #[test]
    fn heavy_loss_in_the_largest_stream_window_fits() {
        let (mut pool, mut buffer) = (ChunkPool::default(), ReceiveBuffer::default());
        let mut offset = 1200;
        while offset < 16 << 20 {
            buffer.insert(offset, &[1; 1200], &mut pool).unwrap();
            offset += 2400;
        }
    }

    /// Seeded: any order of overlapping pieces reads as the stream that was cut.
    #[test]
    fn agrees_with_a_model() {
        for seed in 0..5 {
            let mut random = Random::from_seed([seed; 32]);
            let (mut pool, mut buffer) = (ChunkPool::default(), ReceiveBuffer::default());
            let mut stream = vec![0; 100_000];
            random.fill(&mut stream);
            let mut arrived = vec![false; stream.len()];
            let mut read = 0;
            let mut target = [0; 4000];
            while read < stream.len() {
                let reach = if random.below(10) == 0 { 40_000 } else { 3000 };
                let ahead = random.below(reach);
                let start = (read + usize::try_from(ahead).unwrap())
                    .saturating_sub(1000)
                    .min(stream.len());
                let length = usize::try_from(random.below(3000)).unwrap();
                let end = (start + length).min(stream.len());
                buffer
                    .insert(to_offset(start), &stream[start..end], &mut pool)
                    .unwrap();
                arrived[start..end].fill(true);
                let front = arrived.iter().position(|a| !a).unwrap_or(stream.len());
                assert_eq!(buffer.contiguous(), to_offset(front));
                assert_eq!(buffer.readable(), to_offset(front - read));
                let wanted = usize::try_from(random.below(4000)).unwrap();
                if random.below(2) == 0 {
                    let got = buffer.read(&mut target[..wanted], &mut pool);
                    assert_eq!(target[..got], stream[read..read + got]);
                    assert_eq!(got, wanted.min(front - read));
                    read += got;
                } else {
                    let got = buffer.fill();
                    assert_eq!(got, &stream[read..read + got.len()]);
                    assert_eq!(got.is_empty(), front == read);
                    let used = wanted.min(got.len());
                    assert_eq!(buffer.consume(used, &mut pool), to_offset(used));
                    read += used;
                }
            }
        }
    }
}
