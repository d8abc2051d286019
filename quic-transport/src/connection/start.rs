//! How a connection begins, at either end.

use std::{collections::VecDeque, iter, net::SocketAddr, time::Instant};

use quic_common::{Random, Share};

use super::{
    Connection, Scratch,
    first_byte::FirstByte,
    idle::Idle,
    keys::Keys,
    life::{Life, Progress},
    negotiate::FIRST_DCID_LENGTH,
    rare::NewToken,
    setup::{Peer, Setup},
    space::Spaces,
    versions::{Beginning, Negotiation},
};
use crate::{
    ack::AckRequests,
    cid::{CidGenerator, LocalCids, RemoteCids},
    config::Config,
    datagram::Datagrams,
    error::ApiError,
    limits::ACTIVE_CIDS,
    path::{OtherPaths, Path},
    recovery::LossTimer,
    stats::Stats,
    stream::Streams,
    tls::{self, Forgeries, LevelKeys, ResetKey, Session, Terms},
    transmit::PathId,
    wire::{
        ConnectionId, Level, PreferredAddress, Side, TransportParameters, Version,
        VersionInformation, Versions,
    },
};

/// The round-trip time of an earlier connection shortens the one assumed to this fraction at most.
const LEAST_TRUST: u32 = 10;

/// What a server knows of a client when it accepts it.
#[derive(Debug)]
pub(crate) struct ServerStart {
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<SocketAddr>,
    /// The version of the client's first flight.
    pub(crate) version: Version,
    /// The version that the server has chosen.
    pub(crate) chosen: Version,
    /// The versions that the server speaks.
    pub(crate) versions: Versions,
    /// The destination of the client's Initial, that its keys come from.
    pub(crate) dcid: ConnectionId,
    /// These keys, if they have been made already.
    pub(crate) keys: Option<Box<LevelKeys>>,
    /// The destination of its very first Initial, which differs after a Retry.
    pub(crate) original_dcid: ConnectionId,
    pub(crate) retry_scid: Option<ConnectionId>,
    pub(crate) client_cid: ConnectionId,
    /// The ID that the server chooses for itself.
    pub(crate) cid: ConnectionId,
    /// Which IDs lead to the thread of the endpoint.
    /// How it makes more of them.
    pub(crate) cids: CidGenerator,
    pub(crate) share: Share,
    pub(crate) reset_key: ResetKey,
    pub(crate) prefers_chacha20: bool,
    /// A token has shown that the client is where it says.
    pub(crate) is_validated: bool,
    /// What it gets in NEW_TOKEN.
    pub(crate) new_token: Option<Vec<u8>>,
    /// The session that the client offers early data with.
    pub(crate) psk_identity: Option<Vec<u8>>,
}

/// What a server's application says of early data.
pub(crate) struct EarlyTerms<'a> {
    /// Its settings, which are kept beside the session.
    pub(crate) settings: &'a [u8],
    /// Whether it can keep to those of an earlier connection.
    pub(crate) accepts: &'a dyn Fn(&[u8]) -> bool,
}

/// What both ends start from.
struct Start {
    side: Side,
    version: Version,
    setup: Setup,
    session: Session,
    path: Path,
    local_cids: LocalCids,
    peer_cid: ConnectionId,
    /// Those of Initial packets, if they have been made already.
    keys: Option<Box<LevelKeys>>,
    random: Random,
}

/// The version of a client's first packets: of those that it may choose, one in which a session can be resumed.
fn first_version(config: &Config, tls: &tls::ClientConfig, (name, port): (&str, u16)) -> Version {
    let usual = config.begins_with();
    if config.first_version.is_some() {
        return usual;
    }
    iter::once(usual)
        .chain(config.versions.iter())
        .find(|version| tls.has_session(name, port, *version))
        .unwrap_or(usual)
}

impl Connection {
    /// Starts a connection to the server at `remote`, whose certificate has to be good for `server_name`.
    ///
    /// # Errors
    ///
    /// When `config` is invalid, `server_name` is neither a DNS name nor an IP address, or TLS can't start.
    pub fn client(
        config: &Config,
        tls: &tls::ClientConfig,
        server_name: &str,
        remote: SocketAddr,
        mut random: Random,
        now: Instant,
    ) -> Result<Self, ApiError> {
        config
            .validate()
            .map_err(|error| ApiError::Config(error.setting))?;
        let version = first_version(config, tls, (server_name, remote.port()));
        let dcid = ConnectionId::draw(&mut random, FIRST_DCID_LENGTH);
        let cid = ConnectionId::draw(&mut random, config.cid_length);
        let mut parameters = parameters(config, cid);
        parameters.version_information = Some(VersionInformation::new(
            version,
            &config.versions,
            &mut random,
        ));
        let session = Session::client(
            tls,
            version,
            (server_name, remote.port()),
            &encode(&parameters, &mut random),
            config.early_data,
        )?;
        let mut path = config.path();
        let memory = session.memory();
        if let Some(rtt) = memory.and_then(tls::Memory::rtt) {
            // The network may have become a slower one: how much is trusted to a measurement of old is limited.
            path.initial_rtt = rtt.clamp(path.initial_rtt / LEAST_TRUST, path.initial_rtt);
        }
        let reset_key = ResetKey::new(random.array());
        let beginning = Beginning {
            tls: tls.clone(),
            server_name: server_name.to_owned(),
            parameters,
        };
        let negotiation = Negotiation::client(version, config.versions, beginning);
        let mut setup = Setup::new(dcid, dcid, None, negotiation, now);
        let token = session.memory().and_then(tls::Memory::take_token);
        setup.token = token.unwrap_or_default().into_vec();
        let start = Start {
            side: Side::Client,
            version,
            setup,
            session,
            path: Path::new(PathId::default(), remote, None, &path),
            local_cids: LocalCids::new(cid, reset_key),
            peer_cid: dcid,
            keys: None,
            random,
        };
        let mut connection = Self::begin(start, config, now);
        connection.path.validate();
        connection
            .drive_tls(now)
            .map_err(|error| ApiError::Tls(error.reason))?;
        if config.split_client_hello {
            connection.split_client_hello();
        }
        Ok(connection)
    }

