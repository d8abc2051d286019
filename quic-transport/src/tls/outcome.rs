//! What can be asked about a handshake once its session is gone: a small part of what rustls holds.

use rustls::pki_types::CertificateDer;

use super::exporter::Exporter;
use super::suite::CipherSuite;

/// See the module.
pub(super) struct Outcome {
    pub(super) alpn: Option<Box<[u8]>>,
    pub(super) server_name: Option<Box<str>>,
    pub(super) suite: CipherSuite,
    /// The name of the key exchange group.
    pub(super) group: &'static str,
    pub(super) certificates: Option<Box<[CertificateDer<'static>]>>,
    pub(super) is_resumed: bool,
    pub(super) exporter: Exporter,
}
