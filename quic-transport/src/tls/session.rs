//! One handshake: rustls in, rustls out, and the keys of each level as they come
//! ([RFC 9001, section 4.1](https://www.rfc-editor.org/rfc/rfc9001#section-4.1)).

use std::sync::Arc;

use rustls::HandshakeKind;
use rustls::client::{Resumption, Tls12Resumption};
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, KeyChange, ServerConnection};

use super::client_config::ClientConfig;
use super::ech::{self, EchStatus};
use super::exporter::Exporter;
use super::failure;
use super::job::HandshakeJob;
use super::one_rtt::OneRttKeys;
use super::outcome::Outcome;
use super::protect::LevelKeys;
use super::schedule::{Secret, TrafficSecret};
use super::secrets::SecretLog;
use super::server_config::ServerConfig;
use super::server_sessions::{Desk, Terms, VersionedTickets};
use super::session_store::Memory;
use super::suite::CipherSuite;
use crate::error::{ApiError, Error};
use crate::wire::{Level, Side, TransportErrorCode, Version};

/// Where a ClientHello says how long its session ID is: behind type, length, version and random (RFC 8446, 4.1.2).
const SESSION_ID_LENGTH: usize = 4 + 2 + 32;

/// The type of the CRYPTO frame.
const CRYPTO: u64 = 0x06;

/// The alert for a message that isn't allowed.
const UNEXPECTED_MESSAGE: u8 = 10;

/// Where rustls is.
enum Tls {
    Here(Box<Connection>),
    /// With whoever works a step out.
    Lent,
    /// Gone, but for what can still be asked.
    Over(Box<Outcome>),
}

/// The TLS side of a connection.
pub(crate) struct Session {
    tls: Tls,
    /// `None` once the session is over.
    log: Option<Arc<SecretLog>>,
    side: Side,
    version: Version,
    /// Whether the handshake keys are out, so that the Initial level has ended.
    has_handshake_keys: bool,
    /// Bytes of CRYPTO data that a server has read.
    hello_read: usize,
    /// Transport parameters that a session to be resumed has brought along: those of an earlier connection, which
    /// rustls shows until it has read the server's.
    remembered: Option<Box<[u8]>>,
    /// Our own transport parameters.
    parameters: Box<[u8]>,
    /// A client's way to what is remembered of the server.
    memory: Option<Arc<Memory>>,
    /// A server has accepted early data.
    accepts_early_data: bool,
    /// What has become of a client's encrypted ClientHello, but for a success.
    ech: EchStatus,
}

/// What a client recalls of an earlier connection whose session it resumes.
#[derive(Debug)]
pub(crate) struct Recalled {
    /// The server's transport parameters, encoded.
    pub(crate) parameters: Box<[u8]>,
    /// The application protocol.
    pub(crate) alpn: Vec<u8>,
    /// What the application wanted to be remembered.
    pub(crate) settings: Vec<u8>,
}

/// Keys that became available.
#[derive(Debug)]
pub(crate) enum NewKeys {
    /// For 0-RTT packets, which only a client sends: the keys are the same in both directions.
    ZeroRtt(Box<LevelKeys>),
    /// For Handshake packets.
    Handshake(Box<LevelKeys>),
    /// For 1-RTT packets. A server may seal with them at once, and opens nothing before its handshake is complete
    /// (RFC 9001, 5.7).
    OneRtt(Box<OneRttKeys>),
}

