//! The TLS handshake over CRYPTO frames, and what its steps mean for keys and packet number spaces,
//! [RFC 9001, section 4](https://www.rfc-editor.org/rfc/rfc9001#section-4).

use std::time::Instant;

use super::{Connection, life::Progress, space::SpaceOf as _};
use crate::{
    error::Error,
    event::Event,
    observe::Observation,
    tls::{ClientHello, NewKeys},
    transmit::Space,
    wire::{Level, PacketHeader, Side, TransportErrorCode, TransportParameters},
};

impl Connection {
    /// Handshake bytes have arrived: TLS gets what is contiguous.
    pub(super) fn on_crypto(
        &mut self,
        offset: u64,
        data: &[u8],
        level: Level,
        now: Instant,
    ) -> Result<(), Error> {
        let Some(space) = self.spaces.get_mut(level.space()) else {
            return Ok(());
        };
        space.crypto().on_crypto(offset, data)?;
        if self.side.is_client() {
            // RFC 9369, 4.1: what TLS says comes in the version that the server has chosen.
            self.setup.negotiation.settle();
        }
        self.read_tls(level, now)
    }

    /// TLS gets what is contiguous, unless a step of it is lent out.
    pub(super) fn read_tls(&mut self, level: Level, now: Instant) -> Result<(), Error> {
        self.feed_tls(level)?;
        self.drive_tls(now)
    }

    /// A packet with a long header was authentic: the peer's connection ID is known, and a server has proof of the
    /// client's address when it is a Handshake packet (RFC 9000, 8.1).
    pub(super) fn on_long_packet(&mut self, level: Level, header: &PacketHeader) {
        if self.setup.peer_cid.is_none() {
            self.setup.peer_cid = Some(header.scid);
            self.remote_cids.replace_initial(header.scid);
        }
        if level == Level::Handshake && self.side.is_server() {
            self.path.validate();
            self.discard(Space::Initial);
        }
    }

    /// Starts the client's handshake, or continues after TLS has read something.
    pub(super) fn drive_tls(&mut self, now: Instant) -> Result<(), Error> {
        loop {
            self.scratch.crypto.clear();
            let keys = self.session.write(&mut self.scratch.crypto);
            if let Some(space) = self.spaces.get_mut(self.write_level.space()) {
                space.crypto().send(&self.scratch.crypto);
            }
            let is_done = keys.is_none();
            match keys {
                Some(NewKeys::ZeroRtt(keys)) => self.on_early_keys(keys)?,
                Some(NewKeys::Handshake(keys)) => {
                    self.keys.handshake = Some(keys);
                    self.write_level = Level::Handshake;
                    self.drop_rejected();
                }
                Some(NewKeys::OneRtt(keys)) => {
                    self.keys.one_rtt = Some(keys);
                    self.write_level = Level::OneRtt;
                }
                None => {}
            }
            if is_done && self.scratch.crypto.is_empty() {
                break;
            }
        }
        self.apply_peer_parameters(now)?;
        if self.progress == Progress::Handshaking && !self.session.is_handshaking() {
            self.complete(now)?;
        }
        Ok(())
    }

    /// Sends the client's first message from the middle of the server's name on, and then its beginning.
    pub(super) fn split_client_hello(&mut self) {
        let Some(space) = self.spaces.get_mut(Space::Initial) else {
            return;
        };
        let message = space.crypto().unsent();
        if let Ok(Some(hello)) = ClientHello::parse(&message)
            && let Some(name) = hello.server_name.filter(|name| name.len() > 1)
            && let Some(at) = message
                .windows(name.len())
                .position(|window| window == name.as_bytes())
        {
            space.crypto().send_last(at + name.len() / 2);
        }
    }

    /// The handshake is confirmed: the Handshake keys have done their work (RFC 9001, 4.9.2).
    pub(super) fn confirm(&mut self) {
        if self.progress < Progress::Confirmed {
            self.progress = Progress::Confirmed;
            self.discard(Space::Initial);
            self.discard(Space::Handshake);
            self.setup.end();
        }
    }

