//! What a connection tells its user, as plain data.

use std::net::SocketAddr;

use crate::{datagram::DatagramEvent, error::CloseReason, stream::StreamEvent, transmit::PathId};

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete: the peer is who it should be, and streams can carry data.
    Connected,
    /// TLS has something to work out: [`Connection::take_handshake_job`](crate::Connection::take_handshake_job) gives it.
    HandshakeJob,
    /// At a client that has sent early data: the server has taken it, or not. If not, the streams that were opened begin
    /// anew by themselves, under the limits that the server sets now.
    EarlyData {
        /// Whether it was taken.
        accepted: bool,
    },
    /// Something happened on a stream.
    Stream(StreamEvent),
    /// Something happened to datagrams.
    Datagram(DatagramEvent),
    /// Something happened to a path.
    Path(Box<PathEvent>),
    /// The connection has ended; nothing follows.
    Closed(CloseReason),
    /// The time of [`Connection::set_alarm`](crate::Connection::set_alarm) has come.
    Alarm,
}

/// What has become of a path between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathEvent {
    /// Which.
    pub path: PathId,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Ours, when it is known.
    pub local: Option<SocketAddr>,
    /// What happened.
    pub news: PathNews,
}

/// What can happen to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathNews {
    /// The peer has been reached on it.
    Validated,
    /// The peer can't be reached on it; it is forgotten.
    Failed,
    /// Packets take it from now on.
    InUse,
}
