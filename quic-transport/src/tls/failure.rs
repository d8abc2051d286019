//! From a failure of TLS to the error that closes the connection: its alert as the code, and words that tell a user
//! what to do about it ([RFC 9001, section 4.8](https://www.rfc-editor.org/rfc/rfc9001#section-4.8)).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enums are rustls' and may grow; what has no words of its own gets general ones"
)]

use rustls::{
    AlertDescription, CertificateError, HandshakeType, OtherError, PeerIncompatible, PeerMisbehaved,
};

use super::verify::PinMismatch;
use crate::error::Error;
use crate::wire::TransportErrorCode;

/// The type of the CRYPTO frame, which brought whatever TLS refused.
const CRYPTO: u64 = 0x06;

/// The alert for a failure that rustls has none for.
const HANDSHAKE_FAILURE: u8 = 40;

/// The error for `failure`, with the alert that rustls would have sent.
pub(super) fn error(failure: &rustls::Error, alert: Option<AlertDescription>) -> Error {
    let reason = reason(failure);
    if breaks_quic(failure) {
        return Error::protocol(CRYPTO, reason);
    }
    let alert = alert.map_or(HANDSHAKE_FAILURE, u8::from);
    Error::new(TransportErrorCode::crypto(alert), CRYPTO, reason)
}

/// Whether a rule is broken that is QUIC's rather than TLS': data left over at a level that has ended (RFC 9001, 4.1.3),
/// a request for a certificate after the handshake (4.4), or a ticket that limits early data (4.6.1).
const fn breaks_quic(failure: &rustls::Error) -> bool {
    matches!(
        failure,
        rustls::Error::PeerMisbehaved(
            PeerMisbehaved::KeyEpochWithPendingFragment | PeerMisbehaved::InvalidMaxEarlyDataSize
        ) | rustls::Error::InappropriateHandshakeMessage {
            got_type: HandshakeType::CertificateRequest,
            ..
        }
    )
}

/// What went wrong, in words.
pub(super) fn reason(failure: &rustls::Error) -> &'static str {
    match failure {
        rustls::Error::InvalidCertificate(error) => certificate(error),
        rustls::Error::NoCertificatesPresented => "no certificate was presented",
        rustls::Error::NoApplicationProtocol => "no application protocol in common",
        rustls::Error::PeerIncompatible(error) => incompatible(error),
        rustls::Error::PeerMisbehaved(PeerMisbehaved::MissingQuicTransportParameters) => {
            "the transport parameters are missing"
        }
        rustls::Error::PeerMisbehaved(PeerMisbehaved::KeyEpochWithPendingFragment) => {
            "data was left over when the encryption level changed"
        }
        rustls::Error::PeerMisbehaved(_) => "the peer broke a rule of TLS",
        rustls::Error::InvalidMessage(_) => "a TLS message is malformed",
        rustls::Error::InappropriateMessage { .. }
        | rustls::Error::InappropriateHandshakeMessage { .. } => {
            "a TLS message came that is not allowed now"
        }
        rustls::Error::DecryptError => "the handshake is not authentic",
        rustls::Error::UnsupportedNameType => "the server's name is of an unknown kind",
        rustls::Error::InconsistentKeys(_) => "the private key does not belong to the certificate",
        rustls::Error::FailedToGetCurrentTime => "the time is not known",
        rustls::Error::FailedToGetRandomBytes => "the system gave no random bytes",
        _ => "the TLS handshake failed",
    }
}

/// What is wrong with a certificate.
fn certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another name"
        }
        CertificateError::UnknownIssuer => "the certificate's issuer is not trusted",
        CertificateError::Revoked => "the certificate was revoked",
        CertificateError::BadSignature => "a signature by the certificate's issuer or key is wrong",
        CertificateError::BadEncoding => "the certificate is malformed",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate is for another purpose"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "the certificate's signature algorithm is not supported"
        }
        CertificateError::UnknownRevocationStatus => {
            "whether the certificate is revoked is not known"
        }
        CertificateError::Other(OtherError(error)) if error.is::<PinMismatch>() => {
            "the certificate is not the pinned one"
        }
        // The verifier's own error type is not in reach; its text is.
        CertificateError::Other(OtherError(error)) if error.to_string() == "CaUsedAsEndEntity" => {
            "the certificate is an authority's, not a server's"
        }
        _ => "the certificate is not acceptable",
    }
}

const fn incompatible(error: &PeerIncompatible) -> &'static str {
    match error {
        PeerIncompatible::ServerRejectedEncryptedClientHello(_) => {
            "the server doesn't know what the ClientHello was encrypted with"
        }
        PeerIncompatible::NoCipherSuitesInCommon => "no cipher suite in common",
        PeerIncompatible::NoKxGroupsInCommon => "no key exchange group in common",
        PeerIncompatible::NoSignatureSchemesInCommon => "no signature scheme in common",
        PeerIncompatible::SupportedVersionsExtensionRequired
        | PeerIncompatible::Tls13RequiredForQuic
        | PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig => {
            "the peer does not speak TLS 1.3"
        }
        _ => "the peer's TLS is not compatible",
    }
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, CertificateError, PeerMisbehaved};

    use super::{TransportErrorCode, error};

    #[test]
    fn the_code_is_the_alert() {
        let failure = rustls::Error::NoApplicationProtocol;
        let error = error(&failure, Some(AlertDescription::NoApplicationProtocol));
        assert_eq!(error.code, TransportErrorCode::new(0x178));
        assert_eq!(error.reason, "no application protocol in common");
    }

    #[test]
    fn a_failure_without_an_alert_is_a_handshake_failure() {
        let failure = rustls::Error::InvalidCertificate(CertificateError::Revoked);
        assert_eq!(error(&failure, None).code, TransportErrorCode::new(0x128));
    }

    /// RFC 9001, 4.1.3.
    #[test]
    fn data_left_over_at_a_level_is_a_protocol_violation() {
        let failure = PeerMisbehaved::KeyEpochWithPendingFragment.into();
        let error = error(&failure, Some(AlertDescription::UnexpectedMessage));
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    }
}
