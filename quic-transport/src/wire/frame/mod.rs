//! Frames, [RFC 9000, section 19](https://www.rfc-editor.org/rfc/rfc9000#section-19).
//!
//! Decoding borrows from the packet: no frame is allocated, and none of its bytes are copied. What a frame type alone
//! can tell about right and wrong is checked here; what depends on state is checked by the component concerned.

mod types;
mod allowed;
mod ack;
mod data;
mod close;
mod decode;
mod encode;

use crate::wire::cid::ConnectionId;
use crate::wire::reset_token::ResetToken;
use crate::wire::stream_id::{Direction, StreamId};

pub(crate) use ack::{AckFrame, AckRanges, OutgoingAck};
pub(crate) use allowed::AllowedFrames;
pub(crate) use close::{Close, CloseCode};
pub(crate) use data::{CryptoHeader, DatagramHeader, StreamFrame, StreamHeader};
pub(crate) use decode::Frames;

/// One frame, borrowed from the packet that it came in or from what it is to be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// Bytes without a meaning: a whole run of PADDING frames.
    Padding {
        /// How many, at least 1.
        length: usize,
    },
    /// Asks for an acknowledgment and nothing else.
    Ping,
    /// Which packets have been received.
    Ack(AckFrame<'a>),
    /// The sender gives up its part of a stream.
    ResetStream {
        /// The stream.
        id: StreamId,
        /// The application's code.
        code: u64,
        /// Bytes that the sender has used of its flow control credit.
        final_size: u64,
    },
    /// Asks the peer to reset its part of a stream.
    StopSending {
        /// The stream.
        id: StreamId,
        /// The application's code.
        code: u64,
    },
    /// Handshake bytes.
    Crypto {
        /// Where in the level's stream they belong.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// A token for a later connection; never empty.
    NewToken {
        /// The token.
        token: &'a [u8],
    },
    /// Stream bytes.
    Stream {
        /// The stream.
        id: StreamId,
        /// Where in the stream they belong; offset and length together are at most 2^62 - 1.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
        /// Whether the stream ends behind them.
        fin: bool,
    },
    /// Flow control credit of the connection.
    MaxData {
        /// Bytes over all streams.
        limit: u64,
    },
    /// Flow control credit of a stream.
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// Bytes.
        limit: u64,
    },
    /// How many streams may be opened, at most 2^60.
    MaxStreams {
        /// Of which kind.
        direction: Direction,
        /// Streams since the beginning.
        limit: u64,
    },
    /// The connection's credit is used up.
    DataBlocked {
        /// The limit that is in the way.
        limit: u64,
    },
    /// A stream's credit is used up.
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit that is in the way.
        limit: u64,
    },
    /// No stream may be opened.
    StreamsBlocked {
        /// Of which kind.
        direction: Direction,
        /// The limit that is in the way, at most 2^60.
        limit: u64,
    },
    /// Another connection ID for the peer to use.
    NewConnectionId {
        /// Its number.
        sequence: u64,
        /// IDs with lower numbers are to be retired; at most `sequence`.
        retire_prior_to: u64,
        /// The ID, of 1 to 20 bytes.
        cid: ConnectionId,
        /// What a stateless reset for the ID ends with.
        reset_token: ResetToken,
    },
    /// The sender uses a connection ID no more.
    RetireConnectionId {
        /// Its number.
        sequence: u64,
    },
    /// Asks for the same bytes back.
    PathChallenge {
        /// The bytes.
        data: [u8; 8],
    },
    /// Gives the bytes back.
    PathResponse {
        /// The bytes.
        data: [u8; 8],
    },
    /// The connection is over.
    ConnectionClose(Close<'a>),
    /// The server has confirmed the handshake.
    HandshakeDone,
    /// Asks for an acknowledgment at once.
    ImmediateAck,
    /// Asks for more or fewer acknowledgments.
    AckFrequency {
        /// Its number: the frame with the highest counts.
        sequence: u64,
        /// Ack-eliciting packets that need not be acknowledged at once.
        threshold: u64,
        /// The longest that an acknowledgment may be held back, in microseconds.
        max_delay: u64,
        /// By how much packet numbers may be out of order before that is told; 0 for never.
        reordering: u64,
    },
    /// The sender gives up its part of a stream, but for the beginning.
    ResetStreamAt {
        /// The stream.
        id: StreamId,
        /// The application's code.
        code: u64,
        /// Bytes that the sender has used of its flow control credit.
        final_size: u64,
        /// Bytes that are delivered nevertheless; at most `final_size`.
        reliable_size: u64,
    },
    /// Bytes that belong to no stream and are sent once.
    Datagram {
        /// The bytes.
        data: &'a [u8],
    },
}

impl Frame<'_> {
    /// The type on the wire. For STREAM and DATAGRAM it depends on how they are encoded: this is as our encoder would.
    pub(crate) const fn frame_type(&self) -> u64 {
        match self {
            Self::Padding { .. } => types::PADDING,
            Self::Ping => types::PING,
            Self::Ack(ack) => {
                if ack.ecn.is_some() {
                    types::ACK_ECN
                } else {
                    types::ACK
                }
            }
            Self::ResetStream { .. } => types::RESET_STREAM,
            Self::StopSending { .. } => types::STOP_SENDING,
            Self::Crypto { .. } => types::CRYPTO,
            Self::NewToken { .. } => types::NEW_TOKEN,
            Self::Stream { offset, fin, .. } => data::stream_type(*offset, true, *fin),
            Self::MaxData { .. } => types::MAX_DATA,
            Self::MaxStreamData { .. } => types::MAX_STREAM_DATA,
            Self::MaxStreams { direction, .. } => match direction {
                Direction::Bidirectional => types::MAX_STREAMS_BIDI,
                Direction::Unidirectional => types::MAX_STREAMS_UNI,
            },
            Self::DataBlocked { .. } => types::DATA_BLOCKED,
            Self::StreamDataBlocked { .. } => types::STREAM_DATA_BLOCKED,
            Self::StreamsBlocked { direction, .. } => match direction {
                Direction::Bidirectional => types::STREAMS_BLOCKED_BIDI,
                Direction::Unidirectional => types::STREAMS_BLOCKED_UNI,
            },
            Self::NewConnectionId { .. } => types::NEW_CONNECTION_ID,
            Self::RetireConnectionId { .. } => types::RETIRE_CONNECTION_ID,
            Self::PathChallenge { .. } => types::PATH_CHALLENGE,
            Self::PathResponse { .. } => types::PATH_RESPONSE,
            Self::ConnectionClose(close) => close.frame_type(),
            Self::HandshakeDone => types::HANDSHAKE_DONE,
            Self::ImmediateAck => types::IMMEDIATE_ACK,
            Self::AckFrequency { .. } => types::ACK_FREQUENCY,
            Self::ResetStreamAt { .. } => types::RESET_STREAM_AT,
            Self::Datagram { .. } => types::DATAGRAM_LENGTH,
        }
    }

    /// Whether the packet has to be acknowledged (RFC 9000, table 3, N).
    #[inline]
    pub(crate) const fn is_ack_eliciting(&self) -> bool {
        !matches!(
            self,
            Self::Padding { .. } | Self::Ack(_) | Self::ConnectionClose(_)
        )
    }

    /// Whether the frame may probe a new path without moving the connection there (RFC 9000, table 3, P).
    pub(crate) const fn is_probing(&self) -> bool {
        matches!(
            self,
            Self::Padding { .. }
                | Self::NewConnectionId { .. }
                | Self::PathChallenge { .. }
                | Self::PathResponse { .. }
        )
    }
}
