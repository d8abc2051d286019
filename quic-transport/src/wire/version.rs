//! QUIC versions, [RFC 9000, section 15](https://www.rfc-editor.org/rfc/rfc9000#section-15).

/// A QUIC version number, as it stands in a long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

impl Version {
    /// The value that marks a Version Negotiation packet; never a version.
    pub const NEGOTIATION: Self = Self(0);
    /// QUIC version 1 (RFC 9000).
    pub const V1: Self = Self(1);
    /// QUIC version 2 (RFC 9369).
    pub const V2: Self = Self(0x6b33_43cf);

    /// Whether we speak the version.
    #[must_use]
    pub const fn is_known(self) -> bool {
        matches!(self, Self::V1 | Self::V2)
    }

    /// Whether the version is reserved to exercise version negotiation: 0x?a?a?a?a.
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }

    /// A reserved version with the free bits taken from `random`.
    #[must_use]
    pub const fn reserved(random: u32) -> Self {
        Self((random & 0xf0f0_f0f0) | 0x0a0a_0a0a)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::V1 => f.write_str("v1"),
            Self::V2 => f.write_str("v2"),
            Self(other) => write!(f, "{other:#010x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn reserved_versions_are_recognised() {
        for random in [0, u32::MAX, 0x1234_5678] {
            assert!(Version::reserved(random).is_reserved());
        }
        for version in [Version::NEGOTIATION, Version::V1, Version::V2] {
            assert!(!version.is_reserved());
        }
    }

    #[test]
    fn shown_by_name_where_there_is_one() {
        let shown = [Version::V1, Version::V2, Version(0x1a)].map(|version| version.to_string());
        assert_eq!(shown, ["v1", "v2", "0x0000001a"]);
    }
}
