//! From frames to bytes, for the frames whose content is at hand. STREAM and CRYPTO data is better copied behind a
//! [`StreamHeader`] or [`CryptoHeader`], and ACK ranges are cut to fit by [`OutgoingAck`].

use quic_common::{Writer, varint_size};

use super::{AckFrame, AckRanges, CryptoHeader, DatagramHeader, Frame, OutgoingAck, StreamHeader};
use crate::wire::encode::{Encode, wide};

impl Encode for Frame<'_> {
    #[inline]
    fn size(&self) -> usize {
        match self {
            Self::Padding { length } => *length,
            Self::Ping | Self::HandshakeDone | Self::ImmediateAck => 1,
            Self::Ack(ack) => outgoing(ack).map_or(0, |ack| ack.size()),
            Self::ResetStream {
                id,
                code,
                final_size,
            } => varints(&[id.value(), *code, *final_size]),
            Self::StopSending { id, code } => varints(&[id.value(), *code]),
            Self::Crypto { offset, data } => {
                let header = CryptoHeader {
                    offset: *offset,
                    length: data.len(),
                };
                header.size() + data.len()
            }
            Self::NewToken { token } => varints(&[wide(token.len())]) + token.len(),
            Self::Stream {
                id, offset, data, ..
            } => {
                let header = StreamHeader {
                    id: *id,
                    offset: *offset,
                    length: Some(data.len()),
                    fin: false,
                };
                header.size() + data.len()
            }
            Self::MaxData { limit }
            | Self::MaxStreams { limit, .. }
            | Self::DataBlocked { limit }
            | Self::StreamsBlocked { limit, .. } => varints(&[*limit]),
            Self::MaxStreamData { id, limit } | Self::StreamDataBlocked { id, limit } => {
                varints(&[id.value(), *limit])
            }
            Self::NewConnectionId {
                sequence,
                retire_prior_to,
                cid,
                ..
            } => varints(&[*sequence, *retire_prior_to]) + 1 + cid.len() + 16,
            Self::RetireConnectionId { sequence } => varints(&[*sequence]),
            Self::PathChallenge { .. } | Self::PathResponse { .. } => 9,
            Self::ConnectionClose(close) => close.size(),
            Self::AckFrequency {
                sequence,
                threshold,
                max_delay,
                reordering,
            } => 1 + varints(&[*sequence, *threshold, *max_delay, *reordering]),
            Self::ResetStreamAt {
                id,
                code,
                final_size,
                reliable_size,
            } => varints(&[id.value(), *code, *final_size, *reliable_size]),
            Self::Datagram { data } => DatagramHeader::with_length(data.len()).size() + data.len(),
        }
    }

    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        if let Self::Padding { length } = self {
            if let Some(space) = writer.space(*length) {
                space.fill(0);
            }
        } else if let Self::Ack(ack) = self {
            if let Some(ack) = outgoing(ack) {
                ack.encode(writer);
            }
        } else if let Self::ConnectionClose(close) = self {
            close.encode(writer);
        } else {
            writer.varint(self.frame_type());
            self.encode_fields(writer);
        }
    }
}

impl Frame<'_> {
    /// What follows the type.
    #[inline]
    fn encode_fields(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Padding { .. }
            | Self::Ping
            | Self::HandshakeDone
            | Self::ImmediateAck
            | Self::Ack(_)
            | Self::ConnectionClose(_) => {}
            Self::ResetStream {
                id,
                code,
                final_size,
            } => put(writer, &[id.value(), *code, *final_size]),
            Self::StopSending { id, code: value }
            | Self::MaxStreamData { id, limit: value }
            | Self::StreamDataBlocked { id, limit: value } => {
                writer.varint(id.value());
                writer.varint(*value);
            }
            Self::Crypto { offset, data } => {
                writer.varint(*offset);
                writer.varint(wide(data.len()));
                writer.bytes(data);
            }
            Self::Stream {
                id, offset, data, ..
            } => {
                writer.varint(id.value());
                if *offset != 0 {
                    writer.varint(*offset);
                }
                writer.varint(wide(data.len()));
                writer.bytes(data);
            }
            Self::NewToken { token: data } | Self::Datagram { data } => {
                writer.varint(wide(data.len()));
                writer.bytes(data);
            }
            Self::MaxData { limit: value }
            | Self::MaxStreams { limit: value, .. }
            | Self::DataBlocked { limit: value }
            | Self::StreamsBlocked { limit: value, .. }
            | Self::RetireConnectionId { sequence: value } => {
                writer.varint(*value);
            }
            Self::NewConnectionId {
                sequence,
                retire_prior_to,
                cid,
                reset_token,
            } => {
                writer.varint(*sequence);
                writer.varint(*retire_prior_to);
                writer.u8(u8::try_from(cid.len()).unwrap_or_default());
                writer.bytes(cid.as_slice());
                writer.bytes(&reset_token.0);
            }
            Self::PathChallenge { data } | Self::PathResponse { data } => {
                writer.bytes(data);
            }
            Self::AckFrequency {
                sequence,
                threshold,
                max_delay,
                reordering,
            } => put(writer, &[*sequence, *threshold, *max_delay, *reordering]),
            Self::ResetStreamAt {
                id,
                code,
                final_size,
                reliable_size,
            } => put(writer, &[id.value(), *code, *final_size, *reliable_size]),
        }
    }
}

