//! Integers behind a prefix of 1 to 8 bits, [RFC 7541, section 5.1](https://www.rfc-editor.org/rfc/rfc7541#section-5.1).
//!
//! QPACK needs 62 bits; anything longer is an error (RFC 9204, 4.1.1).

use quic_common::{MAX_VARINT, Reader};

/// The integer is cut short, or is over 2^62 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Invalid {
    Truncated,
    TooLarge,
}

/// The bits of `first` below a pattern, as a mask.
const fn mask(prefix: u32) -> u8 {
    0xff_u8.unbounded_shr(8_u32.saturating_sub(prefix))
}

/// Reads the rest of an integer whose first byte, already taken, has `prefix` bits of it.
#[inline]
pub(super) fn decode(first: u8, prefix: u32, reader: &mut Reader<'_>) -> Result<u64, Invalid> {
    match Partial::new(first, prefix) {
        Ok(value) => Ok(value),
        Err(mut partial) => loop {
            let byte = reader.u8().map_err(|_short| Invalid::Truncated)?;
            if let Some(value) = partial.push(byte)? {
                return Ok(value);
            }
        },
    }
}

/// An integer that goes on after the bytes read so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partial {
    value: u64,
    shift: u32,
}

impl Partial {
    /// The whole integer if the prefix holds it, else what to go on with.
    #[inline]
    pub(super) fn new(first: u8, prefix: u32) -> Result<u64, Self> {
        let value = first & mask(prefix);
        if value < mask(prefix) {
            return Ok(u64::from(value));
        }
        Err(Self {
            value: u64::from(value),
            shift: 0,
        })
    }

    /// Adds one byte; the integer once it is complete.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<u64>, Invalid> {
        let part = u64::from(byte & 0x7f);
        if self.shift > 56 || (part << self.shift) >> self.shift != part {
            return Err(Invalid::TooLarge);
        }
        self.value = self
            .value
            .checked_add(part << self.shift)
            .filter(|value| *value <= MAX_VARINT)
            .ok_or(Invalid::TooLarge)?;
        self.shift += 7;
        Ok((byte & 0x80 == 0).then_some(self.value))
    }
}

/// Writes `value` behind a `prefix` of bits; `pattern` fills the bits above it.
#[inline]
pub(super) fn encode(out: &mut Vec<u8>, pattern: u8, prefix: u32, value: u64) {
    let most = mask(prefix);
    match u8::try_from(value) {
        Ok(small) if small < most => out.push(pattern | small),
        _ => {
            out.push(pattern | most);
            let mut rest = value - u64::from(most);
            while rest >= 0x80 {
                out.push(low_bits(rest) | 0x80);
                rest >>= 7;
            }
            out.push(low_bits(rest));
        }
    }
}

fn low_bits(value: u64) -> u8 {
    u8::try_from(value & 0x7f).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use quic_common::{MAX_VARINT, Reader};

    use super::{Invalid, decode, encode};

    fn read(bytes: &[u8], prefix: u32) -> Result<u64, Invalid> {
        let mut reader = Reader::new(bytes);
        let first = reader.u8().unwrap();
        decode(first, prefix, &mut reader)
    }

    /// RFC 7541, C.1.
    #[test]
    fn integers_of_the_rfc() {
        for (value, prefix, bytes) in [
            (10, 5, &[0x0a][..]),
            (1337, 5, &[0x1f, 0x9a, 0x0a]),
            (42, 8, &[0x2a]),
        ] {
            let mut out = Vec::new();
            encode(&mut out, 0, prefix, value);
            assert_eq!(out, bytes);
            assert_eq!(read(bytes, prefix), Ok(value));
        }
    }

    #[test]
    fn every_prefix_and_size_comes_back() {
        for prefix in 1..=8 {
            for value in (0..62).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
                let mut out = Vec::new();
                encode(&mut out, 0, prefix, value);
                assert_eq!(read(&out, prefix), Ok(value));
                for cut in 1..out.len() {
                    assert_eq!(read(&out[..cut], prefix), Err(Invalid::Truncated));
                }
            }
        }
    }

    /// RFC 9204, 4.1.1: integers up to 62 bits long, and no more.
    #[test]
    fn over_62_bits_is_an_error() {
        let mut out = Vec::new();
        encode(&mut out, 0, 7, MAX_VARINT);
        assert_eq!(read(&out, 7), Ok(MAX_VARINT));
        out.clear();
        encode(&mut out, 0, 7, MAX_VARINT + 1);
        assert_eq!(read(&out, 7), Err(Invalid::TooLarge));
        assert_eq!(read(&[0xff; 20], 7), Err(Invalid::TooLarge));
        let zeros = [&[0x7f][..], &[0x80; 30]].concat();
        assert_eq!(read(&zeros, 7), Err(Invalid::TooLarge));
    }
}
