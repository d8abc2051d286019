//! TLS settings for both roles.

use std::sync::Arc;

use quic_transport::tls::crypto_provider;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;

use crate::certificates::Certificate;

/// TLS settings of a client that trusts `root`.
///
/// # Panics
///
/// If `root` is no certificate.
#[must_use]
pub fn client_config(root: &CertificateDer<'static>, alpn: &[&[u8]]) -> rustls::ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(crypto_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config
}

/// TLS settings of a server.
///
/// # Panics
///
/// If the key doesn't fit the certificate.
#[must_use]
pub fn server_config(certificate: &Certificate, alpn: &[&[u8]]) -> rustls::ServerConfig {
    let Certificate { chain, key } = certificate.copy();
    let provider = Arc::new(crypto_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config
}
