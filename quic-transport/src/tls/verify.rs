//! Server certificate checks beside rustls' own: a pinned certificate, and none at all
//! ([RFC 9001, section 4.4](https://www.rfc-editor.org/rfc/rfc9001#section-4.4)).
//!
//! Whatever is checked of the certificate, the server must always prove that it holds the certificate's key.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use std::sync::Arc;

use super::crypto::digest::{SHA256, digest};

/// The pin of a certificate in DER, see [`ClientConfig::with_pin`](super::ClientConfig::with_pin).
#[must_use]
pub fn pin_of(certificate: &[u8]) -> [u8; 32] {
    let digest = digest(&SHA256, certificate);
    digest.as_ref().try_into().unwrap_or_default()
}

/// The certificate isn't the one that was pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PinMismatch;

impl std::fmt::Display for PinMismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the certificate is not the pinned one")
    }
}

impl std::error::Error for PinMismatch {}

/// What is checked of the server's certificate.
#[derive(Debug)]
enum Check {
    /// Its SHA-256 digest, then its dates and names.
    Pin([u8; 32]),
    /// Nothing.
    None,
}

/// A verifier that needs no roots.
#[derive(Debug)]
pub(super) struct Rootless {
    check: Check,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Rootless {
    /// Accepts only the certificate whose DER encoding has this SHA-256 digest.
    pub(super) const fn pinned(sha256: [u8; 32], algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self {
            check: Check::Pin(sha256),
            algorithms,
        }
    }

    /// Accepts every certificate.
    pub(super) const fn insecure(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self {
            check: Check::None,
            algorithms,
        }
    }
}

impl ServerCertVerifier for Rootless {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Check::Pin(pin) = self.check else {
            return Ok(ServerCertVerified::assertion());
        };
        if pin_of(end_entity) != pin {
            let mismatch = OtherError(Arc::new(PinMismatch));
            return Err(CertificateError::Other(mismatch).into());
        }
        // The pin says whom to trust. What is presented may stand as its own root, so that dates and purpose are
        // checked as for any other certificate.
        let mut roots = RootCertStore::empty();
        for certificate in std::iter::once(end_entity).chain(intermediates) {
            roots.add(certificate.clone().into_owned())?;
        }
        let parsed = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        verify_server_name(&parsed, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
