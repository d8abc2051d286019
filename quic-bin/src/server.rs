//! The server: an endpoint on a socket, and who is let in.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    sync::Arc,
    time::{Instant, SystemTime},
};

use quic_common::{BatchBuffer, Random};
use quic_http3::Code;
use quic_transport::{
    Config, Endpoint, EndpointConfig, Incoming, Output as Step, RetryPolicy,
    tls::{self, CipherSuite},
};
use quic_udp::{Datagrams, Socket};

use crate::{
    alpn::Alpn,
    certificate::{Fingerprint, Identity},
    cli,
    event_loop::{EventLoop, Output, Protocol, SocketId},
    failure::Failure,
    files::Root,
    limits::{GOODBYE, MAX_LOOPBACK_DATAGRAM, SERVER_STREAMS},
    random,
    service::Service,
    signals::Termination,
    site::Site,
};

/// The application protocol of HTTP/3.
pub const ALPN: &[u8] = b"h3";

/// What a server does in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The protocols that it speaks, most wanted first.
    pub alpn: Vec<Alpn>,
    /// When clients have to show that they are where they say.
    pub retry: RetryPolicy,
    /// The cipher suites that it accepts, most wanted first.
    pub cipher_suites: Vec<CipherSuite>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            alpn: vec![Alpn::Http3],
            retry: RetryPolicy::default(),
            cipher_suites: CipherSuite::ALL.to_vec(),
        }
    }
}

impl From<&cli::Server> for Settings {
    fn from(arguments: &cli::Server) -> Self {
        let mut settings = Self {
            alpn: arguments.alpn.clone(),
            ..Self::default()
        };
        if arguments.retry {
            settings.retry = RetryPolicy::Always;
        }
        if let Some(cipher) = arguments.cipher {
            settings.cipher_suites = vec![cipher.suite()];
        }
        settings
    }
}

/// A server on one socket.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint<Service>,
    alpn: Vec<Alpn>,
    tls: tls::ServerConfig,
    site: Arc<Site>,
    termination: Termination,
    life: Life,
}

/// Whether the server is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Serving,
    /// Every client is being told, but not beyond this time.
    Ending {
        until: Instant,
    },
    /// There is nothing left to say.
    Ended,
}

impl Server {
    /// A server of `site` that shows `identity`. On `termination` it says goodbye to its clients and ends.
    ///
    /// # Errors
    ///
    /// When the certificate and the key don't fit.
    pub fn new(identity: Identity, site: Site, termination: Termination) -> Result<Self, Failure> {
        Self::with_settings(identity, site, Settings::default(), termination)
    }

    /// [`Server::new`], in its own way.
    ///
    /// # Errors
    ///
    /// When the certificate and the key don't fit, or nothing is left to speak.
    pub fn with_settings(
        identity: Identity,
        site: Site,
        settings: Settings,
        termination: Termination,
    ) -> Result<Self, Failure> {
        let names = Alpn::names(&settings.alpn);
        let tls = tls::ServerConfig::new(identity.chain, identity.key, &names)
            .and_then(|tls| tls.cipher_suites(&settings.cipher_suites))
            .map_err(|error| Failure::new(format!("certificate and key: {error}")))?
            .key_log(Arc::new(rustls::KeyLogFile::new()));
        let mut random = Random::from_seed(random::seed()?);
        let mut config = EndpointConfig::new(&mut random);
        config.retry = settings.retry;
        Ok(Self {
            endpoint: Endpoint::new(config, random),
            alpn: settings.alpn,
            tls,
            site: Arc::new(site),
            termination,
            life: Life::Serving,
        })
    }

    fn admit(&mut self, incoming: Incoming, now: Instant) {
        let config = config_for(incoming.remote());
        // TLS tells a client with which it has no protocol in common.
        let alpn = Alpn::choose(&self.alpn, || incoming.alpn()).unwrap_or(Alpn::Http3);
        let service = Service::new(alpn, Arc::clone(&self.site));
        // A client that can't be accepted has been refused.
        let _ = self
            .endpoint
            .accept(incoming, &config, &self.tls, service, now);
    }

    fn say_goodbye(&mut self, now: Instant) {
        let handles: Vec<_> = self.endpoint.handles().collect();
        for handle in handles {
            if let Some((connection, _)) = self.endpoint.connection_mut(handle) {
                connection.close(Code::NO_ERROR.value(), b"the server ends");
            }
        }
        self.life = Life::Ending {
            until: now + GOODBYE,
        };
    }
}

/// The settings for a client at `remote`: on this machine a datagram may be as large as UDP allows.
fn config_for(remote: SocketAddr) -> Config {
    let mut config = Config {
        max_streams_bidirectional: SERVER_STREAMS,
        ..Config::default()
    };
    if remote.ip().is_loopback() {
        config.max_datagram = MAX_LOOPBACK_DATAGRAM;
    }
    config
}

