//! Bytes to field lines, [RFC 9204, section 4.5](https://www.rfc-editor.org/rfc/rfc9204#section-4.5).
//!
//! The size of the section is counted line by line while it is decoded, so that a short input can't become a long list.

use quic_common::Reader;

use super::dynamic_table::DynamicTable;
use super::huffman;
use super::integer;
use super::prefix::{Prefix, TRUNCATED as CUT};
use super::static_table::entry;
use crate::field::Fields;
use crate::limits::FIELD_OVERHEAD;

/// Why a field section gives no field lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// Against the rules: a connection error of type QPACK_DECOMPRESSION_FAILED. The text says which.
    Failed(&'static str),
    /// Over the limit on its size.
    TooLarge,
}

/// Appends the lines of an encoded field section to `fields`, of at most `limit` bytes in all
/// (names, values and 32 bytes for each line). There is no dynamic table: the section stands for itself.
///
/// Names and values are not checked: that is for the message they belong to.
///
/// # Errors
///
/// When the section is malformed, refers to a dynamic table, or goes over the limit; `fields` holds the lines before that.
pub fn decode(section: &[u8], limit: u64, fields: &mut Fields) -> Result<(), DecodeError> {
    let table = DynamicTable::default();
    let mut reader = Reader::new(section);
    let prefix = Prefix::read(&mut reader, 0, 0).map_err(DecodeError::Failed)?;
    lines(&mut reader, prefix, &table, limit, fields)
}

/// Appends what follows the prefix of a field section to `fields`; what is required of the table is there.
#[inline]
pub(super) fn lines(
    reader: &mut Reader<'_>,
    prefix: Prefix,
    table: &DynamicTable,
    limit: u64,
    fields: &mut Fields,
) -> Result<(), DecodeError> {
    // A reference to the dynamic table is a byte, and may be a long line.
    let growth = if prefix.required == 0 { 2 } else { 24 };
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let expected = reader.remaining().saturating_mul(growth).min(most);
    fields.buffer().reserve(expected.saturating_add(64));
    let mut size = 0_u64;
    while let Ok(first) = reader.u8() {
        let mark = fields.begin();
        let buffer = fields.buffer();
        let before = buffer.len();
        let (name, sensitive) = line(first, reader, prefix, table, buffer)?;
        let length = buffer.len() - before;
        fields.end(mark, name, sensitive);
        size = u64::try_from(length)
            .ok()
            .and_then(|length| size.checked_add(length)?.checked_add(FIELD_OVERHEAD))
            .filter(|size| *size <= limit)
            .ok_or(DecodeError::TooLarge)?;
    }
    Ok(())
}

/// One line: appends its name and value and returns the length of the name, and whether it must never be indexed.
#[inline]
fn line(
    first: u8,
    reader: &mut Reader<'_>,
    prefix: Prefix,
    table: &DynamicTable,
    out: &mut Vec<u8>,
) -> Result<(usize, bool), DecodeError> {
    match first >> 4 {
        // Indexed, static.
        0b1100..=0b1111 => {
            let (name, value) = static_entry(first, 6, reader)?;
            out.extend_from_slice(name);
            out.extend_from_slice(value);
            Ok((name.len(), false))
        }
        // Literal with a name from the static table.
        0b0101 | 0b0111 => {
            let (name, _) = static_entry(first, 4, reader)?;
            literal(name, first & 0x20 != 0, reader, out)
        }
        // Literal with a literal name.
        0b0010 | 0b0011 => {
            let before = out.len();
            string(first, 3, reader, out)?;
            let name = out.len() - before;
            let value = reader.u8().map_err(|_short| TRUNCATED)?;
            string(value, 7, reader, out)?;
            Ok((name, first & 0x10 != 0))
        }
        _ => dynamic_line(first, reader, prefix, table, out),
    }
}

/// A line that refers to the dynamic table, before the base or from it on (RFC 9204, 3.2.5 and 3.2.6).
fn dynamic_line(
    first: u8,
    reader: &mut Reader<'_>,
    prefix: Prefix,
    table: &DynamicTable,
    out: &mut Vec<u8>,
) -> Result<(usize, bool), DecodeError> {
    let (bits, is_after) = match first >> 4 {
        0b1000..=0b1011 => (6, false),
        0b0001 => (4, true),
        0b0100 | 0b0110 => (4, false),
        _ => (3, true),
    };
    let index = integer::decode(first, bits, reader).map_err(|_invalid| TRUNCATED)?;
    let index = if is_after {
        prefix.base.checked_add(index)
    } else {
        prefix
            .base
            .checked_sub(index)
            .and_then(|index| index.checked_sub(1))
    };
    let (name, value) = index
        .filter(|index| *index < prefix.required)
        .and_then(|index| table.get(index))
        .ok_or(NO_LINE)?;
    match first >> 4 {
        0b1000..=0b1011 | 0b0001 => {
            out.extend_from_slice(name);
            out.extend_from_slice(value);
            Ok((name.len(), false))
        }
        0b0100 | 0b0110 => literal(name, first & 0x20 != 0, reader, out),
        _ => literal(name, first & 0x08 != 0, reader, out),
    }
}

