//! The dynamic table, [RFC 9204, section 3.2](https://www.rfc-editor.org/rfc/rfc9204#section-3.2): lines in the order in
//! which they were inserted, of which the oldest leave for new ones.
//!
//! Names and values lie end to end in one buffer, whose front is given back once it is half empty. A line is known by
//! its absolute index: how many were inserted before.

use std::collections::VecDeque;

use crate::limits::FIELD_OVERHEAD;

/// The lines, oldest first.
#[derive(Debug, Default)]
pub(super) struct DynamicTable {
    lines: VecDeque<Line>,
    bytes: Vec<u8>,
    /// Bytes that were given back at the front of the buffer, ever.
    given_back: u64,
    /// Lines inserted so far.
    inserted: u64,
    size: u64,
    capacity: u64,
}

/// A line, and where it begins among all bytes that ever were in the buffer.
#[derive(Clone, Copy, Debug)]
struct Line {
    start: u64,
    name: usize,
    value: usize,
}

impl Line {
    const fn length(self) -> usize {
        self.name.saturating_add(self.value)
    }
}

/// There is no such line, or it is too large for the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

/// What a name and a value of `length` bytes together take (RFC 9204, 3.2.1).
pub(super) fn size_of(length: usize) -> u64 {
    wide(length).saturating_add(FIELD_OVERHEAD)
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

impl DynamicTable {
    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many lines were inserted so far: the absolute index of the next one.
    pub(super) const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The absolute index of the oldest line.
    pub(super) fn oldest(&self) -> u64 {
        self.inserted.saturating_sub(wide(self.lines.len()))
    }

    /// Changes the capacity; lines leave until the rest fits.
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.evict(capacity);
        self.give_back();
    }

    /// The name and the value of a line.
    #[inline]
    pub(super) fn get(&self, index: u64) -> Option<(&[u8], &[u8])> {
        let line = self.line(index)?;
        let rest = self.bytes.get(self.place(line.start)..)?;
        rest.get(..line.length())?.split_at_checked(line.name)
    }

    /// The absolute index of the first line that would stay if one of `size` were inserted; `None` when the table is too
    /// small for it.
    pub(super) fn first_kept(&self, size: u64) -> Option<u64> {
        let room = self.capacity.checked_sub(size)?;
        let mut used = self.size;
        let mut index = self.oldest();
        let mut lines = self.lines.iter();
        while used > room {
            used = used.saturating_sub(size_of(lines.next()?.length()));
            index = index.saturating_add(1);
        }
        Some(index)
    }

    /// Inserts a line.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refused> {
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.commit(name.len())
    }

    /// The buffer, for a name and a value to be appended to, and then [committed](Self::commit).
    pub(super) const fn append(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends the name of a line that is there, and its value too if `whole`; returns the length of the name.
    pub(super) fn append_from(&mut self, index: u64, whole: bool) -> Result<usize, Refused> {
        let line = self.line(index).ok_or(Refused)?;
        let start = self.place(line.start);
        let length = if whole { line.length() } else { line.name };
        let end = start.saturating_add(length);
        if end > self.bytes.len() {
            return Err(Refused);
        }
        self.bytes.extend_from_within(start..end);
        Ok(line.name)
    }

    /// Makes what was appended a line, whose name is the first `name` bytes of it.
    pub(super) fn commit(&mut self, name: usize) -> Result<(), Refused> {
        let start = self.end();
        let length = self.bytes.len().checked_sub(self.place(start));
        let length = length.ok_or(Refused)?;
        let room = self.capacity.checked_sub(size_of(length)).ok_or(Refused)?;
        let value = length.checked_sub(name).ok_or(Refused)?;
        self.evict(room);
        self.lines.push_back(Line { start, name, value });
        self.size = self.size.saturating_add(size_of(length));
        self.inserted = self.inserted.saturating_add(1);
        self.give_back();
        Ok(())
    }

    /// Gives back the room that isn't needed now.
    pub(super) fn rest(&mut self) {
        self.drop_front();
        self.bytes.shrink_to_fit();
        self.lines.shrink_to_fit();
    }

    #[inline]
    fn line(&self, index: u64) -> Option<Line> {
        let place = usize::try_from(index.checked_sub(self.oldest())?).ok()?;
        self.lines.get(place).copied()
    }

    /// Where the newest line ends.
    fn end(&self) -> u64 {
        self.lines.back().map_or(self.given_back, |line| {
            line.start.saturating_add(wide(line.length()))
        })
    }

    /// Where in the buffer a byte is.
    #[inline]
    fn place(&self, position: u64) -> usize {
        usize::try_from(position.saturating_sub(self.given_back)).unwrap_or(usize::MAX)
    }

    /// Lines leave until the rest takes at most `room`.
    fn evict(&mut self, room: u64) {
        while self.size > room
            && let Some(line) = self.lines.pop_front()
        {
            self.size = self.size.saturating_sub(size_of(line.length()));
        }
    }

    /// Gives back what is free before the oldest line, once it is half of the buffer.
    fn give_back(&mut self) {
        if self.free() > self.bytes.len() / 2 {
            self.drop_front();
        }
    }

    fn drop_front(&mut self) {
        let free = self.free();
        self.bytes.drain(..free);
        self.given_back = self.given_back.saturating_add(wide(free));
    }

    /// Bytes before the oldest line.
    fn free(&self) -> usize {
        let all = self.bytes.len();
        self.lines
            .front()
            .map_or(all, |oldest| self.place(oldest.start).min(all))
    }
}

