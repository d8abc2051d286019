//! This stack, HTTP/3: the server is `quic-server`, the client that of the benches.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use benches::{Load, Plan};
use quic_bin::{
    certificate::Identity,
    event_loop::EventLoop,
    random,
    server::{ALPN, Settings, Shared},
    signals::Termination,
    site::Site,
    threads,
};
use quic_common::Random;
use quic_transport::{
    Config, MAX_DATAGRAM,
    tls::{CipherSuite, ClientConfig, KeyExchange},
};
use quic_udp::Socket;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::{
    Outcome,
    measure::{Meter, announce, say, wait_until_told},
    work::{Job, Kind, Work},
};

/// How long the server may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// What it does in another way than usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Usual,
    /// Keys exchanged by X25519MLKEM768.
    PostQuantum,
    /// Without ACK_FREQUENCY.
    ManyAcks,
}

impl Way {
    const fn key_exchange(self) -> KeyExchange {
        match self {
            Self::Usual | Self::ManyAcks => KeyExchange::X25519,
            Self::PostQuantum => KeyExchange::X25519MlKem768,
        }
    }
}

pub(crate) fn serve(job: &Job, way: Way) -> Outcome<()> {
    let identity = Identity {
        chain: vec![CertificateDer::from(job.certificate()?)],
        key: PrivatePkcs8KeyDer::from(job.key()?).into(),
    };
    let site = Site {
        test_resources: true,
        ..Site::default()
    };
    let settings = Settings {
        streams: job.work.parallel.max(100),
        key_exchange: vec![way.key_exchange()],
        ..Settings::default()
    };
    let termination = Termination::default();
    let shared = Shared::with_settings(identity, site, settings, termination.clone())?;
    let sockets = threads::bind((Ipv4Addr::LOCALHOST, 0).into(), 1)?;
    let meter = announce(sockets.first().ok_or("no socket")?.local_address())?;
    std::thread::spawn(move || {
        // Told or not, it ends.
        drop(wait_until_told());
        termination.request();
    });
    threads::serve(&shared, sockets, Vec::new())?;
    Ok(say(meter.figures()?)?)
}

pub(crate) fn run(job: &Job, address: SocketAddr, way: Way) -> Outcome<()> {
    let work = job.work;
    let tls = ClientConfig::with_roots([CertificateDer::from(job.certificate()?)], &[ALPN])?
        .cipher_suites(&[CipherSuite::Aes128Gcm])?
        .key_exchange(&[way.key_exchange()])?;
    let tls = if work.kind == Kind::Resumed {
        tls
    } else {
        tls.without_resumption()
    };
    let config = Config {
        max_datagram: MAX_DATAGRAM,
        idle_timeout: PATIENCE,
        handshake_timeout: PATIENCE,
        ack_frequency: way != Way::ManyAcks,
        ..Config::default()
    };
    let mut events = EventLoop::new()?;
    events.add(Socket::bind_for(address)?)?;
    let mut meter = Meter::start()?;
    for _ in 0..work.connections() {
        let random = Random::from_seed(random::seed()?);
        let mut load = Load::open(events, address, &tls, &config, random);
        if work.connections() == 1 {
            load.finish_handshake();
            meter = Meter::start()?;
        }
        let received = load.run(plan(work)?);
        if received != expected(work) {
            return Err(format!("{received} bytes are not the answer").into());
        }
        load.close();
        events = load.into_events();
    }
    Ok(say(meter.figures()?)?)
}

fn plan(work: Work) -> Outcome<Plan> {
    let ask = work.ask();
    Ok(Plan {
        requests: usize::try_from(work.requests())?,
        parallel: usize::try_from(work.parallel)?,
        response: ask.down,
        request: Some(ask.up).filter(|up| *up > 0),
    })
}

/// Bytes of all answers. That to an upload is how many bytes have come, on a line.
fn expected(work: Work) -> u64 {
    let ask = work.ask();
    if ask.up > 0 {
        let digits = u64::from(ask.up.ilog10()) + 1;
        return digits + 1;
    }
    ask.down * work.requests()
}
