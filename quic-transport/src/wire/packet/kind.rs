//! The kinds of packet, and the bits that tell them apart in a long header
//! ([RFC 9000, section 17.2](https://www.rfc-editor.org/rfc/rfc9000#section-17.2), table 5).

use crate::wire::level::Level;
use crate::wire::version::Version;

/// What a packet is, as far as its header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PacketKind {
    /// The first handshake messages.
    Initial,
    /// Early data of the client.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// The server wants the client's address confirmed.
    Retry,
    /// The server doesn't speak the client's version.
    VersionNegotiation,
    /// A short header: everything after the handshake.
    Short,
    /// A long header of a version that isn't ours; only the invariant fields are known.
    Unsupported,
}

impl PacketKind {
    /// The keys that protect such a packet; `None` for those without frames.
    #[inline]
    pub(crate) const fn level(self) -> Option<Level> {
        match self {
            Self::Initial => Some(Level::Initial),
            Self::ZeroRtt => Some(Level::ZeroRtt),
            Self::Handshake => Some(Level::Handshake),
            Self::Short => Some(Level::OneRtt),
            Self::Retry | Self::VersionNegotiation | Self::Unsupported => None,
        }
    }

    /// Whether it has a long header of a version that we know.
    pub(crate) const fn is_long(self) -> bool {
        matches!(
            self,
            Self::Initial | Self::ZeroRtt | Self::Handshake | Self::Retry
        )
    }

    /// The kind in the first byte of a long header of `version`.
    pub(super) const fn from_long(version: Version, first: u8) -> Self {
        match version {
            Version::NEGOTIATION => Self::VersionNegotiation,
            _ if !version.is_known() => Self::Unsupported,
            _ => match (first >> 4).wrapping_sub(rotation(version)) & 3 {
                0 => Self::Initial,
                1 => Self::ZeroRtt,
                2 => Self::Handshake,
                _ => Self::Retry,
            },
        }
    }

    /// The bits of the first byte of a long header of `version` that say the kind; `None` when none do.
    pub(super) const fn long_bits(self, version: Version) -> Option<u8> {
        let bits = match self {
            Self::Initial => 0,
            Self::ZeroRtt => 1,
            Self::Handshake => 2,
            Self::Retry => 3,
            Self::VersionNegotiation | Self::Short | Self::Unsupported => return None,
        };
        Some(((bits + rotation(version)) & 3) << 4)
    }
}

/// By how much the numbers of the kinds are turned: version 2 begins with Retry (RFC 9369, 3.2).
const fn rotation(version: Version) -> u8 {
    match version {
        Version::V2 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::PacketKind as Kind;
    use crate::wire::version::Version;

    #[test]
    fn the_bits_of_the_long_header_round_trip() {
        for kind in [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry] {
            for version in [Version::V1, Version::V2] {
                let first = 0xc0 | kind.long_bits(version).unwrap();
                assert_eq!(Kind::from_long(version, first), kind);
            }
            assert!(kind.is_long());
            assert_eq!(
                Kind::from_long(Version::reserved(7), 0xc0),
                Kind::Unsupported
            );
        }
        for kind in [Kind::Short, Kind::VersionNegotiation, Kind::Unsupported] {
            assert_eq!(kind.long_bits(Version::V1), None);
            assert!(!kind.is_long());
        }
    }

    /// RFC 9369, 3.2.
    #[test]
    fn the_kinds_of_version_2_have_other_bits() {
        let kinds = [Kind::Retry, Kind::Initial, Kind::ZeroRtt, Kind::Handshake];
        for (bits, kind) in (0_u8..).zip(kinds) {
            assert_eq!(kind.long_bits(Version::V2), Some(bits << 4));
            assert_eq!(Kind::from_long(Version::V2, 0xcf | bits << 4), kind);
        }
    }

    #[test]
    fn packets_with_frames_have_a_level() {
        assert!(Kind::Short.level().is_some());
        assert!(Kind::Retry.level().is_none());
    }
}
