//! TLS for the stacks that take rustls' settings: TLS_AES_128_GCM_SHA256 and X25519 alone, by ring.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    client::Resumption,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};

use crate::{
    Outcome,
    work::{Job, Kind},
};

fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    provider.kx_groups = vec![ring::kx_group::X25519];
    Arc::new(provider)
}

/// What a server proves itself with. It keeps sessions, as rustls does without being told.
pub(crate) fn server(job: &Job, alpn: &str) -> Outcome<ServerConfig> {
    let certificate = CertificateDer::from(job.certificate()?);
    let key = PrivatePkcs8KeyDer::from(job.key()?);
    let mut tls = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())?;
    tls.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    Ok(tls)
}

/// Whom a client trusts. Every handshake is a full one, unless resuming is the work.
pub(crate) fn client(job: &Job, alpn: &str) -> Outcome<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(job.certificate()?))?;
    let mut tls = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    if job.work.kind != Kind::Resumed {
        tls.resumption = Resumption::disabled();
    }
    Ok(tls)
}
