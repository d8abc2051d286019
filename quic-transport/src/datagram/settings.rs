//! What a connection does with datagrams, and what it has done.

/// How a connection treats datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramSettings {
    /// The largest DATAGRAM frame that the peer may send, in bytes with its type and length; 0 takes none, and 65535 any
    /// that fits into a packet (RFC 9221, 3). Sending doesn't depend on it, but on what the peer takes.
    pub max_frame_size: u16,
    /// Bytes of datagrams that wait for the application to receive them; 32 more are counted for each. When another one
    /// doesn't fit, the oldest go.
    pub receive_buffer: usize,
    /// Bytes of datagrams that wait to be sent, counted in the same way.
    pub send_buffer: usize,
    /// What happens when another one to be sent doesn't fit.
    pub when_full: WhenFull,
    /// Whether an event tells what became of each datagram sent.
    pub outcomes: bool,
}

/// What becomes of a datagram when too many wait to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused, and an event says when there is room.
    #[default]
    Refuse,
    /// It takes the place of the oldest ones.
    DropOldest,
}

impl Default for DatagramSettings {
    fn default() -> Self {
        Self {
            max_frame_size: 0,
            receive_buffer: 1 << 20,
            send_buffer: 1 << 20,
            when_full: WhenFull::default(),
            outcomes: false,
        }
    }
}

/// Counts of DATAGRAM frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramStats {
    /// Sent.
    pub sent: u64,
    /// Sent, and the packet was acknowledged.
    pub acked: u64,
    /// Sent, and the packet was lost.
    pub lost: u64,
    /// Never sent: too many waited, or they had become too large for the path.
    pub dropped: u64,
    /// Received.
    pub received: u64,
    /// Received, and dropped because the application was too slow.
    pub unread: u64,
}