impl Session {
    /// Begins a handshake with the server called `name`, a DNS name or an IP address, at `port`; `parameters` are our
    /// transport parameters, encoded, and `early_data` says whether to offer it where a session allows.
    ///
    /// # Errors
    ///
    /// [`ApiError::ServerName`], or [`ApiError::Tls`] when rustls refuses the configuration.
    pub(crate) fn client(
        config: &ClientConfig,
        version: Version,
        (name, port): (&str, u16),
        parameters: &[u8],
        early_data: bool,
    ) -> Result<Self, ApiError> {
        let memory = config.memory(name, port, version).map(Arc::new);
        let name =
            ServerName::try_from(name.to_owned()).map_err(|_invalid| ApiError::ServerName)?;
        let mut tls = config.rustls().clone();
        let log = Arc::new(SecretLog::new(Arc::clone(&tls.key_log)));
        tls.key_log = Arc::<SecretLog>::clone(&log);
        tls.enable_early_data = early_data;
        if let Some(memory) = &memory {
            tls.resumption = Resumption::store(Arc::<Memory>::clone(memory))
                .tls12_resumption(Tls12Resumption::Disabled);
        }
        let tls = ClientConnection::new(Arc::new(tls), QUIC, name, parameters.to_vec())
            .map_err(|error| ApiError::Tls(failure::reason(&error)))?;
        let mut session = Self::new(tls.into(), log, Side::Client, version, parameters);
        session.memory = memory;
        session.ech = config.ech_offered();
        Ok(session)
    }

    /// Answers a handshake on these `terms`; `prefers_chacha20` is what the ClientHello says.
    ///
    /// # Errors
    ///
    /// [`ApiError::Tls`] when rustls refuses the configuration.
    pub(crate) fn server(
        config: &ServerConfig,
        terms: &Terms<'_>,
        prefers_chacha20: bool,
    ) -> Result<Self, ApiError> {
        let mut tls = config.rustls().clone();
        tls.ignore_client_order &= !prefers_chacha20;
        let log = Arc::new(SecretLog::new(Arc::clone(&tls.key_log)));
        tls.key_log = Arc::<SecretLog>::clone(&log);
        // What a ticket says that holds its session could be replayed.
        let early_data = terms.early_data && !tls.ticketer.enabled();
        tls.max_early_data_size = if early_data { u32::MAX } else { 0 };
        if tls.ticketer.enabled() {
            tls.ticketer = Arc::new(VersionedTickets {
                tickets: Arc::clone(&tls.ticketer),
                first: terms.first,
                version: terms.version,
            });
        }
        let desk = Arc::new(Desk::new(config.stored_sessions(), terms));
        tls.session_storage = Arc::<Desk>::clone(&desk);
        let mut tls = ServerConnection::new(Arc::new(tls), QUIC, terms.parameters.to_vec())
            .map_err(|error| ApiError::Tls(failure::reason(&error)))?;
        if !early_data || !desk.allows_early_data(terms) {
            tls.reject_early_data();
        }
        Ok(Self::new(
            tls.into(),
            log,
            Side::Server,
            terms.version,
            terms.parameters,
        ))
    }

    fn new(
        tls: Connection,
        log: Arc<SecretLog>,
        side: Side,
        version: Version,
        parameters: &[u8],
    ) -> Self {
        Self {
            remembered: tls.quic_transport_parameters().map(Into::into),
            tls: Tls::Here(Box::new(tls)),
            log: Some(log),
            side,
            version,
            has_handshake_keys: false,
            hello_read: 0,
            parameters: parameters.into(),
            memory: None,
            accepts_early_data: false,
            ech: EchStatus::NotOffered,
        }
    }

    /// The server has chosen another version than the client's: keys that come from now on are of that one.
    pub(crate) fn set_version(&mut self, version: Version) {
        debug_assert!(
            !self.has_handshake_keys,
            "the keys of the handshake are out"
        );
        self.version = version;
        if let Some(memory) = &self.memory {
            memory.set_version(version);
        }
    }

    /// Takes the next bytes of the CRYPTO stream of `level`, in order and each once.
    ///
    /// # Errors
    ///
    /// CRYPTO_ERROR with the alert, and PROTOCOL_VIOLATION for data of a level that has ended or not begun
    /// (RFC 9001, 4.1.3).
    pub(crate) fn read(&mut self, level: Level, data: &[u8]) -> Result<(), Error> {
        self.check(level, data)?;
        match &mut self.tls {
            Tls::Here(tls) => {
                let outcome = tls.read_hs(data);
                self.judge(outcome)
            }
            Tls::Lent => Err(Error::internal("TLS reads while a step is lent out")),
            // No message of a client's is allowed after its Finished (RFC 9001, 4.4 and 6; RFC 8446, 4.6).
            Tls::Over(_) => Err(Error::new(
                TransportErrorCode::crypto(UNEXPECTED_MESSAGE),
                CRYPTO,
                "a TLS message came that is not allowed now",
            )),
        }
    }

