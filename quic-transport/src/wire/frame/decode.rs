//! From a packet's payload to frames.

use quic_common::{Reader, Truncated, varint_size};

use super::types;
use super::{AckFrame, Close, Frame, StreamFrame, data};
use crate::wire::cid::ConnectionId;
use crate::wire::malformed::Malformed;
use crate::wire::reset_token::ResetToken;
use crate::wire::stream_id::{Direction, MAX_STREAMS, StreamId};

/// The frames of a packet, in order. Ends after the first that is malformed.
#[derive(Clone, Debug)]
pub(crate) struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// The frames in the plaintext of a packet.
    ///
    /// # Errors
    ///
    /// When there is none (RFC 9000, 12.4).
    #[inline]
    pub(crate) const fn new(payload: &'a [u8]) -> Result<Self, Malformed> {
        if payload.is_empty() {
            return Err(Malformed::protocol(0, "a packet without frames"));
        }
        Ok(Self {
            reader: Reader::new(payload),
        })
    }

    /// Whether all have been taken.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.reader.is_empty()
    }

    /// Takes the next frame if it is one of STREAM: most of the traffic never becomes a [`Frame`].
    #[expect(
        clippy::inline_always,
        reason = "what is returned is moved through memory otherwise, and read before it has settled there"
    )]
    #[inline(always)]
    pub(crate) fn next_stream(&mut self) -> Option<Result<StreamFrame<'a>, Malformed>> {
        let (first, rest) = self.reader.rest().split_first()?;
        let frame_type = u64::from(*first);
        if !matches!(frame_type, types::STREAM..=types::STREAM_LAST) {
            return None;
        }
        let mut rest = Reader::new(rest);
        let frame = data::decode_stream(&mut rest, frame_type);
        self.reader = rest;
        Some(frame.map_err(|malformed| self.fail(malformed, frame_type)))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(frame) = self.next_stream() {
            return Some(frame.map(Frame::from));
        }
        let first = *self.reader.rest().first()?;
        let mut rest = Reader::new(self.reader.rest().get(1..)?);
        let frame_type = u64::from(first);
        let frame = match frame_type {
            types::ACK | types::ACK_ECN => AckFrame::decode(&mut rest, frame_type).map(Frame::Ack),
            _ => decode_other(&mut rest, self.reader, frame_type),
        };
        self.reader = rest;
        Some(frame.map_err(|malformed| self.fail(malformed, frame_type)))
    }
}

impl Frames<'_> {
    #[cold]
    const fn fail(&mut self, mut malformed: Malformed, frame_type: u64) -> Malformed {
        self.reader = Reader::new(&[]);
        if malformed.frame == 0 {
            malformed.frame = frame_type;
        }
        malformed
    }
}

/// Decodes the frames that aren't most of the traffic. `whole` is where `rest` was a byte before, the type.
#[inline(never)]
fn decode_other<'a>(
    rest: &mut Reader<'a>,
    whole: Reader<'a>,
    frame_type: u64,
) -> Result<Frame<'a>, Malformed> {
    Ok(match frame_type {
        types::PADDING => padding(rest),
        types::PING => Frame::Ping,
        types::RESET_STREAM => Frame::ResetStream {
            id: stream_id(rest)?,
            code: rest.varint()?,
            final_size: rest.varint()?,
        },
        types::STOP_SENDING => Frame::StopSending {
            id: stream_id(rest)?,
            code: rest.varint()?,
        },
        types::CRYPTO => data::decode_crypto(rest)?,
        types::NEW_TOKEN => new_token(rest)?,
        types::MAX_DATA => Frame::MaxData {
            limit: rest.varint()?,
        },
        types::MAX_STREAM_DATA => Frame::MaxStreamData {
            id: stream_id(rest)?,
            limit: rest.varint()?,
        },
        types::MAX_STREAMS_BIDI | types::MAX_STREAMS_UNI => Frame::MaxStreams {
            direction: direction(frame_type),
            limit: stream_count(rest)?,
        },
        types::DATA_BLOCKED => Frame::DataBlocked {
            limit: rest.varint()?,
        },
        types::STREAM_DATA_BLOCKED => Frame::StreamDataBlocked {
            id: stream_id(rest)?,
            limit: rest.varint()?,
        },
        types::STREAMS_BLOCKED_BIDI | types::STREAMS_BLOCKED_UNI => Frame::StreamsBlocked {
            direction: direction(frame_type),
            limit: stream_count(rest)?,
        },
        types::NEW_CONNECTION_ID => new_connection_id(rest)?,
        types::RETIRE_CONNECTION_ID => Frame::RetireConnectionId {
            sequence: rest.varint()?,
        },
        types::PATH_CHALLENGE => Frame::PathChallenge {
            data: rest.array()?,
        },
        types::PATH_RESPONSE => Frame::PathResponse {
            data: rest.array()?,
        },
        types::CONNECTION_CLOSE | types::APPLICATION_CLOSE => {
            Frame::ConnectionClose(Close::decode(rest, frame_type)?)
        }
        types::HANDSHAKE_DONE => Frame::HandshakeDone,
        types::IMMEDIATE_ACK => Frame::ImmediateAck,
        types::RESET_STREAM_AT => reset_stream_at(rest)?,
        types::DATAGRAM => Frame::Datagram {
            data: rest.bytes(rest.remaining())?,
        },
        types::DATAGRAM_LENGTH => Frame::Datagram {
            data: rest.length_prefixed()?,
        },
        _ => {
            *rest = whole;
            return decode_long_type(rest);
        }
    })
}

