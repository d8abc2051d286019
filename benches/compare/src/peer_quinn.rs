//! quinn with its defaults, on a runtime of one thread: a raw stream, whose request is the length wanted.

use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::{
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};
use tokio::io::AsyncReadExt as _;

use crate::{Outcome, measure::Figures};

/// Bytes handed to quinn at a time, without a copy.
const PIECE: usize = 1 << 20;

fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    provider.kx_groups = vec![ring::kx_group::X25519];
    Arc::new(provider)
}

pub(crate) fn serve(directory: &Path) -> Outcome<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve_on_runtime(directory))
}

async fn serve_on_runtime(directory: &Path) -> Outcome<()> {
    let certificate = CertificateDer::from(std::fs::read(directory.join("cert.der"))?);
    let key = PrivatePkcs8KeyDer::from(std::fs::read(directory.join("key.der"))?);
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())?;
    tls.alpn_protocols = vec![b"compare".to_vec()];
    let config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let endpoint = quinn::Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
    println!("{}", endpoint.local_addr()?);
    std::io::stdout().flush()?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let (mut send, mut receive) = connection.accept_bi().await?;
    let mut wanted = [0; 8];
    receive.read_exact(&mut wanted).await?;
    let mut left = u64::from_be_bytes(wanted);
    let piece = Bytes::from(vec![7; PIECE]);
    while left > 0 {
        let length = left.min(PIECE as u64);
        send.write_chunk(piece.slice(..length as usize)).await?;
        left -= length;
    }
    send.finish()?;
    // Until the client and the comparison are done.
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    let sent = connection.stats().udp_tx;
    Figures::of_self(Duration::ZERO, sent.bytes as f64 / sent.ios.max(1) as f64)?.print();
    // The thread that reads stdin would be waited for.
    std::process::exit(0)
}

pub(crate) fn fetch(directory: &Path, address: SocketAddr, size: u64) -> Outcome<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(fetch_on_runtime(directory, address, size))
}

async fn fetch_on_runtime(directory: &Path, address: SocketAddr, size: u64) -> Outcome<()> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(
        directory.join("cert.der"),
    )?))?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"compare".to_vec()];
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let endpoint = quinn::Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let connection = endpoint.connect_with(config, address, "localhost")?.await?;
    let start = Instant::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&size.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    let mut pieces: [Bytes; 32] = std::array::from_fn(|_| Bytes::new());
    while let Some(count) = receive.read_chunks(&mut pieces).await? {
        received += pieces
            .iter()
            .take(count)
            .map(|piece| piece.len() as u64)
            .sum::<u64>();
    }
    let elapsed = start.elapsed();
    if received != size {
        return Err(format!("{received} bytes instead of {size}").into());
    }
    Figures::of_self(elapsed, 0.0)?.print();
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}
