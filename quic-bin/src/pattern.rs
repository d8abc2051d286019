//! Generated bodies: every byte is known from its position, so that a receiver can check all of them.
//!
//! The body is a sequence of blocks; each begins with its own number, and the rest is one fixed table of random bytes.
//! A block's size is prime, so no power of two and no packet size is a multiple of it, and data that was shifted,
//! reordered or repeated shows up. The table is lent to whoever sends it, and comparing costs no memory beyond the cache.

use quic_transport::Bytes;

/// Bytes of a block, a prime.
const BLOCK: usize = 16_381;

/// The same as an offset.
const BLOCK_OFFSET: u64 = 16_381;

/// Bytes of the block's number.
const NUMBER: usize = 8;

static TABLE: [u8; BLOCK - NUMBER] = table();

#[expect(
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "evaluated by the compiler"
)]
const fn table() -> [u8; BLOCK - NUMBER] {
    let mut table = [0; BLOCK - NUMBER];
    let mut state: u32 = 0x9e37_79b9;
    let mut index = 0;
    while index < table.len() {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        table[index] = (state >> 24) as u8;
        index += 1;
    }
    table
}

/// Where an offset lies.
enum Place {
    /// In the number of a block: its bytes, of which the first `skip` come before the offset.
    Number { bytes: [u8; NUMBER], skip: usize },
    /// In the table.
    Table(&'static [u8]),
}

fn place(offset: u64) -> Place {
    let block = offset / BLOCK_OFFSET;
    let within = usize::try_from(offset % BLOCK_OFFSET).unwrap_or(0);
    let Some(start) = within.checked_sub(NUMBER) else {
        return Place::Number {
            bytes: block.to_be_bytes(),
            skip: within,
        };
    };
    Place::Table(TABLE.get(start..).unwrap_or_default())
}

/// Calls `visit` with the body's bytes from `offset` on, piece by piece, until it returns false or `length` bytes are
/// through. Pieces lie in static memory or on the stack: nothing is generated twice.
fn pieces(mut offset: u64, mut length: usize, mut visit: impl FnMut(&[u8]) -> bool) {
    while length > 0 {
        let place = place(offset);
        let piece = match &place {
            Place::Number { bytes, skip } => bytes.get(*skip..).unwrap_or_default(),
            Place::Table(rest) => rest,
        };
        let piece = piece.get(..length.min(piece.len())).unwrap_or_default();
        if piece.is_empty() || !visit(piece) {
            return;
        }
        length -= piece.len();
        offset = offset.saturating_add(u64::try_from(piece.len()).unwrap_or(0));
    }
}

/// Fills `out` with the body's bytes from `offset` on.
pub fn fill(offset: u64, out: &mut [u8]) {
    let length = out.len();
    let mut rest = out;
    pieces(offset, length, |piece| {
        match std::mem::take(&mut rest).split_at_mut_checked(piece.len()) {
            Some((front, back)) => {
                front.copy_from_slice(piece);
                rest = back;
                true
            }
            None => false,
        }
    });
}

/// A body that is being generated.
///
/// `accept` is given what comes next, and takes off its front what is wanted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    offset: u64,
    length: u64,
}

impl Source {
    /// A body of `length` bytes.
    #[must_use]
    pub const fn new(length: u64) -> Self {
        Self { offset: 0, length }
    }

    /// Bytes that are still to come.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.length.saturating_sub(self.offset)
    }

    /// Whether all of it has been taken.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.remaining() == 0
    }

    /// Hands out what comes next, until `accept` leaves something of it or the body ends.
    pub fn write(&mut self, mut accept: impl FnMut(&mut Bytes)) {
        while !self.is_done() {
            let mut piece = match place(self.offset) {
                Place::Number { bytes, skip } => {
                    Bytes::copy_from_slice(bytes.get(skip..).unwrap_or_default())
                }
                Place::Table(rest) => Bytes::from_static(rest),
            };
            piece.truncate(usize::try_from(self.remaining()).unwrap_or(usize::MAX));
            let offered = piece.len();
            accept(&mut piece);
            let taken = offered - piece.len().min(offered);
            self.offset = self
                .offset
                .saturating_add(u64::try_from(taken).unwrap_or(0));
            if !piece.is_empty() {
                return;
            }
        }
    }
}

/// Checks a body as it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verifier {
    offset: u64,
    wrong: Option<u64>,
}

