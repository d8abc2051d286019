//! What a socket has done, for statistics and tests.

/// Totals since the socket was made. `sent_datagrams / sent_calls` tells how well batching works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Send calls that the system took.
    pub sent_calls: u64,
    /// Datagrams in them.
    pub sent_datagrams: u64,
    /// UDP payload bytes in them.
    pub sent_bytes: u64,
    /// Sends that found the socket full.
    pub blocked_sends: u64,
    /// Sends that failed otherwise: each [`Sent::Lost`](crate::Sent::Lost).
    pub failed_sends: u64,
    /// How often the system refused the arguments of a send, so that offloads were probed anew.
    pub renewals: u64,
    /// Receive calls that returned anything.
    pub received_calls: u64,
    /// Datagrams that they returned, empty and ignored ones included.
    pub received_datagrams: u64,
    /// UDP payload bytes that they returned.
    pub received_bytes: u64,
    /// Receive calls that failed, the ones on an empty socket not counted.
    pub failed_receives: u64,
    /// Runs of datagrams dropped because no answer to them could be sent (from port 0, or to a group address).
    pub ignored: u64,
}
