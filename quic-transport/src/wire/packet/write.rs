//! Writing packet headers.
//!
//! The length of a long packet isn't known before its frames are written, so its field takes two bytes, filled in last.

use quic_common::{Writer, varint_size};

use super::header::{FIXED, KEY_PHASE, LONG};
use super::kind::PacketKind;
use crate::wire::cid::{ConnectionId, MAX_CID_LENGTH};
use crate::wire::packet_number::PacketNumber;
use crate::wire::version::Version;

/// The most that the length field of a long header, which we write in two bytes, can say: packet number, payload and
/// tag together.
pub(crate) const MAX_LONG_LENGTH: usize = (1 << 14) - 1;

/// The most bytes of a packet number.
const MAX_NUMBER_LENGTH: usize = 4;

/// What a short header has at most besides the connection ID.
pub(crate) const MOST_SHORT_OVERHEAD: usize = 1 + MAX_NUMBER_LENGTH;

/// The longest short header.
const LONGEST_SHORT: usize = MOST_SHORT_OVERHEAD + MAX_CID_LENGTH;

/// The header of an Initial, 0-RTT or Handshake packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongHeader<'a> {
    /// One of the three.
    pub(crate) kind: PacketKind,
    /// The version.
    pub(crate) version: Version,
    /// Whom the packet is for.
    pub(crate) dcid: ConnectionId,
    /// Who sends it.
    pub(crate) scid: ConnectionId,
    /// The token, for Initial packets only; else not written.
    pub(crate) token: &'a [u8],
}

/// Where the fields lie that are needed again when a long packet is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongOffsets {
    /// The two bytes of the length field.
    pub(crate) length: usize,
    /// The packet number.
    pub(crate) number: usize,
}

impl LongHeader<'_> {
    /// Bytes of the header with a packet number of `number_length` bytes.
    pub(crate) fn size(&self, number_length: usize) -> usize {
        let token = if self.kind == PacketKind::Initial {
            varint_size(u64::try_from(self.token.len()).unwrap_or(u64::MAX)) + self.token.len()
        } else {
            0
        };
        1 + 4 + 1 + self.dcid.len() + 1 + self.scid.len() + token + 2 + number_length
    }

    /// Writes the header with the low `number_length` bytes (1 to 4) of `number`; `None` when it doesn't fit or the
    /// kind has no such header.
    pub(crate) fn write(
        &self,
        writer: &mut Writer<'_>,
        number: PacketNumber,
        number_length: usize,
    ) -> Option<LongOffsets> {
        if self.size(number_length) > writer.remaining() || self.kind == PacketKind::Retry {
            return None;
        }
        writer.u8(LONG
            | FIXED
            | self.kind.long_bits(self.version)?
            | number_length_bits(number_length));
        writer.u32(self.version.0);
        write_cid(writer, &self.dcid);
        write_cid(writer, &self.scid);
        if self.kind == PacketKind::Initial {
            writer.varint(u64::try_from(self.token.len()).ok()?);
            writer.bytes(self.token);
        }
        let length = writer.len();
        writer.varint_sized(0, 2);
        let offset = writer.len();
        write_number(writer, number, number_length).then_some(LongOffsets {
            length,
            number: offset,
        })
    }
}

/// Fills in the length field of a long packet, at `offset`: the bytes of packet number, payload and tag. `false` when
/// that is over [`MAX_LONG_LENGTH`].
pub(crate) fn write_length(packet: &mut [u8], offset: usize, length: usize) -> bool {
    let Some(value) = u64::try_from(length)
        .ok()
        .filter(|_| length <= MAX_LONG_LENGTH)
    else {
        return false;
    };
    packet
        .get_mut(offset..)
        .is_some_and(|field| Writer::new(field).varint_sized(value, 2))
}

/// The header of a 1-RTT packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortHeader {
    /// Whom the packet is for.
    pub(crate) dcid: ConnectionId,
    /// The bits of the first byte that say nothing of the packet: [`FIXED`] and [`SPIN`](super::header::SPIN).
    pub(crate) bits: u8,
    /// Which of two sets of keys protects the packet.
    pub(crate) key_phase: bool,
}

impl ShortHeader {
    /// Bytes of the header with a packet number of `number_length` bytes.
    #[inline]
    pub(crate) const fn size(&self, number_length: usize) -> usize {
        Self::size_to(&self.dcid, number_length)
    }

    /// Bytes of a header to `dcid` with a packet number of `number_length` bytes.
    #[inline]
    pub(crate) const fn size_to(dcid: &ConnectionId, number_length: usize) -> usize {
        1 + dcid.len() + number_length
    }