impl Protocol for Server {
    fn input(&mut self, _: SocketId, datagrams: Datagrams<'_>, now: Instant) {
        self.endpoint.process_multiple_input(datagrams, now);
    }

    fn process(&mut self, now: Instant) {
        match self.life {
            Life::Serving if self.termination.is_requested() => self.say_goodbye(now),
            Life::Serving => {
                while let Some(incoming) = self.endpoint.next_incoming() {
                    self.admit(incoming, now);
                }
            }
            Life::Ending { until } if until <= now => self.life = Life::Ended,
            Life::Ending { .. } | Life::Ended => {}
        }
    }

    fn output(&mut self, _: SocketId, now: Instant, buffer: &mut BatchBuffer) -> Output {
        let output = self.endpoint.process_output(now, buffer).into();
        if matches!(self.life, Life::Ending { .. }) && !matches!(output, Output::Batch(_)) {
            self.life = Life::Ended;
        }
        output
    }

    fn is_done(&self) -> bool {
        self.life == Life::Ended
    }
}

impl From<Step<'_>> for Output {
    fn from(step: Step<'_>) -> Self {
        match step {
            Step::Datagrams(batch) => Self::Batch(batch.head()),
            Step::Callback(wait) => Self::Wait(wait),
            Step::None => Self::Idle,
        }
    }
}

/// Binds the server's socket.
///
/// # Errors
///
/// A line that names the address.
pub fn bind(address: SocketAddr) -> Result<Socket, Failure> {
    Socket::bind(address)
        .map_err(|error| Failure::new(format!("can't listen on {address}: {error}")))
}

/// Runs `quic-server` until it is ended from outside, which is no failure.
///
/// # Errors
///
/// When it can't start.
pub fn run(arguments: &cli::Server) -> Result<(), Failure> {
    let site = Site {
        root: arguments.dir.as_deref().map(Root::new).transpose()?,
        test_resources: arguments.test_resources,
    };
    let identity = match arguments.identity_files() {
        Some((certificate, key)) => Identity::load(certificate, key)?,
        None => Identity::self_signed(&arguments.names(), SystemTime::now())?,
    };
    let fingerprint = identity.fingerprint();
    let termination = Termination::default();
    let mut server = Server::with_settings(
        identity,
        site,
        Settings::from(arguments),
        termination.clone(),
    )?;
    let socket = bind(arguments.listen)?;
    let address = socket.local_address();
    let mut events =
        EventLoop::new().map_err(|error| Failure::new(format!("no poller: {error}")))?;
    events
        .add(socket)
        .map_err(|error| Failure::new(format!("can't poll the socket: {error}")))?;
    termination.wakes(events.waker());
    termination
        .on_signals()
        .map_err(|error| Failure::new(format!("can't watch for signals: {error}")))?;

    let is_self_signed = arguments.identity_files().is_none();
    // Nobody may be reading; the server works all the same.
    drop(greet(
        address,
        fingerprint,
        is_self_signed,
        arguments.test_resources,
    ));
    events
        .run(&mut server)
        .map_err(|error| Failure::new(format!("the socket failed: {error}")))
}

/// Says where the server is, what it shows, and how to try it.
fn greet(
    address: SocketAddr,
    fingerprint: Option<Fingerprint>,
    is_self_signed: bool,
    has_test_resources: bool,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on {address}")?;
    if let Some(fingerprint) = fingerprint {
        writeln!(out, "certificate SHA-256 {fingerprint}")?;
        if is_self_signed {
            let path = if has_test_resources { "1000000" } else { "" };
            let server = reachable_as(address);
            writeln!(
                out,
                "try: quic-client --pin-sha256 {fingerprint} https://{server}/{path}"
            )?;
        }
    }
    out.flush()
}

/// Host and port under which a client on this machine reaches a server that listens on `address`.
fn reachable_as(address: SocketAddr) -> String {
    let ip = address.ip().to_canonical();
    if ip.is_unspecified() || ip.is_loopback() {
        format!("localhost:{}", address.port())
    } else {
        SocketAddr::new(ip, address.port()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::reachable_as;

    #[test]
    fn the_client_command_names_the_server_as_its_certificate_does() {
        for (address, expected) in [
            ("[::]:4433", "localhost:4433"),
            ("0.0.0.0:1", "localhost:1"),
            ("127.0.0.1:2", "localhost:2"),
            ("[::1]:3", "localhost:3"),
            ("192.0.2.1:4", "192.0.2.1:4"),
            ("[2001:db8::1]:5", "[2001:db8::1]:5"),
        ] {
            assert_eq!(reachable_as(address.parse().unwrap()), expected);
        }
    }
}
