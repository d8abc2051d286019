//! What a scripted peer has seen the other end send, decoded without the code under test.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Instant;

use quic_common::Reader;

/// The encryption level of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 1-RTT packets.
    OneRtt,
}

/// A packet that the scripted peer could open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPacket {
    /// When it arrived.
    pub at: Instant,
    /// Where it came from.
    pub from: Option<SocketAddr>,
    /// Which of the peer's own addresses it came to.
    pub to: Option<SocketAddr>,
    /// Its level.
    pub level: Level,
    /// The version in its header; 0 in a short one, which has none.
    pub version: u32,
    /// Its first byte, without protection.
    pub first: u8,
    /// The connection IDs in its header; a short one has no source.
    pub destination: Vec<u8>,
    /// See `destination`.
    pub source: Vec<u8>,
    /// The token of an Initial packet.
    pub token: Vec<u8>,
    /// Its number.
    pub number: u64,
    /// Which of all datagrams it arrived in, counted from 0.
    pub datagram: usize,
    /// The size of that datagram.
    pub datagram_length: usize,
    /// What it held.
    pub frames: Vec<SeenFrame>,
}

/// A frame, with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are named as in RFC 9000, section 19, and in the extensions"
)]
pub enum SeenFrame {
    Padding {
        length: usize,
    },
    Ping,
    Ack {
        ranges: Vec<RangeInclusive<u64>>,
        delay: u64,
        ecn: Option<[u64; 3]>,
    },
    ResetStream {
        id: u64,
        code: u64,
        final_size: u64,
    },
    StopSending {
        id: u64,
        code: u64,
    },
    Crypto {
        offset: u64,
        data: Vec<u8>,
    },
    NewToken {
        token: Vec<u8>,
    },
    Stream {
        id: u64,
        offset: u64,
        data: Vec<u8>,
        fin: bool,
    },
    MaxData {
        limit: u64,
    },
    MaxStreamData {
        id: u64,
        limit: u64,
    },
    MaxStreams {
        bidirectional: bool,
        limit: u64,
    },
    DataBlocked {
        limit: u64,
    },
    StreamDataBlocked {
        id: u64,
        limit: u64,
    },
    StreamsBlocked {
        bidirectional: bool,
        limit: u64,
    },
    NewConnectionId {
        sequence: u64,
        retire: u64,
        cid: Vec<u8>,
        token: [u8; 16],
    },
    RetireConnectionId {
        sequence: u64,
    },
    PathChallenge([u8; 8]),
    PathResponse([u8; 8]),
    Close(SeenClose),
    HandshakeDone,
    ImmediateAck,
    AckFrequency {
        sequence: u64,
        threshold: u64,
        max_delay: u64,
        reordering: u64,
    },
    ResetStreamAt {
        id: u64,
        code: u64,
        final_size: u64,
        reliable_size: u64,
    },
    Datagram {
        data: Vec<u8>,
    },
}

/// A CONNECTION_CLOSE frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenClose {
    /// The error code.
    pub code: u64,
    /// The frame type that it blames; `None` if the application closed.
    pub frame: Option<u64>,
    /// The reason phrase.
    pub reason: Vec<u8>,
}

impl SeenFrame {
    /// Whether the frame asks to be acknowledged, RFC 9002, 2.
    #[must_use]
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(
            self,
            Self::Padding { .. } | Self::Ack { .. } | Self::Close(_)
        )
    }

    /// The CONNECTION_CLOSE frame, if it is one.
    #[must_use]
    pub const fn as_close(&self) -> Option<&SeenClose> {
        if let Self::Close(close) = self {
            Some(close)
        } else {
            None
        }
    }
}

/// Decodes a packet's payload.
///
/// # Panics
///
/// If it is malformed: the code under test has to send what is right.
#[must_use]
pub(super) fn frames(payload: &[u8]) -> Vec<SeenFrame> {
    let mut reader = Reader::new(payload);
    let mut found = Vec::new();
    while !reader.is_empty() {
        let kind = number(&mut reader);
        let frame = frame(kind, &mut reader);
        if let (SeenFrame::Padding { .. }, Some(SeenFrame::Padding { length })) =
            (&frame, found.last_mut())
        {
            *length += 1;
        } else {
            found.push(frame);
        }
    }
    found
}