fn put(writer: &mut Writer<'_>, fields: &[u64]) {
    for field in fields {
        writer.varint(*field);
    }
}

/// Bytes of a one-byte type and these fields.
#[inline]
fn varints(fields: &[u64]) -> usize {
    1 + fields.iter().copied().map(varint_size).sum::<usize>()
}

fn outgoing<'a>(ack: &AckFrame<'a>) -> Option<OutgoingAck<AckRanges<'a>>> {
    OutgoingAck::fit(ack.ranges(), ack.delay, ack.ecn, usize::MAX, usize::MAX)
}

#[cfg(test)]
mod tests {
    use quic_common::{MAX_VARINT, Random, Reader, Writer};

    use super::{Encode as _, Frame};
    use crate::wire::cid::ConnectionId;
    use crate::wire::code::TransportErrorCode;
    use crate::wire::frame::{Close, CloseCode, Frames};
    use crate::wire::reset_token::ResetToken;
    use crate::wire::stream_id::{Direction, MAX_STREAMS, StreamId};

    fn encoded(frame: &Frame<'_>) -> Vec<u8> {
        let mut buffer = vec![0xff; frame.size()];
        let mut writer = Writer::new(&mut buffer);
        frame.encode(&mut writer);
        assert_eq!(writer.len(), frame.size(), "{frame:?}");
        buffer
    }

    fn assert_round_trip(frame: &Frame<'_>) {
        let bytes = encoded(frame);
        let frames: Vec<_> = Frames::new(&bytes).unwrap().collect();
        assert_eq!(frames, [Ok(*frame)]);
        if !matches!(frame, Frame::Stream { .. }) {
            let on_wire = Reader::new(&bytes).varint();
            assert_eq!(on_wire, Ok(frame.frame_type()));
        }
    }

