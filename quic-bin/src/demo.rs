//! `quic-client` without URLs: a server of its own, a body over loopback, every byte checked, and the figures.

use std::{
    io::{self, IsTerminal as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    thread,
    time::{Instant, SystemTime},
};

use quic_transport::{Config, tls};
use quic_udp::Socket;

use crate::{
    certificate::Identity,
    cli,
    download::Download,
    event_loop::EventLoop,
    exchange::Exchange,
    failure::Failure,
    pattern::Verifier,
    progress::Progress,
    server::{ALPN, Shared},
    signals::Termination,
    site::Site,
    summary::{Packets, Summary, Transfer},
    threads,
};

/// The name in the certificate of the run.
const NAME: &str = "localhost";

/// A generated body that is checked as it comes.
#[derive(Debug)]
struct Check {
    size: u64,
    path: String,
    verifier: Verifier,
    progress: Progress<io::Stderr>,
    status: u16,
}

impl Exchange for Check {
    fn method(&self) -> &'static str {
        "GET"
    }

    fn authority(&self) -> &str {
        NAME
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn on_response(&mut self, status: u16, _: Option<u64>) {
        self.status = status;
    }

    fn on_body(&mut self, data: &[u8], now: Instant) -> Result<(), Failure> {
        if !self.verifier.check(data) {
            let at = self.verifier.wrong().unwrap_or_default();
            return Err(Failure::new(format!("the body is wrong at byte {at}")));
        }
        self.progress.update(self.verifier.received(), now);
        Ok(())
    }

    fn on_end(&mut self) -> Result<(), Failure> {
        self.progress.finish();
        let received = self.verifier.received();
        if self.status != 200 || received != self.size {
            let (status, size) = (self.status, self.size);
            let line = format!("status {status} and {received} bytes instead of 200 and {size}");
            return Err(Failure::new(line));
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.path.clone()
    }
}

/// The server in its thread; it ends with this value.
struct Background {
    address: SocketAddr,
    termination: Termination,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Background {
    fn drop(&mut self) {
        self.termination.request();
        if let Some(thread) = self.thread.take() {
            // A server that panicked has said so.
            drop(thread.join());
        }
    }
}

/// Runs the demonstration.
///
/// # Errors
///
/// When a byte was wrong or missing, or something couldn't be started.
pub fn run(arguments: &cli::Client) -> Result<(), Failure> {
    let identity = Identity::self_signed(&[NAME.to_owned()], SystemTime::now())?;
    let tls = tls::ClientConfig::with_roots(identity.chain.iter().cloned(), &[ALPN])
        .map_err(|error| Failure::new(format!("TLS: {error}")))?;
    let server = start_server(identity)?;
    let fail = |error: io::Error| Failure::new(format!("{}: {error}", server.address));
    let socket = Socket::bind_for(server.address).map_err(fail)?;
    let mut events = EventLoop::new().map_err(fail)?;
    let id = events.add(socket).map_err(fail)?;
    let check = Check {
        size: arguments.size,
        path: format!("/{}", arguments.size),
        verifier: Verifier::default(),
        progress: progress(arguments.size),
        status: 0,
    };
    let termination = Termination::default();
    termination.wakes(events.waker());
    termination.on_signals().map_err(fail)?;
    let config = Config {
        handshake_timeout: arguments.timeout,
        idle_timeout: arguments.timeout,
        keep_alive: arguments.keep_alive(),
        ..Config::default()
    };
    let checks = [check];
    let mut download =
        Download::with_config(server.address, NAME, &tls, config, termination, checks)?
            .roaming(arguments.roaming());
    events.run(&mut download).map_err(fail)?;
    download.result()?;
    let summary = summarize(&download, arguments.size, events.socket(id));
    write!(io::stdout().lock(), "{summary}")
        .map_err(|error| Failure::new(format!("can't write to stdout: {error}")))
}

fn progress(size: u64) -> Progress<io::Stderr> {
    let shows = io::stderr().is_terminal();
    let mut progress = Progress::new(shows.then(io::stderr), Instant::now());
    progress.set_total(size);
    progress
}

fn start_server(identity: Identity) -> Result<Background, Failure> {
    let site = Site {
        test_resources: true,
        ..Site::default()
    };
    let termination = Termination::default();
    let shared = Shared::new(identity, site, termination.clone())?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let sockets = threads::bind(listen, 1)?;
    let address = sockets.first().map_or(listen, Socket::local_address);
    let thread = thread::Builder::new()
        .name("server".to_owned())
        // The client learns of its end by silence.
        .spawn(move || drop(threads::serve(&shared, sockets, Vec::new())))
        .map_err(|error| Failure::new(format!("can't start the server: {error}")))?;
    Ok(Background {
        address,
        termination,
        thread: Some(thread),
    })
}

fn summarize(download: &Download<Check>, bytes: u64, socket: Option<&Socket>) -> Summary {
    let connection = download.connection();
    let stats = connection.stats();
    Summary {
        transfer: Some(Transfer {
            bytes,
            elapsed: download.elapsed(),
            verified: true,
        }),
        handshake: stats.handshake_time,
        smoothed_rtt: Some(stats.smoothed_rtt),
        packets: Some(Packets {
            sent: stats.packets_sent,
            received: stats.packets_received,
            lost: stats.packets_lost,
        }),
        path_mtu: Some(stats.path_mtu),
        paths: download.notes(),
        socket: socket.map(Socket::counters),
        buffers: socket.map(|socket| (socket.send_buffer(), socket.receive_buffer())),
        version: Some(connection.version().to_string()),
        cipher: Some(connection.cipher_suite().to_owned()),
        group: Some(connection.key_exchange_group().to_owned()),
        congestion_control: Some(connection.congestion_control().to_owned()),
    }
}
