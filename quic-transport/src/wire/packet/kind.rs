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

    /// The kind in the first byte of a long header of `version`.
    pub(super) const fn from_long(version: Version, first: u8) -> Self {
        match version {
            Version::NEGOTIATION => Self::VersionNegotiation,
            Version::V1 => match (first >> 4) & 3 {
                0 => Self::Initial,
                1 => Self::ZeroRtt,
                2 => Self::Handshake,
                _ => Self::Retry,
            },
            _ => Self::Unsupported,
        }
    }

    /// The bits of the first byte of a long header that say the kind; `None` when none do.
    pub(super) const fn long_bits(self) -> Option<u8> {
        match self {
            Self::Initial => Some(0x00),
            Self::ZeroRtt => Some(0x10),
            Self::Handshake => Some(0x20),
            Self::Retry => Some(0x30),
            Self::VersionNegotiation | Self::Short | Self::Unsupported => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PacketKind as Kind;
    use crate::wire::version::Version;

    #[test]
    fn the_bits_of_the_long_header_round_trip() {
        for kind in [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry] {
            let first = 0xc0 | kind.long_bits().unwrap();
            assert_eq!(Kind::from_long(Version::V1, first), kind);
            assert_eq!(
                Kind::from_long(Version::reserved(7), first),
                Kind::Unsupported
            );
        }
        for kind in [Kind::Short, Kind::VersionNegotiation, Kind::Unsupported] {
            assert_eq!(kind.long_bits(), None);
        }
    }

    #[test]
    fn packets_with_frames_have_a_level() {
        assert!(Kind::Short.level().is_some());
        assert!(Kind::Retry.level().is_none());
    }
}
