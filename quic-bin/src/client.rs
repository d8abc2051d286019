//! `quic-client` with URLs: fetches all of them over one connection.

use std::{
    fs::{self, File},
    io::{self, IsTerminal as _, Write as _},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use quic_transport::{Config, tls};
use quic_udp::Socket;

use crate::{
    certificate::load_certificates,
    chunks::Chunks,
    cli::{self, Trust, Upload},
    datagrams,
    download::Download,
    ech,
    event_loop::EventLoop,
    exchange::Exchange,
    failure::Failure,
    file_body::FileBody,
    pipe::Pipe,
    progress::Progress,
    qlog_files::QlogFiles,
    signals::Termination,
    site::Body,
    url::Target,
};

/// Bytes of the longest name of a protocol (RFC 7301, 3.1).
const LONGEST_ALPN: usize = 255;

/// So many of the longest names make a ClientHello that is larger than a datagram.
const FILLERS: usize = 6;

/// An address is given this time at least.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// One URL.
#[derive(Debug)]
struct Fetch {
    target: Target,
    upload: Option<(Body, u64)>,
    is_post: bool,
    sink: Sink,
    progress: Progress<io::Stderr>,
    status: u16,
    received: u64,
}

/// Where a body goes.
#[derive(Debug)]
enum Sink {
    Stdout(Arc<Pipe>),
    /// Made when the first byte or the end has come.
    File {
        path: PathBuf,
        file: Option<File>,
    },
}

impl Sink {
    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout(pipe) => pipe.write(data),
            Self::File { path, file } => {
                let fail = |error| Failure::with_file(path, &error);
                let file = match file {
                    Some(file) => file,
                    None => file.insert(File::create(&*path).map_err(fail)?),
                };
                file.write_all(data).map_err(fail)
            }
        }
    }

    fn has_room(&self) -> bool {
        match self {
            Self::Stdout(pipe) => pipe.has_room(),
            Self::File { .. } => true,
        }
    }
}

impl Exchange for Fetch {
    fn method(&self) -> &'static str {
        if self.is_post { "POST" } else { "GET" }
    }

    fn authority(&self) -> &str {
        self.target.authority()
    }

    fn path(&self) -> &str {
        self.target.path()
    }

    fn upload_length(&self) -> Option<u64> {
        self.upload.as_ref().map(|(_, length)| *length)
    }

    fn take_upload(&mut self) -> Option<Body> {
        self.upload.take().map(|(body, _)| body)
    }

    fn shares_output(&self) -> bool {
        matches!(self.sink, Sink::Stdout(_))
    }

    fn has_room(&self) -> bool {
        self.sink.has_room()
    }

    fn on_response(&mut self, status: u16, length: Option<u64>) {
        self.status = status;
        if let Some(length) = length {
            self.progress.set_total(length);
        }
    }

    fn on_body(&mut self, data: &[u8], now: Instant) -> Result<(), Failure> {
        self.sink.write(data)?;
        self.received += u64::try_from(data.len()).unwrap_or_default();
        self.progress.update(self.received, now);
        Ok(())
    }

    fn on_end(&mut self) -> Result<(), Failure> {
        self.progress.finish();
        // A file is made for an empty body, too.
        self.sink.write(b"")
    }

    fn name(&self) -> String {
        self.target.to_string()
    }
}

/// Runs `quic-client` with URLs.
///
/// # Errors
///
/// The first thing that went wrong; an HTTP status of 400 or more is one, once all bodies are written.
pub fn run(arguments: &cli::Client) -> Result<(), Failure> {
    let Some(first) = arguments.urls.first() else {
        return Ok(());
    };
    let tls = tls_of(arguments)?;
    let pipe = Arc::new(Pipe::new(io::stdout())?);
    let mut fetches = Vec::new();
    for (index, target) in arguments.urls.iter().enumerate() {
        fetches.push(fetch(arguments, index, target, &pipe)?);
    }
    let addresses = first.resolve(arguments.timeout)?;
    let termination = Termination::default();
    termination
        .on_signals()
        .map_err(|error| Failure::new(format!("can't watch for signals: {error}")))?;
    let ways = Ways {
        server: first,
        addresses: &addresses,
        termination: &termination,
        pipe: &pipe,
    };
    let result = fetch_all(arguments, &tls, &ways, fetches);
    // Who wants the program to end doesn't want it to wait for the reader of its output.
    if !termination.is_requested() {
        pipe.finish()?;
    }
    result?
        .iter()
        .find(|fetch| fetch.status >= 400)
        .map_or(Ok(()), |fetch| {
            Err(Failure::new(format!(
                "{}: HTTP status {}",
                fetch.target, fetch.status
            )))
        })
}

