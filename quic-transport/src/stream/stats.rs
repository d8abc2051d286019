//! What a stream has done so far: read off its parts when somebody asks, so that it costs nothing before.

use super::table::Stream;

/// What a stream has done so far, in bytes unless said otherwise. A part that the stream doesn't have has done nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStats {
    /// Taken from the application to be sent, but for what was given up since.
    pub written: u64,
    /// Sent, each counted once.
    pub sent: u64,
    /// Known to have arrived at the peer.
    pub acknowledged: u64,
    /// Those of them from the start on without a gap.
    pub delivered: u64,
    /// Sent again because they were lost, counted each time.
    pub retransmitted: u64,
    /// What the peer lets us send on the stream, from its start.
    pub send_limit: u64,
    /// Limits of the peer for this stream that stopped it.
    pub times_blocked: u32,
    /// Whether such a limit stops it now.
    pub is_blocked: bool,
    /// Received from the peer in order, each counted once.
    pub received: u64,
    /// Behind the last of those that were received, gaps included.
    pub received_end: u64,
    /// Taken by the application.
    pub read: u64,
    /// What we let the peer send on the stream, from its start.
    pub receive_limit: u64,
}

impl Stream {
    pub(super) fn stats(&self) -> StreamStats {
        let mut stats = StreamStats::default();
        if let Some(send) = &self.send {
            let sent = send.buffer.sent();
            stats.written = send.buffer.end();
            stats.sent = sent;
            stats.acknowledged = sent.saturating_sub(send.buffer.unacked());
            stats.delivered = send.delivered();
            stats.retransmitted = send.buffer.sent_again();
            stats.send_limit = send.credit.limit();
            stats.times_blocked = send.credit.times_blocked();
            stats.is_blocked = send.is_blocked();
        }
        if let Some(receive) = &self.receive {
            stats.received = receive.buffer.contiguous();
            stats.received_end = receive.highest();
            stats.read = receive.buffer.read_offset();
            stats.receive_limit = receive.window.limit();
        }
        stats
    }
}