impl Verifier {
    /// Checks the bytes that come next; returns whether all were right so far.
    pub fn check(&mut self, bytes: &[u8]) -> bool {
        let length = u64::try_from(bytes.len()).unwrap_or(0);
        if self.wrong.is_none() {
            self.wrong = first_difference(self.offset, bytes);
        }
        self.offset = self.offset.saturating_add(length);
        self.wrong.is_none()
    }

    /// How many bytes came.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.offset
    }

    /// Where the first wrong byte was, if there was one.
    #[must_use]
    pub const fn wrong(&self) -> Option<u64> {
        self.wrong
    }
}

/// Where `bytes`, the body's from `offset` on, first differ from what they should be.
fn first_difference(offset: u64, bytes: &[u8]) -> Option<u64> {
    let mut rest = bytes;
    let mut checked = 0_u64;
    let mut wrong = None;
    pieces(offset, bytes.len(), |piece| {
        let Some((front, back)) = rest.split_at_checked(piece.len()) else {
            return false;
        };
        rest = back;
        if front == piece {
            checked += u64::try_from(piece.len()).unwrap_or(0);
            return true;
        }
        let same = front.iter().zip(piece).take_while(|(a, b)| a == b).count();
        wrong = Some(offset + checked + u64::try_from(same).unwrap_or(0));
        false
    });
    wrong
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, BLOCK_OFFSET, Source, Verifier, fill, first_difference};

    fn body(offset: u64, length: usize) -> Vec<u8> {
        let mut body = vec![0; length];
        fill(offset, &mut body);
        body
    }

    #[test]
    fn bytes_depend_on_the_position_alone() {
        let whole = body(0, 3 * BLOCK);
        for start in [0, 1, 7, 8, 9, BLOCK - 1, BLOCK, BLOCK + 3, 2 * BLOCK - 5] {
            for length in [0, 1, 2, 8, 1200, BLOCK] {
                let part = body(u64::try_from(start).unwrap(), length);
                assert_eq!(part, whole[start..start + length], "{start} {length}");
            }
        }
    }

    #[test]
    fn a_source_resumes_where_it_was_stopped() {
        let mut source = Source::new(100_000);
        let mut got = Vec::new();
        let mut room = 0;
        while !source.is_done() {
            room = (room + 977) % 30_011;
            let mut left = room;
            source.write(|piece| {
                let count = piece.len().min(left);
                got.extend_from_slice(&piece.split_to(count));
                left -= count;
            });
        }
        assert_eq!(got, body(0, 100_000));
        assert_eq!(source.remaining(), 0);
    }

    #[test]
    fn the_right_body_is_right_however_it_is_cut() {
        let whole = body(0, 100_000);
        let mut verifier = Verifier::default();
        let mut rest = &whole[..];
        let mut size = 1;
        while !rest.is_empty() {
            size = (size * 7 + 1) % 20_011;
            let (front, back) = rest.split_at(size.min(rest.len()));
            assert!(verifier.check(front));
            rest = back;
        }
        assert_eq!(verifier.received(), 100_000);
        assert_eq!(verifier.wrong(), None);
    }

    #[test]
    fn any_changed_byte_is_found() {
        let whole = body(0, 2 * BLOCK + 20);
        for at in (0..whole.len())
            .step_by(101)
            .chain([8, BLOCK, BLOCK + 8, whole.len() - 1])
        {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            let mut verifier = Verifier::default();
            assert!(!verifier.check(&changed));
            assert_eq!(verifier.wrong(), Some(u64::try_from(at).unwrap()));
            assert!(!verifier.check(b""), "it stays wrong");
        }
    }

    #[test]
    fn shifted_data_is_found_within_two_blocks() {
        for shift in [
            1,
            8,
            1200,
            1452,
            4096,
            16_384,
            65_536,
            BLOCK_OFFSET,
            7 * BLOCK_OFFSET,
            1 << 30,
        ] {
            let shifted = body(shift, 2 * BLOCK);
            assert!(first_difference(0, &shifted).is_some(), "{shift}");
            assert!(
                first_difference(5000, &body(5000 + shift, 2 * BLOCK)).is_some(),
                "{shift}"
            );
        }
    }

    #[test]
    fn the_end_of_all_offsets_is_no_trap() {
        let mut out = [0; 64];
        fill(u64::MAX - 10, &mut out);
        assert!(first_difference(u64::MAX - 70, &body(u64::MAX - 70, 64)).is_none());
    }
}
