//! Certificates for tests, made on the spot.
//!
//! Ed25519 keys are fixed and their signatures have one length, so that a simulation repeats byte for byte. P-256 is
//! what browsers and other stacks accept; its keys are new each time. Certificates are valid until the year 4096
//! unless asked to be expired.

use std::time::Duration;

use quic_common::Random;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The time since 1970 that simulations take for the wall clock, at which the certificates here are valid.
pub const WALL_CLOCK: Duration = Duration::from_hours(500_000);

/// The kind of key that a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Fixed keys, signatures of 64 bytes.
    Ed25519,
    /// New keys, signatures whose length varies by a few bytes.
    P256,
}

/// A certificate with what leads up to it, as a server is given it.
#[derive(Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The leaf first, then the intermediate authorities. The root is left out, unless the leaf signed itself.
    pub chain: Vec<CertificateDer<'static>>,
    /// The leaf's private key.
    pub key: PrivateKeyDer<'static>,
}

/// A root authority that only the tests trust.
#[derive(Debug)]
pub struct TestCa {
    algorithm: Algorithm,
    root: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// What a certificate is to be like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaf<'a> {
    /// DNS names and IP addresses that it is for.
    pub names: &'a [&'a str],
    /// How many intermediate authorities stand between the root and it.
    pub intermediates: usize,
    /// Bytes of an extension that nobody knows, to make it large.
    pub padding: usize,
    /// Whether these bytes are all alike, so that a compressed certificate is small.
    pub is_compressible: bool,
    /// Whether its time is over.
    pub expired: bool,
    /// Whether it is a client's.
    pub is_client: bool,
}

/// A certificate with an Ed25519 key that signed itself: the same bytes each time for the same names.
#[must_use]
pub fn ed25519(names: &[&str]) -> Certificate {
    self_signed(Algorithm::Ed25519, names)
}

/// A certificate with a new P-256 key that signed itself.
#[must_use]
pub fn p256(names: &[&str]) -> Certificate {
    self_signed(Algorithm::P256, names)
}

impl Certificate {
    /// A copy; keys are not `Clone`, so that copying one is visible.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
        }
    }
}

impl TestCa {
    /// An authority whose certificates, and its own, use `algorithm`.
    ///
    /// # Panics
    ///
    /// If the certificate can't be made, which no input here leads to.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        let key = key(algorithm, 1);
        let params = authority("test root");
        let root = params.self_signed(&key).unwrap().into();
        Self {
            algorithm,
            root,
            issuer: Issuer::new(params, key),
        }
    }

    /// The certificate that a client is to trust.
    #[must_use]
    pub const fn root(&self) -> &CertificateDer<'static> {
        &self.root
    }

    /// Makes a certificate.
    ///
    /// # Panics
    ///
    /// If a name is no DNS name, or there are more than 200 intermediate authorities.
    #[must_use]
    pub fn certificate(&self, leaf: &Leaf<'_>) -> Certificate {
        let mut chain = Vec::new();
        let mut last = None;
        for place in 0..leaf.intermediates {
            let key = key(self.algorithm, u8::try_from(place).unwrap() + 2);
            let params = authority(&format!("test intermediate {place}"));
            let issuer = last.as_ref().unwrap_or(&self.issuer);
            chain.insert(0, params.signed_by(&key, issuer).unwrap().into());
            last = Some(Issuer::new(params, key));
        }
        let key = key(self.algorithm, u8::MAX);
        let issuer = last.as_ref().unwrap_or(&self.issuer);
        chain.insert(0, server(leaf).signed_by(&key, issuer).unwrap().into());
        Certificate {
            chain,
            key: private(&key),
        }
    }
}

fn self_signed(algorithm: Algorithm, names: &[&str]) -> Certificate {
    let key = key(algorithm, u8::MAX);
    let leaf = Leaf {
        names,
        ..Leaf::default()
    };
    Certificate {
        chain: vec![server(&leaf).self_signed(&key).unwrap().into()],
        key: private(&key),
    }
}