/// Decodes a frame whose type isn't one of a single byte that we know: there is one with more.
fn decode_long_type<'a>(rest: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let before = rest.remaining();
    let Ok(frame_type) = rest.varint() else {
        return Err(Malformed::frame(0, "the frame type is cut short"));
    };
    if varint_size(frame_type) < before - rest.remaining() {
        let reason = "the frame type isn't in its shortest form";
        return Err(Malformed::protocol(frame_type, reason));
    }
    if frame_type != types::ACK_FREQUENCY {
        return Err(Malformed::frame(frame_type, "the frame type is unknown"));
    }
    ack_frequency(rest)
        .map_err(|_truncated| Malformed::frame(types::ACK_FREQUENCY, "the frame is cut short"))
}

fn ack_frequency<'a>(rest: &mut Reader<'a>) -> Result<Frame<'a>, Truncated> {
    Ok(Frame::AckFrequency {
        sequence: rest.varint()?,
        threshold: rest.varint()?,
        max_delay: rest.varint()?,
        reordering: rest.varint()?,
    })
}

/// draft-ietf-quic-reliable-stream-reset-10, 4.
fn reset_stream_at<'a>(rest: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let id = stream_id(rest)?;
    let code = rest.varint()?;
    let final_size = rest.varint()?;
    let reliable_size = rest.varint()?;
    if reliable_size > final_size {
        return Err(Malformed::frame(0, "a reliable size over the final size"));
    }
    Ok(Frame::ResetStreamAt {
        id,
        code,
        final_size,
        reliable_size,
    })
}

/// Takes the whole run of padding.
fn padding<'a>(rest: &mut Reader<'a>) -> Frame<'a> {
    let all = rest.rest();
    // A datagram that probes the MTU is nothing else, so many bytes are compared at a time.
    let (blocks, _) = all.as_chunks::<64>();
    let zeros = blocks.iter().take_while(|block| **block == [0; 64]).count() * 64;
    let tail = all.get(zeros..).unwrap_or_default();
    let more = zeros
        + tail
            .iter()
            .position(|byte| *byte != 0)
            .unwrap_or(tail.len());
    *rest = Reader::new(all.get(more..).unwrap_or_default());
    Frame::Padding { length: 1 + more }
}

fn stream_id(rest: &mut Reader<'_>) -> Result<StreamId, Malformed> {
    Ok(StreamId::from_varint(rest.varint()?))
}

const fn direction(frame_type: u64) -> Direction {
    if frame_type & 1 == 0 {
        Direction::Bidirectional
    } else {
        Direction::Unidirectional
    }
}

/// A number of streams, of which there are at most 2^60 (RFC 9000, 19.11 and 19.14).
fn stream_count(rest: &mut Reader<'_>) -> Result<u64, Malformed> {
    let count = rest.varint()?;
    if count > MAX_STREAMS {
        return Err(Malformed::frame(0, "more than 2^60 streams"));
    }
    Ok(count)
}

/// RFC 9000, 19.7.
fn new_token<'a>(rest: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let token = rest.length_prefixed()?;
    if token.is_empty() {
        return Err(Malformed::frame(types::NEW_TOKEN, "the token is empty"));
    }
    Ok(Frame::NewToken { token })
}

