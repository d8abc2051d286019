//! The headers of a datagram's packets, and packet numbers.

use quic_common::{MAX_VARINT, Reader, Writer};

use super::byte;
use crate::wire::{
    LongHeader, PacketHeader, PacketKind, PacketNumber, Retry, parse_header, parse_short_cid,
    supported_versions,
};

/// Splits a datagram into its packets, as far as headers tell; the first byte is the length of our connection IDs.
///
/// Every position lies within the datagram, and the header of a long packet that is written again says the same.
pub fn headers(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let Some(cid_length) = byte(&mut input).map(|length| length % 24) else {
        return;
    };
    packet_number(input);
    let mut rest = input.rest();
    while let Ok(header) = parse_header(rest, cid_length) {
        check(&header, rest);
        match header.kind {
            PacketKind::VersionNegotiation => {
                if let Some(versions) = supported_versions(rest, &header) {
                    assert!(versions.count() * 4 <= rest.len());
                }
            }
            PacketKind::Retry => {
                if let Some(retry) = Retry::parse(rest, &header) {
                    assert_eq!(retry.untagged.len() + retry.tag.len(), rest.len());
                    assert!(retry.untagged.ends_with(retry.token));
                }
            }
            PacketKind::Initial | PacketKind::ZeroRtt | PacketKind::Handshake => {
                write_again(&header, rest);
            }
            PacketKind::Short => {
                assert_eq!(parse_short_cid(rest, cid_length, 0), Ok(header.dcid));
                assert_eq!(header.dcid.len(), cid_length);
            }
            PacketKind::Unsupported => {}
        }
        assert!(header.end > 0, "no packet is empty");
        rest = &rest[header.end..];
    }
}

fn check(header: &PacketHeader, datagram: &[u8]) {
    for span in [header.dcid_span, header.scid_span, header.token] {
        assert!(span.start <= span.end && span.end <= datagram.len());
    }
    assert!(header.number_offset <= header.end || header.kind == PacketKind::Retry);
    assert!(header.number_offset <= datagram.len() && header.end <= datagram.len());
    if header.dcid_span.len() <= 20 && header.scid_span.len() <= 20 {
        assert_eq!(header.dcid.as_slice(), header.dcid_span.of(datagram));
        assert_eq!(header.scid.as_slice(), header.scid_span.of(datagram));
    }
}

fn write_again(header: &PacketHeader, datagram: &[u8]) {
    let long = LongHeader {
        kind: header.kind,
        version: header.version,
        dcid: header.dcid,
        scid: header.scid,
        token: header.token.of(datagram),
    };
    let mut space = vec![0; long.size(1)];
    let mut writer = Writer::new(&mut space);
    let offsets = long.write(&mut writer, PacketNumber(7), 1).unwrap();
    assert_eq!(writer.remaining(), 0);
    // The length field is 0: the packet ends where its number would begin.
    let again = parse_header(&space, 0).unwrap();
    assert_eq!((again.kind, again.version), (header.kind, header.version));
    assert_eq!((again.dcid, again.scid), (header.dcid, header.scid));
    assert_eq!(again.token.of(&space), long.token);
    assert_eq!(again.number_offset, offsets.number);
}

/// A number comes back from as many bytes as its header needs (RFC 9000, A.2 and A.3).
fn packet_number(mut input: Reader<'_>) {
    let (Ok(number), Ok(acked)) = (input.varint(), input.varint()) else {
        return;
    };
    for length in 1..=4 {
        let decoded = PacketNumber::decode(number, length, Some(acked)).value();
        let mask = u64::MAX >> (64 - 8 * length);
        assert_eq!(decoded & mask, number & mask);
        assert!(decoded <= MAX_VARINT, "no number is above 2^62 - 1");
    }
    let acked = acked % number.saturating_add(1);
    let known = (acked < number).then_some(acked);
    // What the header can't tell apart is never sent: at most 2^31 packets are in flight.
    if number - known.unwrap_or(0) < 1 << 30 {
        let length = PacketNumber(number).encoded_length(known);
        let mask = u64::MAX >> (64 - 8 * length);
        let decoded = PacketNumber::decode(number & mask, length, known);
        assert_eq!(decoded.value(), number, "after {known:?}");
    }
}