    /// Starts the server's end for a client whose ClientHello has arrived.
    pub(crate) fn server(
        start: ServerStart,
        config: &Config,
        tls: &tls::ServerConfig,
        early: &EarlyTerms<'_>,
        mut random: Random,
        now: Instant,
    ) -> Result<Self, ApiError> {
        config
            .validate()
            .map_err(|error| ApiError::Config(error.setting))?;
        let mut parameters = parameters(config, start.cid);
        let mut local_cids = LocalCids::new(start.cid, start.reset_key.clone())
            .made_by(start.cids, start.share)
            .with_router();
        parameters.preferred_address = preferred_address(config, &mut local_cids, &mut random);
        parameters.original_dcid = Some(start.original_dcid);
        parameters.retry_scid = start.retry_scid;
        parameters.stateless_reset_token = Some(start.reset_key.token(&start.cid));
        parameters.version_information = Some(VersionInformation::new(
            start.chosen,
            &start.versions,
            &mut random,
        ));
        let terms = Terms {
            first: start.version,
            version: start.chosen,
            parameters: &encode(&parameters, &mut random),
            settings: early.settings,
            early_data: config.early_data,
            psk_identity: start.psk_identity.as_deref(),
            accepts: early.accepts,
        };
        let session = Session::server(tls, &terms, start.prefers_chacha20)?;
        let negotiation = Negotiation::server(start.version, start.chosen, &start.dcid);
        let mut setup = Setup::new(
            start.original_dcid,
            start.dcid,
            start.retry_scid,
            negotiation,
            now,
        );
        setup.peer_cid = Some(start.client_cid);
        let beginning = Start {
            side: Side::Server,
            version: start.chosen,
            setup,
            session,
            path: Path::new(PathId::default(), start.remote, start.local, &config.path()),
            local_cids,
            peer_cid: start.client_cid,
            keys: start.keys.filter(|_| start.version == start.chosen),
            random,
        };
        let mut connection = Self::begin(beginning, config, now);
        if start.is_validated {
            connection.path.validate();
        }
        connection.new_token = NewToken::new(start.new_token);
        Ok(connection)
    }

    fn begin(start: Start, config: &Config, now: Instant) -> Self {
        let Start {
            side,
            version,
            setup,
            session,
            path,
            local_cids,
            peer_cid,
            keys,
            mut random,
        } = start;
        let keys =
            keys.unwrap_or_else(|| tls::initial_keys(version, &setup.initial_dcid, side).into());
        Self {
            side,
            version,
            config: config.clone(),
            life: Life::Open,
            progress: Progress::Handshaking,
            setup: Box::new(setup),
            session,
            write_level: Level::Initial,
            keys: Keys::begin(keys),
            forgeries: Forgeries::default(),
            spaces: Spaces::new(config.max_ack_delay, &mut random),
            timer: LossTimer::new(),
            path,
            others: OtherPaths::default(),
            local_cids,
            remote_cids: RemoteCids::new(peer_cid),
            peer: Peer::default(),
            ack_requests: AckRequests::default(),
            streams: Streams::new(side, config.streams()),
            datagrams: Datagrams::new(&config.datagrams),
            may_grow: true,
            idle: Idle::new(config.idle_timeout, now),
            first_byte: FirstByte::new(side, config.spin_bit, config.grease, &mut random),
            streaming: None,
            alarm: None,
            drop_old_keys_at: None,
            owes_handshake_done: false,
            new_token: NewToken::default(),
            needs_loss_detection: false,
            pacing_deadline: None,
            events: VecDeque::new(),
            tap: None,
            stats: Stats::default(),
            random,
            scratch: Scratch::default(),
        }
    }
}

/// The transport parameters that follow from the settings.
fn parameters(config: &Config, cid: ConnectionId) -> TransportParameters {
    TransportParameters {
        max_idle_timeout: config.idle_timeout,
        max_udp_payload_size: 65_527,
        initial_max_data: config.connection_window,
        initial_max_stream_data_bidi_local: config.stream_window,
        initial_max_stream_data_bidi_remote: config.stream_window,
        initial_max_stream_data_uni: config.stream_window,
        initial_max_streams_bidi: config.max_streams_bidirectional,
        initial_max_streams_uni: config.max_streams_unidirectional,
        max_ack_delay: config.max_ack_delay,
        active_connection_id_limit: ACTIVE_CIDS,
        initial_scid: Some(cid),
        reset_stream_at: true,
        grease_quic_bit: config.grease,
        min_ack_delay: config.least_ack_delay(),
        max_datagram_frame_size: config.datagrams.max_frame_size.into(),
        disable_active_migration: config.disable_active_migration,
        ..TransportParameters::default()
    }
}

/// The addresses that a server would rather be reached at, with a connection ID to be used there.
fn preferred_address(
    config: &Config,
    local_cids: &mut LocalCids,
    random: &mut Random,
) -> Option<PreferredAddress> {
    let (v4, v6) = (config.preferred_v4, config.preferred_v6);
    if v4.is_none() && v6.is_none() {
        return None;
    }
    let (cid, reset_token) = local_cids.issue_preferred(random)?;
    Some(PreferredAddress {
        v4,
        v6,
        cid,
        reset_token,
    })
}

fn encode(parameters: &TransportParameters, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    parameters.encode(&mut bytes, random.u64());
    bytes
}