fn key(algorithm: Algorithm, fill: u8) -> KeyPair {
    match algorithm {
        Algorithm::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(),
        Algorithm::Ed25519 => {
            // RFC 8410, 7: a private key of 32 bytes, which any bytes are.
            let mut der = vec![
                0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22,
            ];
            der.extend([4, 32]);
            der.extend([fill; 32]);
            let der = PrivatePkcs8KeyDer::from(der);
            KeyPair::from_pkcs8_der_and_sign_algo(&der, &rcgen::PKCS_ED25519).unwrap()
        }
    }
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(key.serialize_der()).into()
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn server(leaf: &Leaf<'_>) -> CertificateParams {
    let names: Vec<_> = leaf.names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params
        .distinguished_name
        .push(DnType::CommonName, "test server");
    params.extended_key_usages = vec![if leaf.is_client {
        ExtendedKeyUsagePurpose::ClientAuth
    } else {
        ExtendedKeyUsagePurpose::ServerAuth
    }];
    if leaf.expired {
        params.not_after = date_time_ymd(2000, 1, 1);
    }
    if leaf.padding > 0 {
        let mut content = vec![0; leaf.padding];
        if !leaf.is_compressible {
            Random::from_seed([9; 32]).fill(&mut content);
        }
        let extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 32473, 1], content);
        params.custom_extensions.push(extension);
    }
    params
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{CertificateError, Error, RootCertStore};
    use rustls_pki_types::CertificateDer;

    use super::{Algorithm, Certificate, Leaf, TestCa, WALL_CLOCK, ed25519};

    fn verify(certificate: &Certificate, root: &CertificateDer<'_>) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.add(root.clone().into_owned()).unwrap();
        let provider = Arc::new(quic_transport::tls::crypto_provider());
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = builder.build().unwrap();
        let (leaf, rest) = certificate.chain.split_first().unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let now = UnixTime::since_unix_epoch(WALL_CLOCK);
        let outcome = verifier.verify_server_cert(leaf, rest, &name, &[], now);
        outcome.map(|_| ())
    }

    #[test]
    fn chains_of_any_length_verify() {
        for algorithm in [Algorithm::Ed25519, Algorithm::P256] {
            for intermediates in [0, 1, 3] {
                let ca = TestCa::new(algorithm);
                let certificate = ca.certificate(&Leaf {
                    names: &["localhost", "127.0.0.1"],
                    intermediates,
                    ..Leaf::default()
                });
                assert_eq!(certificate.chain.len(), intermediates + 1);
                assert_eq!(verify(&certificate, ca.root()), Ok(()));
            }
        }
    }

    #[test]
    fn faults_are_the_ones_asked_for() {
        let ca = TestCa::new(Algorithm::Ed25519);
        let localhost = Leaf {
            names: &["localhost"],
            ..Leaf::default()
        };
        let expired = Leaf {
            expired: true,
            ..localhost
        };
        let other = Leaf {
            names: &["other.test"],
            ..localhost
        };
        let code = |leaf| match verify(&ca.certificate(&leaf), ca.root()) {
            Err(Error::InvalidCertificate(code)) => Some(code),
            _ => None,
        };
        assert_eq!(code(localhost), None);
        assert!(matches!(
            code(expired),
            Some(CertificateError::ExpiredContext { .. })
        ));
        assert!(matches!(
            code(other),
            Some(CertificateError::NotValidForNameContext { .. })
        ));
        let stranger = ed25519(&["localhost"]);
        assert_eq!(
            verify(&stranger, ca.root()),
            Err(CertificateError::UnknownIssuer.into())
        );
    }

    #[test]
    fn padding_makes_it_large_and_ed25519_repeats() {
        let make = || {
            TestCa::new(Algorithm::Ed25519).certificate(&Leaf {
                names: &["localhost"],
                padding: 8000,
                ..Leaf::default()
            })
        };
        let length = make().chain[0].len();
        assert!((8000..9000).contains(&length), "{length}");
        assert_eq!(make(), make());
    }
}
