//! Version Negotiation packets, [RFC 8999, section 6](https://www.rfc-editor.org/rfc/rfc8999#section-6).
//!
//! Connection IDs are plain slices here: those of a version that isn't ours may be up to 255 bytes long.

use quic_common::Writer;

use super::header::{FIXED, LONG, PacketHeader};
use super::kind::PacketKind;
use crate::wire::version::Version;
use crate::wire::versions::Versions;

/// The answer to a packet of a version that we don't speak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionNegotiation<'a> {
    /// The source connection ID of the packet that is answered.
    pub(crate) dcid: &'a [u8],
    /// The destination connection ID of the packet that is answered.
    pub(crate) scid: &'a [u8],
    /// The versions that we speak.
    pub(crate) versions: &'a Versions,
}

impl VersionNegotiation<'_> {
    /// Writes the packet; `random` fills the bits without meaning and makes up a reserved version, so that nobody
    /// comes to rely on the list. `false` when it doesn't fit.
    pub(crate) fn write(&self, writer: &mut Writer<'_>, random: u64) -> bool {
        let [unused, _, _, _, grease @ ..] = random.to_be_bytes();
        writer.u8(LONG | FIXED | unused)
            && writer.u32(Version::NEGOTIATION.0)
            && write_id(writer, self.dcid)
            && write_id(writer, self.scid)
            && writer.u32(Version::reserved(u32::from_be_bytes(grease)).0)
            && self.versions.iter().all(|version| writer.u32(version.0))
    }
}

fn write_id(writer: &mut Writer<'_>, id: &[u8]) -> bool {
    u8::try_from(id.len()).is_ok_and(|length| writer.u8(length)) && writer.bytes(id)
}

/// The versions in the Version Negotiation packet that `header` was parsed from; `None` when it is none, or its list
/// is empty or cut short, which must be ignored.
pub(crate) fn supported_versions<'a>(
    packet: &'a [u8],
    header: &PacketHeader,
) -> Option<impl Iterator<Item = Version> + use<'a>> {
    if header.kind != PacketKind::VersionNegotiation {
        return None;
    }
    let (versions, rest) = packet.get(header.number_offset..)?.as_chunks::<4>();
    (!versions.is_empty() && rest.is_empty()).then(|| {
        versions
            .iter()
            .map(|bytes| Version(u32::from_be_bytes(*bytes)))
    })
}

#[cfg(test)]
mod tests {
    use quic_common::Writer;

    use super::{VersionNegotiation, Versions, supported_versions};
    use crate::wire::packet::{PacketKind, parse_header};
    use crate::wire::version::Version;

    #[test]
    fn round_trip_with_a_reserved_version() {
        let (dcid, scid) = ([1; 255], [2; 9]);
        let answer = VersionNegotiation {
            dcid: &dcid,
            scid: &scid,
            versions: &Versions::DEFAULT,
        };
        let mut packet = [0; 300];
        let mut writer = Writer::new(&mut packet);
        assert!(answer.write(&mut writer, 0x1234_5678_9abc_def0));
        let packet = writer.into_written();
        assert_eq!(packet.len(), 7 + 255 + 9 + 12);

        let header = parse_header(packet, 8).unwrap();
        assert_eq!(header.kind, PacketKind::VersionNegotiation);
        assert_eq!(header.dcid_span.of(packet), dcid);
        assert_eq!(header.scid_span.of(packet), scid);
        let versions: Vec<_> = supported_versions(packet, &header).unwrap().collect();
        assert!(versions[0].is_reserved());
        assert_eq!(versions[1..], [Version::V1, Version::V2]);
        assert!(!answer.write(&mut Writer::new(&mut [0; 282]), 0));
        assert!(answer.write(&mut Writer::new(&mut [0; 283]), 0));
    }

    /// RFC 9000, 17.2.1: the fixed bit SHOULD be set, and the other bits may hold anything.
    #[test]
    fn the_two_highest_bits_are_set_whatever_fills_the_others() {
        let answer = VersionNegotiation {
            dcid: &[],
            scid: &[],
            versions: &Versions::known([]),
        };
        for (random, first) in [(0, 0xc0), (0x5f << 56, 0xdf), (u64::MAX, 0xff)] {
            let mut packet = [0; 11];
            assert!(answer.write(&mut Writer::new(&mut packet), random));
            assert_eq!(packet[0], first);
        }
    }

    /// RFC 8999, 6: a packet without versions, or with a truncated one, MUST be ignored.
    #[test]
    fn an_empty_or_cut_list_is_none() {
        let packet = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
        for length in 7..=12 {
            let packet = &packet[..length];
            let header = parse_header(packet, 8).unwrap();
            let versions = supported_versions(packet, &header);
            assert_eq!(versions.is_some(), length == 11, "{length}");
        }
    }
}
