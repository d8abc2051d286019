//! Entry points for fuzzing, of what only QPACK sees: Huffman codes, field sections, and the two streams.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "what panics here is what a fuzzer looks for"
)]

use super::{DecodeError, Decoded, Decoder, Encoder, decode, encode, huffman};
use crate::field::{Field, Fields};

/// Decodes the bytes as a field section, encodes its lines again, and compares; encodes lines made of the bytes, too.
pub fn qpack(bytes: &[u8]) {
    let Some((first, section)) = bytes.split_first() else {
        return;
    };
    let limit = u64::from(*first) * 64;
    let mut fields = Fields::new();
    match decode(section, limit, &mut fields) {
        Ok(()) => {
            assert!(fields.size() <= limit);
            same_again(&fields);
        }
        Err(DecodeError::Failed(reason)) => assert!(!reason.is_empty()),
        Err(DecodeError::TooLarge) => assert!(fields.size() > limit),
    }
    let mut made = Fields::new();
    for line in section.split(|byte| *byte == b'\n') {
        let at = line.iter().skip(1).position(|byte| *byte == b':');
        let (name, value) = line.split_at(at.map_or(line.len(), |at| at + 1));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let field = Field::new(name, value);
        made.push(if line.len() % 5 == 0 {
            field.sensitive()
        } else {
            field
        });
    }
    same_again(&made);
}

fn same_again(fields: &Fields) {
    let mut section = Vec::new();
    let size = encode(fields.iter(), &mut section);
    assert_eq!(size, fields.size());
    let mut again = Fields::new();
    assert_eq!(decode(&section, size, &mut again), Ok(()));
    assert_eq!(again, *fields);
    let mut less = Fields::new();
    if let Some(less_than_all) = size.checked_sub(1) {
        let cut = decode(&section, less_than_all, &mut less);
        assert_eq!(cut, Err(DecodeError::TooLarge));
    }
}

/// Decodes the bytes as a Huffman code and encodes them again, and the other way round: there is one code for a string.
pub fn huffman(bytes: &[u8]) {
    let mut decoded = Vec::new();
    if huffman::decode(bytes, &mut decoded).is_ok() {
        let mut encoded = Vec::new();
        huffman::encode(&decoded, &mut encoded);
        assert_eq!(encoded, bytes);
    }
    let mut encoded = Vec::new();
    huffman::encode(bytes, &mut encoded);
    assert_eq!(encoded.len(), huffman::encoded_length(bytes));
    decoded.clear();
    assert_eq!(huffman::decode(&encoded, &mut decoded), Ok(()));
    assert_eq!(decoded, bytes);
}

/// Reads the bytes as the peer's encoder stream and as its decoder stream, at once and byte by byte.
pub fn instructions(bytes: &[u8]) {
    let (mut whole, mut parts) = (Decoder::new(4096, 10), Decoder::new(4096, 10));
    let result = whole.read(bytes);
    assert_eq!(
        result,
        bytes.iter().try_for_each(|byte| parts.read(&[*byte]))
    );
    if result.is_ok() {
        let mut news = [Vec::new(), Vec::new()];
        whole.take_news(true, &mut news[0]).unwrap();
        parts.take_news(true, &mut news[1]).unwrap();
        assert_eq!(news[0], news[1]);
    }
    let (mut whole, mut parts) = (Encoder::new(4096, 1), Encoder::new(4096, 1));
    let result = whole.read(bytes);
    assert_eq!(
        result,
        bytes.iter().try_for_each(|byte| parts.read(&[*byte]))
    );
}

/// A peer that fills our table and sends sections: of each piece of the bytes the first says which, its length and its stream.
pub fn dynamic_table(bytes: &[u8]) {
    let mut decoder = Decoder::new(1024, 3);
    let mut rest = bytes;
    while let Some(([kind, length], after)) = rest.split_first_chunk::<2>() {
        let (piece, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        let mut fields = Fields::new();
        match kind % 4 {
            0 | 1 => {
                if let Err(error) = decoder.read(piece) {
                    assert!(!error.reason.is_empty());
                    return;
                }
            }
            2 => match decoder.decode(u64::from(kind >> 2), piece, 5000, &mut fields) {
                Ok(Decoded::Whole) => assert!(fields.size() <= 5000),
                Ok(Decoded::Blocked) => assert!(fields.is_empty()),
                Err(DecodeError::TooLarge) => assert!(fields.size() > 5000),
                Err(DecodeError::Failed(reason)) => assert!(!reason.is_empty()),
            },
            _ => decoder.cancel(u64::from(kind >> 2)),
        }
        while decoder.take_unblocked().is_some() {}
        decoder.take_news(true, &mut Vec::new()).unwrap();
    }
}