/// Where the server may be, and what connects the connection to the rest of the program.
struct Ways<'w> {
    server: &'w Target,
    addresses: &'w [SocketAddr],
    termination: &'w Termination,
    pipe: &'w Pipe,
}

/// A connection that was made and is over.
struct Visit {
    address: SocketAddr,
    /// The settings that it was made with: the server may have replaced a part of what was given.
    tls: tls::ClientConfig,
    finished: Vec<Fetch>,
    is_resumed: bool,
    is_early_data_accepted: bool,
}

impl Visit {
    /// What became of the earlier connection's session.
    const fn resumption(&self, arguments: &cli::Client) -> &'static str {
        match (self.is_resumed, self.is_early_data_accepted) {
            (_, true) => "session resumed, early data accepted",
            (true, false) if arguments.zero_rtt => "session resumed, early data not accepted",
            (true, false) => "session resumed",
            (false, false) => "session not resumed",
        }
    }
}

/// Fetches everything; the first over a connection of its own, if the others are to come back to a server that is known.
fn fetch_all(
    arguments: &cli::Client,
    tls: &tls::ClientConfig,
    ways: &Ways<'_>,
    mut fetches: Vec<Fetch>,
) -> Result<Vec<Fetch>, Failure> {
    let rest = arguments.resumes().then(|| fetches.split_off(1));
    let mut visit = try_each(arguments, tls, ways, fetches)?;
    if let Some(rest) = rest {
        let known = Ways {
            addresses: &[visit.address],
            ..*ways
        };
        let again = try_each(arguments, &visit.tls, &known, rest)?;
        // Nobody to tell is no reason to stop.
        drop(writeln!(io::stderr(), "{}", again.resumption(arguments)));
        visit.finished.extend(again.finished);
    }
    Ok(visit.finished)
}

/// Tries one address after the other until one answers, all within the time that one would have.
fn try_each(
    arguments: &cli::Client,
    tls: &tls::ClientConfig,
    ways: &Ways<'_>,
    mut fetches: Vec<Fetch>,
) -> Result<Visit, Failure> {
    let qlog = QlogFiles::new(arguments.qlog_dir.as_deref())?;
    let deadline = Instant::now() + arguments.timeout;
    let mut tls = tls.clone();
    let mut has_renewed = false;
    let mut left = ways.addresses.to_vec();
    left.reverse();
    let mut last = Failure::new(format!("{}: the name has no address", ways.server.host()));
    while let Some(address) = left.pop() {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let share = remaining / u32::try_from(left.len() + 1).unwrap_or(u32::MAX);
        let mut download = prepare(arguments, &tls, ways, address, share, fetches)?;
        if let Some(qlog) = &qlog {
            download = download.logged(qlog);
        }
        let result = drive(address, &mut download, ways);
        tell(&download.notes());
        let connection = download.connection();
        if result.is_ok() || download.has_connected() || ways.termination.is_requested() {
            result?;
            return Ok(Visit {
                address,
                tls,
                is_resumed: connection.is_resumed(),
                is_early_data_accepted: connection.is_early_data_accepted(),
                finished: download.into_finished(),
            });
        }
        // Who offers another one again and again is not to be followed.
        if !has_renewed && let Some(renewed) = ech::renewed(&tls, &connection.ech_status()) {
            tell(&[format!(
                "{address}: the ECH configuration is no longer known there; connecting again with the one offered instead"
            )]);
            tls = renewed;
            has_renewed = true;
            left.push(address);
        }
        fetches = download.into_waiting().into();
        if let Err(failure) = result {
            last = failure;
        }
    }
    Err(last)
}

/// A connection to `address` that takes no longer than `share` to be made.
fn prepare(
    arguments: &cli::Client,
    tls: &tls::ClientConfig,
    ways: &Ways<'_>,
    address: SocketAddr,
    share: Duration,
    fetches: Vec<Fetch>,
) -> Result<Download<Fetch>, Failure> {
    let mut config = arguments.extensions.apply(Config {
        split_client_hello: arguments.split_client_hello,
        versions: arguments.quic_versions,
        first_version: arguments.first_version,
        handshake_timeout: share.max(SHORTEST_WAIT),
        idle_timeout: arguments.timeout,
        keep_alive: arguments.keep_alive(),
        early_data: arguments.zero_rtt,
        ..Config::default()
    });
    if arguments.datagrams.is_some() {
        config.datagrams = datagrams::settings();
    }
    let host = ways.server.host();
    let termination = ways.termination.clone();
    let mut download = Download::with_config(address, host, tls, config, termination, fetches)?
        .speaking(arguments.alpn)
        .roaming(arguments.roaming());
    if let Some(count) = arguments.datagrams {
        download = download.sending_datagrams(count);
    }
    if arguments.key_update {
        download = download.updating_keys();
    }
    Ok(download)
}