    /// What a failure of TLS means.
    fn judge(&mut self, outcome: Result<(), rustls::Error>) -> Result<(), Error> {
        outcome.map_err(|failure| {
            if let Some(rejected) = ech::rejection(&failure) {
                self.ech = rejected;
            }
            let alert = self.connection().and_then(Connection::alert);
            failure::error(&failure, alert)
        })
    }

    /// Lets rustls go, which has nothing more to say or to hear: what a server has from the end of its handshake on, once
    /// its tickets are written. What can be asked about the handshake is kept.
    pub(crate) fn end(&mut self) {
        if let Some(outcome) = self.outcome() {
            self.tls = Tls::Over(Box::new(outcome));
            self.log = None;
            self.parameters = Box::default();
            self.remembered = None;
        }
    }

    /// Whether rustls is gone.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.tls, Tls::Over(_))
    }

    fn outcome(&self) -> Option<Outcome> {
        let Tls::Here(tls) = &self.tls else {
            return None;
        };
        let suite = self.suite()?;
        Some(Outcome {
            alpn: self.alpn().map(Into::into),
            server_name: self.server_name().map(Into::into),
            suite,
            group: self.key_exchange_group(),
            certificates: tls.peer_certificates().map(Into::into),
            is_resumed: self.is_resumed(),
            exporter: Exporter::new(suite, self.log.as_ref()?.take_exporter()?),
        })
    }

    /// As [`Session::read`], for somebody else to do: until [`Session::take_back`] nothing is known and nothing goes on.
    pub(crate) fn lend(&mut self, level: Level, data: &[u8]) -> Result<HandshakeJob, Error> {
        self.check(level, data)?;
        let tls = std::mem::replace(&mut self.tls, Tls::Lent);
        let (Tls::Here(tls), Some(log)) = (tls, &self.log) else {
            return Err(Error::internal("a step is lent out already"));
        };
        Ok(HandshakeJob::new(tls, Arc::clone(log), data.to_vec()))
    }

    /// Takes a step back, and tells what came of it; `None` when it is another session's.
    pub(crate) fn take_back(&mut self, job: HandshakeJob) -> Option<Result<(), Error>> {
        if !Arc::ptr_eq(self.log.as_ref()?, &job.log) {
            return None;
        }
        let (tls, outcome) = job.finish();
        self.tls = Tls::Here(tls);
        Some(self.judge(outcome))
    }

    /// Whether a step is lent out.
    pub(crate) const fn is_lent(&self) -> bool {
        matches!(self.tls, Tls::Lent)
    }

    /// What TLS doesn't check.
    fn check(&mut self, level: Level, data: &[u8]) -> Result<(), Error> {
        if level != self.read_level() {
            return Err(Error::protocol(
                CRYPTO,
                "CRYPTO data at a level that has ended or not begun",
            ));
        }
        if self.side == Side::Server && self.asks_for_compatibility(data) {
            return Err(Error::protocol(
                CRYPTO,
                "the ClientHello asks for TLS' compatibility mode",
            ));
        }
        Ok(())
    }

    /// Whether the ClientHello has a session ID, which QUIC has no use for (RFC 9001, 8.4). Its length is at a fixed place.
    fn asks_for_compatibility(&mut self, data: &[u8]) -> bool {
        let place = SESSION_ID_LENGTH.checked_sub(self.hello_read);
        let length = place.and_then(|place| data.get(place));
        self.hello_read = self.hello_read.saturating_add(data.len());
        length.is_some_and(|length| *length > 0)
    }

    /// The level whose CRYPTO data comes next.
    #[must_use]
    pub(crate) fn read_level(&self) -> Level {
        if !self.has_handshake_keys {
            Level::Initial
        } else if self.is_handshaking() {
            Level::Handshake
        } else {
            Level::OneRtt
        }
    }

    /// Appends the handshake bytes to be sent, up to the next change of keys; to be called until it appends nothing and
    /// returns `None`.
    ///
    /// The bytes belong to the level that was current before the keys that are returned.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> Option<NewKeys> {
        if let Some(keys) = self.take_early_keys() {
            return Some(NewKeys::ZeroRtt(Box::new(keys)));
        }
        let Tls::Here(tls) = &mut self.tls else {
            return None;
        };
        let change = tls.write_hs(out)?;
        let log = self.log.as_ref()?;
        let keys = match change {
            KeyChange::Handshake { .. } => {
                self.has_handshake_keys = true;
                log.take_handshake().and_then(|secrets| {
                    let (local, remote) = self.directions(secrets)?;
                    let keys = LevelKeys::new(&local, &remote);
                    Some(NewKeys::Handshake(Box::new(keys)))
                })
            }
            KeyChange::OneRtt { .. } => {
                self.learn_alpn();
                log.take_one_rtt().and_then(|secrets| {
                    let (local, remote) = self.directions(secrets)?;
                    let keys = OneRttKeys::new(local, remote);
                    Some(NewKeys::OneRtt(Box::new(keys)))
                })
            }
        };
        debug_assert!(keys.is_some(), "rustls logs a secret before its keys");
        keys
    }

    /// The keys of 0-RTT packets, once, when they may be used: rustls makes a secret for each session that is resumed.
    fn take_early_keys(&mut self) -> Option<LevelKeys> {
        let Tls::Here(tls) = &self.tls else {
            return None;
        };
        let secret = self.log.as_ref()?.take_early()?;
        tls.zero_rtt_keys()?;
        let secret = TrafficSecret::new(self.suite()?, self.version, secret);
        self.accepts_early_data = self.side.is_server();
        Some(LevelKeys::new(&secret, &secret))
    }

    /// Whether the server takes, or has taken, early data; nothing is known while a step is lent out.
    #[must_use]
    pub(crate) fn is_early_data_accepted(&self) -> bool {
        match self.connection() {
            Some(Connection::Client(client)) => client.is_early_data_accepted(),
            Some(Connection::Server(_)) => self.accepts_early_data,
            None => false,
        }
    }

    /// What is recalled of an earlier connection; to be asked for once, before the handshake.
    pub(crate) fn recall(&self) -> Option<Recalled> {
        let learnt = self.memory.as_ref()?.take_recalled()?;
        Some(Recalled {
            parameters: self.remembered.clone()?,
            alpn: learnt.alpn,
            settings: learnt.application,
        })
    }

    /// A client's way to what is remembered of the server.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.memory.as_deref()
    }

    fn learn_alpn(&self) {
        if let (Some(memory), Some(alpn)) = (&self.memory, self.alpn()) {
            memory.learn_alpn(alpn);
        }
    }

    /// The local and the remote secret, of those of the client and the server.
    fn directions(&self, secrets: (Secret, Secret)) -> Option<(TrafficSecret, TrafficSecret)> {
        let suite = self.suite()?;
        let (client, server) = secrets;
        let (local, remote) = match self.side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        Some((
            TrafficSecret::new(suite, self.version, local),
            TrafficSecret::new(suite, self.version, remote),
        ))
    }

    /// Whether the handshake isn't complete yet.
    #[must_use]
    pub(crate) fn is_handshaking(&self) -> bool {
        match &self.tls {
            Tls::Here(tls) => tls.is_handshaking(),
            Tls::Lent => true,
            Tls::Over(_) => false,
        }
    }

    /// Whether an earlier session was resumed; known when the handshake is complete.
    #[must_use]
    pub(crate) fn is_resumed(&self) -> bool {
        match &self.tls {
            Tls::Here(tls) => tls.handshake_kind() == Some(HandshakeKind::Resumed),
            Tls::Lent => false,
            Tls::Over(outcome) => outcome.is_resumed,
        }
    }

    /// Our own transport parameters, encoded; empty once the session is over.
    #[must_use]
    pub(crate) fn transport_parameters(&self) -> &[u8] {
        &self.parameters
    }

    /// The peer's transport parameters, encoded, until the session is over; not to be relied on before the handshake is
    /// complete.
    #[must_use]
    pub(crate) fn peer_transport_parameters(&self) -> Option<&[u8]> {
        let parameters = self.connection()?.quic_transport_parameters();
        parameters.filter(|parameters| {
            self.remembered.as_deref() != Some(parameters) || !self.is_handshaking()
        })
    }

    /// The application protocol chosen.
    #[must_use]
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match &self.tls {
            Tls::Here(tls) => tls.alpn_protocol(),
            Tls::Lent => None,
            Tls::Over(outcome) => outcome.alpn.as_deref(),
        }
    }

    /// The cipher suite chosen.
    #[must_use]
    pub(crate) fn suite(&self) -> Option<CipherSuite> {
        match &self.tls {
            Tls::Here(tls) => CipherSuite::from_rustls(tls.negotiated_cipher_suite()?),
            Tls::Lent => None,
            Tls::Over(outcome) => Some(outcome.suite),
        }
    }

    /// The name of the cipher suite chosen; empty while there is none.
    #[must_use]
    pub(crate) fn cipher_suite(&self) -> &'static str {
        self.suite().map_or("", CipherSuite::name)
    }

    /// The name of the key exchange group chosen; empty while there is none.
    #[must_use]
    pub(crate) fn key_exchange_group(&self) -> &'static str {
        match &self.tls {
            Tls::Here(tls) => tls
                .negotiated_key_exchange_group()
                .map_or("", |group| group.name().as_str().unwrap_or("unknown")),
            Tls::Lent => "",
            Tls::Over(outcome) => outcome.group,
        }
    }

    /// What has become of a client's encrypted ClientHello.
    pub(crate) fn ech_status(&self) -> EchStatus {
        // A server that rejects it comes to no end of the handshake.
        if self.ech == EchStatus::Offered && !self.is_handshaking() {
            return EchStatus::Accepted;
        }
        self.ech.clone()
    }

    /// The server name that the client asked for, on the server.
    #[must_use]
    pub(crate) fn server_name(&self) -> Option<&str> {
        if let Tls::Over(outcome) = &self.tls {
            return outcome.server_name.as_deref();
        }
        match self.connection()? {
            Connection::Server(server) => server.server_name(),
            Connection::Client(_) => None,
        }
    }

    /// The peer's certificates, its own first.
    #[must_use]
    pub(crate) fn peer_certificates(
        &self,
    ) -> Option<&[rustls::pki_types::CertificateDer<'static>]> {
        match &self.tls {
            Tls::Here(tls) => tls.peer_certificates(),
            Tls::Lent => None,
            Tls::Over(outcome) => outcome.certificates.as_deref(),
        }
    }

    /// Secret bytes that both ends derive in the same way, and nobody else (RFC 8446, 7.5).
    pub(crate) fn export(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ApiError> {
        match &self.tls {
            // rustls refuses what is empty.
            Tls::Here(tls) if !tls.is_handshaking() && out.is_empty() => Ok(()),
            Tls::Here(tls) if !tls.is_handshaking() => tls
                .export_keying_material(out, label, context)
                .map(|_out| ())
                .map_err(|_too_long| ApiError::TooLarge),
            Tls::Here(_) | Tls::Lent => Err(ApiError::HandshakeIncomplete),
            Tls::Over(outcome) => outcome.exporter.export(out, label, context),
        }
    }

    fn connection(&self) -> Option<&Connection> {
        if let Tls::Here(tls) = &self.tls {
            Some(tls)
        } else {
            None
        }
    }
}

/// rustls' version says only where the transport parameters go, and that is the same in all of ours.
const QUIC: rustls::quic::Version = rustls::quic::Version::V1;

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("side", &self.side)
            .field("version", &self.version)
            .field("is_handshaking", &self.is_handshaking())
            .finish_non_exhaustive()
    }
}
