//! This stack: HTTP/3 by the parts of `quic-client` and `quic-server`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::{Duration, Instant},
};

use quic_bin::{
    certificate::Identity,
    download::{Download, Timing},
    event_loop::EventLoop,
    exchange::Exchange,
    failure::Failure,
    pattern::Source,
    server::{ALPN, Shared},
    signals::Termination,
    site::{Body, Site},
    threads,
};
use quic_transport::tls::{CipherSuite, ClientConfig, KeyExchange};
use quic_udp::Socket;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::{
    Outcome,
    measure::{Figures, announce, wait_until_told},
    work::{Kind, Work},
};

/// How long the server may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request, whose answer is counted.
#[derive(Debug)]
struct Count {
    path: String,
    upload: Option<u64>,
    received: u64,
}

impl Count {
    fn get(bytes: u64) -> Self {
        Self {
            path: format!("/{bytes}"),
            upload: None,
            received: 0,
        }
    }

    fn post(bytes: u64) -> Self {
        Self {
            path: "/".to_owned(),
            upload: Some(bytes),
            received: 0,
        }
    }
}

impl Exchange for Count {
    fn method(&self) -> &'static str {
        if self.upload.is_some() { "POST" } else { "GET" }
    }

    fn authority(&self) -> &str {
        "localhost"
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn upload_length(&self) -> Option<u64> {
        self.upload
    }

    fn take_upload(&mut self) -> Option<Body> {
        self.upload.map(|bytes| Body::Generated(Source::new(bytes)))
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
    announce(sockets.first().ok_or("no socket")?.local_address())?;
    std::thread::spawn(move || {
        // Told or not, it ends.
        let _ = wait_until_told();
        termination.request();
    });
    threads::serve(&shared, sockets, Vec::new())?;
    Figures::of_self(Duration::ZERO)?.print();
    Ok(())
}

pub(crate) fn run(directory: &Path, address: SocketAddr, work: Work) -> Outcome<()> {
    let root = CertificateDer::from(std::fs::read(directory.join("cert.der"))?);
    let tls = ClientConfig::with_roots([root], &[ALPN])?
        .cipher_suites(&[CipherSuite::Aes128Gcm])?
        .key_exchange(&[KeyExchange::X25519])?
        .without_resumption();
    let mut events = EventLoop::new()?;
    events.add(Socket::bind_for(address)?)?;
    let mut connect = |exchanges: Vec<Count>| -> Outcome<(Duration, Vec<Count>)> {
        let timing = Timing {
            handshake: PATIENCE,
            silence: PATIENCE,
        };
        let termination = Termination::default();
        let mut download =
            Download::new(address, "localhost", &tls, timing, termination, exchanges)?;
        events.run(&mut download)?;
        download.result()?;
        Ok((download.elapsed(), download.into_finished()))
    };
    let (elapsed, finished) = match work.kind {
        Kind::Download => connect(vec![Count::get(work.amount)])?,
        Kind::Upload => connect(vec![Count::post(work.amount)])?,
        Kind::Requests => connect((0..work.amount).map(|_| Count::get(1)).collect())?,
        Kind::Connections => {
            let start = Instant::now();
            let mut finished = Vec::new();
            for _ in 0..work.amount {
                finished.append(&mut connect(vec![Count::get(1)])?.1);
            }
            (start.elapsed(), finished)
        }
    };
    let received: u64 = finished.iter().map(|count| count.received).sum();
    let is_whole = match work.kind {
        Kind::Upload => received == work.amount.to_string().len() as u64 + 1,
        Kind::Download | Kind::Requests | Kind::Connections => received == work.amount,
    };
    if !is_whole {
        return Err(format!("{received} bytes are not the answer").into());
    }
    Figures::of_self(elapsed)?.print();
    Ok(())
}
