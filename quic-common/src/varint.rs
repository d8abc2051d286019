//! Variable-length integers, [RFC 9000, section 16](https://www.rfc-editor.org/rfc/rfc9000#section-16).

/// The largest value that a variable-length integer can hold.
pub const MAX_VARINT: u64 = (1 << 62) - 1;

/// An integer of at most 2^62 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarInt(u64);

impl VarInt {
    /// The largest value, 2^62 - 1.
    pub const MAX: Self = Self(MAX_VARINT);

    /// A value that always fits.
    #[must_use]
    pub const fn from_u32(value: u32) -> Self {
        #[expect(clippy::as_conversions, reason = "`From` is not const")]
        Self(value as u64)
    }

    /// The value.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for VarInt {
    type Error = TooLarge;

    fn try_from(value: u64) -> Result<Self, TooLarge> {
        if value > MAX_VARINT {
            return Err(TooLarge);
        }
        Ok(Self(value))
    }
}

impl From<VarInt> for u64 {
    fn from(value: VarInt) -> Self {
        value.0
    }
}

impl std::fmt::Display for VarInt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The value is over 2^62 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the value is over 2^62 - 1")
    }
}

impl std::error::Error for TooLarge {}

/// Bytes that the shortest encoding of `value` takes: 1, 2, 4 or 8.
#[must_use]
#[inline]
pub const fn varint_size(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_VARINT, VarInt, varint_size};

    #[test]
    fn sizes_change_at_the_boundaries() {
        let sizes = [
            0,
            63,
            64,
            16_383,
            16_384,
            (1 << 30) - 1,
            1 << 30,
            MAX_VARINT,
        ]
        .map(varint_size);
        assert_eq!(sizes, [1, 1, 2, 2, 4, 4, 8, 8]);
    }

    #[test]
    fn the_bound_is_62_bits() {
        assert_eq!(VarInt::try_from(MAX_VARINT).ok(), Some(VarInt::MAX));
        assert!(VarInt::try_from(MAX_VARINT + 1).is_err());
    }
}