/// A line with a name from a table, and a value that follows.
#[inline]
fn literal(
    name: &[u8],
    sensitive: bool,
    reader: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<(usize, bool), DecodeError> {
    out.extend_from_slice(name);
    let value = reader.u8().map_err(|_short| TRUNCATED)?;
    string(value, 7, reader, out)?;
    Ok((name.len(), sensitive))
}

fn static_entry(
    first: u8,
    prefix: u32,
    reader: &mut Reader<'_>,
) -> Result<(&'static [u8], &'static [u8]), DecodeError> {
    let index = integer::decode(first, prefix, reader).map_err(|_invalid| TRUNCATED)?;
    entry(index).ok_or(DecodeError::Failed("no such entry in the static table"))
}

/// A string literal; the bit above its length tells whether it is a Huffman code.
#[inline]
fn string(
    first: u8,
    prefix: u32,
    reader: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let length = integer::decode(first, prefix, reader).map_err(|_invalid| TRUNCATED)?;
    let bytes = usize::try_from(length)
        .ok()
        .and_then(|length| reader.bytes(length).ok())
        .ok_or(TRUNCATED)?;
    if first >> prefix & 1 == 1 {
        huffman::decode(bytes, out)
            .map_err(|_malformed| DecodeError::Failed("a string is not a Huffman code"))
    } else {
        out.extend_from_slice(bytes);
        Ok(())
    }
}

const TRUNCATED: DecodeError = DecodeError::Failed(CUT);
const NO_LINE: DecodeError = DecodeError::Failed("no such line in the dynamic table");

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::{DecodeError, NO_LINE, decode};
    use crate::field::{Field, Fields};
    use crate::limits::MAX_FIELD_SECTION;
    use crate::qpack::encode;

    fn decoded(section: &[u8]) -> Result<Fields, DecodeError> {
        let mut fields = Fields::new();
        decode(section, MAX_FIELD_SECTION, &mut fields)?;
        Ok(fields)
    }

    /// RFC 9204, B.1.
    #[test]
    fn literal_with_static_name_of_the_rfc() {
        let section = b"\x00\x00\x51\x0b/index.html";
        let fields = decoded(section).unwrap();
        assert!(fields.iter().eq([Field::new(":path", "/index.html")]));
    }

    /// RFC 9204, B.2 and B.4: what needs a dynamic table is refused where there is none.
    #[test]
    fn dynamic_sections_of_the_rfc_are_refused() {
        for section in [
            &[0x03, 0x81, 0x10, 0x11][..],
            &[0x05, 0x00, 0x80, 0xc1, 0x81],
        ] {
            assert!(matches!(decoded(section), Err(DecodeError::Failed(_))));
        }
    }

    /// Every representation that names a dynamic entry, with the Required Insert Count claiming otherwise.
    #[test]
    fn dynamic_references_are_refused() {
        for first in [0x80, 0xbf, 0x10, 0x1f, 0x40, 0x4f, 0x60, 0x00, 0x0f] {
            assert_eq!(decoded(&[0, 0, first, 0, 0]), Err(NO_LINE), "{first:#x}");
        }
    }

    #[test]
    fn what_is_cut_short_or_out_of_range_fails() {
        for section in [
            &[][..],
            &[0],
            &[0, 0x80],
            &[0, 0xff, 0x00],
            &[0, 0, 0xff, 0x24],
            &[0, 0, 0xff],
            &[0, 0, 0x51],
            &[0, 0, 0x51, 0x05, b'a'],
            &[0, 0, 0x21, b'a'],
            &[
                0, 0, 0x51, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f,
            ],
            &[0, 0, 0x51, 0x81, 0xff],
            &[0xff; 12],
        ] {
            let result = decoded(section);
            assert!(matches!(result, Err(DecodeError::Failed(_))), "{section:?}");
        }
        assert_eq!(decoded(&[0, 0x05]), Ok(Fields::new()));
        assert_eq!(decoded(&[0, 0, 0xff, 0x23]).unwrap().len(), 1);
    }

    #[test]
    fn lines_come_back_with_their_sensitivity() {
        let lines = [
            Field::new(":method", "GET"),
            Field::new(":path", "/a?b=c"),
            Field::new("cookie", "").sensitive(),
            Field::new("authorization", "Basic AAAA").sensitive(),
            Field::new("x-secret", "1").sensitive(),
            Field::new("x-custom", "value with \u{fc} and {braces}"),
            Field::new("empty", ""),
        ];
        let mut section = Vec::new();
        let size = encode(lines, &mut section);
        let fields = decoded(&section).unwrap();
        assert!(fields.iter().eq(lines));
        assert_eq!(fields.size(), size);
    }

    /// The bound on a section holds while it is decoded: at the cap, and at the cap and one more byte.
    #[test]
    fn the_size_limit_is_exact() {
        let value = vec![b'x'; 1000];
        let lines = [Field::new("a", &value), Field::new("b", "c")];
        let mut section = Vec::new();
        let size = encode(lines, &mut section);
        let mut fields = Fields::new();
        assert_eq!(decode(&section, size, &mut fields), Ok(()));
        fields.clear();
        assert_eq!(
            decode(&section, size - 1, &mut fields),
            Err(DecodeError::TooLarge)
        );
    }

    /// One byte each, 53 bytes and more decoded.
    #[test]
    fn a_bomb_of_static_references_stops_at_the_limit() {
        let mut section = vec![0xd1; 60_000];
        section[..2].fill(0);
        let mut fields = Fields::new();
        let result = decode(&section, MAX_FIELD_SECTION, &mut fields);
        assert_eq!(result, Err(DecodeError::TooLarge));
        assert!(fields.len() < 2000);
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut random = Random::from_seed([3; 32]);
        let mut fields = Fields::new();
        for round in 0_usize..20_000 {
            let mut section = vec![0; 2 + round % 60];
            random.fill(&mut section[2..]);
            fields.clear();
            if decode(&section, 10_000, &mut fields).is_ok() {
                let mut again = Vec::new();
                encode(&fields, &mut again);
                assert_eq!(decoded(&again).unwrap(), fields);
            }
        }
    }
}