fn frame(kind: u64, reader: &mut Reader<'_>) -> SeenFrame {
    match kind {
        0x00 => SeenFrame::Padding { length: 1 },
        0x01 => SeenFrame::Ping,
        0x02 | 0x03 => ack(kind == 0x03, reader),
        0x04 => SeenFrame::ResetStream {
            id: number(reader),
            code: number(reader),
            final_size: number(reader),
        },
        0x05 => SeenFrame::StopSending {
            id: number(reader),
            code: number(reader),
        },
        0x06 => SeenFrame::Crypto {
            offset: number(reader),
            data: bytes(reader),
        },
        0x07 => SeenFrame::NewToken {
            token: bytes(reader),
        },
        0x08..=0x0f => stream(kind, reader),
        0x10..=0x17 => credit(kind, reader),
        0x18 => SeenFrame::NewConnectionId {
            sequence: number(reader),
            retire: number(reader),
            cid: {
                let length = reader.u8().unwrap();
                reader.bytes(length.into()).unwrap().to_vec()
            },
            token: array(reader),
        },
        0x19 => SeenFrame::RetireConnectionId {
            sequence: number(reader),
        },
        0x1a => SeenFrame::PathChallenge(array(reader)),
        0x1b => SeenFrame::PathResponse(array(reader)),
        0x1c | 0x1d => SeenFrame::Close(SeenClose {
            code: number(reader),
            frame: (kind == 0x1c).then(|| number(reader)),
            reason: bytes(reader),
        }),
        0x1e => SeenFrame::HandshakeDone,
        _ => extension(kind, reader),
    }
}

fn extension(kind: u64, reader: &mut Reader<'_>) -> SeenFrame {
    match kind {
        0x1f => SeenFrame::ImmediateAck,
        0x24 => SeenFrame::ResetStreamAt {
            id: number(reader),
            code: number(reader),
            final_size: number(reader),
            reliable_size: number(reader),
        },
        0x30 => {
            let length = reader.remaining();
            SeenFrame::Datagram {
                data: reader.bytes(length).unwrap().to_vec(),
            }
        }
        0x31 => SeenFrame::Datagram {
            data: bytes(reader),
        },
        0xaf => SeenFrame::AckFrequency {
            sequence: number(reader),
            threshold: number(reader),
            max_delay: number(reader),
            reordering: number(reader),
        },
        _ => panic!("frame type {kind:#x} is not known"),
    }
}

fn ack(has_ecn: bool, reader: &mut Reader<'_>) -> SeenFrame {
    let largest = number(reader);
    let delay = number(reader);
    let count = number(reader);
    let mut lowest = largest - number(reader);
    let mut ranges = vec![lowest..=largest];
    for _ in 0..count {
        let end = lowest - number(reader) - 2;
        lowest = end - number(reader);
        ranges.push(lowest..=end);
    }
    SeenFrame::Ack {
        ranges,
        delay,
        ecn: has_ecn.then(|| [number(reader), number(reader), number(reader)]),
    }
}

fn stream(kind: u64, reader: &mut Reader<'_>) -> SeenFrame {
    let id = number(reader);
    let has_offset = kind & 4 != 0;
    let has_length = kind & 2 != 0;
    let offset = if has_offset { number(reader) } else { 0 };
    let data = if has_length {
        bytes(reader)
    } else {
        let length = reader.remaining();
        reader.bytes(length).unwrap().to_vec()
    };
    SeenFrame::Stream {
        id,
        offset,
        data,
        fin: kind & 1 != 0,
    }
}

fn credit(kind: u64, reader: &mut Reader<'_>) -> SeenFrame {
    let bidirectional = kind & 1 == 0;
    match kind {
        0x10 => SeenFrame::MaxData {
            limit: number(reader),
        },
        0x11 => SeenFrame::MaxStreamData {
            id: number(reader),
            limit: number(reader),
        },
        0x12 | 0x13 => SeenFrame::MaxStreams {
            bidirectional,
            limit: number(reader),
        },
        0x14 => SeenFrame::DataBlocked {
            limit: number(reader),
        },
        0x15 => SeenFrame::StreamDataBlocked {
            id: number(reader),
            limit: number(reader),
        },
        _ => SeenFrame::StreamsBlocked {
            bidirectional,
            limit: number(reader),
        },
    }
}

fn number(reader: &mut Reader<'_>) -> u64 {
    reader.varint().unwrap()
}

fn bytes(reader: &mut Reader<'_>) -> Vec<u8> {
    reader.length_prefixed().unwrap().to_vec()
}

fn array<const N: usize>(reader: &mut Reader<'_>) -> [u8; N] {
    reader.array().unwrap()
}
