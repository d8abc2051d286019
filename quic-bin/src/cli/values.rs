//! Readers for the values of options.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use clap::ValueEnum;
use quic_transport::{
    Version, Versions,
    tls::{CipherSuite, KeyExchange},
};

/// A cipher suite of TLS 1.3, by a name that can be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cipher {
    /// TLS_AES_128_GCM_SHA256.
    #[value(name = "aes128")]
    Aes128,
    /// TLS_AES_256_GCM_SHA384.
    #[value(name = "aes256")]
    Aes256,
    /// TLS_CHACHA20_POLY1305_SHA256.
    #[value(name = "chacha20")]
    ChaCha20,
}

impl Cipher {
    /// The suite.
    #[must_use]
    pub const fn suite(self) -> CipherSuite {
        match self {
            Self::Aes128 => CipherSuite::Aes128Gcm,
            Self::Aes256 => CipherSuite::Aes256Gcm,
            Self::ChaCha20 => CipherSuite::ChaCha20Poly1305,
        }
    }
}

/// A key exchange group, by a name that can be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Group {
    /// X25519MLKEM768.
    #[value(name = "x25519mlkem768")]
    X25519MlKem768,
    /// X25519.
    X25519,
    /// secp256r1.
    #[value(name = "p256")]
    P256,
    /// secp384r1.
    #[value(name = "p384")]
    P384,
}

impl Group {
    /// The group.
    #[must_use]
    pub const fn key_exchange(self) -> KeyExchange {
        match self {
            Self::X25519MlKem768 => KeyExchange::X25519MlKem768,
            Self::X25519 => KeyExchange::X25519,
            Self::P256 => KeyExchange::Secp256r1,
            Self::P384 => KeyExchange::Secp384r1,
        }
    }
}

/// An address with a port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_error| "expected ADDRESS:PORT, such as 127.0.0.1:4433 or [::1]:0".to_owned())
}

/// A QUIC version by its usual name.
pub(super) fn version(text: &str) -> Result<Version, String> {
    [Version::V1, Version::V2]
        .into_iter()
        .find(|version| version.to_string() == text)
        .ok_or_else(|| "expected v1 or v2".to_owned())
}

/// QUIC versions with commas between them, each once.
pub(super) fn versions(text: &str) -> Result<Versions, String> {
    let list: Result<Vec<_>, _> = text.split(',').map(version).collect();
    list.ok()
        .and_then(|list| Versions::new(&list))
        .ok_or_else(|| "expected v1, v2 or both, such as v2,v1".to_owned())
}

/// What to upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upload {
    /// These bytes.
    Bytes(String),
    /// The content of this file.
    File(PathBuf),
}

impl FromStr for Upload {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.strip_prefix('@').map_or_else(
            || Self::Bytes(text.to_owned()),
            |file| Self::File(PathBuf::from(file)),
        ))
    }
}

/// Seconds, with decimals if wanted; more than none and at most a day.
pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_error| "expected a number of seconds".to_owned())?;
    if !(0.001..=86_400.0).contains(&seconds) {
        return Err("expected between 0.001 and 86400 seconds".to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// A number that isn't zero.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "expected a number of 1 or more".to_owned())
}

/// A number of bytes, with one of the binary suffixes K, M, G and T if wanted.
pub(super) fn byte_count(text: &str) -> Result<u64, String> {
    let expected = || "expected a number of bytes, such as 1000000, 64M or 1G".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = text
        .strip_prefix(digits)
        .unwrap_or_default()
        .to_ascii_uppercase();
    let shift = match suffix.as_str() {
        "" => 0,
        "K" | "KIB" => 10,
        "M" | "MIB" => 20,
        "G" | "GIB" => 30,
        "T" | "TIB" => 40,
        _ => return Err(expected()),
    };
    let number: u64 = digits.parse().map_err(|_error| expected())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes <= crate::limits::MAX_GENERATED_BYTES)
        .ok_or_else(|| "more than can be generated (16T)".to_owned())
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, time::Duration};

    use quic_transport::{Version, Versions};

    use super::{Upload, byte_count, timeout, version, versions};

    #[test]
    fn quic_versions() {
        assert_eq!(version("v2"), Ok(Version::V2));
        assert_eq!(versions("v1,v2"), Ok(Versions::DEFAULT));
        let list = versions("v2,v1").unwrap();
        assert!(list.iter().eq([Version::V2, Version::V1]));
        for wrong in ["", "1", "v3", "v1,", "v1,v1", "v1 v2"] {
            assert!(
                versions(wrong).is_err() && version(wrong).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn byte_counts() {
        assert_eq!(byte_count("1000"), Ok(1000));
        assert_eq!(byte_count("64k"), Ok(65536));
        assert_eq!(byte_count("1GiB"), Ok(1 << 30));
        assert_eq!(byte_count("16T"), Ok(1 << 44));
        for wrong in ["", "G", "-1", "1.5G", "1X", "17T", "99999999999T", "1GG"] {
            assert!(byte_count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_that_are_not_zero() {
        assert_eq!(super::at_least_one("7"), Ok(7));
        for wrong in ["", "0", "-1", "1.5", "x"] {
            assert!(super::at_least_one(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn timeouts() {
        assert_eq!(timeout("10"), Ok(Duration::from_secs(10)));
        assert_eq!(timeout("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "nan", "inf", "1e300", "ten"] {
            assert!(timeout(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_at_sign_names_a_file() {
        assert_eq!("a@b".parse(), Ok(Upload::Bytes("a@b".to_owned())));
        assert_eq!("@a".parse(), Ok(Upload::File(PathBuf::from("a"))));
    }
}
