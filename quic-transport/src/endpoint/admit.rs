//! Who gets in: the checks on a client's first Initial, before any TLS work is done for it,
//! [RFC 9000, section 5.2.2](https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2) and 8.1.

use std::time::Instant;

use quic_common::Datagram;

use super::{
    Application, Endpoint, Entry, Handle, Incoming, RetryPolicy, admission::Load,
    incoming::Introduction, stateless::ReplyPath,
};
use crate::{
    config::{Config, MIN_DATAGRAM},
    connection::{Connection, EarlyTerms, ServerStart},
    error::ApiError,
    tls,
    token::{Presented, RetryToken, Tokens},
    wire::{ConnectionId, PacketHeader, RetryHeader, TransportErrorCode, Version},
};

/// The shortest destination that a client may make up, RFC 9000, 7.2.
const MIN_CLIENT_DCID: usize = 8;

/// How often a connection ID is drawn until one is found that is free, which matters for short ones only.
pub(super) const CID_DRAWS: u32 = 64;

impl<A: Application> Endpoint<A> {
    /// The next client whose ClientHello is complete.
    #[must_use]
    pub fn next_incoming(&mut self) -> Option<Incoming> {
        self.knocking.take_ready(&self.config.admission)
    }

    /// Makes the connection and processes what the client has sent so far.
    ///
    /// # Errors
    ///
    /// When `config` is invalid or TLS can't start with `tls`; the client is refused then.
    pub fn accept(
        &mut self,
        mut incoming: Incoming,
        config: &Config,
        tls: &tls::ServerConfig,
        application: A,
        now: Instant,
    ) -> Result<Handle, ApiError> {
        if self.router.find(&incoming.dcid).is_some() {
            return Err(ApiError::Config("this client was accepted before"));
        }
        let Some(cid) = self.draw_cid() else {
            self.refuse(&incoming, TransportErrorCode::CONNECTION_REFUSED);
            return Err(ApiError::Config(
                "too many connections for the length of their IDs",
            ));
        };
        let retry = incoming.retry();
        let start = ServerStart {
            remote: incoming.path.remote,
            local: incoming.path.local,
            version: incoming.version,
            chosen: incoming.choose(&self.config.versions),
            versions: self.config.versions,
            dcid: incoming.dcid,
            keys: incoming.keys.take(),
            original_dcid: incoming.original_dcid(),
            retry_scid: retry.map(|token| token.retry_scid),
            client_cid: incoming.client_cid,
            cid,
            cids: self.config.cids.clone(),
            share: self.config.share,
            reset_key: self.config.reset_key.clone(),
            prefers_chacha20: incoming.prefers_chacha20,
            is_validated: incoming.is_validated(),
            // RFC 9369, 5: a token belongs to the version that the connection comes to.
            new_token: self.new_token(incoming.path, incoming.choose(&self.config.versions)),
            psk_identity: incoming.psk_identity.clone(),
        };
        let early = EarlyTerms {
            settings: &application.settings(),
            accepts: &|settings| application.accepts_early_data(settings),
        };
        let made = Connection::server(start, config, tls, &early, self.random.fork(), now);
        let mut connection = match made {
            Ok(connection) => connection,
            Err(error) => {
                self.refuse(&incoming, TransportErrorCode::INTERNAL_ERROR);
                return Err(error);
            }
        };
        if let Some(observer) = incoming.observer.take() {
            connection.observe(observer, now);
        }
        let memory = connection.memory();
        let entry = Entry {
            connection,
            application,
            original: incoming.dcid,
            scheduled: None,
            is_queued: false,
            address: incoming.path.remote.ip(),
            is_half_open: true,
            is_at_rest: false,
            memory,
            reset_token: None,
        };
        let Some(handle) = self.router.insert(Box::new(entry)) else {
            self.refuse(&incoming, TransportErrorCode::CONNECTION_REFUSED);
            return Err(ApiError::Config("too many connections"));
        };
        let is_free = self.router.add_cid(incoming.dcid, handle);
        debug_assert!(is_free, "looked for before");
        self.stats.accepted += 1;
        self.config.admission.begin(incoming.path.remote.ip());
        self.memory = self.memory.saturating_add(memory);
        for mut kept in incoming.datagrams {
            let datagram = Datagram {
                remote: incoming.path.remote,
                local: incoming.path.local,
                ecn: kept.ecn,
                payload: &mut kept.payload,
            };
            self.deliver(handle, datagram, now);
        }
        Ok(handle)
    }

    /// Turns a client away with CONNECTION_REFUSED or another code.
    pub fn refuse(&mut self, incoming: &Incoming, code: TransportErrorCode) {
        self.stats.refused += 1;
        self.replies.refuse(
            incoming.path,
            incoming.version,
            &incoming.dcid,
            &incoming.client_cid,
            code,
        );
    }

    /// Asks a client to come back with a token; one that already did is refused instead.
    pub fn retry(&mut self, incoming: &Incoming) {
        if incoming.is_validated() {
            self.refuse(incoming, TransportErrorCode::CONNECTION_REFUSED);
        } else {
            self.send_retry(
                incoming.path,
                incoming.version,
                incoming.dcid,
                incoming.client_cid,
            );
        }
    }

