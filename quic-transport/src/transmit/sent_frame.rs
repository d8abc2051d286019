//! What is remembered of a frame that was sent: enough for its owner to act when it is acknowledged or lost.
//!
//! Most frames are sent again as they are then, not as they were
//! ([RFC 9000, section 13.3](https://www.rfc-editor.org/rfc/rfc9000#section-13.3)), so most need no more than their kind.

use crate::wire::{Direction, StreamId};

/// A frame that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentFrame {
    /// ACK, of packets up to `largest`.
    Ack {
        /// The largest number acknowledged.
        largest: u64,
    },
    /// CRYPTO.
    Crypto {
        /// Of the first byte.
        offset: u64,
        /// Bytes.
        length: u32,
    },
    /// STREAM.
    Stream {
        /// The stream.
        id: StreamId,
        /// Of the first byte.
        offset: u64,
        /// Bytes.
        length: u32,
        /// Whether it ended the stream.
        fin: bool,
    },
    /// RESET_STREAM.
    ResetStream(StreamId),
    /// RESET_STREAM_AT.
    ResetStreamAt {
        /// The stream.
        id: StreamId,
        /// The bytes that are delivered nevertheless.
        reliable_size: u64,
    },
    /// STOP_SENDING.
    StopSending(StreamId),
    /// MAX_DATA.
    MaxData,
    /// MAX_STREAM_DATA.
    MaxStreamData(StreamId),
    /// MAX_STREAMS.
    MaxStreams(Direction),
    /// DATA_BLOCKED.
    DataBlocked {
        /// The limit that blocks.
        at: u64,
    },
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit that blocks.
        at: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// The type of stream.
        direction: Direction,
        /// The limit that blocks.
        at: u64,
    },
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// Its sequence number.
        sequence: u64,
    },
    /// RETIRE_CONNECTION_ID.
    RetireConnectionId {
        /// The sequence number retired.
        sequence: u64,
    },
    /// NEW_TOKEN.
    NewToken,
    /// PATH_CHALLENGE.
    PathChallenge,
    /// PATH_RESPONSE.
    PathResponse,
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// ACK_FREQUENCY.
    AckFrequency {
        /// Its number.
        sequence: u64,
    },
    /// DATAGRAM.
    Datagram {
        /// Its number.
        id: u64,
    },
    /// PING.
    Ping,
    /// The PING of a packet that probes the path's MTU.
    MtuProbe,
}

const _: () = assert!(
    size_of::<SentFrame>() <= 24,
    "a record for each frame in flight stays small"
);

impl SentFrame {
    /// Whether the peer must acknowledge it (RFC 9000, 13.2).
    #[inline]
    pub(crate) const fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Ack { .. })
    }

    /// Whether a probe repeats it, since it may have been lost; a datagram is sent once (RFC 9221, 5).
    pub(crate) const fn is_repeated(&self) -> bool {
        !matches!(self, Self::Datagram { .. })
    }

    /// Makes this record stand for `next` too, if both are of the same stream's data and `next` begins where this one
    /// ends; returns whether it did.
    #[inline]
    pub(super) fn join(&mut self, next: Self) -> bool {
        let Self::Stream {
            id,
            offset,
            length,
            fin: fin @ false,
        } = self
        else {
            return false;
        };
        let Self::Stream {
            id: next_id,
            offset: next_offset,
            length: next_length,
            fin: next_fin,
        } = next
        else {
            return false;
        };
        let end = offset.saturating_add(u64::from(*length));
        let Some(joined) = length
            .checked_add(next_length)
            .filter(|_| *id == next_id && end == next_offset)
        else {
            return false;
        };
        *length = joined;
        *fin = next_fin;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::SentFrame;

    /// RFC 9000, 13.2: all frames but ACK, PADDING and CONNECTION_CLOSE elicit an acknowledgment.
    #[test]
    fn only_an_ack_elicits_none() {
        assert!(!SentFrame::Ack { largest: 0 }.is_ack_eliciting());
        assert!(SentFrame::Ping.is_ack_eliciting());
        assert!(SentFrame::HandshakeDone.is_ack_eliciting());
    }
}