    /// Forgets the keys and packets of a space (RFC 9002, 6.4).
    pub(super) fn discard(&mut self, space: Space) {
        match space {
            Space::Initial => self.keys.initial = None,
            Space::Handshake => self.keys.handshake = None,
            Space::Application => return,
        }
        self.setup
            .undecryptable
            .retain(|kept| kept.level.space() != space);
        if let Some(mut state) = self.spaces.take(space) {
            self.path.controller.on_discarded(state.sent.discard());
            self.timer.reset();
        }
    }

    fn feed_tls(&mut self, level: Level) -> Result<(), Error> {
        loop {
            let Some(space) = self.spaces.get_mut(level.space()) else {
                return Ok(());
            };
            let bytes = space.crypto().fill();
            if bytes.is_empty() || self.session.is_lent() {
                return Ok(());
            }
            let length = bytes.len();
            if self.config.lends_handshake && self.session.is_handshaking() {
                self.setup.job = Some(Box::new(self.session.lend(level, bytes)?));
                self.events.push_back(Event::HandshakeJob);
            } else {
                self.session.read(level, bytes)?;
            }
            space.crypto().consume(length);
        }
    }

    fn complete(&mut self, now: Instant) -> Result<(), Error> {
        if !self.setup.has_peer_parameters {
            // RFC 9001, 8.2: the extension is mandatory.
            return Err(Error::new(
                TransportErrorCode::crypto(109),
                0,
                "no transport parameters",
            ));
        }
        self.progress = Progress::Complete;
        self.keys.opens_one_rtt = true;
        self.stats.handshake_time = Some(now.saturating_duration_since(self.setup.started));
        self.local_cids
            .replenish(self.peer.cid_limit, &mut self.random);
        self.events.push_back(Event::Connected);
        self.keep_rtt();
        self.schedule_end_of_early_keys(now);
        if self.side.is_server() {
            // RFC 9001, 4.1.2: for a server, complete is confirmed.
            self.owes_handshake_done = true;
            self.new_token.owe();
            self.confirm();
            self.session.end();
        }
        Ok(())
    }

    /// Applies the peer's transport parameters as soon as TLS has them.
    fn apply_peer_parameters(&mut self, now: Instant) -> Result<(), Error> {
        if self.setup.has_peer_parameters {
            return Ok(());
        }
        let Some(bytes) = self.session.peer_transport_parameters() else {
            return Ok(());
        };
        if let Some(tap) = &mut self.tap {
            let of = self.side.peer();
            tap.tell(&Observation::Parameters { of, bytes }, now);
        }
        let parameters = TransportParameters::parse(bytes, self.side.peer())?;
        self.setup.negotiation.check(
            self.side,
            self.version,
            parameters.version_information.as_ref(),
        )?;
        let setup = &mut self.setup;
        // Only a server knows of these (RFC 9000, 7.3).
        let (original, retry) = match self.side {
            Side::Client => (Some(setup.original_dcid), setup.retry_scid),
            Side::Server => (None, None),
        };
        parameters.authenticate(setup.peer_cid.unwrap_or_default(), original, retry)?;
        setup.has_peer_parameters = true;
        self.peer.max_ack_delay = parameters.max_ack_delay;
        self.peer.ack_delay_exponent = parameters.ack_delay_exponent;
        self.peer.cid_limit = parameters.active_connection_id_limit;
        if let Some(least) = parameters
            .min_ack_delay
            .filter(|_| self.config.ack_frequency)
        {
            self.ack_requests.allow(least, parameters.max_ack_delay);
        }
        if parameters.grease_quic_bit && self.config.grease {
            self.first_byte.grease();
        }
        self.peer.takes_reset_stream_at = parameters.reset_stream_at;
        self.idle.negotiate(parameters.max_idle_timeout);
        self.datagrams
            .outgoing
            .set_peer_limit(parameters.max_datagram_frame_size);
        self.peer.max_udp_payload = parameters.max_udp_payload_size.into();
        self.peer.forbids_migration = parameters.disable_active_migration;
        self.path.mtu.limit(self.peer.max_udp_payload);
        self.apply_limits(&parameters)?;
        if let Some(token) = parameters.stateless_reset_token {
            self.remote_cids.set_initial_token(token);
        }
        if let Some(preferred) = parameters.preferred_address {
            self.on_preferred_address(&preferred)?;
        }
        Ok(())
    }
}