    /// Looks at an Initial that no connection is known for.
    pub(super) fn knock(&mut self, header: &PacketHeader, datagram: &Datagram<'_>, now: Instant) {
        let path = ReplyPath {
            remote: datagram.remote,
            local: datagram.local,
        };
        if datagram.payload.len() < usize::from(MIN_DATAGRAM) || header.dcid.len() < MIN_CLIENT_DCID
        {
            self.stats.dropped += 1;
            return;
        }
        if !self.knocking.contains(&header.dcid) && !self.introduce(header, path, datagram, now) {
            return;
        }
        let Self {
            knocking,
            config,
            early,
            ..
        } = self;
        let admission = &config.admission;
        if !knocking.on_datagram(&header.dcid, datagram, admission) {
            self.stats.dropped += 1;
            return;
        }
        while let Some(mut kept) = early.take(&header.dcid, datagram.remote) {
            let datagram = Datagram {
                remote: datagram.remote,
                local: datagram.local,
                ecn: kept.ecn,
                payload: &mut kept.payload,
            };
            knocking.on_datagram(&header.dcid, &datagram, admission);
        }
    }

    /// Looks at a 0-RTT packet that no connection is known for: its client may be on the way in, or about to come.
    pub(super) fn knock_early(
        &mut self,
        header: &PacketHeader,
        datagram: &Datagram<'_>,
        now: Instant,
    ) {
        let Self {
            knocking,
            config,
            early,
            ..
        } = self;
        let admission = &config.admission;
        let is_kept = if knocking.contains(&header.dcid) {
            knocking.on_datagram(&header.dcid, datagram, admission)
        } else {
            header.dcid.len() >= MIN_CLIENT_DCID && early.keep(header.dcid, datagram, now)
        };
        if !is_kept {
            self.stats.dropped += 1;
        }
    }

    /// Decides whether a new client is listened to at all; answers it with a Retry where that is asked for.
    fn introduce(
        &mut self,
        header: &PacketHeader,
        path: ReplyPath,
        datagram: &Datagram<'_>,
        now: Instant,
    ) -> bool {
        let admission = &self.config.admission;
        let load = admission.load(path.remote.ip());
        if load == Load::Full {
            self.stats.dropped += 1;
            return false;
        }
        let connections = admission.connections_of(path.remote.ip());
        let memory = self.memory_of_others().saturating_add(self.memory());
        if memory >= self.config.memory || connections >= self.config.connections_of_address {
            let code = TransportErrorCode::CONNECTION_REFUSED;
            self.stats.refused += 1;
            self.replies
                .refuse(path, header.version, &header.dcid, &header.scid, code);
            return false;
        }
        let tokens = self.tokens(path, header.version);
        let mut token = tokens.open(header.token.of(datagram.payload), &header.dcid);
        if let Presented::Known(known) = token
            && !self.config.used_tokens.spend(known, tokens.now)
        {
            token = Presented::Nothing;
        }
        let wants_retry = match self.config.retry {
            RetryPolicy::Always => true,
            RetryPolicy::UnderLoad => load == Load::Heavy,
            RetryPolicy::Never => false,
        };
        match token {
            // RFC 9000, 8.1.2: a client that answers a Retry with a bad token is told at once.
            Presented::InvalidRetry => {
                let code = TransportErrorCode::INVALID_TOKEN;
                self.stats.refused += 1;
                self.replies
                    .refuse(path, header.version, &header.dcid, &header.scid, code);
                return false;
            }
            Presented::Nothing if wants_retry => {
                self.send_retry(path, header.version, header.dcid, header.scid);
                return false;
            }
            Presented::Nothing | Presented::Known(_) | Presented::Retry(_) => {}
        }
        let introduction = Introduction {
            path,
            version: header.version,
            dcid: header.dcid,
            client_cid: header.scid,
            token,
        };
        let incoming = Incoming::new(&introduction, now);
        self.knocking.insert(incoming, &self.config.admission);
        true
    }

    fn send_retry(
        &mut self,
        path: ReplyPath,
        version: Version,
        original_dcid: ConnectionId,
        client_cid: ConnectionId,
    ) {
        if !self.replies.has_room() {
            self.stats.dropped += 1;
            return;
        }
        let Some(retry_scid) = self.draw_cid() else {
            self.stats.dropped += 1;
            return;
        };
        let token = RetryToken {
            original_dcid,
            retry_scid,
        };
        let mut random = self.random.fork();
        let token = self.tokens(path, version).retry(&token, &mut random);
        self.stats.retries += 1;
        let header = RetryHeader {
            version,
            dcid: client_cid,
            scid: retry_scid,
        };
        self.replies.retry(path, &header, &original_dcid, &token);
    }

    /// The tokens of the client at the other end of `path`.
    fn tokens(&self, path: ReplyPath, version: Version) -> Tokens<'_> {
        Tokens {
            key: &self.config.token_key,
            remote: path.remote,
            version,
            now: self.config.clock.now(),
        }
    }

    /// A token that spares the client at the end of `path` a Retry next time, if it is to have one.
    pub(super) fn new_token(&mut self, path: ReplyPath, version: Version) -> Option<Vec<u8>> {
        let mut random = self.random.fork();
        let tokens = self.tokens(path, version);
        self.config
            .new_tokens
            .then(|| tokens.new_token(&mut random))
    }

    /// A connection ID that no connection has; `None` when so many are taken that none is found.
    fn draw_cid(&mut self) -> Option<ConnectionId> {
        (0..CID_DRAWS).find_map(|_| {
            let config = &self.config;
            let cid = config.cids.draw(config.share, &mut self.random);
            self.router.find(&cid).is_none().then_some(cid)
        })
    }
}
