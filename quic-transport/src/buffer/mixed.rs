//! Bytes that the application lends, between others that are copied.
//!
//! The copied ones lie in a store without gaps: at the offsets that they would have if nothing else had been written. What
//! is lent stays where it is, and is let go of as soon as nothing of it is needed.
//!
//! Nothing here is inlined: who copies shall not pay for who lends.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{ChunkPool, Store, to_length, to_offset};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Mixed {
    copied: Store,
    lent: VecDeque<Lent>,
    /// Bytes that have been lent, those that are no longer needed included.
    total: u64,
    /// The lent piece that was read last: what is sent next lies there, or in the next one.
    read: usize,
}

/// A piece that the application has lent.
#[derive(Debug)]
struct Lent {
    start: u64,
    /// Bytes that had been lent before.
    before: u64,
    bytes: Bytes,
}

impl Lent {
    fn end(&self) -> u64 {
        self.start.saturating_add(to_offset(self.bytes.len()))
    }
}

impl Mixed {
    /// Nothing has been lent yet.
    pub(super) fn new(copied: Store) -> Self {
        Self {
            copied,
            ..Self::default()
        }
    }

    /// Keeps `bytes` at `offset`, behind everything else.
    #[inline(never)]
    pub(super) fn lend(&mut self, offset: u64, bytes: Bytes) {
        let before = self.total;
        self.total = before.saturating_add(to_offset(bytes.len()));
        self.lent.push_back(Lent {
            start: offset,
            before,
            bytes,
        });
    }

    /// Copies `data` to `offset`, behind everything else. Nothing below `floor` is held any more.
    #[inline(never)]
    pub(super) fn write(&mut self, offset: u64, data: &[u8], floor: u64, pool: &mut ChunkPool) {
        let floor = self.copied_below(floor);
        let offset = offset.saturating_sub(self.total);
        self.copied.write(offset, data, floor, pool);
    }

    /// Copies bytes from `offset` on into `target`; returns how many were there.
    #[inline(never)]
    pub(super) fn copy_to(&mut self, offset: u64, target: &mut [u8]) -> usize {
        if let Some(source) = self.in_last_read(offset, target.len()) {
            target.copy_from_slice(source);
            return target.len();
        }
        self.copy_pieces(offset, target)
    }

    /// Bytes that all lie in the piece that was read last: most of what is asked for.
    #[inline]
    fn in_last_read(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let lent = self.lent.get(self.read)?;
        let from = to_length(offset.checked_sub(lent.start)?);
        lent.bytes.get(from..from.saturating_add(length))
    }

    /// [`Self::copy_to`] for bytes that lie in another piece, or in several.
    fn copy_pieces(&mut self, offset: u64, target: &mut [u8]) -> usize {
        let mut index = self.first_to_read(offset);
        let mut copied = 0;
        while let Some(rest) = target.get_mut(copied..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(to_offset(copied));
            let count = match self.lent.get(index) {
                Some(lent) if lent.start <= at => {
                    index += 1;
                    let from = to_length(at - lent.start);
                    let source = lent.bytes.get(from..).unwrap_or_default();
                    let count = source.len().min(rest.len());
                    if let (Some(space), Some(source)) =
                        (rest.get_mut(..count), source.get(..count))
                    {
                        space.copy_from_slice(source);
                    }
                    count
                }
                next => {
                    let (end, before) =
                        next.map_or((u64::MAX, self.total), |lent| (lent.start, lent.before));
                    let count = to_length(end - at).min(rest.len());
                    rest.get_mut(..count)
                        .map_or(0, |space| self.copied.copy_to(at - before, space))
                }
            };
            if count == 0 {
                break;
            }
            copied += count;
        }
        self.read = index.saturating_sub(1);
        copied
    }

    /// Lets go of what lies below `floor`.
    #[inline(never)]
    pub(super) fn release(&mut self, floor: u64, pool: &mut ChunkPool) {
        while self.lent.front().is_some_and(|lent| lent.end() <= floor) {
            self.lent.pop_front();
            self.read = self.read.saturating_sub(1);
        }
        let floor = self.copied_below(floor);
        self.copied.release(floor, pool);
    }

    /// Lets go of what is lent from `end` on, behind which nothing is written any more.
    pub(super) fn truncate(&mut self, end: u64) {
        while let Some(last) = self.lent.back_mut().filter(|lent| lent.end() > end) {
            let left = to_length(end.saturating_sub(last.start));
            last.bytes.truncate(left);
            self.total = last.before.saturating_add(to_offset(left));
            if left > 0 {
                break;
            }
            self.lent.pop_back();
        }
    }

    /// Lets go of everything.
    #[inline(never)]
    pub(super) fn clear(&mut self, pool: &mut ChunkPool) {
        self.lent.clear();
        self.copied.clear(pool);
    }

