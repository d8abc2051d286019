//! Writing a thing whole or not at all.

use quic_common::Writer;

/// What can be written into a packet, and knows how many bytes that takes.
///
/// The caller compares [`size`](Encode::size) with the room that is left before it calls [`encode`](Encode::encode),
/// so that nothing has to be undone.
pub(crate) trait Encode {
    /// Bytes that [`encode`](Encode::encode) writes.
    fn size(&self) -> usize;

    /// Writes [`size`](Encode::size) bytes, which the writer must have room for.
    fn encode(&self, writer: &mut Writer<'_>);
}

/// A length as a value to be encoded.
#[expect(
    clippy::as_conversions,
    reason = "`From` is missing for usize, which has at most 64 bits"
)]
#[inline]
pub(crate) const fn wide(length: usize) -> u64 {
    length as u64
}
