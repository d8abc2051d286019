//! Frames in the words of qlog. Nothing is told of the bytes that streams carry but how many they are.

use qlog::{
    Token,
    events::{
        ApplicationError, ConnectionClosedEventError, ConnectionClosedFrameError, RawInfo,
        quic::{AckRange, ErrorSpace, QuicFrame, StreamType},
    },
};

use super::values;
use crate::wire::{AckFrame, Close, CloseCode, Direction, Frame, Frames};

/// All frames of a packet, as far as they can be read.
pub(super) fn all(payload: &[u8]) -> Vec<QuicFrame> {
    let frames = Frames::new(payload).into_iter().flatten();
    frames
        .map_while(Result::ok)
        .map(|frame| of(&frame))
        .collect()
}

fn of(frame: &Frame<'_>) -> QuicFrame {
    match *frame {
        Frame::Padding { length } => QuicFrame::Padding { raw: boxed(length) },
        Frame::Ping => QuicFrame::Ping { raw: None },
        Frame::Ack(ack) => acknowledgment(&ack),
        Frame::ResetStream {
            id,
            code,
            final_size,
        } => QuicFrame::ResetStream {
            stream_id: id.value(),
            error: ApplicationError::Unknown,
            error_code: Some(code),
            final_size,
            raw: None,
        },
        Frame::StopSending { id, code } => QuicFrame::StopSending {
            stream_id: id.value(),
            error: ApplicationError::Unknown,
            error_code: Some(code),
            raw: None,
        },
        Frame::Crypto { offset, data } => QuicFrame::Crypto {
            offset,
            raw: boxed(data.len()),
        },
        Frame::NewToken { token } => QuicFrame::NewToken {
            token: Token {
                ty: None,
                details: None,
                raw: Some(values::raw(token.len())),
            },
            raw: None,
        },
        Frame::Stream {
            id,
            offset,
            data,
            fin,
        } => QuicFrame::Stream {
            stream_id: id.value(),
            offset: Some(offset),
            fin: fin.then_some(true),
            raw: boxed(data.len()),
        },
        Frame::ConnectionClose(close) => connection_close(&close),
        Frame::HandshakeDone => QuicFrame::HandshakeDone { raw: None },
        Frame::MaxData { .. }
        | Frame::MaxStreamData { .. }
        | Frame::MaxStreams { .. }
        | Frame::DataBlocked { .. }
        | Frame::StreamDataBlocked { .. }
        | Frame::StreamsBlocked { .. } => credit(frame),
        Frame::NewConnectionId { .. }
        | Frame::RetireConnectionId { .. }
        | Frame::PathChallenge { .. }
        | Frame::PathResponse { .. } => address(frame),
        Frame::Datagram { data } => QuicFrame::Datagram {
            raw: boxed(data.len()),
        },
        // qlog has no names for these.
        Frame::ImmediateAck | Frame::AckFrequency { .. } | Frame::ResetStreamAt { .. } => {
            QuicFrame::Unknown {
                frame_type_bytes: Some(frame.frame_type()),
                raw: None,
            }
        }
    }
}

/// What may be sent, and what is in the way.
#[expect(clippy::wildcard_enum_match_arm, reason = "the rest is the caller's")]
const fn credit(frame: &Frame<'_>) -> QuicFrame {
    let raw = None;
    match *frame {
        Frame::MaxData { limit } => QuicFrame::MaxData {
            maximum: limit,
            raw,
        },
        Frame::MaxStreamData { id, limit } => QuicFrame::MaxStreamData {
            stream_id: id.value(),
            maximum: limit,
            raw,
        },
        Frame::MaxStreams { direction, limit } => QuicFrame::MaxStreams {
            stream_type: stream_type(direction),
            maximum: limit,
            raw,
        },
        Frame::DataBlocked { limit } => QuicFrame::DataBlocked { limit, raw },
        Frame::StreamDataBlocked { id, limit } => QuicFrame::StreamDataBlocked {
            stream_id: id.value(),
            limit,
            raw,
        },
        Frame::StreamsBlocked { direction, limit } => QuicFrame::StreamsBlocked {
            stream_type: stream_type(direction),
            limit,
            raw,
        },
        _ => QuicFrame::Unknown {
            frame_type_bytes: Some(frame.frame_type()),
            raw,
        },
    }
}

/// Connection IDs and paths.
#[expect(clippy::wildcard_enum_match_arm, reason = "the rest is the caller's")]
fn address(frame: &Frame<'_>) -> QuicFrame {
    match *frame {
        Frame::PathChallenge { data } => QuicFrame::PathChallenge {
            data: Some(values::hex(&data)),
            raw: None,
        },
        Frame::PathResponse { data } => QuicFrame::PathResponse {
            data: Some(values::hex(&data)),
            raw: None,
        },
        Frame::NewConnectionId {
            sequence,
            retire_prior_to,
            cid,
            ..
        } => QuicFrame::NewConnectionId {
            sequence_number: sequence,
            retire_prior_to,
            connection_id_length: u8::try_from(cid.len()).ok(),
            connection_id: values::hex(cid.as_slice()),
            stateless_reset_token: None,
            raw: None,
        },
        Frame::RetireConnectionId { sequence } => QuicFrame::RetireConnectionId {
            sequence_number: sequence,
            raw: None,
        },
        _ => QuicFrame::Unknown {
            frame_type_bytes: Some(frame.frame_type()),
            raw: None,
        },
    }
}

fn acknowledgment(ack: &AckFrame<'_>) -> QuicFrame {
    let ranges = ack.ranges();
    let mut acked_ranges: Vec<_> = ranges
        .map(|range| AckRange::new(*range.start(), *range.end()))
        .collect();
    acked_ranges.reverse();
    QuicFrame::Ack {
        ack_delay: None,
        acked_ranges: Some(acked_ranges),
        ect1: ack.ecn.map(|counts| counts.ect1),
        ect0: ack.ecn.map(|counts| counts.ect0),
        ce: ack.ecn.map(|counts| counts.ce),
        raw: None,
    }
}

fn connection_close(close: &Close<'_>) -> QuicFrame {
    let (error_space, error, error_code, trigger_frame_type) = match close.code {
        CloseCode::Transport { code, frame_type } => {
            let error = match values::transport_error(code) {
                ConnectionClosedEventError::TransportError(error) => {
                    ConnectionClosedFrameError::TransportError(error)
                }
                ConnectionClosedEventError::CryptoError(error) => {
                    ConnectionClosedFrameError::CryptoError(error)
                }
            };
            (ErrorSpace::Transport, error, code.value(), Some(frame_type))
        }
        CloseCode::Application(code) => {
            let error = ConnectionClosedFrameError::ApplicationError(ApplicationError::Unknown);
            (ErrorSpace::Application, error, code, None)
        }
    };
    QuicFrame::ConnectionClose {
        error_space: Some(error_space),
        error: Some(error),
        error_code: Some(error_code),
        reason: Some(String::from_utf8_lossy(close.reason).into_owned()),
        reason_bytes: None,
        trigger_frame_type,
    }
}

const fn stream_type(direction: Direction) -> StreamType {
    match direction {
        Direction::Bidirectional => StreamType::Bidirectional,
        Direction::Unidirectional => StreamType::Unidirectional,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as qlog wants it")]
fn boxed(length: usize) -> Option<Box<RawInfo>> {
    Some(Box::new(values::raw(length)))
}
