//! Requests on one connection of the client, from the first packet to the last body.

mod protocol;

use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

use quic_common::{IdMap, Random};
use quic_http3::{ApiError as Http3Error, ClientEvent, Code, Field};
use quic_transport::{CloseReason, Config, Connection, Error, Event, Side, StreamId, tls};

use crate::{
    alpn::Alpn,
    datagrams::Volley,
    ech::Offer,
    exchange::Exchange,
    failure::Failure,
    qlog_files::QlogFiles,
    random,
    roaming::{Plan, Roaming},
    session::Session,
    signals::Termination,
    site::Body,
};

/// Where a download has come to.
#[derive(Debug)]
enum State {
    Connecting,
    Running,
    /// The last body is complete: the connection says goodbye.
    Done,
    Failed(Failure),
}

/// A connection with its requests.
#[derive(Debug)]
pub struct Download<E> {
    connection: Connection,
    session: Session,
    /// The keys are still to be updated, once that is possible.
    wants_key_update: bool,
    roaming: Roaming,
    volley: Option<Volley>,
    waiting: VecDeque<E>,
    /// Requests that were made too early for the server, to be made again once the handshake is complete.
    too_early: Vec<E>,
    running: IdMap<StreamId, Running<E>>,
    /// The server takes no more requests than it has.
    is_going_away: bool,
    /// The one whose body waits until there is room for it.
    held: Option<StreamId>,
    /// After so long a silence a PING is sent, if none is held.
    keep_alive: Option<Duration>,
    finished: Vec<E>,
    state: State,
    remote: SocketAddr,
    timing: Timing,
    termination: Termination,
    first_request: Option<Instant>,
    last_byte: Option<Instant>,
}

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For the handshake to be complete.
    pub handshake: Duration,
    /// For anything to come from the server.
    pub silence: Duration,
}

#[derive(Debug)]
struct Running<E> {
    exchange: E,
    upload: Option<Body>,
    /// It was made in early data.
    is_early: bool,
}

impl<E: Exchange> Download<E> {
    /// Starts to connect to the server at `remote`, whose certificate has to be for `name`. On `termination` it says
    /// goodbye and ends.
    ///
    /// # Errors
    ///
    /// When the name can't be one, or the system gives no randomness.
    pub fn new(
        remote: SocketAddr,
        name: &str,
        tls: &tls::ClientConfig,
        timing: Timing,
        termination: Termination,
        exchanges: impl IntoIterator<Item = E>,
    ) -> Result<Self, Failure> {
        let config = Config {
            idle_timeout: timing.silence,
            handshake_timeout: timing.handshake,
            ..Config::default()
        };
        Self::with_config(remote, name, tls, config, termination, exchanges)
    }

    /// As [`Download::new`], with these settings of the connection.
    ///
    /// # Errors
    ///
    /// When the name can't be one, or the system gives no randomness.
    pub fn with_config(
        remote: SocketAddr,
        name: &str,
        tls: &tls::ClientConfig,
        mut config: Config,
        termination: Termination,
        exchanges: impl IntoIterator<Item = E>,
    ) -> Result<Self, Failure> {
        let timing = Timing {
            handshake: config.handshake_timeout,
            silence: config.idle_timeout,
        };
        if remote.ip().is_loopback() {
            config.max_datagram = crate::limits::MAX_LOOPBACK_DATAGRAM;
        }
        let random = Random::from_seed(random::seed()?);
        let connection = Connection::client(&config, tls, name, remote, random, Instant::now())
            .map_err(|error| Failure::new(format!("{name}: {error}")))?;
        Ok(Self {
            connection,
            session: Session::new(Alpn::Http3),
            wants_key_update: false,
            roaming: Roaming::default(),
            volley: None,
            waiting: exchanges.into_iter().collect(),
            too_early: Vec::new(),
            running: IdMap::default(),
            is_going_away: false,
            held: None,
            keep_alive: config.keep_alive,
            finished: Vec::new(),
            state: State::Connecting,
            remote,
            timing,
            termination,
            first_request: None,
            last_byte: None,
        })
    }

    /// Makes the requests in another protocol: the one that the TLS settings offer.
    #[must_use]
    pub fn speaking(mut self, alpn: Alpn) -> Self {
        self.session = Session::new(alpn);
        self
    }

    /// Updates the keys as soon as the handshake is confirmed.
    #[must_use]
    pub const fn updating_keys(mut self) -> Self {
        self.wants_key_update = true;
        self
    }

    /// Changes the address as planned.
    #[must_use]
    pub fn roaming(mut self, plan: Plan) -> Self {
        self.roaming = Roaming::new(plan);
        self
    }

    /// Sends so many datagrams beside the requests, and ends when it is known what has become of them.
    #[must_use]
    pub const fn sending_datagrams(mut self, count: u32) -> Self {
        self.volley = Some(Volley::new(count));
        self
    }

