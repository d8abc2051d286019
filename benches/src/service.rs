//! `quic-server` with its test resources, in a thread of this process.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use std::time::SystemTime;

use quic_bin::certificate::Identity;
use quic_bin::server::{ALPN, Shared};
use quic_bin::signals::Termination;
use quic_bin::site::Site;
use quic_bin::threads;
use quic_transport::tls::{self, KeyExchange};

/// A server that ends with this value.
#[derive(Debug)]
pub struct Service {
    /// Where it listens.
    pub address: SocketAddr,
    /// For its clients.
    pub tls: tls::ClientConfig,
    termination: Termination,
    thread: Option<JoinHandle<()>>,
}

impl Default for Service {
    fn default() -> Self {
        Self::start()
    }
}

impl Service {
    /// Starts it on a free loopback port.
    #[must_use]
    pub fn start() -> Self {
        let identity = Identity::self_signed(&["localhost".to_owned()], SystemTime::now()).unwrap();
        let tls = tls::ClientConfig::with_roots(identity.chain.iter().cloned(), &[ALPN])
            .and_then(|tls| tls.key_exchange(&[KeyExchange::X25519]))
            .unwrap();
        let site = Site {
            test_resources: true,
            ..Site::default()
        };
        let termination = Termination::default();
        let shared = Shared::new(identity, site, termination.clone()).unwrap();
        let sockets = threads::bind((Ipv4Addr::LOCALHOST, 0).into(), 1).unwrap();
        let address = sockets.first().unwrap().local_address();
        let thread =
            std::thread::spawn(move || threads::serve(&shared, sockets, Vec::new()).unwrap());
        Self {
            address,
            tls: tls.without_resumption(),
            termination,
            thread: Some(thread),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.termination.request();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