    /// One frame of each kind of the extensions.
    fn random_extensions<'a>(random: &mut Random, bytes: &'a [u8]) -> Vec<Frame<'a>> {
        let mut value = |max: u64| {
            let shift = random.below(62);
            random.below((max >> shift).saturating_add(1))
        };
        let id = StreamId::try_from(value(MAX_VARINT)).unwrap();
        let sequence = value(MAX_VARINT);
        vec![
            Frame::ImmediateAck,
            Frame::AckFrequency {
                sequence,
                threshold: value(MAX_VARINT),
                max_delay: value(MAX_VARINT),
                reordering: value(MAX_VARINT),
            },
            Frame::ResetStreamAt {
                id,
                code: value(MAX_VARINT),
                final_size: sequence,
                reliable_size: value(sequence),
            },
            Frame::Datagram { data: bytes },
        ]
    }

    /// One frame of each kind, with values of all sizes.
    fn random_frames<'a>(random: &mut Random, bytes: &'a [u8]) -> Vec<Frame<'a>> {
        let mut value = |max: u64| {
            let shift = random.below(62);
            random.below((max >> shift).saturating_add(1))
        };
        let id = StreamId::try_from(value(MAX_VARINT)).unwrap();
        let offset = value(MAX_VARINT - 1000);
        let sequence = value(MAX_VARINT);
        let data = [7; 8];
        let directions = [Direction::Bidirectional, Direction::Unidirectional];
        let mut frames = vec![
            Frame::Padding {
                length: 1 + bytes.len(),
            },
            Frame::Ping,
            Frame::ResetStream {
                id,
                code: value(MAX_VARINT),
                final_size: value(MAX_VARINT),
            },
            Frame::StopSending {
                id,
                code: value(MAX_VARINT),
            },
            Frame::Crypto {
                offset,
                data: bytes,
            },
            Frame::NewToken { token: &[5; 70] },
            Frame::Stream {
                id,
                offset,
                data: bytes,
                fin: value(1) == 0,
            },
            Frame::MaxData {
                limit: value(MAX_VARINT),
            },
            Frame::MaxStreamData {
                id,
                limit: value(MAX_VARINT),
            },
            Frame::DataBlocked {
                limit: value(MAX_VARINT),
            },
            Frame::StreamDataBlocked {
                id,
                limit: value(MAX_VARINT),
            },
            Frame::NewConnectionId {
                sequence,
                retire_prior_to: value(sequence),
                cid: ConnectionId::new(&[3; 20][..usize::try_from(1 + value(19)).unwrap()])
                    .unwrap(),
                reset_token: ResetToken([1; 16]),
            },
            Frame::RetireConnectionId { sequence },
            Frame::PathChallenge { data },
            Frame::PathResponse { data },
            Frame::ConnectionClose(Close {
                code: CloseCode::Transport {
                    code: TransportErrorCode::new(value(MAX_VARINT)),
                    frame_type: value(MAX_VARINT),
                },
                reason: bytes,
            }),
            Frame::ConnectionClose(Close {
                code: CloseCode::Application(value(MAX_VARINT)),
                reason: bytes,
            }),
            Frame::HandshakeDone,
        ];
        for direction in directions {
            let limit = value(MAX_STREAMS);
            frames.push(Frame::MaxStreams { direction, limit });
            frames.push(Frame::StreamsBlocked { direction, limit });
        }
        frames.extend(random_extensions(random, bytes));
        frames
    }

    #[test]
    fn every_frame_round_trips() {
        let mut random = Random::from_seed([21; 32]);
        let bytes = [0xab; 300];
        for length in 0..bytes.len() {
            for frame in random_frames(&mut random, &bytes[..length]) {
                assert_round_trip(&frame);
            }
        }
    }

    #[test]
    fn what_decodes_from_random_bytes_round_trips() {
        let mut random = Random::from_seed([22; 32]);
        let mut acks = 0;
        for _ in 0..50_000 {
            let mut payload = vec![0; usize::try_from(1 + random.below(60)).unwrap()];
            random.fill(&mut payload);
            if random.below(2) == 0 {
                for byte in &mut payload {
                    *byte &= 0x07;
                }
            }
            payload[0] %= 0x32;
            for frame in Frames::new(&payload).unwrap().map_while(Result::ok) {
                if let Frame::Ack(ack) = frame {
                    // The ranges need not have been in their shortest form.
                    let bytes = encoded(&frame);
                    let again = Frames::new(&bytes).unwrap().next().unwrap().unwrap();
                    let Frame::Ack(again) = again else {
                        panic!("no ACK: {again:?}");
                    };
                    assert!(again.ranges().eq(ack.ranges()));
                    acks += 1;
                } else {
                    assert_round_trip(&frame);
                }
            }
        }
        assert!(acks > 100);
    }

    /// RFC 9000, table 3: what elicits an acknowledgment, and what may probe a path.
    #[test]
    fn what_the_table_says_about_each_type() {
        let mut random = Random::from_seed([23; 32]);
        for frame in random_frames(&mut random, b"x") {
            let first = encoded(&frame)[0];
            let silent = matches!(first, 0x00 | 0x02 | 0x03 | 0x1c | 0x1d);
            assert_eq!(frame.is_ack_eliciting(), !silent, "{frame:?}");
            let probing = matches!(first, 0x00 | 0x18 | 0x1a | 0x1b);
            assert_eq!(frame.is_probing(), probing, "{frame:?}");
        }
        let ack = Frames::new(&[2, 0, 0, 0, 0]).unwrap().next().unwrap();
        assert!(!ack.unwrap().is_ack_eliciting());
    }
}
