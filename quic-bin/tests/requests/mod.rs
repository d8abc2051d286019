//! One request by the client's own parts, within the test's process.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use quic_bin::{
    download::{Download, Timing},
    exchange::Exchange,
    failure::Failure,
    signals::Termination,
};
use quic_transport::tls;

/// Asks a server with test resources for so many bytes, and counts them.
pub(crate) struct Get {
    path: String,
    length: usize,
    received: usize,
}

impl Exchange for Get {
    fn method(&self) -> &'static str {
        "GET"
    }

    fn authority(&self) -> &'static str {
        "localhost"
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn on_response(&mut self, status: u16, _: Option<u64>) {
        assert_eq!(status, 200);
    }

    fn on_body(&mut self, data: &[u8], _: Instant) -> Result<(), Failure> {
        self.received += data.len();
        Ok(())
    }

    fn on_end(&mut self) -> Result<(), Failure> {
        assert_eq!(self.received, self.length);
        Ok(())
    }

    fn name(&self) -> String {
        String::new()
    }
}

/// A connection to the server of this address and name, for `length` bytes.
pub(crate) fn download(
    (address, name): (SocketAddr, &str),
    tls: &tls::ClientConfig,
    length: usize,
) -> Download<Get> {
    let time = Duration::from_secs(30);
    let timing = Timing {
        handshake: time,
        silence: time,
    };
    let get = Get {
        path: format!("/{length}"),
        length,
        received: 0,
    };
    Download::new(address, name, tls, timing, Termination::default(), [get]).unwrap()
}