    /// Writes the header with the low `number_length` bytes (1 to 4) of `number`, and returns where these are; `None`
    /// when it doesn't fit.
    #[expect(
        clippy::inline_always,
        reason = "where packets are written in a row, most of it is the same for all"
    )]
    #[inline(always)]
    pub(crate) fn write(
        &self,
        writer: &mut Writer<'_>,
        number: PacketNumber,
        number_length: usize,
    ) -> Option<usize> {
        if self.size(number_length) > writer.remaining() {
            return None;
        }
        let key_phase = if self.key_phase { KEY_PHASE } else { 0 };
        let first = self.bits | key_phase | number_length_bits(number_length);
        if let Some(head) = writer.spare().first_chunk_mut()
            && self
                .write_ahead(head, first, number, number_length)
                .is_some()
        {
            writer.space(self.size(number_length))?;
            return Some(writer.len() - number_length);
        }
        writer.u8(first);
        writer.bytes(self.dcid.as_slice());
        let offset = writer.len();
        write_number(writer, number, number_length).then_some(offset)
    }

    /// Writes the header with two copies of constant length, the end of which the payload will cover.
    #[inline]
    fn write_ahead(
        &self,
        head: &mut [u8; LONGEST_SHORT],
        first: u8,
        number: PacketNumber,
        number_length: usize,
    ) -> Option<()> {
        let [place, rest @ ..] = head;
        *place = first;
        *rest.first_chunk_mut()? = *self.dcid.padded();
        let shift = match number_length {
            1 => 24,
            2 => 16,
            3 => 8,
            4 => 0,
            _ => return None,
        };
        let [.., a, b, c, d] = number.value().to_be_bytes();
        let number = u32::from_be_bytes([a, b, c, d]) << shift;
        let field: &mut [u8; MAX_NUMBER_LENGTH] =
            rest.get_mut(self.dcid.len()..)?.first_chunk_mut()?;
        *field = number.to_be_bytes();
        Some(())
    }
}

pub(super) fn write_cid(writer: &mut Writer<'_>, cid: &ConnectionId) -> bool {
    u8::try_from(cid.len()).is_ok_and(|length| writer.u8(length)) && writer.bytes(cid.as_slice())
}

/// The length of the packet number less one, in the two low bits.
#[inline]
const fn number_length_bits(length: usize) -> u8 {
    match length {
        1 => 0,
        2 => 1,
        3 => 2,
        _ => 3,
    }
}

