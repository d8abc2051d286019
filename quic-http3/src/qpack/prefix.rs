//! What a field section begins with, [RFC 9204, section 4.5.1](https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1): how
//! much of the dynamic table it needs, and what its indexes are relative to.

use std::ops::Range;

use quic_common::Reader;

use super::integer::{self, Invalid};
use crate::limits::FIELD_OVERHEAD;

/// The Required Insert Count and the Base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    /// How many lines must have been inserted; 0 when the section needs none of the table.
    pub(super) required: u64,
    pub(super) base: u64,
}

/// Lines that a table of `capacity` holds at most.
const fn max_entries(capacity: u64) -> u64 {
    capacity / FIELD_OVERHEAD
}

impl Prefix {
    /// Reads it, knowing that `inserted` lines have come for a table of at most `capacity`.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        capacity: u64,
        inserted: u64,
    ) -> Result<Self, &'static str> {
        let first = reader.u8().map_err(|_short| TRUNCATED)?;
        let wrapped = integer::decode(first, 8, reader).map_err(cut)?;
        let required = unwrap(wrapped, max_entries(capacity), inserted)
            .ok_or("no table could have so many lines inserted")?;
        let first = reader.u8().map_err(|_short| TRUNCATED)?;
        let delta = integer::decode(first, 7, reader).map_err(cut)?;
        let base = if first & 0x80 == 0 {
            required.checked_add(delta)
        } else {
            required
                .checked_sub(delta)
                .and_then(|base| base.checked_sub(1))
        };
        let base = base.ok_or("the base is negative")?;
        Ok(Self { required, base })
    }

    /// Writes it in the place of some bytes, whatever follows them.
    pub(super) fn write_over(self, place: Range<usize>, capacity: u64, out: &mut Vec<u8>) {
        let before = out.len();
        self.write(capacity, out);
        let length = out.len() - before;
        if let Some(rest) = out.get_mut(place.end..) {
            rest.rotate_right(length);
        }
        out.drain(place);
    }

    /// Appends it, for a table of at most `capacity`; the base is no less than what is required.
    fn write(self, capacity: u64, out: &mut Vec<u8>) {
        let Self { required, base } = self;
        let turn = max_entries(capacity).saturating_mul(2);
        let wrapped = required.checked_rem(turn).map_or(0, |rest| rest + 1);
        let wrapped = if required == 0 { 0 } else { wrapped };
        integer::encode(out, 0, 8, wrapped);
        integer::encode(out, 0, 7, base.saturating_sub(required));
    }
}

/// The Required Insert Count, of which only the remainder is written (RFC 9204, 4.5.1.1); `None` for an invalid one.
fn unwrap(wrapped: u64, max_entries: u64, inserted: u64) -> Option<u64> {
    let Some(rest) = wrapped.checked_sub(1) else {
        return Some(0);
    };
    let turn = max_entries.checked_mul(2).filter(|turn| rest < *turn)?;
    let most = inserted.checked_add(max_entries)?;
    let required = (most - most % turn).checked_add(rest)?;
    let required = if required > most {
        required.checked_sub(turn)?
    } else {
        required
    };
    Some(required).filter(|required| *required > 0)
}

pub(super) const TRUNCATED: &str = "the field section is cut short";

const fn cut(_: Invalid) -> &'static str {
    TRUNCATED
}

#[cfg(test)]
mod tests {
    use quic_common::Reader;

    use super::Prefix;

    const CAPACITY: u64 = 220;

    fn read(bytes: &[u8], capacity: u64, inserted: u64) -> Option<(u64, u64)> {
        let prefix = Prefix::read(&mut Reader::new(bytes), capacity, inserted).ok()?;
        Some((prefix.required, prefix.base))
    }

    /// RFC 9204, B.2 and B.4, and the example of 4.5.1.1: 100 bytes, ten lines received, 9 as 4.
    #[test]
    fn prefixes_of_the_rfc() {
        assert_eq!(read(&[0x03, 0x81], CAPACITY, 0), Some((2, 0)));
        assert_eq!(read(&[0x05, 0x00], CAPACITY, 4), Some((4, 4)));
        assert_eq!(read(&[0x04, 0x00], 100, 10), Some((9, 9)));
    }

    /// RFC 9204, 4.5.1.1 and 4.5.1.2: what no encoder could have written.
    #[test]
    fn impossible_counts_and_bases_are_refused() {
        // Six lines at most: counts are written as 1 to 12.
        assert_eq!(read(&[13, 0], CAPACITY, 100), None);
        assert_eq!(read(&[1, 0], CAPACITY, 0), None);
        assert_eq!(read(&[8, 0], CAPACITY, 0), None);
        assert_eq!(read(&[7, 0], CAPACITY, 0), Some((6, 6)));
        assert_eq!(read(&[3, 0x82], CAPACITY, 0), None);
        assert_eq!(read(&[0, 0x80], CAPACITY, 0), None);
        assert_eq!(read(&[1, 0], 0, 0), None);
        assert_eq!(read(&[1, 0], 31, 0), None);
        assert_eq!(read(&[0, 5], CAPACITY, 0), Some((0, 5)));
        for cut in [&[][..], &[0], &[0xff], &[0, 0x7f]] {
            assert_eq!(read(cut, CAPACITY, 0), None);
        }
    }

    /// Whatever an encoder may need is understood, however far the decoder has come.
    #[test]
    fn counts_come_back() {
        for capacity in [32, 64, 220, 4096] {
            let entries = capacity / 32;
            let far = 1_u64 << 40;
            for required in (0..3 * entries).chain(far..far + 20) {
                // The decoder lacks some of what is required, or has more, by less than the table holds.
                let least = required.saturating_sub(entries);
                for inserted in [least, required, required + entries - 1] {
                    let prefix = Prefix {
                        required,
                        base: required + 3,
                    };
                    let mut bytes = b"__lines".to_vec();
                    prefix.write_over(0..2, capacity, &mut bytes);
                    assert!(bytes.ends_with(b"lines"));
                    let expected = Some((required, required + 3));
                    assert_eq!(read(&bytes, capacity, inserted), expected);
                }
            }
        }
    }
}
