//! Which version one end has chosen, and which others it could do
//! ([RFC 9368, section 3](https://www.rfc-editor.org/rfc/rfc9368#section-3)).

use quic_common::Random;

use crate::wire::malformed::Malformed;
use crate::wire::stream_id::Side;
use crate::wire::version::Version;
use crate::wire::versions::Versions;

/// The value of the version_information parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionInformation {
    /// The version of the packets that carry it.
    pub(crate) chosen: Version,
    /// From a client, the versions that its first flight can be taken for, most wanted first; from a server, those
    /// that all of its kind speak.
    available: Vec<Version>,
}

impl VersionInformation {
    /// Says that `chosen` was chosen among `versions`; a reserved version goes along.
    pub(crate) fn new(chosen: Version, versions: &Versions, random: &mut Random) -> Self {
        let reserved = Version::reserved(u32::from_be_bytes(random.array()));
        Self {
            chosen,
            available: versions.iter().chain([reserved]).collect(),
        }
    }

    /// The available versions that we know.
    pub(crate) fn available(&self) -> Versions {
        Versions::known(self.available.iter().copied())
    }

    /// Reads what `sender` sent.
    pub(super) fn parse(value: &[u8], sender: Side) -> Result<Self, Malformed> {
        let (words, rest) = value.as_chunks::<4>();
        let version = |bytes: &[u8; 4]| Version(u32::from_be_bytes(*bytes));
        let Some((chosen, available)) = words.split_first().filter(|_| rest.is_empty()) else {
            return Err(Malformed::parameter(
                "version_information has a wrong length",
            ));
        };
        let chosen = version(chosen);
        let available: Vec<_> = available.iter().map(version).collect();
        if chosen == Version::NEGOTIATION || available.contains(&Version::NEGOTIATION) {
            return Err(Malformed::parameter("version_information lists version 0"));
        }
        if sender == Side::Client && !available.contains(&chosen) {
            return Err(Malformed::parameter(
                "version_information doesn't list the chosen version",
            ));
        }
        Ok(Self { chosen, available })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let versions = std::iter::once(&self.chosen).chain(&self.available);
        versions
            .flat_map(|version| version.0.to_be_bytes())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, Side, Version, VersionInformation, Versions};

    fn parse(words: &[u32], sender: Side) -> Result<VersionInformation, &'static str> {
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        VersionInformation::parse(&bytes, sender).map_err(|malformed| malformed.reason)
    }

    /// RFC 9368, 3: versions without meaning are passed over.
    #[test]
    fn round_trip_with_a_reserved_version() {
        let mut random = Random::from_seed([1; 32]);
        let ours = VersionInformation::new(Version::V1, &Versions::DEFAULT, &mut random);
        let bytes = ours.encode();
        assert_eq!(bytes.len(), 16);
        for sender in [Side::Client, Side::Server] {
            let read = VersionInformation::parse(&bytes, sender).unwrap();
            assert_eq!(read, ours);
            assert_eq!(read.available(), Versions::DEFAULT);
        }
        let read = parse(&[7, 0x6b33_43cf, 7, 9, 0x0a0a_0a0a], Side::Client).unwrap();
        assert_eq!(read.chosen, Version(7));
        assert!(read.available().iter().eq([Version::V2]));
    }

    /// RFC 9368, 4: what counts as a failure to parse.
    #[test]
    fn what_is_malformed() {
        for sender in [Side::Client, Side::Server] {
            for length in [0, 1, 3, 5, 7, 9] {
                assert!(VersionInformation::parse(&[1; 16][..length], sender).is_err());
            }
            for zero in [&[0, 1][..], &[1, 0], &[1, 1, 0]] {
                assert!(parse(zero, sender).is_err());
            }
            assert!(parse(&[1, 2, 1], sender).is_ok());
        }
        for missing in [&[1][..], &[1, 2]] {
            assert!(parse(missing, Side::Client).is_err());
            assert!(parse(missing, Side::Server).is_ok());
        }
    }
}
