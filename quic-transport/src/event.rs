//! What a connection tells its user, as plain data.

use crate::{datagram::DatagramEvent, error::CloseReason, stream::StreamEvent};

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete: the peer is who it should be, and streams can carry data.
    Connected,
    /// Something happened on a stream.
    Stream(StreamEvent),
    /// Something happened to datagrams.
    Datagram(DatagramEvent),
    /// The connection has ended; nothing follows.
    Closed(CloseReason),
}