/// RFC 9000, 19.15.
fn new_connection_id<'a>(rest: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let sequence = rest.varint()?;
    let retire_prior_to = rest.varint()?;
    if retire_prior_to > sequence {
        return Err(Malformed::frame(0, "retires the connection ID it brings"));
    }
    let length = usize::from(rest.u8()?);
    let cid = ConnectionId::new(rest.bytes(length)?)
        .filter(|cid| !cid.is_empty())
        .ok_or(Malformed::frame(0, "a connection ID of 0 or over 20 bytes"))?;
    Ok(Frame::NewConnectionId {
        sequence,
        retire_prior_to,
        cid,
        reset_token: ResetToken(rest.array()?),
    })
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::{Frame, Frames, Malformed};
    use crate::wire::code::TransportErrorCode as Code;
    use crate::wire::frame::CloseCode;

    fn frames(payload: &[u8]) -> Vec<Result<Frame<'_>, Malformed>> {
        Frames::new(payload).unwrap().collect()
    }

    fn error(payload: &[u8]) -> (Code, u64) {
        let error = frames(payload).last().unwrap().unwrap_err();
        (error.code, error.frame)
    }

    /// RFC 9000, 12.4: a packet without frames MUST be a PROTOCOL_VIOLATION.
    #[test]
    fn a_packet_without_frames_is_malformed() {
        let error = Frames::new(&[]).unwrap_err();
        assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
    }

    #[test]
    fn a_run_of_padding_ends_at_the_first_other_byte() {
        for length in [1, 63, 64, 65, 128, 129, 1200, 65_000] {
            let mut payload = vec![0; length];
            assert_eq!(frames(&payload), [Ok(Frame::Padding { length })]);
            payload.extend([1, 0]);
            assert_eq!(
                frames(&payload),
                [
                    Ok(Frame::Padding { length }),
                    Ok(Frame::Ping),
                    Ok(Frame::Padding { length: 1 })
                ]
            );
        }
    }

    #[test]
    fn a_run_of_padding_is_one_frame() {
        assert_eq!(
            frames(&[0, 0, 0, 1, 0]),
            [
                Ok(Frame::Padding { length: 3 }),
                Ok(Frame::Ping),
                Ok(Frame::Padding { length: 1 })
            ]
        );
    }

    /// RFC 9000, 12.4: an unknown type MUST be a FRAME_ENCODING_ERROR; a type that isn't in its shortest form may be a
    /// PROTOCOL_VIOLATION.
    #[test]
    fn frame_types_are_known_and_short() {
        assert_eq!(error(&[0x20]), (Code::FRAME_ENCODING_ERROR, 0x20));
        assert_eq!(error(&[0x20, 0, 0]), (Code::FRAME_ENCODING_ERROR, 0x20));
        assert_eq!(error(&[1, 0x3f]), (Code::FRAME_ENCODING_ERROR, 0x3f));
        assert_eq!(error(&[0x40, 0x40]), (Code::FRAME_ENCODING_ERROR, 0x40));
        for ping in [
            &[0x40, 1][..],
            &[0x80, 0, 0, 1],
            &[0xc0, 0, 0, 0, 0, 0, 0, 1],
        ] {
            assert_eq!(error(ping), (Code::PROTOCOL_VIOLATION, 1));
        }
    }

    #[test]
    fn a_cut_frame_type_is_malformed() {
        for cut in [&[0x40][..], &[0x80, 0, 0], &[0xc0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(error(cut).0, Code::FRAME_ENCODING_ERROR);
        }
    }

    #[test]
    fn nothing_follows_a_malformed_frame() {
        assert_eq!(frames(&[0x20, 1, 1]).len(), 1);
        assert_eq!(frames(&[1, 0x10]).len(), 2);
        assert_eq!(error(&[1, 0x10]), (Code::FRAME_ENCODING_ERROR, 0x10));
    }

    /// RFC 9000, 19.11 and 19.14: more than 2^60 streams MUST be a FRAME_ENCODING_ERROR.
    #[test]
    fn stream_limits_end_at_2_to_the_60() {
        for frame_type in 0x12..=0x13 {
            for blocked in [0, 4] {
                let frame_type = frame_type + blocked;
                let limit = [frame_type, 0xd0, 0, 0, 0, 0, 0, 0, 0];
                assert!(frames(&limit)[0].is_ok());
                let beyond = [frame_type, 0xd0, 0, 0, 0, 0, 0, 0, 1];
                assert_eq!(
                    error(&beyond),
                    (Code::FRAME_ENCODING_ERROR, frame_type.into())
                );
            }
        }
    }

    /// RFC 9000, 19.7: an empty token MUST be a FRAME_ENCODING_ERROR.
    #[test]
    fn an_empty_token_is_malformed() {
        assert_eq!(error(&[7, 0]), (Code::FRAME_ENCODING_ERROR, 7));
        assert_eq!(frames(&[7, 1, 9]), [Ok(Frame::NewToken { token: &[9] })]);
    }

    /// RFC 9000, 19.15: a length of 0 or over 20, or Retire Prior To over the sequence number, MUST be a
    /// FRAME_ENCODING_ERROR.
    #[test]
    fn connection_ids_have_1_to_20_bytes() {
        for length in 0..=255 {
            let mut payload = vec![0x18, 5, 5, length];
            payload.resize(4 + usize::from(length) + 16, 7);
            let expected = (1..=20).contains(&length);
            assert_eq!(frames(&payload)[0].is_ok(), expected, "{length}");
            payload[2] = 6;
            assert_eq!(error(&payload), (Code::FRAME_ENCODING_ERROR, 0x18));
        }
    }

    /// draft-ietf-quic-reliable-stream-reset-10, 4: a Reliable Size over the Final Size MUST be a FRAME_ENCODING_ERROR.
    #[test]
    fn a_reliable_size_is_within_the_final_size() {
        assert!(frames(&[0x24, 4, 1, 3, 3])[0].is_ok());
        assert_eq!(
            error(&[0x24, 4, 1, 3, 4]),
            (Code::FRAME_ENCODING_ERROR, 0x24)
        );
    }

    /// RFC 9221, 4: without a length the data goes on to the end of the packet; it may be empty.
    #[test]
    fn a_datagram_ends_at_its_length_or_with_the_packet() {
        let datagram = |data| Ok(Frame::Datagram { data });
        assert_eq!(frames(&[0x30, 1, 0]), [datagram(&[1, 0])]);
        assert_eq!(frames(&[0x30]), [datagram(&[])]);
        assert_eq!(
            frames(&[0x31, 1, 7, 0x31, 0, 1]),
            [datagram(&[7]), datagram(&[]), Ok(Frame::Ping)]
        );
    }

    /// draft-ietf-quic-ack-frequency-14, 4: the one frame whose type takes two bytes.
    #[test]
    fn every_cut_of_an_ack_frequency_is_malformed() {
        let whole = [0x40, 0xaf, 1, 0x41, 0x00, 0x43, 0xe8, 3, 1];
        let frame = Frame::AckFrequency {
            sequence: 1,
            threshold: 256,
            max_delay: 1000,
            reordering: 3,
        };
        assert_eq!(frames(&whole), [Ok(frame), Ok(Frame::Ping)]);
        for length in 2..whole.len() - 1 {
            let cut = (Code::FRAME_ENCODING_ERROR, 0xaf);
            assert_eq!(error(&whole[..length]), cut, "{length}");
        }
        assert_eq!(error(&[0x80, 0, 0, 0xaf]), (Code::PROTOCOL_VIOLATION, 0xaf));
        assert_eq!(error(&[0x40, 0xb0]), (Code::FRAME_ENCODING_ERROR, 0xb0));
    }

    #[test]
    fn closes_may_have_any_code_and_words() {
        let mut payload = vec![0x1d];
        payload.extend([0xff; 8]);
        payload.extend([2, 0xff, 0xfe]);
        let Ok(Frame::ConnectionClose(close)) = frames(&payload)[0] else {
            panic!("no close");
        };
        assert_eq!(close.code, CloseCode::Application((1 << 62) - 1));
        assert_eq!(close.reason, [0xff, 0xfe]);
    }

    /// Every prefix of a payload of one frame that has fields is a truncated frame.
    #[test]
    fn every_cut_of_a_frame_is_malformed() {
        let whole: [&[u8]; 16] = [
            &[0x02, 9, 0, 1, 0, 1, 1],
            &[0x03, 9, 0, 0, 0, 1, 2, 3],
            &[0x04, 4, 1, 2],
            &[0x05, 4, 1],
            &[0x06, 0, 2, 1, 2],
            &[0x07, 2, 1, 2],
            &[0x0f, 4, 1, 2, 1, 2],
            &[0x11, 4, 1],
            &[0x15, 4, 1],
            &[
                0x18, 1, 0, 1, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5,
            ],
            &[0x1a, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x1b, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x1c, 1, 0, 2, 1, 2],
            &[0x1d, 1, 2, 1, 2],
            &[0x24, 4, 1, 3, 2],
            &[0x31, 2, 1, 2],
        ];
        for payload in whole {
            assert!(matches!(frames(payload)[..], [Ok(_)]), "{payload:?}");
            for length in 1..payload.len() {
                let cut = &payload[..length];
                assert_eq!(
                    error(cut),
                    (Code::FRAME_ENCODING_ERROR, payload[0].into()),
                    "{cut:?}"
                );
            }
        }
    }

    #[test]
    fn random_bytes_end() {
        let mut random = Random::from_seed([17; 32]);
        let (mut good, mut bad) = (0, 0);
        for _ in 0..100_000 {
            let mut payload = vec![0; usize::try_from(1 + random.below(60)).unwrap()];
            random.fill(&mut payload);
            payload[0] %= 0x20;
            let all = frames(&payload);
            assert!(all.len() <= payload.len());
            for frame in &all {
                match frame {
                    Ok(Frame::Ack(ack)) => {
                        assert!(ack.ranges().count() <= payload.len());
                        good += 1;
                    }
                    Ok(_) => good += 1,
                    Err(_) => bad += 1,
                }
            }
            assert!(all.iter().rev().skip(1).all(Result::is_ok));
        }
        assert!(good > 50_000 && bad > 50_000, "{good} {bad}");
    }
}
