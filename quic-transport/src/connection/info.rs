//! What can be asked about a connection.

use std::{iter, net::SocketAddr, time::Duration};

use super::{
    Connection,
    life::{Life, Progress},
    setup::EarlyData,
};
use crate::{
    cid::CidChange,
    error::ApiError,
    event::Event,
    limits::CONNECTION_MEMORY,
    recovery::HandshakeProgress,
    stats::{PathStats, Stats},
    tls::EchStatus,
    transmit::Space,
    wire::{ConnectionId, ResetToken, Side, Version},
};

impl Connection {
    /// Which end this is.
    #[must_use]
    pub const fn side(&self) -> Side {
        self.side
    }

    /// The QUIC version in use.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The peer's address.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.path.remote
    }

    /// Whether the handshake isn't complete yet.
    #[must_use]
    pub const fn is_handshaking(&self) -> bool {
        matches!(self.progress, Progress::Handshaking)
    }

    /// Whether nothing can be sent any more: closed by either side, or timed out.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        !self.life.is_open()
    }

    /// Whether the peer has closed, so that nothing is sent any more.
    pub(crate) const fn is_draining(&self) -> bool {
        matches!(self.life, Life::Draining { .. })
    }

    /// Whether the connection is over and can be dropped.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.life, Life::Closed)
    }

    /// The application protocol that TLS agreed on; that of the earlier connection while early data is sent.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        let recalled = self.setup.recalled.as_ref();
        let early = recalled.map(|recalled| recalled.alpn.as_slice());
        self.session
            .alpn()
            .or_else(|| early.filter(|_| self.setup.early_data == EarlyData::Offered))
    }

    /// Whether TLS resumed an earlier session, so that no certificate was sent.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.session.is_resumed()
    }

    /// The server name that the client asked for, at the server.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.session.server_name()
    }

    /// What has become of the ClientHello that was to be encrypted, at a client, see
    /// [`tls::ClientConfig::ech`](crate::tls::ClientConfig::ech).
    #[must_use]
    pub fn ech_status(&self) -> EchStatus {
        self.session.ech_status()
    }

    /// The cipher suite that TLS agreed on, by its IANA name; empty before.
    #[must_use]
    pub fn cipher_suite(&self) -> &'static str {
        self.session.cipher_suite()
    }

    /// The key exchange group that TLS agreed on, by its IANA name; empty before.
    #[must_use]
    pub fn key_exchange_group(&self) -> &'static str {
        self.session.key_exchange_group()
    }

    /// How many times the keys of 1-RTT packets have been updated, by either end.
    #[must_use]
    pub fn key_updates(&self) -> u64 {
        self.keys.generation()
    }

    /// The peer's certificates, each in DER, its own first; a client's only if it was asked for one. Empty before the
    /// handshake is complete.
    pub fn peer_certificates(&self) -> impl Iterator<Item = &[u8]> {
        let certificates = self.session.peer_certificates().unwrap_or_default();
        certificates.iter().map(AsRef::as_ref)
    }

    /// Fills `out` with secret bytes that both ends derive in the same way from `label` and `context`, and nobody else:
    /// to bind what an application does to this connection (RFC 8446, 7.5; RFC 5705).
    ///
    /// # Errors
    ///
    /// [`ApiError::HandshakeIncomplete`], and [`ApiError::TooLarge`] for more than 255 hashes.
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ApiError> {
        self.session.export(out, label, context)
    }

    /// The congestion control algorithm, by name.
    #[must_use]
    pub const fn congestion_control(&self) -> &'static str {
        self.config.congestion.name()
    }

    /// Counters and estimates as they are now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            smoothed_rtt: self.path.rtt.smoothed(),
            min_rtt: self.path.rtt.first_sample().map(|_| self.path.rtt.min()),
            congestion_window: self.path.controller.window(),
            bytes_in_flight: self.path.controller.in_flight(),
            path_mtu: self.path.mtu.current(),
            datagram_frames: self.datagrams.stats(),
            ..self.stats
        }
    }

    /// The paths that are known, the one in use first.
    pub fn paths(&self) -> impl Iterator<Item = PathStats> + '_ {
        let others = self.others.iter().map(|other| &other.path);
        iter::once(&self.path).chain(others).map(|path| PathStats {
            path: path.id,
            remote: path.remote,
            local: path.local,
            is_in_use: path.id == self.path.id,
            is_validated: path.is_validated,
            smoothed_rtt: path.rtt.smoothed(),
            congestion_window: path.controller.window(),
            bytes_in_flight: path.controller.in_flight(),
            path_mtu: path.mtu.current(),
        })
    }

    /// What the connection counts for in a budget of memory, in bytes: what its streams hold, and a share at least of
    /// what the peer may make them hold.
    pub(crate) fn memory(&self) -> u64 {
        self.streams
            .memory()
            .saturating_add(self.datagrams.memory())
            .saturating_add(CONNECTION_MEMORY)
    }

    /// Whether receive windows that are used fast grow.
    pub(crate) const fn let_windows_grow(&mut self, may_grow: bool) {
        self.may_grow = may_grow;
    }

    /// The next thing that happened, if any.
    #[must_use]
    pub fn next_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if let Some(event) = self.streams.next_event() {
            return Some(Event::Stream(event));
        }
        self.datagrams.next_event().map(Event::Datagram)
    }

    /// Whether [`Connection::next_event`] has something to tell.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty() || self.streams.has_event() || self.datagrams.has_event()
    }

    /// What a router of datagrams has to learn.
    pub(crate) fn take_cid_change(&mut self) -> Option<CidChange> {
        self.local_cids.take_change()
    }

    /// The router knows another connection by this ID: it is drawn anew, or `is_last`, given up.
    pub(crate) fn on_cid_taken(&mut self, cid: &ConnectionId, is_last: bool) {
        if is_last {
            self.local_cids.withdraw(cid);
        } else {
            self.local_cids.redraw(cid, &mut self.random);
        }
    }

    /// The IDs that the router knows the connection by.
    pub(crate) fn local_cids(&self) -> impl Iterator<Item = ConnectionId> {
        self.local_cids.all()
    }

    /// The token that the peer would reset the connection with, for one who gets datagrams that name no connection.
    pub(crate) fn reset_token(&self) -> Option<ResetToken> {
        self.remote_cids.reset_token()
    }

    /// The probe timeout without backoff (RFC 9002, 6.2.1).
    pub(super) fn pto(&self) -> Duration {
        self.path.rtt.pto_base(self.peer.max_ack_delay)
    }

    /// Whether both ends are known to have completed the handshake.
    pub(super) fn is_confirmed(&self) -> bool {
        self.progress == Progress::Confirmed
    }

    /// The handshake as loss recovery sees it.
    pub(super) fn handshake_progress(&self) -> HandshakeProgress {
        if self.is_confirmed() {
            return HandshakeProgress::Confirmed;
        }
        let has_handshake_ack = self
            .spaces
            .get(Space::Handshake)
            .is_none_or(|space| space.sent.largest_acked().is_some());
        if self.side.is_client() && !has_handshake_ack {
            return HandshakeProgress::Unvalidated {
                handshake_keys: self.keys.handshake.is_some(),
            };
        }
        HandshakeProgress::Unconfirmed
    }
}
