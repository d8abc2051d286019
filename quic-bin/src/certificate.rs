//! Certificates from PEM files, and one that a server makes for itself.

use std::{
    fs::File,
    io::Read as _,
    path::Path,
    time::{Duration, SystemTime},
};

use quic_transport::tls;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName,
    pem::{self, PemObject as _},
};

use crate::{
    failure::Failure,
    limits::{MAX_PEM_BYTES, SELF_SIGNED_VALIDITY},
};

/// What a server shows and proves.
#[derive(Debug)]
pub struct Identity {
    /// The server's certificate and those that lead to a root.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its private key.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Makes a new ECDSA P-256 key and a certificate for `names` (DNS names and IP addresses), signed by itself and
    /// valid for 13 days from an hour before `now`, so that a clock that is a little behind takes it.
    ///
    /// # Errors
    ///
    /// When a name is none.
    pub fn self_signed(names: &[String], now: SystemTime) -> Result<Self, Failure> {
        let fail = |error| Failure::new(format!("can't make a certificate: {error}"));
        for name in names {
            ServerName::try_from(name.as_str())
                .map_err(|_invalid| Failure::new(format!("{name:?} is no name for a server")))?;
        }
        let key = KeyPair::generate().map_err(fail)?;
        let mut params = CertificateParams::new(names).map_err(fail)?;
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "quic-server, self-signed");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let since_epoch = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        params.not_before =
            date_time_ymd(1970, 1, 1) + since_epoch.saturating_sub(Duration::from_hours(1));
        params.not_after = params.not_before + SELF_SIGNED_VALIDITY;
        let certificate = params.self_signed(&key).map_err(fail)?;
        Ok(Self {
            chain: vec![certificate.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        })
    }

    /// Reads a certificate chain and its private key from PEM files. They may be the same file.
    ///
    /// # Errors
    ///
    /// A line that names the file and what is wrong with it.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        Ok(Self {
            chain: load_certificates(certificate)?,
            key: load_key(key)?,
        })
    }

    /// The fingerprint of the server's own certificate.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.chain.first().map(|leaf| Fingerprint::of(leaf))
    }
}

/// Reads all certificates of a PEM file.
///
/// # Errors
///
/// When it can't be read or has none.
pub fn load_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let text = read_pem(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| damaged(path, &error))?;
    if certificates.is_empty() {
        return Err(Failure::with_file(
            path,
            &"no certificate in it (expected PEM)",
        ));
    }
    Ok(certificates)
}

fn load_key(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let text = read_pem(path)?;
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) => {
            let encrypted = text.windows(9).any(|window| window == b"ENCRYPTED");
            let line = if encrypted {
                "the private key is encrypted; decrypt it first"
            } else {
                "no private key in it (expected PEM)"
            };
            Err(Failure::with_file(path, &line))
        }
        Err(error) => Err(damaged(path, &error)),
    }
}

