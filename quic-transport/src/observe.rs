//! One tap on a connection: what it does is shown to an [`Observer`], if it has one.
//!
//! Each packet is shown as it passes, and how things stand is shown once for each turn, whether anything has changed or
//! not: an observer compares. Without an observer a turn costs one look at a pointer that is null.

use std::{
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};

use quic_common::Ecn;

use crate::{
    error::CloseReason,
    wire::{ConnectionId, Side, Version},
};

/// Something that is shown what a connection does.
pub trait Observer: fmt::Debug + Send {
    /// Takes note of what has happened at `now`. It can't change anything, and should be quick.
    fn observe(&mut self, observation: &Observation<'_>, now: Instant);
}

/// What a connection does.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// The connection exists; the first thing that is shown.
    Started(Start),
    /// Transport parameters, encoded as RFC 9000, 18 has them.
    Parameters {
        /// Whose they are.
        of: Side,
        /// The parameters.
        bytes: &'a [u8],
    },
    /// A packet has been built; its protection follows.
    PacketSent(ObservedPacket<'a>),
    /// A packet has been authenticated; its frames are processed next.
    PacketReceived(ObservedPacket<'a>),
    /// A packet, or what follows in a datagram, was thrown away.
    PacketDropped {
        /// Bytes.
        size: usize,
        /// Why.
        why: DropReason,
    },
    /// A packet has to wait for its keys.
    PacketBuffered {
        /// Which kind.
        kind: PacketType,
        /// Bytes.
        size: usize,
    },
    /// A packet of ours counts as lost.
    PacketLost {
        /// Which kind.
        kind: PacketType,
        /// Its number.
        number: u64,
        /// Whether it did nothing but probe the path's MTU.
        is_mtu_probe: bool,
    },
    /// The keys of 1-RTT packets have been updated.
    KeysUpdated {
        /// By whom.
        by: Side,
        /// How often they have been, in all.
        generation: u64,
    },
    /// How things stand at the end of a turn.
    Standing(&'a Standing<'a>),
    /// The connection has ended, or begins to.
    Closed(&'a CloseReason),
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Start {
    /// Which end this is.
    pub side: Side,
    /// The version of the first packet.
    pub version: Version,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The destination of the client's very first packet, which both ends know the connection by.
    pub original_dcid: ConnectionId,
    /// Our own first connection ID.
    pub local_cid: ConnectionId,
}

/// The kinds of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketType {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// 1-RTT, with a short header.
    OneRtt,
    /// Retry.
    Retry,
    /// Version Negotiation.
    VersionNegotiation,
}

/// A packet in the clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedPacket<'a> {
    /// Which kind.
    pub kind: PacketType,
    /// The version in use.
    pub version: Version,
    /// Its number; `None` for kinds without.
    pub number: Option<u64>,
    /// The destination.
    pub dcid: ConnectionId,
    /// The source, where the header has one.
    pub scid: Option<ConnectionId>,
    /// Bytes of the whole packet; of one received, without its header and tag.
    pub size: usize,
    /// Its frames, encoded as RFC 9000, 19 has them.
    pub frames: &'a [u8],
    /// The mark that its datagram carries.
    pub ecn: Ecn,
    /// Whether it does nothing but probe the path's MTU.
    pub is_mtu_probe: bool,
}

/// Why a packet was thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// It names no connection, or another one.
    UnknownConnection,
    /// Its header makes no sense, or isn't permitted at this point.
    Invalid,
    /// It could not be authenticated, or has no keys any more.
    Undecryptable,
    /// It has been processed before.
    Duplicate,
    /// Too many packets wait for keys already.
    Full,
}

/// How things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing<'a> {
    /// The version in use.
    pub version: Version,
    /// The application protocol, once there is one.
    pub alpn: Option<&'a [u8]>,
    /// The cipher suite by its IANA name; empty before there is one.
    pub cipher_suite: &'static str,
    /// Whether TLS resumed an earlier session.
    pub is_resumed: bool,
    /// How far the handshake is.
    pub handshake: HandshakeState,
    /// Which keys there are: of Initial, Handshake and 1-RTT packets.
    pub has_keys: [bool; 3],
    /// The round-trip time; `None` before one was measured.
    pub rtt: Option<RoundTrip>,
    /// Probe timeouts in a row.
    pub probe_timeouts: u32,
    /// The congestion window, in bytes.
    pub congestion_window: u64,
    /// Bytes sent that are neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// Where slow start ends, in bytes; `None` before the first congestion.
    pub slow_start_threshold: Option<u64>,
    /// What the congestion controller does.
    pub congestion: CongestionState,
    /// The largest UDP payload that the path is known to carry, in bytes.
    pub mtu: u16,
    /// Whether the path is known to carry ECN marks.
    pub ecn: EcnState,
    /// When the timer of loss detection goes off, and whether for packets that are lost then, or to probe.
    pub loss_timer: Option<(Instant, LossTimerKind)>,
}

/// Estimates of the round-trip time, RFC 9002, 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoundTrip {
    /// The smallest sample.
    pub min: Duration,
    /// The smoothed average.
    pub smoothed: Duration,
    /// The newest sample.
    pub latest: Duration,
    /// The mean deviation.
    pub variation: Duration,
}

/// How far the handshake is, RFC 9001, 4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeState {
    /// Under way.
    Started,
    /// TLS is done here.
    Completed,
    /// TLS is known to be done at both ends.
    Confirmed,
}

/// What the congestion controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CongestionState {
    /// The window grows by all that is acknowledged.
    SlowStart,
    /// It grows as the algorithm says, or not at all.
    Avoidance,
}

/// What is known of ECN on the path, RFC 9000, A.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EcnState {
    /// The first packets are marked.
    Testing,
    /// The answer to those is waited for.
    Unknown,
    /// Marks arrive.
    Capable,
    /// They don't, or aren't to be tried.
    Failed,
}

/// What the timer of loss detection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossTimerKind {
    /// Packets are lost by then.
    Loss,
    /// A probe is due by then.
    Probe,
}

/// An observer at its connection.
#[derive(Debug)]
pub(crate) struct Tap {
    observer: Box<dyn Observer>,
    /// The time of the last call, for what happens where nobody knows the time.
    now: Instant,
}

impl Tap {
    pub(crate) fn new(observer: Box<dyn Observer>, now: Instant) -> Self {
        Self { observer, now }
    }

    /// Shows the observer something that happens at `now`.
    #[cold]
    pub(crate) fn tell(&mut self, observation: &Observation<'_>, now: Instant) {
        self.now = self.now.max(now);
        self.observer.observe(observation, self.now);
    }

    /// Shows the observer something that happens in the current turn.
    #[cold]
    pub(crate) fn tell_late(&mut self, observation: &Observation<'_>) {
        self.observer.observe(observation, self.now);
    }
}
