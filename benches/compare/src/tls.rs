//! TLS for the stacks that take rustls' settings: TLS_AES_128_GCM_SHA256 and X25519 alone, by ring.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    client::Resumption,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};

use crate::Outcome;

const ALPN: &[u8] = b"compare";

fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    provider.kx_groups = vec![ring::kx_group::X25519];
    Arc::new(provider)
}

/// What a server proves itself with.
pub(crate) fn server(directory: &Path) -> Outcome<ServerConfig> {
    let certificate = CertificateDer::from(std::fs::read(directory.join("cert.der"))?);
    let key = PrivatePkcs8KeyDer::from(std::fs::read(directory.join("key.der"))?);
    let mut tls = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    Ok(tls)
}

/// Whom a client trusts. Every handshake is a full one.
pub(crate) fn client(directory: &Path) -> Outcome<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(
        directory.join("cert.der"),
    )?))?;
    let mut tls = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.resumption = Resumption::disabled();
    Ok(tls)
}