/// What has become of paths and datagrams goes where it doesn't mix with bodies.
fn tell(notes: &[String]) {
    let mut out = io::stderr().lock();
    for note in notes {
        // Nobody to tell is no reason to stop.
        drop(writeln!(out, "{note}"));
    }
}

fn drive(
    address: SocketAddr,
    download: &mut Download<Fetch>,
    ways: &Ways<'_>,
) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure::new(format!("{address}: {error}"));
    let mut socket = Socket::bind_for(address).map_err(fail)?;
    // Where the system can't report them, the timeout is waited for.
    drop(socket.enable_icmp_errors());
    let mut events = EventLoop::new().map_err(fail)?;
    events.add(socket).map_err(fail)?;
    ways.termination.wakes(events.waker());
    ways.pipe.wakes(events.waker());
    events.run(download).map_err(fail)?;
    download.result()
}

fn fetch(
    arguments: &cli::Client,
    index: usize,
    target: &Target,
    pipe: &Arc<Pipe>,
) -> Result<Fetch, Failure> {
    let upload = arguments.data.as_ref().map(open_upload).transpose()?;
    let sink = arguments.output_of(index).map_or_else(
        || Sink::Stdout(Arc::clone(pipe)),
        |path| Sink::File {
            path: path.clone(),
            file: None,
        },
    );
    // Several would draw over each other.
    let is_alone = arguments.urls.len() == 1;
    let shows_progress =
        is_alone && io::stderr().is_terminal() && matches!(sink, Sink::File { .. });
    Ok(Fetch {
        target: target.clone(),
        is_post: upload.is_some(),
        upload,
        sink,
        progress: Progress::new(shows_progress.then(io::stderr), Instant::now()),
        status: 0,
        received: 0,
    })
}

fn open_upload(upload: &Upload) -> Result<(Body, u64), Failure> {
    match upload {
        Upload::Bytes(text) => Ok((
            Body::Text(text.clone().into()),
            u64::try_from(text.len()).unwrap_or_default(),
        )),
        Upload::File(path) => {
            let fail = |error| Failure::with_file(path, &error);
            // Opening a named pipe would wait for somebody to write to it.
            if !fs::metadata(path).map_err(fail)?.is_file() {
                return Err(Failure::with_file(path, &"not a regular file"));
            }
            let file = File::open(path).map_err(fail)?;
            let metadata = file.metadata().map_err(fail)?;
            let body = Body::File(FileBody::new(file, metadata.len(), &Chunks::default()));
            Ok((body, metadata.len()))
        }
    }
}

/// Whom the client trusts, and what it offers.
fn tls_of(arguments: &cli::Client) -> Result<tls::ClientConfig, Failure> {
    let filler = [b'-'; LONGEST_ALPN];
    let mut alpn = vec![arguments.alpn.name()];
    if arguments.large_client_hello {
        alpn.resize(1 + FILLERS, &filler);
    }
    let tls = trust(arguments.trust(), &alpn)?;
    let tls = match arguments.cipher {
        Some(cipher) => tls
            .cipher_suites(&[cipher.suite()])
            .map_err(|error| Failure::new(format!("TLS: {error}")))?,
        None => tls,
    };
    let groups: Vec<_> = arguments
        .key_exchange
        .iter()
        .map(|group| group.key_exchange())
        .collect();
    let tls = if groups.is_empty() {
        tls
    } else {
        tls.key_exchange(&groups)
            .map_err(|error| Failure::new(format!("TLS: {error}")))?
    };
    let tls = match &arguments.ech {
        Some(ech) => ech.apply(tls)?,
        None => tls,
    };
    Ok(tls.key_log(Arc::new(rustls::KeyLogFile::new())))
}

fn trust(trust: Trust, alpn: &[&[u8]]) -> Result<tls::ClientConfig, Failure> {
    let config = match trust {
        Trust::WebRoots => {
            let roots = rustls::RootCertStore {
                roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            };
            tls::ClientConfig::with_root_store(roots, alpn)
        }
        Trust::File(path) => tls::ClientConfig::with_roots(load_certificates(&path)?, alpn),
        Trust::Pin(pin) => tls::ClientConfig::with_pin(pin.0, alpn),
        Trust::Anything => {
            // Nobody to tell is no reason to stop.
            drop(writeln!(
                io::stderr(),
                "warning: --insecure: anyone can pretend to be this server"
            ));
            tls::ClientConfig::insecure(alpn)
        }
    };
    config.map_err(|error| Failure::new(format!("TLS: {error}")))
}
