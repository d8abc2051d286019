//! Field lines to bytes, [RFC 9204, section 4.5](https://www.rfc-editor.org/rfc/rfc9204#section-4.5): static table, else literals.

use super::huffman;
use super::integer;
use super::static_table::{Match, find};
use crate::field::Field;

/// Appends the encoded field section of `fields` to `out`; the section refers to no dynamic table.
///
/// Returns the size of the section: names, values and 32 bytes for each line, as the peer's
/// SETTINGS_MAX_FIELD_SECTION_SIZE counts.
#[inline]
pub fn encode<'a>(fields: impl IntoIterator<Item = Field<'a>>, out: &mut Vec<u8>) -> u64 {
    // Required Insert Count 0, Base 0.
    out.extend_from_slice(&[0, 0]);
    let mut size = 0_u64;
    for field in fields {
        size = size.saturating_add(field.size());
        let found = find(field.name, field.value);
        if !indexed(field, found, out) {
            literal(field, found, out);
        }
    }
    size
}

/// Appends a line that stands in the static table as a whole; whether it does.
#[inline]
pub(super) fn indexed(field: Field<'_>, found: Option<Match>, out: &mut Vec<u8>) -> bool {
    match found {
        Some(Match::Line(index)) if !field.sensitive => {
            integer::encode(out, 0b1100_0000, 6, u64::from(index));
            true
        }
        _ => false,
    }
}

/// Appends a line with its value as a literal.
#[inline]
pub(super) fn literal(field: Field<'_>, found: Option<Match>, out: &mut Vec<u8>) {
    let never = u8::from(field.sensitive);
    match found {
        Some(Match::Line(index) | Match::Name(index)) => {
            integer::encode(out, 0b0101_0000 | never << 5, 4, u64::from(index));
        }
        None => string(field.name, 0b0010_0000 | never << 4, 3, out),
    }
    string(field.value, 0, 7, out);
}

/// A string literal behind `pattern`: as a Huffman code when that is shorter. The bit above the `prefix` says which.
pub(super) fn string(bytes: &[u8], pattern: u8, prefix: u32, out: &mut Vec<u8>) {
    let wide = |length: usize| u64::try_from(length).unwrap_or(u64::MAX >> 2);
    let short = huffman::encoded_length(bytes);
    if short < bytes.len() {
        integer::encode(out, pattern | 1 << prefix, prefix, wide(short));
        huffman::encode(bytes, out);
    } else {
        integer::encode(out, pattern, prefix, wide(bytes.len()));
        out.extend_from_slice(bytes);
    }
}