#[inline]
fn write_number(writer: &mut Writer<'_>, number: PacketNumber, length: usize) -> bool {
    let [.., a, b, c, d] = number.value().to_be_bytes();
    match length {
        1 => writer.bytes(&[d]),
        2 => writer.bytes(&[c, d]),
        3 => writer.bytes(&[b, c, d]),
        4 => writer.bytes(&[a, b, c, d]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Writer;

    use super::{
        FIXED, LongHeader, LongOffsets, MAX_LONG_LENGTH, PacketKind, ShortHeader, write_length,
    };
    use crate::wire::cid::{ConnectionId, MAX_CID_LENGTH};
    use crate::wire::packet::parse_header;
    use crate::wire::packet_number::PacketNumber;
    use crate::wire::version::Version;

    fn long(kind: PacketKind) -> LongHeader<'static> {
        LongHeader {
            kind,
            version: Version::V1,
            dcid: ConnectionId::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap(),
            scid: ConnectionId::new(&[9]).unwrap(),
            token: b"tok",
        }
    }

    #[test]
    fn long_headers_round_trip() {
        for kind in [
            PacketKind::Initial,
            PacketKind::ZeroRtt,
            PacketKind::Handshake,
        ] {
            for number_length in 1..=4 {
                let header = long(kind);
                let mut packet = [0; 100];
                let mut writer = Writer::new(&mut packet);
                let number = PacketNumber(0x1122_3344_5566);
                let offsets = header.write(&mut writer, number, number_length).unwrap();
                assert_eq!(writer.len(), header.size(number_length));
                assert_eq!(writer.len(), offsets.number + number_length);
                assert!(write_length(&mut packet, offsets.length, 50));

                let parsed = parse_header(&packet, 0).unwrap();
                assert_eq!(parsed.kind, kind);
                assert_eq!((parsed.dcid, parsed.scid), (header.dcid, header.scid));
                let token = if kind == PacketKind::Initial {
                    &b"tok"[..]
                } else {
                    &[]
                };
                assert_eq!(parsed.token.of(&packet), token);
                assert_eq!(parsed.number_offset, offsets.number);
                assert_eq!(parsed.end, offsets.number + 50);
                assert_eq!(
                    packet[offsets.number..][..number_length],
                    [0x33, 0x44, 0x55, 0x66][4 - number_length..]
                );
                assert_eq!(usize::from(packet[0] & 3) + 1, number_length);
            }
        }
    }

    /// RFC 9001, A.2: the unprotected header of the client's Initial.
    #[test]
    fn initial_of_the_rfc() {
        let header = LongHeader {
            dcid: ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]).unwrap(),
            scid: ConnectionId::EMPTY,
            token: &[],
            ..long(PacketKind::Initial)
        };
        let mut packet = [0; 22];
        let mut writer = Writer::new(&mut packet);
        let offsets = header.write(&mut writer, PacketNumber(2), 4).unwrap();
        assert!(write_length(&mut packet, offsets.length, 1182));
        let expected = [
            0xc3, 0x00, 0x00, 0x00, 0x01, 0x08, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08,
            0x00, 0x00, 0x44, 0x9e, 0x00, 0x00, 0x00, 0x02,
        ];
        assert_eq!(packet, expected);
    }

    /// RFC 9001, A.5: the unprotected header of the short packet.
    #[test]
    fn short_of_the_rfc() {
        let header = ShortHeader {
            dcid: ConnectionId::EMPTY,
            bits: FIXED,
            key_phase: false,
        };
        let mut packet = [0; 4];
        let mut writer = Writer::new(&mut packet);
        let number = PacketNumber(654_360_564);
        assert_eq!(header.write(&mut writer, number, 3), Some(1));
        assert_eq!(packet, [0x42, 0x00, 0xbf, 0xf4]);
    }

    /// The header is the same with room behind it, where it may be written ahead, and without.
    #[test]
    fn a_short_header_is_the_same_with_room_behind_it() {
        let number = PacketNumber(0x1122_3344_5566);
        for cid_length in 0..=20_u8 {
            for number_length in 0..=5 {
                let bytes: Vec<u8> = (1..=cid_length).collect();
                let header = ShortHeader {
                    dcid: ConnectionId::new(&bytes).unwrap(),
                    bits: FIXED,
                    key_phase: true,
                };
                let (mut wide, mut tight) = ([0xff; 60], vec![0; header.size(number_length)]);
                let mut roomy = Writer::new(&mut wide);
                let with_room = header.write(&mut roomy, number, number_length);
                let length = roomy.len();
                let without = header.write(&mut Writer::new(&mut tight), number, number_length);
                assert_eq!(with_room, without, "{cid_length} {number_length}");
                if without.is_some() {
                    assert_eq!(wide[..length], tight);
                    // What is copied too much shows that the header was written ahead: the padding of the
                    // connection ID, and the rest of a number of four bytes.
                    let end = header.size(4).max(1 + MAX_CID_LENGTH);
                    assert!(wide[length..end].iter().all(|byte| *byte == 0));
                }
            }
        }
    }

    #[test]
    fn the_bits_of_a_short_header_are_written() {
        for (bits, key_phase, first) in
            [(FIXED, true, 0x44), (0x20, false, 0x20), (0x60, true, 0x64)]
        {
            let header = ShortHeader {
                dcid: ConnectionId::new(&[5; 8]).unwrap(),
                bits,
                key_phase,
            };
            let mut packet = [0; 10];
            let mut writer = Writer::new(&mut packet);
            assert_eq!(header.write(&mut writer, PacketNumber(7), 1), Some(9));
            assert_eq!(packet[0], first);
            let parsed = parse_header(&packet, 8).unwrap();
            assert_eq!((parsed.dcid, parsed.number_offset), (header.dcid, 9));
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let mut packet = [0; 24];
        let header = long(PacketKind::Handshake);
        let size = header.size(2);
        let mut writer = Writer::new(&mut packet[..size - 1]);
        assert_eq!(header.write(&mut writer, PacketNumber(0), 2), None);
        assert!(writer.is_empty());
        assert_eq!(
            long(PacketKind::Retry).write(&mut writer, PacketNumber(0), 1),
            None
        );
        let mut writer = Writer::new(&mut packet[..size]);
        assert_eq!(
            header.write(&mut writer, PacketNumber(0), 2),
            Some(LongOffsets {
                length: size - 4,
                number: size - 2
            })
        );
        assert!(write_length(&mut packet, 0, MAX_LONG_LENGTH));
        assert!(!write_length(&mut packet, 0, MAX_LONG_LENGTH + 1));
        assert!(!write_length(&mut packet, 23, 1));
    }
}
