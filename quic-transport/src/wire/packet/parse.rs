//! Reading the header of the first packet in a datagram.
//!
//! The invariant fields of a long header are read whatever the version is
//! ([RFC 8999, section 5](https://www.rfc-editor.org/rfc/rfc8999#section-5)), the rest by version 1.

use quic_common::Reader;

use super::header::{LONG, PacketHeader, Unreadable, is_long};
use super::kind::PacketKind;
use super::retry::RETRY_TAG_LENGTH;
use crate::wire::cid::ConnectionId;
use crate::wire::span::Span;
use crate::wire::version::Version;

/// Reads the header of the first packet in `datagram`; a short header has a connection ID of `short_cid_length` bytes.
///
/// Nothing is promised about the packet's length: one that is too short to remove its protection from comes out of
/// here, and is dropped there.
///
/// # Errors
///
/// When the packet has to be dropped.
#[inline]
pub(crate) fn parse_header(
    datagram: &[u8],
    short_cid_length: usize,
) -> Result<PacketHeader, Unreadable> {
    let first = *datagram.first().ok_or(Unreadable::Empty)?;
    if is_long(first) {
        parse_long(datagram, first)
    } else {
        parse_short(datagram, first, short_cid_length)
    }
}

/// Whom a packet with a short header is for, whose first byte has the `required` bits. Its packet number follows, at `1 + cid_length`, and it goes on to the end
/// of the datagram: for the many packets of this form that is all of [`parse_header`], at a fraction of its time.
///
/// # Errors
///
/// When the packet has to be dropped, or the header is a long one.
#[inline]
pub(crate) fn parse_short_cid(
    datagram: &[u8],
    cid_length: usize,
    required: u8,
) -> Result<ConnectionId, Unreadable> {
    let (first, rest) = datagram.split_first().ok_or(Unreadable::Empty)?;
    if !is_short_with(*first, required) {
        return Err(Unreadable::NotShort);
    }
    match rest.first_chunk() {
        Some(chunk) => ConnectionId::prefix(*chunk, cid_length),
        None => ConnectionId::new(rest.get(..cid_length).ok_or(Unreadable::Truncated)?),
    }
    .ok_or(Unreadable::LongConnectionId)
}

/// Whether a packet with this first byte has a short header, and the `required` bits.
#[inline]
pub(crate) const fn is_short_with(first: u8, required: u8) -> bool {
    first & (LONG | required) == required
}

#[inline]
fn parse_short(datagram: &[u8], first: u8, cid_length: usize) -> Result<PacketHeader, Unreadable> {
    let dcid = parse_short_cid(datagram, cid_length, 0)?;
    let number_offset = cid_length.saturating_add(1);
    Ok(PacketHeader {
        kind: PacketKind::Short,
        first,
        version: Version::V1,
        dcid,
        scid: ConnectionId::EMPTY,
        dcid_span: Span {
            start: 1,
            end: number_offset,
        },
        scid_span: Span::default(),
        token: Span::default(),
        number_offset,
        end: datagram.len(),
    })
}

#[inline(never)]
fn parse_long(datagram: &[u8], first: u8) -> Result<PacketHeader, Unreadable> {
    let mut fields = Fields::new(datagram);
    fields.reader.u8()?;
    let version = Version(fields.reader.u32()?);
    let dcid_length = fields.reader.u8()?;
    let dcid_span = fields.span(u64::from(dcid_length))?;
    let scid_length = fields.reader.u8()?;
    let scid_span = fields.span(u64::from(scid_length))?;
    let cids =
        ConnectionId::new(dcid_span.of(datagram)).zip(ConnectionId::new(scid_span.of(datagram)));
    let kind = PacketKind::from_long(version, first);
    let mut header = PacketHeader {
        kind,
        first,
        version,
        dcid: cids.map_or(ConnectionId::EMPTY, |(dcid, _)| dcid),
        scid: cids.map_or(ConnectionId::EMPTY, |(_, scid)| scid),
        dcid_span,
        scid_span,
        token: Span::default(),
        number_offset: fields.offset(),
        end: datagram.len(),
    };
    if matches!(
        kind,
        PacketKind::VersionNegotiation | PacketKind::Unsupported
    ) {
        return Ok(header);
    }
    if cids.is_none() {
        return Err(Unreadable::LongConnectionId);
    }
    if kind == PacketKind::Retry {
        let start = header.number_offset;
        let end = datagram
            .len()
            .checked_sub(RETRY_TAG_LENGTH)
            .filter(|end| *end >= start)
            .ok_or(Unreadable::Truncated)?;
        header.token = Span { start, end };
        header.number_offset = end;
        return Ok(header);
    }
    if kind == PacketKind::Initial {
        let length = fields.reader.varint()?;
        header.token = fields.span(length)?;
    }
    let length = fields.reader.varint()?;
    let packet = fields
        .span(length)
        .map_err(|_cut_short| Unreadable::BeyondDatagram)?;
    header.number_offset = packet.start;
    header.end = packet.end;
    Ok(header)
}