    /// What has become of the connection's paths, a line for each change, and of the datagrams.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let paths = self.roaming.notes().iter().cloned();
        paths
            .chain(self.volley.as_ref().map(Volley::note))
            .collect()
    }

    /// Logs the connection.
    #[must_use]
    pub fn logged(mut self, qlog: &QlogFiles) -> Self {
        let dcid = self.connection.original_dcid();
        if let Some(observer) = qlog.observer(dcid, Side::Client) {
            self.connection.observe(observer, Instant::now());
        }
        self
    }

    /// The connection, for its statistics.
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// From the first request to the last byte of the last body.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.first_request
            .zip(self.last_byte)
            .map_or(Duration::ZERO, |(first, last)| {
                last.saturating_duration_since(first)
            })
    }

    /// The requests that were answered whole, in the order in which they ended.
    #[must_use]
    pub fn into_finished(self) -> Vec<E> {
        self.finished
    }

    /// Whether the handshake was completed, so that another address needn't be tried.
    #[must_use]
    pub const fn has_connected(&self) -> bool {
        !matches!(self.state, State::Connecting) && self.first_request.is_some()
    }

    /// Gives the requests back, when none was made.
    #[must_use]
    pub fn into_waiting(self) -> VecDeque<E> {
        self.waiting
    }

    /// How it ended.
    ///
    /// # Errors
    ///
    /// The first thing that went wrong.
    pub fn result(&self) -> Result<(), Failure> {
        match &self.state {
            State::Done => {
                self.roaming.result()?;
                self.volley.as_ref().map_or(Ok(()), Volley::result)
            }
            State::Failed(failure) => Err(failure.clone()),
            State::Connecting | State::Running => Err(Failure::new("interrupted")),
        }
    }

    fn fail(&mut self, failure: Failure) {
        if matches!(self.state, State::Connecting | State::Running) {
            self.state = State::Failed(failure);
            self.connection.close(Code::NO_ERROR.value(), b"");
        }
    }

    /// Requests can be made.
    fn start(&mut self, now: Instant) {
        if matches!(self.state, State::Connecting) {
            self.state = State::Running;
            self.first_request = Some(now);
            self.last_byte = Some(now);
        }
    }

    fn on_connection_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::Connected => {
                self.start(now);
                self.roaming.begin(now);
            }
            Event::Stream(event) => self.session.on_event(&mut self.connection, event),
            Event::Path(event) => self.roaming.on_path(&mut self.connection, &event, now),
            Event::Closed(reason) => {
                let line = self.explain(&reason);
                self.fail(Failure::new(line));
            }
            Event::Datagram(event) => {
                if let Some(volley) = &mut self.volley {
                    volley.on_event(&mut self.connection, event, now);
                }
            }
            _ => {}
        }
    }

    /// A close reason, for a person.
    fn explain(&self, reason: &CloseReason) -> String {
        let remote = self.remote;
        match reason {
            CloseReason::HandshakeTimeout => {
                let seconds = rounded(self.timing.handshake);
                format!("no answer from {remote} within {seconds} s")
            }
            CloseReason::IdleTimeout => {
                let seconds = rounded(self.timing.silence);
                format!("{remote} has been silent for {seconds} s")
            }
            // What is wrong with the certificate or the like; the rest says more about QUIC than about that.
            CloseReason::Local(Error { code, reason, .. }) => code.alert().map_or_else(
                || format!("{remote}: {code}: {reason}"),
                |alert| {
                    let offer = Offer(self.connection.ech_status());
                    format!("{remote}: {reason} (TLS alert {alert}){offer}")
                },
            ),
            other => format!("{remote}: {other}"),
        }
    }

    /// Makes as many requests as the server allows. One that goes away answers those that it has.
    fn request(&mut self) {
        if self.is_going_away {
            if self.running.is_empty() && !self.waiting.is_empty() {
                self.fail(Failure::new("the server takes no more requests"));
            }
            return;
        }
        if !self.connection.is_handshaking() {
            self.waiting.extend(self.too_early.drain(..));
        }
        while let Some(index) = self.next_to_request() {
            let Some(exchange) = self.waiting.get(index) else {
                return;
            };
            let length = exchange.upload_length().map(|length| length.to_string());
            let mut fields = vec![
                Field::new(":method", exchange.method()),
                Field::new(":scheme", "https"),
                Field::new(":authority", exchange.authority()),
                Field::new(":path", exchange.path()),
                Field::new(
                    "user-agent",
                    concat!("quic-client/", env!("CARGO_PKG_VERSION")),
                ),
            ];
            if let Some(length) = &length {
                fields.push(Field::new("content-length", length));
            }
            match self.session.request(
                &mut self.connection,
                &fields,
                exchange.path(),
                length.is_none(),
            ) {
                Ok(id) => {
                    if let Some(mut exchange) = self.waiting.remove(index) {
                        let running = Running {
                            upload: exchange.take_upload(),
                            exchange,
                            is_early: self.connection.is_handshaking(),
                        };
                        self.running.insert(id, running);
                        self.upload(id);
                    }
                }
                Err(Http3Error::StreamLimit | Http3Error::Early) => return,
                Err(error) => {
                    let line = format!("{}: {error}", exchange.name());
                    return self.fail(Failure::new(line));
                }
            }
        }
    }

    /// The first waiting request that needs not wait for another's answer.
    fn next_to_request(&self) -> Option<usize> {
        let mut running = self.running.values();
        let is_shared = running.any(|running| running.exchange.shares_output());
        self.waiting
            .iter()
            .position(|exchange| !is_shared || !exchange.shares_output())
    }

    fn upload(&mut self, id: StreamId) {
        let Some(body) = self
            .running
            .get_mut(&id)
            .and_then(|running| running.upload.as_mut())
        else {
            return;
        };
        let (session, connection) = (&mut self.session, &mut self.connection);
        match body.write_waiting(|piece| session.send_body(connection, id, piece)) {
            Ok(false) => {}
            Ok(true) => {
                if let Some(running) = self.running.get_mut(&id) {
                    running.upload = None;
                }
                self.session.finish(&mut self.connection, id);
            }
            Err(_incomplete) => self.fail(Failure::new("the file to upload became shorter")),
        }
    }

    fn on_http_event(&mut self, event: ClientEvent, now: Instant) -> Result<(), Failure> {
        match event {
            ClientEvent::Response { id, fields } => {
                let status = fields.status().unwrap_or_default();
                let length = fields
                    .value("content-length")
                    .and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
                self.session.recycle(fields);
                self.on_response(id, status, length);
            }
            ClientEvent::Data { id } => self.on_data(id, now)?,
            ClientEvent::Finished { id } => self.on_finished(id, now)?,
            ClientEvent::Writable { id } => self.upload(id),
            // RFC 9114, 5.2: it wasn't looked at, and could be made to another server.
            ClientEvent::Reset { id, code }
                if code == Code::REQUEST_REJECTED && self.is_going_away =>
            {
                let rejected = self.running.remove(&id);
                self.waiting
                    .extend(rejected.map(|running| running.exchange));
            }
            ClientEvent::Reset { id, code } => {
                return Err(self.broken(id, &format!("the server gave up with {code}")));
            }
            ClientEvent::Failed { id, error } => {
                return Err(self.broken(id, &format!("malformed response: {error}")));
            }
            ClientEvent::Stopped { id, .. } => {
                if let Some(running) = self.running.get_mut(&id) {
                    running.upload = None;
                }
            }
            ClientEvent::GoAway { .. } => self.is_going_away = true,
            ClientEvent::Closed(error) => {
                return Err(Failure::new(format!("{}: HTTP/3: {error}", self.remote)));
            }
            _ => {}
        }
        Ok(())
    }

    fn on_response(&mut self, id: StreamId, status: u16, length: Option<u64>) {
        let Some(running) = self.running.get_mut(&id) else {
            return;
        };
        // RFC 8470, 5.2: the server wouldn't risk a replay, and is asked again without one.
        if status == TOO_EARLY && running.is_early {
            self.session.cancel(&mut self.connection, id);
            let again = self.running.remove(&id).map(|running| running.exchange);
            self.too_early.extend(again);
        } else {
            running.exchange.on_response(status, length);
        }
    }

    fn broken(&self, id: StreamId, what: &str) -> Failure {
        let name = self
            .running
            .get(&id)
            .map_or_else(String::new, |running| running.exchange.name());
        Failure::new(format!("{name}: {what}"))
    }

    fn on_data(&mut self, id: StreamId, now: Instant) -> Result<(), Failure> {
        let Some(running) = self.running.get_mut(&id) else {
            return Ok(());
        };
        self.last_byte = Some(now);
        while let Ok(data) = self.session.fill(&mut self.connection, id) {
            let length = data.len();
            if length == 0 {
                break;
            }
            if !running.exchange.has_room() {
                // The silence is ours then, and no reason for anyone to give up.
                self.held = Some(id);
                let third = self.timing.silence / 3;
                let after = self.keep_alive.map_or(third, |after| after.min(third));
                self.connection.set_keep_alive(Some(after));
                break;
            }
            running.exchange.on_body(data, now)?;
            if self
                .session
                .consume(&mut self.connection, id, length)
                .is_err()
            {
                break;
            }
        }
        Ok(())
    }

    /// Goes on with the body that was held back.
    fn resume(&mut self, now: Instant) -> Result<(), Failure> {
        let Some(id) = self.held else {
            return Ok(());
        };
        let running = self.running.get(&id);
        if running.is_some_and(|running| !running.exchange.has_room()) {
            return Ok(());
        }
        self.held = None;
        self.connection.set_keep_alive(self.keep_alive);
        self.on_data(id, now)
    }

    fn on_finished(&mut self, id: StreamId, now: Instant) -> Result<(), Failure> {
        self.last_byte = Some(now);
        if let Some(mut running) = self.running.remove(&id) {
            running.exchange.on_end()?;
            self.finished.push(running.exchange);
        }
        Ok(())
    }
}

/// The status of a request that the server wants to be made anew after the handshake.
const TOO_EARLY: u16 = 425;

/// Seconds, to the millisecond.
fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}
