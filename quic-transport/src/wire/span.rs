//! A part of a buffer, kept as offsets because the buffer is written to in the meantime.

/// Where a field lies in the buffer that it was parsed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Offset of the first byte.
    pub(crate) start: usize,
    /// Offset behind the last byte.
    pub(crate) end: usize,
}

impl Span {
    /// Bytes in the field.
    #[inline]
    pub(crate) const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether the field has no bytes.
    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The field in `buffer`, which must be the one it was parsed from; empty when it lies outside.
    #[inline]
    pub(crate) fn of(self, buffer: &[u8]) -> &[u8] {
        buffer.get(self.start..self.end).unwrap_or_default()
    }
}
