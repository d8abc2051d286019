//! Components by themselves, for the benches: each does one step of what it does in a connection. There is no such module
//! without the feature `benching`.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_debug_implementations,
    reason = "for benches"
)]

use std::time::{Duration, Instant};

use quic_common::{Ecn, Writer};

use crate::{
    ack::ReceivedPackets,
    buffer::{ChunkPool, ReceiveBuffer},
    congestion::{Pace, Pacer},
    limits::ACK_RANGES_SENT,
    recovery::{Acked, Lost, PacketFlags, SentPacket, SentPackets},
    rtt::Rtt,
    stream::{PeerLimits, StreamSettings, Streams},
    transmit::{FrameLog, PacketWriter, PathId, SentFrame, Space},
    wire::{
        ConnectionId, Direction, FIXED, Frames, OutgoingAck, PacketNumber, ShortHeader, Side,
        StreamId, parse_header,
    },
};

const DELAY: Duration = Duration::from_millis(25);
/// Bytes that streams are given at a time.
const PIECE: [u8; 16 << 10] = [7; 16 << 10];

/// How many frames a packet's payload has.
#[must_use]
pub fn frames(payload: &[u8]) -> usize {
    Frames::new(payload).unwrap().map(Result::unwrap).count()
}

/// Writes the header of a 1-RTT packet; returns how long it is.
pub fn write_header(packet: &mut [u8], number: u64) -> usize {
    let mut writer = Writer::new(packet);
    let header = ShortHeader {
        dcid: ConnectionId::new(&[8; 8]).unwrap(),
        bits: FIXED,
        key_phase: false,
    };
    header.write(&mut writer, PacketNumber(number), 2).unwrap();
    writer.len()
}

/// Reads the header of a packet; returns where the packet number is.
#[must_use]
pub fn read_header(packet: &[u8]) -> usize {
    parse_header(packet, 8).unwrap().number_offset
}

/// What has arrived in a packet number space.
pub struct Received {
    packets: ReceivedPackets,
    now: Instant,
}

impl Received {
    /// Nothing yet.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            packets: ReceivedPackets::new(Space::Application, DELAY),
            now,
        }
    }

    /// A packet came, unless it is a duplicate.
    pub fn on_packet(&mut self, number: u64) {
        if !self.packets.is_duplicate(number) {
            self.packets.on_packet(number, true, Ecn::NotEct, self.now);
        }
    }

    /// Writes an ACK frame; returns how long it is.
    pub fn acknowledge(&mut self, packet: &mut [u8]) -> usize {
        let mut log = FrameLog::new();
        let mut writer = PacketWriter::new(packet, &mut log);
        let room = writer.remaining();
        let ranges = self.packets.ranges();
        let ack = OutgoingAck::fit(ranges, 0, None, room, ACK_RANGES_SENT);
        writer.frame(&ack.unwrap(), SentFrame::Ack { largest: 0 });
        let length = writer.len();
        self.packets.on_ack_sent();
        length
    }
}

/// The reassembly of one stream.
#[derive(Default)]
pub struct Reassembly {
    buffer: ReceiveBuffer,
    pool: ChunkPool,
}

impl Reassembly {
    /// Takes in bytes at an offset.
    pub fn insert(&mut self, offset: u64, data: &[u8]) {
        self.buffer.insert(offset, data, &mut self.pool).unwrap();
    }

    /// Reads all that is in order; returns how much that was.
    pub fn read(&mut self) -> usize {
        let mut read = 0;
        loop {
            let length = self.buffer.fill().len();
            if length == 0 {
                return read;
            }
            self.buffer.consume(length, &mut self.pool);
            read += length;
        }
    }
}

/// The packets in flight.
pub struct Sent {
    packets: SentPackets,
    acked: Vec<Acked>,
    lost: Vec<Lost>,
    rtt: Rtt,
    now: Instant,
}

impl Sent {
    /// Nothing yet.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            packets: SentPackets::new(),
            acked: Vec::new(),
            lost: Vec::new(),
            rtt: Rtt::default(),
            now,
        }
    }

    /// Sends a packet; returns its number.
    pub fn send(&mut self) -> u64 {
        let number = self.packets.next();
        let packet = SentPacket {
            sent: self.now,
            frames_start: number,
            frames_count: 1,
            size: 1200,
            flags: PacketFlags::IN_FLIGHT.with(PacketFlags::ACK_ELICITING),
            path: PathId(0),
        };
        self.packets.on_sent(number, packet);
        number
    }

    /// Acknowledges packets, and looks for lost ones; returns how many of either there were.
    pub fn acknowledge(&mut self, first: u64, last: u64) -> usize {
        self.packets.take_acked(first..=last, &mut self.acked);
        self.packets
            .detect_lost(self.now, &self.rtt, DELAY, &mut self.lost);
        let acked: u64 = self.acked.iter().map(|acked| acked.count).sum();
        let settled = usize::try_from(acked).unwrap_or(usize::MAX) + self.lost.len();
        self.acked.clear();
        self.lost.clear();
        settled
    }
}

/// A pacer that is never idle.
pub struct Pacing {
    pacer: Pacer,
    now: Instant,
}

impl Pacing {
    /// A full bucket.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self {
            pacer: Pacer::new(true),
            now,
        }
    }

    /// Asks what may leave a millisecond later, and sends it in packets of 1200 bytes; returns how many.
    pub fn batch(&mut self) -> u64 {
        self.now += Duration::from_millis(1);
        let pace = Pace {
            window: 1 << 20,
            rtt: Duration::from_millis(50),
            is_slow_start: false,
            datagram: 1200,
        };
        let packets = self.pacer.budget(self.now, &pace) / 1200;
        for _ in 0..packets {
            self.pacer.on_sent(1200);
        }
        packets
    }
}

/// Streams that always have something to send.
pub struct Scheduler {
    streams: Streams,
    log: FrameLog,
}

impl Scheduler {
    /// So many streams.
    #[must_use]
    pub fn new(count: u64) -> Self {
        let settings = StreamSettings {
            held: 1 << 40,
            ..StreamSettings::default()
        };
        let mut streams = Streams::new(Side::Client, settings);
        streams.set_peer_limits(PeerLimits {
            data: 1 << 60,
            stream_local: 1 << 60,
            stream_remote: 1 << 60,
            stream_unidirectional: 1 << 60,
            bidirectional: count,
            unidirectional: 0,
        });
        while let Some(id) = streams.open(Direction::Bidirectional) {
            streams.send(id, &PIECE).unwrap();
        }
        Self {
            streams,
            log: FrameLog::new(),
        }
    }

    /// Writes one packet's payload, which arrives at once; the streams in it get more to send. Returns its length.
    pub fn packet(&mut self, payload: &mut [u8]) -> usize {
        let mut writer = PacketWriter::new(payload, &mut self.log);
        self.streams.write(&mut writer);
        let written = writer.finish();
        let end = written.frames_start + u64::from(written.frames_count);
        for index in written.frames_start..end {
            let record = self.log.get(index).unwrap();
            self.streams.on_acked(record);
            if let SentFrame::Stream { id, length, .. } = record {
                self.refill(id, usize::try_from(length).unwrap());
            }
        }
        self.log.release_to(end);
        written.length
    }

    fn refill(&mut self, id: StreamId, length: usize) {
        self.streams.send(id, PIECE.get(..length).unwrap()).unwrap();
    }
}