    /// [`Self::first_beyond`], found at once where the last reading ended.
    fn first_to_read(&self, offset: u64) -> usize {
        let is_behind = |index: usize| self.lent.get(index).is_none_or(|lent| lent.end() <= offset);
        if self.read > 0 && !is_behind(self.read - 1) {
            return self.first_beyond(offset);
        }
        let mut near = self.read..self.lent.len().min(self.read + 3);
        near.find(|index| !is_behind(*index))
            .unwrap_or_else(|| self.first_beyond(offset))
    }

    /// The first lent piece of which something lies at `offset` or beyond.
    fn first_beyond(&self, offset: u64) -> usize {
        self.lent.partition_point(|lent| lent.end() <= offset)
    }

    /// How many of the bytes below `offset` are copied ones.
    fn copied_below(&self, offset: u64) -> u64 {
        self.lent.get(self.first_beyond(offset)).map_or_else(
            || offset.saturating_sub(self.total),
            |lent| offset.min(lent.start).saturating_sub(lent.before),
        )
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{ChunkPool, Mixed, Store};

    /// "ab", "LENT", "cd", "MORE" and "e", from offset 100 on.
    fn mixed(pool: &mut ChunkPool) -> Mixed {
        let mut store = Store::default();
        store.write(100, b"ab", 100, pool);
        let mut mixed = Mixed::new(store);
        mixed.lend(102, Bytes::from_static(b"LENT"));
        mixed.write(106, b"cd", 100, pool);
        mixed.lend(108, Bytes::from_static(b"MORE"));
        mixed.write(112, b"e", 100, pool);
        mixed
    }

    fn read(mixed: &mut Mixed, offset: u64, length: usize) -> Vec<u8> {
        let mut target = vec![0; length];
        let copied = mixed.copy_to(offset, &mut target);
        target.truncate(copied);
        target
    }

    #[test]
    fn any_range_is_read_through_both_kinds() {
        let mut pool = ChunkPool::default();
        let mut mixed = mixed(&mut pool);
        let whole = b"abLENTcdMOREe";
        for start in 0..whole.len() {
            for end in start..=whole.len() {
                let offset = 100 + u64::try_from(start).unwrap();
                assert_eq!(read(&mut mixed, offset, end - start), whole[start..end]);
            }
        }
        assert_eq!(read(&mut mixed, 111, 10), b"Ee", "no more is there");
    }

    /// What is read is found from where the last reading ended: forwards, backwards, and after pieces have gone.
    #[test]
    fn where_the_last_reading_ended_decides_nothing() {
        let mut pool = ChunkPool::default();
        let mut mixed = Mixed::new(Store::default());
        for piece in 0..50_u8 {
            mixed.lend(u64::from(piece) * 10, Bytes::copy_from_slice(&[piece; 10]));
        }
        for step in 0..500_u64 {
            let floor = step / 5;
            mixed.release(floor, &mut pool);
            let offset = floor + step * 7919 % (500 - floor);
            let piece = u8::try_from(offset / 10).unwrap();
            assert_eq!(read(&mut mixed, offset, 1), [piece], "{offset}");
            assert_eq!(read(&mut mixed, offset, 1), [piece], "{offset} again");
        }
    }

    #[test]
    fn copied_bytes_stay_together() {
        let mut pool = ChunkPool::default();
        let mut mixed = mixed(&mut pool);
        assert_eq!(mixed.copied.slice(100, 10), b"abcde");
        mixed.release(107, &mut pool);
        assert_eq!(mixed.lent.len(), 1);
        assert_eq!(read(&mut mixed, 107, 10), b"dMOREe");
        mixed.release(110, &mut pool);
        mixed.write(113, b"fg", 110, &mut pool);
        assert_eq!(read(&mut mixed, 110, 10), b"REefg");
        mixed.release(112, &mut pool);
        assert!(mixed.lent.is_empty());
        assert_eq!(read(&mut mixed, 112, 10), b"efg");
    }

    #[test]
    fn what_is_cut_off_is_let_go_of() {
        for (end, left, rest) in [
            (120, 2, "abLENTcdMOREe"),
            (112, 2, "abLENTcdMORE"),
            (109, 2, "abLENTcdM"),
            (108, 1, "abLENTcd"),
            (107, 1, "abLENTc"),
            (103, 1, "abL"),
            (102, 0, "ab"),
            (101, 0, "a"),
        ] {
            let mut pool = ChunkPool::default();
            let mut mixed = mixed(&mut pool);
            mixed.truncate(end);
            assert_eq!(mixed.lent.len(), left, "{end}");
            assert_eq!(read(&mut mixed, 100, rest.len()), rest.as_bytes(), "{end}");
        }
    }
}
