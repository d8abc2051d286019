//! What only the handshake needs: identities to be checked against the transport parameters,
//! [RFC 9000, section 7.3](https://www.rfc-editor.org/rfc/rfc9000#section-7.3).

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use quic_common::Ecn;

use super::versions::Negotiation;
use crate::{
    recovery::Outcomes,
    tls::{HandshakeJob, Recalled},
    wire::{ConnectionId, Level},
};

/// What has become of 0-RTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EarlyData {
    /// A client can't send it; a server has not accepted any.
    #[default]
    None,
    /// A client sends it and doesn't know yet whether the server takes it.
    Offered,
    Accepted,
    Rejected,
}

/// The state of a handshake.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) started: Instant,
    /// The destination of the client's first Initial.
    pub(super) original_dcid: ConnectionId,
    /// The destination of the client's Initials at the moment, that their keys come from.
    pub(super) initial_dcid: ConnectionId,
    /// The source of the Retry, when there was one.
    pub(super) retry_scid: Option<ConnectionId>,
    /// The source of the peer's packets, once one was authenticated.
    pub(super) peer_cid: Option<ConnectionId>,
    /// The token that a client sends.
    pub(super) token: Vec<u8>,
    /// Packets that came before their keys.
    pub(super) undecryptable: Vec<Undecryptable>,
    /// The address that the server prefers and that the client is to move to.
    pub(super) preferred: Option<SocketAddr>,
    /// The peer's transport parameters have been applied.
    pub(super) has_peer_parameters: bool,
    pub(super) negotiation: Negotiation,
    /// What became of packets while there are several spaces.
    pub(super) outcomes: Outcomes,
    /// The step of TLS that waits to be taken.
    pub(super) job: Option<Box<HandshakeJob>>,
    pub(super) early_data: EarlyData,
    /// What a client that sends early data relies on.
    pub(super) recalled: Option<Box<Recalled>>,
}

impl Setup {
    pub(super) const fn new(
        original_dcid: ConnectionId,
        initial_dcid: ConnectionId,
        retry_scid: Option<ConnectionId>,
        negotiation: Negotiation,
        now: Instant,
    ) -> Self {
        Self {
            started: now,
            original_dcid,
            initial_dcid,
            retry_scid,
            peer_cid: None,
            token: Vec::new(),
            undecryptable: Vec::new(),
            preferred: None,
            has_peer_parameters: false,
            negotiation,
            outcomes: Outcomes::new(),
            job: None,
            early_data: EarlyData::None,
            recalled: None,
        }
    }

    /// The handshake is confirmed: gives back what nobody asks for any more. Packets that waited for its end are still to be
    /// taken.
    pub(super) fn end(&mut self) {
        self.token = Vec::new();
        self.negotiation.settle();
    }
}

/// A packet as it arrived, before its keys.
#[derive(Debug)]
pub(super) struct Undecryptable {
    pub(super) level: Level,
    pub(super) ecn: Ecn,
    pub(super) arrived: Instant,
    pub(super) packet: Vec<u8>,
}

/// What the peer's transport parameters set for us.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) max_ack_delay: Duration,
    pub(super) ack_delay_exponent: u8,
    pub(super) cid_limit: u64,
    /// Bytes of the largest datagram that it takes.
    pub(super) max_udp_payload: u64,
    /// We are not to send from another address (RFC 9000, 18.2).
    pub(super) forbids_migration: bool,
    /// It takes RESET_STREAM_AT frames.
    pub(super) takes_reset_stream_at: bool,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            max_ack_delay: Duration::from_millis(25),
            ack_delay_exponent: 3,
            cid_limit: 2,
            max_udp_payload: u64::MAX,
            forbids_migration: false,
            takes_reset_stream_at: false,
        }
    }
}
