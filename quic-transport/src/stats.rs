//! Counters of a connection.

use std::{net::SocketAddr, time::Duration};

use crate::transmit::PathId;

use crate::datagram::DatagramStats;

/// What a connection has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// UDP datagrams received.
    pub datagrams_received: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// UDP payload bytes received.
    pub bytes_received: u64,
    /// QUIC packets sent.
    pub packets_sent: u64,
    /// QUIC packets received and authenticated.
    pub packets_received: u64,
    /// Packets dropped: no keys, not authentic, duplicated or malformed outside the encryption.
    pub packets_dropped: u64,
    /// Packets that loss detection declared lost.
    pub packets_lost: u64,
    /// Of those, packets that were acknowledged after all.
    pub spurious_losses: u64,
    /// Times that the congestion window was reduced.
    pub congestion_events: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// ACK frames received.
    pub acks_received: u64,
    /// ACK_FREQUENCY frames sent, which ask for fewer.
    pub ack_requests_sent: u64,
    /// ACK_FREQUENCY and IMMEDIATE_ACK frames received.
    pub ack_requests_received: u64,
    /// DATAGRAM frames: the application's own datagrams.
    pub datagram_frames: DatagramStats,
    /// From the first packet to the end of the handshake.
    pub handshake_time: Option<Duration>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// The smallest round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// The congestion window, in bytes.
    pub congestion_window: u64,
    /// Bytes sent that are neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// The largest UDP payload that the path is known to carry, in bytes.
    pub path_mtu: u16,
}

/// A path as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStats {
    /// Which.
    pub path: PathId,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Ours, when it is known.
    pub local: Option<SocketAddr>,
    /// Whether packets take it, apart from those that probe others.
    pub is_in_use: bool,
    /// Whether the peer has been reached on it.
    pub is_validated: bool,
    /// Its smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Its congestion window, in bytes.
    pub congestion_window: u64,
    /// Bytes sent on it that are neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// The largest UDP payload that it is known to carry, in bytes.
    pub path_mtu: u16,
}
