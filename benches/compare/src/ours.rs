//! This stack: HTTP/3 by the parts of `quic-client` and `quic-server`.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::{Duration, Instant},
};

use quic_bin::{
    certificate::Identity,
    download::{Download, Exchange, Timing},
    event_loop::EventLoop,
    failure::Failure,
    post::Post,
    server::{ALPN, Shared},
    signals::Termination,
    site::Site,
    threads,
};
use quic_transport::tls::{CipherSuite, ClientConfig, KeyExchange};
use quic_udp::Socket;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::{Outcome, measure::Figures};

/// How long the server may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts the bytes of a body.
#[derive(Debug)]
struct Count {
    path: String,
    received: u64,
}

impl Exchange for Count {
    fn method(&self) -> &'static str {
        "GET"
    }

    fn authority(&self) -> &str {
        "localhost"
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn on_response(&mut self, _: u16, _: Option<u64>) {}

    fn on_body(&mut self, data: &[u8], _: Instant) -> Result<(), Failure> {
        self.received += data.len() as u64;
        Ok(())
    }

    fn on_end(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn name(&self) -> String {
        self.path.clone()
    }
}

pub(crate) fn serve(directory: &Path) -> Outcome<()> {
    let identity = Identity {
        chain: vec![CertificateDer::from(std::fs::read(
            directory.join("cert.der"),
        )?)],
        key: PrivatePkcs8KeyDer::from(std::fs::read(directory.join("key.der"))?).into(),
    };
    let site = Site {
        root: None,
        test_resources: true,
    };
    let termination = Termination::default();
    let shared = Shared::new(identity, site, termination.clone())?;
    let sockets = threads::bind((Ipv4Addr::LOCALHOST, 0).into(), 1)?;
    let socket = sockets.into_iter().next().ok_or("no socket")?;
    println!("{}", socket.local_address());
    std::io::stdout().flush()?;
    let mut events = EventLoop::new()?;
    let id = events.add(socket)?;
    termination.wakes(events.waker());
    let mut server = shared.server(Post::alone(), events.waker())?;
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        termination.request();
    });
    events.run(&mut server)?;
    let counters = events.socket(id).map(Socket::counters).unwrap_or_default();
    let bytes_per_send = counters.sent_bytes as f64 / counters.sent_calls.max(1) as f64;
    Figures::of_self(Duration::ZERO, bytes_per_send)?.print();
    Ok(())
}

pub(crate) fn fetch(directory: &Path, address: SocketAddr, size: u64) -> Outcome<()> {
    let root = CertificateDer::from(std::fs::read(directory.join("cert.der"))?);
    let tls =
        ClientConfig::with_roots([root], &[ALPN])?
        .cipher_suites(&[CipherSuite::Aes128Gcm])?
        .key_exchange(&[KeyExchange::X25519])?;
    let count = Count {
        path: format!("/{size}"),
        received: 0,
    };
    let timing = Timing {
        handshake: PATIENCE,
        silence: PATIENCE,
    };
    let termination = Termination::default();
    let mut download = Download::new(address, "localhost", &tls, timing, termination, [count])?;
    let mut events = EventLoop::new()?;
    events.add(Socket::bind_for(address)?)?;
    events.run(&mut download)?;
    download.result()?;
    let elapsed = download.elapsed();
    let received: u64 = download
        .into_finished()
        .iter()
        .map(|count| count.received)
        .sum();
    if received != size {
        return Err(format!("{received} bytes instead of {size}").into());
    }
    Figures::of_self(elapsed, 0.0)?.print();
    Ok(())
}