#[cfg(test)]
mod tests {
    use super::{DynamicTable, Refused};

    fn table(capacity: u64) -> DynamicTable {
        let mut table = DynamicTable::default();
        table.set_capacity(capacity);
        table
    }

    fn names(table: &DynamicTable) -> Vec<String> {
        (table.oldest()..table.inserted())
            .map(|index| String::from_utf8_lossy(table.get(index).unwrap().0).into_owned())
            .collect()
    }

    /// RFC 9204, 3.2.1 and 3.2.2: a line takes its bytes and 32 more, and the oldest leave for it.
    #[test]
    fn the_oldest_lines_leave_for_new_ones() {
        let mut table = table(3 * 34);
        for name in ["a", "b", "c"] {
            table.insert(name.as_bytes(), b"1").unwrap();
        }
        assert_eq!(names(&table), ["a", "b", "c"]);
        assert_eq!(table.first_kept(34), Some(1));
        assert_eq!(table.first_kept(35), Some(2));
        assert_eq!(table.first_kept(102), Some(3));
        assert_eq!(table.first_kept(103), None);
        table.insert(b"d", b"22").unwrap();
        assert_eq!(names(&table), ["c", "d"]);
        assert_eq!((table.oldest(), table.inserted()), (2, 4));
        assert_eq!(table.get(3), Some((&b"d"[..], &b"22"[..])));
        assert_eq!((table.get(1), table.get(4)), (None, None));
    }

    /// RFC 9204, 3.2.2: a line that is larger than the table is refused, one as large is not.
    #[test]
    fn the_capacity_is_exact() {
        let mut table = table(40);
        assert_eq!(table.insert(b"name", b"valu"), Ok(()));
        assert_eq!(table.insert(b"name", b"value"), Err(Refused));
        table.set_capacity(39);
        assert_eq!(table.oldest(), table.inserted());
    }

    /// RFC 9204, 3.2.2: a line may be made from one that leaves for it.
    #[test]
    fn a_line_is_made_from_one_that_leaves() {
        let mut table = table(50);
        table.insert(b"name", b"value").unwrap();
        let name = table.append_from(0, false).unwrap();
        table.append().extend_from_slice(b"other");
        table.commit(name).unwrap();
        assert_eq!(table.get(1), Some((&b"name"[..], &b"other"[..])));
        let name = table.append_from(1, true).unwrap();
        table.commit(name).unwrap();
        assert_eq!(table.get(2), Some((&b"name"[..], &b"other"[..])));
        assert_eq!(table.append_from(1, true), Err(Refused));
    }

    #[test]
    fn the_buffer_holds_twice_the_capacity_at_most() {
        let mut table = table(1000);
        for round in 0_usize..10_000 {
            table.insert(b"name", &vec![b'x'; round % 900]).unwrap();
            assert!(table.bytes.len() <= 2 * 1000);
        }
        table.rest();
        assert!(table.bytes.capacity() <= 1000);
        let (name, value) = table.get(9_999).unwrap();
        assert_eq!((name, value.len()), (&b"name"[..], 9_999 % 900));
    }
}
