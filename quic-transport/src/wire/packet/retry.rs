//! Retry packets, [RFC 9000, section 17.2.5](https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5).
//!
//! The integrity tag at the end needs a key, so it is made and checked where the keys are.

use quic_common::Writer;

use super::header::{FIXED, LONG, PacketHeader};
use super::kind::PacketKind;
use super::write::write_cid;
use crate::wire::cid::ConnectionId;
use crate::wire::version::Version;

/// Bytes of the integrity tag.
pub(crate) const RETRY_TAG_LENGTH: usize = 16;

/// A received Retry packet, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry<'a> {
    /// All of the packet that the tag protects.
    pub(crate) untagged: &'a [u8],
    /// The token to send back; never empty.
    pub(crate) token: &'a [u8],
    /// The integrity tag.
    pub(crate) tag: [u8; RETRY_TAG_LENGTH],
}

impl<'a> Retry<'a> {
    /// Takes apart the packet that `header` was parsed from; `None` when it is no Retry, or has no token, which a
    /// client must discard.
    pub(crate) fn parse(packet: &'a [u8], header: &PacketHeader) -> Option<Self> {
        if header.kind != PacketKind::Retry || header.token.is_empty() {
            return None;
        }
        let (untagged, tag) = packet.split_at_checked(header.number_offset)?;
        Some(Self {
            untagged,
            token: header.token.of(packet),
            tag: tag.try_into().ok()?,
        })
    }
}

/// All of a Retry packet but the token and the tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryHeader {
    /// The version of the client's Initial.
    pub(crate) version: Version,
    /// The source connection ID of the client's Initial.
    pub(crate) dcid: ConnectionId,
    /// The connection ID that the client is to use next; never the one that it used.
    pub(crate) scid: ConnectionId,
}

impl RetryHeader {
    /// Writes the packet up to the tag; `unused` fills the four bits without meaning. `false` when it doesn't fit.
    pub(crate) fn write(&self, writer: &mut Writer<'_>, unused: u8, token: &[u8]) -> bool {
        let Some(kind) = PacketKind::Retry.long_bits(self.version) else {
            return false;
        };
        writer.u8(LONG | FIXED | kind | (unused & 0x0f))
            && writer.u32(self.version.0)
            && write_cid(writer, &self.dcid)
            && write_cid(writer, &self.scid)
            && writer.bytes(token)
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Writer;

    use super::{Retry, RetryHeader};
    use crate::wire::cid::ConnectionId;
    use crate::wire::packet::parse_header;
    use crate::wire::version::Version;

    /// RFC 9001, A.4: the Retry packet, whose tag is given.
    #[test]
    fn retry_of_the_rfc() {
        let tag = [
            0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24,
            0x96, 0xba,
        ];
        let untagged = [
            0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62,
            0xb5, b't', b'o', b'k', b'e', b'n',
        ];
        let header = RetryHeader {
            version: Version::V1,
            dcid: ConnectionId::EMPTY,
            scid: ConnectionId::new(&untagged[7..15]).unwrap(),
        };
        let mut packet = [0; 36];
        let mut writer = Writer::new(&mut packet);
        assert!(header.write(&mut writer, 0x0f, b"token"));
        assert_eq!(writer.written(), untagged);
        assert!(writer.bytes(&tag));

        let parsed = parse_header(&packet, 0).unwrap();
        assert_eq!(
            Retry::parse(&packet, &parsed),
            Some(Retry {
                untagged: &untagged,
                token: b"token",
                tag
            })
        );
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let header = RetryHeader {
            version: Version::V1,
            dcid: ConnectionId::new(&[1; 3]).unwrap(),
            scid: ConnectionId::new(&[2; 5]).unwrap(),
        };
        let mut packet = [0; 7 + 3 + 5 + 4];
        assert!(!header.write(&mut Writer::new(&mut packet[..18]), 0, b"four"));
        assert!(header.write(&mut Writer::new(&mut packet), 0, b"four"));
    }

    #[test]
    fn the_unused_bits_are_the_lowest_four() {
        let header = RetryHeader {
            version: Version::V1,
            dcid: ConnectionId::EMPTY,
            scid: ConnectionId::EMPTY,
        };
        for (unused, first) in [(0, 0xf0), (0xf5, 0xf5), (0x3f, 0xff)] {
            let mut packet = [0; 7];
            assert!(header.write(&mut Writer::new(&mut packet), unused, &[]));
            assert_eq!(packet[0], first);
        }
    }

    /// RFC 9000, 17.2.5.2: a client MUST discard a Retry packet with an empty token.
    #[test]
    fn a_retry_without_a_token_is_none() {
        let header = RetryHeader {
            version: Version::V1,
            dcid: ConnectionId::EMPTY,
            scid: ConnectionId::EMPTY,
        };
        let mut packet = [0; 23];
        assert!(header.write(&mut Writer::new(&mut packet), 0, &[]));
        let parsed = parse_header(&packet, 0).unwrap();
        assert_eq!(Retry::parse(&packet, &parsed), None);
        assert!(parse_header(&packet[..22], 0).is_err());
    }
}