/// A reader that knows how far it is.
struct Fields<'a> {
    reader: Reader<'a>,
    total: usize,
}

impl<'a> Fields<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(bytes),
            total: bytes.len(),
        }
    }

    const fn offset(&self) -> usize {
        self.total.saturating_sub(self.reader.remaining())
    }

    fn span(&mut self, length: u64) -> Result<Span, Unreadable> {
        let length = usize::try_from(length).map_err(|_too_long| Unreadable::Truncated)?;
        let start = self.offset();
        self.reader.bytes(length)?;
        Ok(Span {
            start,
            end: self.offset(),
        })
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::{PacketKind, Unreadable, parse_header, parse_short_cid};
    use crate::wire::cid::ConnectionId;
    use crate::wire::packet::header::FIXED;
    use crate::wire::version::Version;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let digit = |d: u8| u8::try_from(char::from(d).to_digit(16).unwrap()).unwrap();
        digits
            .chunks(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect()
    }

    /// RFC 9001, A.2: the protected header of the client's Initial, its payload left out.
    #[test]
    fn initial_of_the_rfc() {
        let mut datagram = bytes("c000000001088394c8f03e5157080000449e7b9aec34");
        datagram.resize(1200, 0);
        let header = parse_header(&datagram, 8).unwrap();
        assert_eq!(header.kind, PacketKind::Initial);
        assert_eq!(header.version, Version::V1);
        assert_eq!(header.dcid.as_slice(), bytes("8394c8f03e515708"));
        assert_eq!(header.scid, ConnectionId::EMPTY);
        assert!(header.token.is_empty());
        assert_eq!((header.number_offset, header.end), (18, 1200));
    }

    /// RFC 9001, A.4: the whole Retry packet.
    #[test]
    fn retry_of_the_rfc() {
        let datagram =
            bytes("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
        let header = parse_header(&datagram, 8).unwrap();
        assert_eq!(header.kind, PacketKind::Retry);
        assert_eq!(header.scid.as_slice(), bytes("f067a5502a4262b5"));
        assert_eq!(header.token.of(&datagram), b"token");
        assert_eq!(header.number_offset, datagram.len() - 16);
    }

    /// RFC 9001, A.5: the protected short header packet.
    #[test]
    fn short_of_the_rfc() {
        let datagram = bytes("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
        let header = parse_header(&datagram, 0).unwrap();
        assert_eq!(header.kind, PacketKind::Short);
        assert_eq!((header.number_offset, header.end), (1, 21));
    }

    #[test]
    fn the_short_way_sees_what_the_long_one_does() {
        for first in 0..=255 {
            for length in 1..30 {
                let mut datagram: Vec<u8> = (0..length).collect();
                datagram[0] = first;
                let short = parse_header(&datagram, 8)
                    .ok()
                    .filter(|header| header.kind == PacketKind::Short);
                let any = short.map(|header| header.dcid);
                assert_eq!(parse_short_cid(&datagram, 8, 0).ok(), any);
                let usual = short.filter(|header| !header.is_fixed_bit_clear());
                let usual = usual.map(|header| header.dcid);
                assert_eq!(parse_short_cid(&datagram, 8, FIXED).ok(), usual);
            }
        }
        assert_eq!(
            parse_short_cid(&[0x40; 40], 21, FIXED),
            Err(Unreadable::LongConnectionId)
        );
        assert_eq!(parse_short_cid(&[], 0, FIXED), Err(Unreadable::Empty));
    }

    #[test]
    fn coalesced_packets_are_split_at_the_length_field() {
        let datagram = bytes("e000000001 01aa 01bb 05 0102030405 40aa0102");
        let header = parse_header(&datagram, 1).unwrap();
        assert_eq!(header.kind, PacketKind::Handshake);
        assert_eq!((header.number_offset, header.end), (10, 15));
        let rest = parse_header(&datagram[header.end..], 1).unwrap();
        assert_eq!(rest.kind, PacketKind::Short);
        assert_eq!(rest.dcid.as_slice(), [0xaa]);
    }

    /// RFC 8999, 5.1: connection IDs of up to 255 bytes in versions that aren't ours.
    #[test]
    fn an_unknown_version_shows_its_invariant_fields() {
        let mut datagram = vec![0x80, 0x1a, 0x2a, 0x3a, 0x4a, 255];
        datagram.extend([7; 255]);
        datagram.extend([2, 8, 9, 1, 2, 3]);
        let header = parse_header(&datagram, 8).unwrap();
        assert_eq!(header.kind, PacketKind::Unsupported);
        assert!(header.version.is_reserved());
        assert_eq!(header.dcid_span.of(&datagram), [7; 255]);
        assert_eq!(header.scid_span.of(&datagram), [8, 9]);
        assert_eq!(header.dcid, ConnectionId::EMPTY);
        assert_eq!(header.end, datagram.len());
    }

    /// RFC 9000, 17.2: a version 1 packet with a connection ID of 21 bytes MUST be dropped, and so MUST one whose
    /// fixed bit is clear.
    #[test]
    fn what_version_1_forbids_is_dropped() {
        let mut datagram = bytes("c000000001");
        datagram.push(20);
        datagram.extend([7; 20]);
        datagram.extend([0, 0, 1, 0]);
        assert!(parse_header(&datagram, 8).is_ok());
        datagram[5] = 21;
        datagram.insert(6, 7);
        assert_eq!(
            parse_header(&datagram, 8),
            Err(Unreadable::LongConnectionId)
        );
    }

    /// RFC 9000, 17.2 and 17.3.1: a packet whose fixed bit is clear is told apart.
    #[test]
    fn a_clear_fixed_bit_is_noticed() {
        let mut datagram = bytes("c000000001 00 00 00 01 00");
        assert!(!parse_header(&datagram, 8).unwrap().is_fixed_bit_clear());
        datagram[0] = 0x80;
        assert!(parse_header(&datagram, 8).unwrap().is_fixed_bit_clear());
        assert!(parse_header(&[0x3f; 40], 8).unwrap().is_fixed_bit_clear());
        // Other versions may do as they like.
        datagram[4] = 9;
        assert!(!parse_header(&datagram, 8).unwrap().is_fixed_bit_clear());
        let short = |first: u8, required| parse_short_cid(&[first; 40], 8, required).is_ok();
        assert!(short(0x40, FIXED) && !short(0x3f, FIXED) && !short(0xc0, FIXED));
        assert!(short(0x40, 0) && short(0x3f, 0) && !short(0x80, 0));
    }

    #[test]
    fn every_cut_is_dropped() {
        let whole = bytes("c000000001 02aaab 01bb 03 a1a2a3 05 0102030405");
        assert!(parse_header(&whole, 8).is_ok());
        for length in 1..whole.len() {
            let expected = if length < 15 {
                Unreadable::Truncated
            } else {
                Unreadable::BeyondDatagram
            };
            assert_eq!(parse_header(&whole[..length], 8), Err(expected), "{length}");
        }
        assert_eq!(parse_header(&[], 8), Err(Unreadable::Empty));
        assert_eq!(parse_header(&[0x40; 8], 8), Err(Unreadable::Truncated));
        assert!(parse_header(&[0x40; 9], 8).is_ok());
    }

    #[test]
    fn lengths_of_2_to_the_62_are_dropped() {
        let token = bytes("c000000001 00 00 ffffffffffffffff 00");
        assert_eq!(parse_header(&token, 8), Err(Unreadable::Truncated));
        let packet = bytes("e000000001 00 00 ffffffffffffffff 00");
        assert_eq!(parse_header(&packet, 8), Err(Unreadable::BeyondDatagram));
    }

    #[test]
    fn random_bytes_give_offsets_inside_the_datagram() {
        let mut random = Random::from_seed([11; 32]);
        let mut parsed = 0;
        for _ in 0..50_000 {
            let mut datagram = vec![0; usize::try_from(random.below(80)).unwrap()];
            random.fill(&mut datagram);
            if random.below(2) == 0
                && let Some(head) = datagram.get_mut(..7)
            {
                head.copy_from_slice(&[head[0] | 0xc0, 0, 0, 0, 1, head[5] % 24, head[6]]);
            }
            if let Ok(header) = parse_header(&datagram, 8) {
                parsed += 1;
                assert!(header.number_offset <= header.end && header.end <= datagram.len());
                assert!(header.token.end <= datagram.len());
                assert!(header.end > 0, "progress");
            }
        }
        assert!(parsed > 1000);
    }
}
