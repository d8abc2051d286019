//! 0-RTT: what a client sends before it has heard from the server, and what becomes of it,
//! [RFC 9001, section 4.6](https://www.rfc-editor.org/rfc/rfc9001#section-4.6).
//!
//! A client that resumes a session opens streams and writes under the limits that the server set the last time. When
//! the server rejects that, all streams begin anew, by themselves: nothing of them has reached anyone.

use std::time::Instant;

use super::{Connection, setup::EarlyData};
use crate::{
    error::Error,
    event::Event,
    stream::PeerLimits,
    tls::LevelKeys,
    transmit::Space,
    wire::{Side, TransportParameters},
};

impl Connection {
    /// Whether what is sent now goes into 0-RTT packets: a client resumes a session and has not heard yet whether the
    /// server takes it. Whoever records it may be able to send it to the server again, so it should change nothing there.
    #[must_use]
    pub const fn is_sending_early_data(&self) -> bool {
        matches!(self.setup.early_data, EarlyData::Offered) && self.side.is_client()
    }

    /// Whether early data was sent and accepted; at a server, whether it was accepted, of which some may have come.
    ///
    /// A server should look at [`Connection::is_handshaking`] to tell whether what it reads may be a replay: once the
    /// handshake is complete, the client has shown that it is there.
    #[must_use]
    pub const fn is_early_data_accepted(&self) -> bool {
        matches!(self.setup.early_data, EarlyData::Accepted)
    }

    /// What [`Connection::remember`] kept on the connection whose session this one resumes with early data; a server's
    /// application needn't ask, it is asked.
    #[must_use]
    pub fn recalled(&self) -> Option<&[u8]> {
        let recalled = self.setup.recalled.as_ref()?;
        Some(&recalled.settings)
    }

    /// 0-RTT packets can be protected or opened. A client keeps to what it remembers of the server.
    pub(super) fn on_early_keys(&mut self, keys: Box<LevelKeys>) -> Result<(), Error> {
        if self.side.is_server() {
            self.setup.early_data = EarlyData::Accepted;
        } else {
            let Some(recalled) = self.session.recall() else {
                return Ok(());
            };
            let remembered = TransportParameters::parse(&recalled.parameters, Side::Server)?;
            self.streams.set_peer_limits(limits(&remembered));
            self.datagrams
                .outgoing
                .set_peer_limit(remembered.max_datagram_frame_size);
            self.setup.early_data = EarlyData::Offered;
            self.setup.recalled = Some(Box::new(recalled));
        }
        self.keys.early = Some(keys);
        Ok(())
    }

    /// The server's answer has come, with its parameters.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when early data is accepted and what it relied on is not (RFC 9000, 7.4.1; RFC 8446, 4.2.10).
    pub(super) fn apply_limits(&mut self, parameters: &TransportParameters) -> Result<(), Error> {
        let limits = limits(parameters);
        if !self.is_sending_early_data() {
            self.streams.set_peer_limits(limits);
            return Ok(());
        }
        if !self.session.is_early_data_accepted() {
            self.reject_early_data(limits);
            return Ok(());
        }
        self.check_promises(parameters)?;
        self.keys.early = None;
        self.setup.early_data = EarlyData::Accepted;
        self.streams.set_peer_limits(limits);
        self.events.push_back(Event::EarlyData { accepted: true });
        Ok(())
    }

    fn check_promises(&self, parameters: &TransportParameters) -> Result<(), Error> {
        let Some(recalled) = &self.setup.recalled else {
            return Ok(());
        };
        let remembered = TransportParameters::parse(&recalled.parameters, Side::Server)?;
        if let Some(reason) = parameters.shrunk_since(&remembered) {
            return Err(Error::protocol(0, reason));
        }
        if self.session.alpn() != Some(&recalled.alpn) {
            let reason = "early data was accepted for another application protocol";
            return Err(Error::protocol(0, reason));
        }
        Ok(())
    }

    /// The server doesn't speak the version that early data was sent in: streams wait for what it says in another.
    pub(super) fn withdraw_early_data(&mut self) {
        if self.is_sending_early_data() {
            self.datagrams.outgoing.set_peer_limit(0);
            self.reject_early_data(PeerLimits::default());
        }
    }

    /// All that was sent early is to be sent again, under other limits.
    fn reject_early_data(&mut self, limits: PeerLimits) {
        self.keys.early = None;
        self.setup.early_data = EarlyData::Rejected;
        self.spaces.application.sent.reject();
        self.forget_early_packets();
        self.streams.restart(limits);
        self.events.push_back(Event::EarlyData { accepted: false });
    }

    /// After a Retry, or a rejection: the server has thrown away what was sent in 0-RTT packets. Packet numbers go on.
    pub(super) fn forget_early_packets(&mut self) {
        let mut lost = std::mem::take(&mut self.scratch.lost);
        let bytes = self.spaces.application.sent.take_all(&mut lost);
        self.path.controller.on_discarded(bytes);
        for index in lost.iter().flat_map(|lost| lost.packet.frames()) {
            if let Some(frame) = self.spaces.application.log.get(index) {
                self.on_frame_lost(Space::Application, frame);
            }
        }
        self.spaces.application.release_frames();
        lost.clear();
        self.scratch.lost = lost;
    }

    /// RFC 9001, 4.9.3: a server keeps the keys of 0-RTT packets for a while, because packets may come late.
    pub(super) fn schedule_end_of_early_keys(&mut self, now: Instant) {
        if self.keys.early.is_some() {
            self.drop_old_keys_at = now.checked_add(self.pto().saturating_mul(3));
        }
    }
}

/// What the peer's parameters let us send.
const fn limits(parameters: &TransportParameters) -> PeerLimits {
    PeerLimits {
        data: parameters.initial_max_data,
        stream_local: parameters.initial_max_stream_data_bidi_local,
        stream_remote: parameters.initial_max_stream_data_bidi_remote,
        stream_unidirectional: parameters.initial_max_stream_data_uni,
        bidirectional: parameters.initial_max_streams_bidi,
        unidirectional: parameters.initial_max_streams_uni,
    }
}
