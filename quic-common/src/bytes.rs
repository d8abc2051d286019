//! Cursors over byte slices that can't run past the end: a short input is an error, a full output a refusal.
//!
//! All integers are in network byte order ([RFC 9000, section 1.3](https://www.rfc-editor.org/rfc/rfc9000#section-1.3)).

use crate::varint::{VarInt, varint_size};

/// The input ended before the value did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl std::fmt::Display for Truncated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the input ended before the value did")
    }
}

impl std::error::Error for Truncated {}

/// Reads values from the front of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not yet read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes are left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything has been read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes the next `length` bytes, borrowed.
    ///
    /// # Errors
    ///
    /// When fewer are left; nothing is consumed then.
    #[inline]
    pub const fn bytes(&mut self, length: usize) -> Result<&'a [u8], Truncated> {
        match self.rest.split_at_checked(length) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(Truncated),
        }
    }

    /// Takes the next `N` bytes as an array.
    ///
    /// # Errors
    ///
    /// When fewer are left; nothing is consumed then.
    #[inline]
    pub const fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(*head)
            }
            None => Err(Truncated),
        }
    }

    /// Takes one byte.
    ///
    /// # Errors
    ///
    /// When nothing is left.
    #[inline]
    pub const fn u8(&mut self) -> Result<u8, Truncated> {
        match self.array::<1>() {
            Ok([byte]) => Ok(byte),
            Err(e) => Err(e),
        }
    }

    /// Takes a 16-bit integer.
    ///
    /// # Errors
    ///
    /// When fewer than 2 bytes are left.
    #[inline]
    pub const fn u16(&mut self) -> Result<u16, Truncated> {
        match self.array() {
            Ok(bytes) => Ok(u16::from_be_bytes(bytes)),
            Err(e) => Err(e),
        }
    }

    /// Takes a 32-bit integer.
    ///
    /// # Errors
    ///
    /// When fewer than 4 bytes are left.
    #[inline]
    pub const fn u32(&mut self) -> Result<u32, Truncated> {
        match self.array() {
            Ok(bytes) => Ok(u32::from_be_bytes(bytes)),
            Err(e) => Err(e),
        }
    }

    /// Takes a variable-length integer (RFC 9000, 16) of at most 2^62 - 1, in any of its encodings.
    ///
    /// # Errors
    ///
    /// When it is cut short.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        let first = *self.rest.first().ok_or(Truncated)?;
        Ok(match first >> 6 {
            0 => {
                self.u8()?;
                u64::from(first)
            }
            1 => u64::from(self.u16()? & 0x3fff),
            2 => u64::from(self.u32()? & 0x3fff_ffff),
            _ => u64::from_be_bytes(self.array()?) & (u64::MAX >> 2),
        })
    }

    /// Takes a variable-length integer as a length, then that many bytes.
    ///
    /// # Errors
    ///
    /// When either is cut short.
    #[inline]
    pub fn length_prefixed(&mut self) -> Result<&'a [u8], Truncated> {
        let length = usize::try_from(self.varint()?).map_err(|_too_long| Truncated)?;
        self.bytes(length)
    }
}

/// Writes values at the front of a slice, each whole or not at all.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    used: usize,
}

