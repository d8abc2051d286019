//! What a packet's header says before any protection is removed.
//!
//! All positions are offsets: the packet is decrypted where it lies, so nothing may borrow from it meanwhile.

use quic_common::Truncated;

use super::kind::PacketKind;
use crate::wire::cid::ConnectionId;
use crate::wire::span::Span;
use crate::wire::version::Version;

/// First byte: the header is a long one.
pub(super) const LONG: u8 = 0x80;
/// First byte: set in every packet of versions 1 and 2, unless the receiver permits otherwise.
pub(crate) const FIXED: u8 = 0x40;
/// First byte of a short header: the spin bit.
pub(crate) const SPIN: u8 = 0x20;
/// First byte of a short header: the key phase, under header protection.
pub(super) const KEY_PHASE: u8 = 0x04;

/// The first packet of a datagram, or of what is left of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHeader {
    /// What the packet is.
    pub(crate) kind: PacketKind,
    /// The first byte, still protected.
    pub(crate) first: u8,
    /// The version; [`Version::V1`] stands in for it in a short header, which has none.
    pub(crate) version: Version,
    /// Whom the packet is for. Empty when it is longer than version 1 allows, which only an
    /// [`Unsupported`](PacketKind::Unsupported) or a Version Negotiation packet can be.
    pub(crate) dcid: ConnectionId,
    /// Who sent it; empty in a short header, and as `dcid` when too long.
    pub(crate) scid: ConnectionId,
    /// Where the destination connection ID lies, whatever its length.
    pub(crate) dcid_span: Span,
    /// Where the source connection ID lies, whatever its length.
    pub(crate) scid_span: Span,
    /// The token of an Initial or Retry packet, else empty.
    pub(crate) token: Span,
    /// Where the packet number is; the integrity tag of a Retry, the versions of a Version Negotiation.
    pub(crate) number_offset: usize,
    /// Where this packet ends and the next one of the datagram begins.
    pub(crate) end: usize,
}

impl PacketHeader {
    /// Whether the fixed bit is clear in a packet that has one: no QUIC packet, unless the sender was told that it need not
    /// be set (RFC 9287).
    pub(crate) const fn is_fixed_bit_clear(&self) -> bool {
        self.first & FIXED == 0
            && !matches!(
                self.kind,
                PacketKind::VersionNegotiation | PacketKind::Unsupported
            )
    }
}

/// Why a packet is dropped before its protection is looked at; so is the rest of its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// There is nothing.
    Empty,
    /// The header is cut short.
    Truncated,
    /// The header is a long one, or lacks a bit.
    NotShort,
    /// A connection ID of more than 20 bytes in version 1.
    LongConnectionId,
    /// The packet claims to go on behind the end of the datagram.
    BeyondDatagram,
}

impl From<Truncated> for Unreadable {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Whether the first byte is that of a long header.
#[inline]
pub(crate) const fn is_long(first: u8) -> bool {
    first & LONG != 0
}

/// Whether reserved bits are set in the first byte, once its protection is removed. After the packet is
/// authenticated that is a PROTOCOL_VIOLATION (RFC 9000, 17.2 and 17.3.1).
#[inline]
pub(crate) const fn has_reserved_bits(first: u8) -> bool {
    let reserved = if is_long(first) { 0x0c } else { 0x18 };
    first & reserved != 0
}

/// The key phase in the first byte of a short header, once its protection is removed.
#[inline]
pub(crate) const fn key_phase_bit(first: u8) -> bool {
    first & KEY_PHASE != 0
}

#[cfg(test)]
mod tests {
    use super::{has_reserved_bits, key_phase_bit};

    /// RFC 9000, 17.2 and 17.3.1: which bits are reserved depends on the header's form.
    #[test]
    fn the_reserved_bits_differ_by_form() {
        for bit in 0..7 {
            assert_eq!(has_reserved_bits(0x80 | 1 << bit), bit == 2 || bit == 3);
            assert_eq!(has_reserved_bits(1 << bit), bit == 3 || bit == 4);
        }
    }

    #[test]
    fn the_bits_of_a_short_header() {
        assert!(key_phase_bit(0x44) && !key_phase_bit(0x63));
    }
}