pub(crate) fn read_pem(path: &Path) -> Result<Vec<u8>, Failure> {
    let fail = |error| Failure::with_file(path, &error);
    let file = File::open(path).map_err(fail)?;
    let mut text = Vec::new();
    let read = file
        .take(MAX_PEM_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(fail)?;
    if u64::try_from(read).is_ok_and(|read| read > MAX_PEM_BYTES) {
        return Err(Failure::with_file(path, &"too large for a PEM file"));
    }
    Ok(text)
}

pub(crate) fn damaged(path: &Path, error: &pem::Error) -> Failure {
    // Its text quotes whole lines of the file, which may be secret.
    let what = match error {
        pem::Error::MissingSectionEnd { .. } => "a section of the PEM file has no end",
        pem::Error::IllegalSectionStart { .. } => "a section of the PEM file has a bad start",
        pem::Error::Base64Decode(_) => "the base64 of the PEM file is damaged",
        pem::Error::NoItemsFound | pem::Error::SectionTooLarge | pem::Error::Io(_) | _ => {
            "not a PEM file"
        }
    };
    Failure::with_file(path, &what)
}

/// The SHA-256 of a certificate's DER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The fingerprint of `certificate`.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        Self(tls::pin_of(certificate))
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for Fingerprint {
    type Err = &'static str;

    /// Reads 64 hexadecimal digits in either case; colons between bytes are skipped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected the 64 hexadecimal digits of a SHA-256";
        let mut digits = text.chars().filter(|c| *c != ':');
        let mut bytes = [0; 32];
        for byte in &mut bytes {
            for _ in 0..2 {
                let digit = digits.next().and_then(|c| c.to_digit(16)).ok_or(EXPECTED)?;
                *byte = *byte << 4 | u8::try_from(digit).ok().ok_or(EXPECTED)?;
            }
        }
        match digits.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(EXPECTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::PathBuf,
        time::{Duration, SystemTime},
    };

    use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

    use super::{Fingerprint, Identity, load_certificates};

    fn names() -> Vec<String> {
        ["localhost", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec()
    }

    /// A file that goes with the test.
    struct TestFile(PathBuf);

    impl std::ops::Deref for TestFile {
        type Target = std::path::Path;

        fn deref(&self) -> &Self::Target {
            &self.0
        }
    }

    impl Drop for TestFile {
        fn drop(&mut self) {
            drop(fs::remove_file(&self.0));
        }
    }

    fn file(name: &str, content: &str) -> TestFile {
        let name = format!("quic-bin-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, content).unwrap();
        TestFile(path)
    }

    /// Checks the server's certificate as a client does whose only root is that certificate.
    fn verify(identity: &Identity, name: &str, at: SystemTime) -> bool {
        use rustls::{
            RootCertStore, client::WebPkiServerVerifier, client::danger::ServerCertVerifier as _,
        };
        let leaf: &CertificateDer<'_> = &identity.chain[0];
        let mut roots = RootCertStore::empty();
        roots.add(leaf.clone()).unwrap();
        let provider = std::sync::Arc::new(quic_transport::tls::crypto_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
            .build()
            .unwrap();
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let name = ServerName::try_from(name).unwrap();
        verifier
            .verify_server_cert(leaf, &[], &name, &[], UnixTime::since_unix_epoch(since))
            .is_ok()
    }

    #[test]
    fn a_self_signed_certificate_is_its_own_root_for_its_names_and_13_days() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 20_000);
        let identity = Identity::self_signed(&names(), now).unwrap();
        let day = Duration::from_hours(24);
        for name in ["localhost", "127.0.0.1", "::1"] {
            assert!(verify(&identity, name, now), "{name}");
        }
        assert!(!verify(&identity, "example.org", now));
        assert!(verify(&identity, "localhost", now + 12 * day));
        assert!(!verify(&identity, "localhost", now + 13 * day));
        assert!(!verify(&identity, "localhost", now - day));
    }

    #[test]
    fn pem_files_come_back() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(names())
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let both = format!("{}{}", certificate.pem(), key.serialize_pem());
        let path = file("both.pem", &both);
        let identity = Identity::load(&path, &path).unwrap();
        assert_eq!(identity.chain, [certificate.der().clone()]);
        assert_eq!(
            identity.fingerprint(),
            Some(Fingerprint::of(certificate.der()))
        );
        let twice = file("twice.pem", &certificate.pem().repeat(2));
        assert_eq!(load_certificates(&twice).unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let missing = TestFile(PathBuf::from("/nonexistent/cert.pem"));
        let empty = file("empty.pem", "");
        let cut = file("cut.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
        let bad = file(
            "bad.pem",
            "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
        );
        for (path, expected) in [
            (&missing, "No such file"),
            (&empty, "no certificate"),
            (&cut, "has no end"),
            (&bad, "base64"),
        ] {
            let line = load_certificates(path).unwrap_err().to_string();
            assert!(line.contains(expected) && line.contains(".pem"), "{line}");
        }
        let locked =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let locked = file("locked.pem", locked);
        let line = super::load_key(&locked).unwrap_err().to_string();
        assert!(line.contains("encrypted"), "{line}");
        let line = super::load_key(&empty).unwrap_err().to_string();
        assert!(line.contains("no private key"), "{line}");
    }

    #[test]
    fn fingerprints_are_read_as_people_write_them() {
        let print = Fingerprint::of(b"abc");
        let text = print.to_string();
        assert_eq!(
            text,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(text.parse(), Ok(print));
        assert_eq!(text.to_uppercase().parse(), Ok(print));
        let colons = print.0.map(|byte| format!("{byte:02X}")).join(":");
        assert_eq!(colons.parse(), Ok(print));
        for wrong in [
            text.trim_start_matches('b'),
            "",
            "xyz",
            &format!("{text}0"),
            &text.replace('b', "g"),
        ] {
            assert!(wrong.parse::<Fingerprint>().is_err());
        }
    }
}