impl<'a> Writer<'a> {
    /// Writes from the start of `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, used: 0 }
    }

    /// Bytes written so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.used
    }

    /// Whether nothing has been written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Bytes that still fit.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.buffer.len() - self.used
    }

    /// What has been written.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.used).unwrap_or_default()
    }

    /// Ends writing and returns what was written.
    #[must_use]
    pub fn into_written(self) -> &'a mut [u8] {
        self.buffer.get_mut(..self.used).unwrap_or_default()
    }

    /// What may still be written to. It stays to be written: for bytes that are put there ahead of that.
    #[must_use]
    #[inline]
    pub fn spare(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.used..).unwrap_or_default()
    }

    /// Reserves the next `length` bytes and returns them to be filled; `None` when they don't fit.
    #[inline]
    pub fn space(&mut self, length: usize) -> Option<&mut [u8]> {
        let end = self.used.checked_add(length)?;
        let space = self.buffer.get_mut(self.used..end)?;
        self.used = end;
        Some(space)
    }

    /// Writes `bytes`; `false`, and nothing is written, when they don't fit.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.space(bytes.len())
            .map(|space| space.copy_from_slice(bytes))
            .is_some()
    }

    /// Writes one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> bool {
        self.bytes(&[value])
    }

    /// Writes a 16-bit integer.
    #[inline]
    pub fn u16(&mut self, value: u16) -> bool {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes a 32-bit integer.
    #[inline]
    pub fn u32(&mut self, value: u32) -> bool {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes `value` as a variable-length integer in its shortest form (RFC 9000, 16);
    /// `false` too when it is over 2^62 - 1.
    #[inline]
    pub fn varint(&mut self, value: u64) -> bool {
        self.varint_sized(value, varint_size(value))
    }

    /// Writes `value` as a variable-length integer of exactly `size` bytes: 1, 2, 4 or 8.
    #[inline]
    pub fn varint_sized(&mut self, value: u64, size: usize) -> bool {
        if VarInt::try_from(value).is_err() || varint_size(value) > size {
            return false;
        }
        // Each size is a copy of constant length, which is one store and no call.
        match size {
            1 => self.tail::<1>(value),
            2 => self.tail::<2>(value | 0x4000),
            4 => self.tail::<4>(value | 0x8000_0000),
            8 => self.tail::<8>(value | 0xc000_0000_0000_0000),
            _ => false,
        }
    }

    /// Writes the low `N` bytes of `value`.
    #[inline]
    fn tail<const N: usize>(&mut self, value: u64) -> bool {
        let bytes = value.to_be_bytes();
        bytes.last_chunk::<N>().is_some_and(|tail| self.bytes(tail))
    }
}

#[cfg(test)]
mod tests {
    use super::{Reader, Truncated, Writer};

    #[test]
    fn short_input_consumes_nothing() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u32(), Err(Truncated));
        assert_eq!(reader.u16(), Ok(0x0102));
        assert_eq!(reader.u8(), Ok(3));
        assert_eq!(reader.u8(), Err(Truncated));
    }

    #[test]
    fn full_output_writes_nothing() {
        let mut buffer = [0; 3];
        let mut writer = Writer::new(&mut buffer);
        assert!(!writer.u32(7));
        assert!(writer.u16(7));
        assert!(!writer.varint(64));
        assert!(writer.varint(63));
        assert_eq!(writer.remaining(), 0);
        assert_eq!(buffer, [0, 7, 63]);
    }

    /// RFC 9000, A.1: sample variable-length integers.
    #[test]
    fn varints_of_the_rfc() {
        let samples: [(&[u8], u64); 5] = [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in samples {
            assert_eq!(Reader::new(bytes).varint(), Ok(value));
            let mut buffer = [0; 8];
            let mut writer = Writer::new(&mut buffer);
            assert!(writer.varint_sized(value, bytes.len()));
            assert_eq!(writer.written(), bytes);
        }
    }

    #[test]
    fn every_cut_of_a_varint_is_truncated() {
        let bytes = [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        for length in 0..bytes.len() {
            assert_eq!(Reader::new(&bytes[..length]).varint(), Err(Truncated));
        }
    }

    #[test]
    fn a_length_beyond_the_input_is_truncated() {
        assert_eq!(Reader::new(&[3, 1, 2]).length_prefixed(), Err(Truncated));
        assert_eq!(Reader::new(&[2, 1, 2]).length_prefixed(), Ok(&[1, 2][..]));
        assert_eq!(Reader::new(&[0xff; 9]).length_prefixed(), Err(Truncated));
    }

    #[test]
    fn a_value_over_62_bits_is_refused() {
        let mut buffer = [0; 8];
        assert!(!Writer::new(&mut buffer).varint(1 << 62));
        assert!(Writer::new(&mut buffer).varint((1 << 62) - 1));
    }
}
