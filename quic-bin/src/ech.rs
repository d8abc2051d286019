//! Encrypted ClientHello for `quic-client`: where the configuration comes from, and what a server offers instead.

use std::{fmt, path::Path, str::FromStr};

use quic_transport::tls::{ClientConfig, EchStatus};
use rustls_pki_types::{EchConfigListBytes, pem::PemObject as _};

use crate::{
    certificate::{damaged, read_pem},
    failure::Failure,
};

/// What the ClientHello is encrypted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ech {
    /// It isn't, and looks as if.
    Grease,
    /// A PEM file, or the base64 of an ECHConfigList.
    List(String),
}

impl FromStr for Ech {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "grease" => Self::Grease,
            list => Self::List(list.to_owned()),
        })
    }
}

impl Ech {
    /// The settings with it.
    ///
    /// # Errors
    ///
    /// When there is no such file, it holds no list that can be used, or the cryptographic library has no HPKE.
    pub fn apply(&self, tls: ClientConfig) -> Result<ClientConfig, Failure> {
        let outcome = match self {
            Self::Grease => tls.ech_grease(),
            Self::List(list) => tls.ech(&read(list)?),
        };
        outcome.map_err(|error| Failure::new(format!("--ech: {error}")))
    }
}

/// The list in a file, or that in the text itself.
fn read(list: &str) -> Result<EchConfigListBytes<'static>, Failure> {
    let path = Path::new(list);
    if path.exists() {
        let text = read_pem(path)?;
        return EchConfigListBytes::from_pem_slice(&text).map_err(|error| damaged(path, &error));
    }
    let pem = format!("-----BEGIN ECHCONFIG-----\n{list}\n-----END ECHCONFIG-----\n");
    EchConfigListBytes::from_pem_slice(pem.as_bytes()).map_err(|_damaged| {
        Failure::new("--ech: neither a file nor the base64 of an ECHConfigList")
    })
}

/// The settings to connect with again when a server has replaced the configuration (RFC 9849, 6.1.6).
///
/// `status` tells so only after the server has proved to be who may say that; but who checks no certificate is not to
/// believe anyone. A server that offers none is not connected to in the clear either: whoever asked for encryption is told.
#[must_use]
pub fn renewed(tls: &ClientConfig, status: &EchStatus) -> Option<ClientConfig> {
    match status {
        EchStatus::Rejected { retry_configs } if !tls.is_insecure() => {
            tls.clone().ech(retry_configs).ok()
        }
        _ => None,
    }
}

/// What a server offers in place of the configuration that it doesn't know, for a person; empty when it offers nothing.
#[derive(Clone, Debug)]
pub struct Offer(pub EchStatus);

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            EchStatus::Rejected { retry_configs } if retry_configs.is_empty() => {
                f.write_str("; the server has given ECH up, so do without --ech")
            }
            EchStatus::Rejected { retry_configs } => {
                write!(f, "; the server offers --ech {}", base64(retry_configs))
            }
            _ => Ok(()),
        }
    }
}

/// RFC 4648, 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|place| piece.get(place).copied().unwrap_or_default());
        let word = u32::from_be_bytes([0, a, b, c]);
        for place in 0..4 {
            let digit = usize::try_from(word >> (18 - 6 * place) & 63).ok();
            let digit = digit.filter(|_| place <= piece.len());
            let digit = digit.and_then(|digit| DIGITS.get(digit)).copied();
            text.push(char::from(digit.unwrap_or(b'=')));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Ech, Offer, base64, read, renewed};
    use quic_transport::tls::{ClientConfig, EchStatus};

    #[test]
    fn a_list_is_read_as_it_is_written() {
        for bytes in [&b"\0\x01\xff"[..], b"abcd", b"abcde", &[7; 48], &[255; 100]] {
            let text = base64(bytes);
            assert_eq!(read(&text).unwrap().as_ref(), bytes, "{text}");
        }
        assert_eq!(base64(b"fooba"), "Zm9vYmE=");
        assert!(read("!").is_err());
    }

    /// An ECHConfigList with one configuration: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 with AES-128-GCM, and a name.
    fn list() -> Vec<u8> {
        let mut contents = vec![7, 0, 0x20, 0, 32, 9];
        contents.extend([0; 31]);
        contents.extend([0, 4, 0, 1, 0, 1, 0, 1, b'p', 0, 0]);
        let length = u8::try_from(contents.len()).unwrap();
        let mut list = vec![0, length + 4, 0xfe, 0x0d, 0, length];
        list.extend(contents);
        list
    }

    /// RFC 9849, 6.1.6.
    #[test]
    fn a_replaced_configuration_is_used_if_it_can_be_and_comes_from_whom_it_should() {
        let rejected = |configs: &[u8]| EchStatus::Rejected {
            retry_configs: configs.into(),
        };
        let pinned = ClientConfig::with_pin([7; 32], &[b"h3"]).unwrap();
        let has_hpke = pinned.clone().ech(&list()).is_ok();
        assert_eq!(has_hpke, cfg!(feature = "aws-lc-rs"));
        let offered = rejected(&list());
        assert_eq!(renewed(&pinned, &offered).is_some(), has_hpke);
        let trusting = ClientConfig::insecure(&[b"h3"]).unwrap();
        assert!(renewed(&trusting, &offered).is_none(), "from anyone");
        assert!(renewed(&pinned, &rejected(b"")).is_none(), "given up");
        assert!(
            renewed(&pinned, &rejected(&[0, 4, 1, 2, 0, 0])).is_none(),
            "unknown"
        );
        for status in [
            EchStatus::NotOffered,
            EchStatus::Grease,
            EchStatus::Offered,
            EchStatus::Accepted,
        ] {
            assert!(renewed(&pinned, &status).is_none(), "{status:?}");
        }
    }

    #[test]
    fn what_a_server_offers_can_be_typed() {
        let offer = |bytes: &[u8]| {
            Offer(EchStatus::Rejected {
                retry_configs: bytes.into(),
            })
            .to_string()
        };
        assert_eq!(offer(b"foo"), "; the server offers --ech Zm9v");
        assert!(offer(b"").contains("without --ech"));
        assert_eq!(Offer(EchStatus::NotOffered).to_string(), "");
        assert_eq!("grease".parse(), Ok(Ech::Grease));
    }
}
