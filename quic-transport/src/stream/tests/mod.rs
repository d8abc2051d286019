//! Streams as the connection drives them: frames in, packets out, their fate, and the application's calls.

mod rules;
mod credit;
mod room;
mod slivers;
mod ending;
mod partial;
mod sending;
mod lent;
mod stats;
mod bulk;
mod two_ends;

use super::{PeerLimits, StreamEvent, StreamSettings, Streams};
use crate::error::Error;
use crate::flow::WindowSize;
use crate::transmit::{FrameLog, PacketWriter, SentFrame};
use crate::wire::{Direction, Frame, Frames, Side, StreamId};

const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;

/// Limits that are in nobody's way.
const GENEROUS: PeerLimits = PeerLimits {
    data: 1 << 40,
    stream_local: 1 << 40,
    stream_remote: 1 << 40,
    stream_unidirectional: 1 << 40,
    bidirectional: 1000,
    unidirectional: 1000,
};

fn settings(streams: u64, stream_window: u64, connection_window: u64) -> StreamSettings {
    let fixed = |window| WindowSize {
        initial: window,
        most: window,
    };
    StreamSettings {
        bidirectional: streams,
        unidirectional: streams,
        stream_window: fixed(stream_window),
        connection_window: fixed(connection_window),
        ..StreamSettings::default()
    }
}

fn server() -> Streams {
    let mut streams = Streams::new(Side::Server, settings(10, 1000, 1500));
    streams.set_peer_limits(GENEROUS);
    while streams.next_event().is_some() {}
    streams
}

fn client_bidi(index: u64) -> StreamId {
    StreamId::new(Side::Client, BIDI, index)
}

fn client_uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, UNI, index)
}

fn server_bidi(index: u64) -> StreamId {
    StreamId::new(Side::Server, BIDI, index)
}

fn server_uni(index: u64) -> StreamId {
    StreamId::new(Side::Server, UNI, index)
}

/// A packet and what was recorded of it.
#[derive(Clone, Debug)]
struct Packet {
    payload: Vec<u8>,
    records: Vec<SentFrame>,
}

impl Packet {
    fn frames(&self) -> Vec<Frame<'_>> {
        if self.payload.is_empty() {
            return Vec::new();
        }
        Frames::new(&self.payload)
            .unwrap()
            .map(Result::unwrap)
            .collect()
    }
}

fn write(streams: &mut Streams, size: usize) -> Packet {
    let mut log = FrameLog::new();
    let mut payload = vec![0; size];
    let mut writer = PacketWriter::new(&mut payload, &mut log);
    let pending = streams.has_pending_frames();
    streams.write(&mut writer);
    let written = writer.finish();
    if !pending {
        assert_eq!(written.length, 0, "nothing was pending");
    }
    payload.truncate(written.length);
    Packet {
        payload,
        records: log.range(0..written.frames_count.into()).collect(),
    }
}

fn deliver(streams: &mut Streams, payload: &[u8]) -> Result<(), Error> {
    if payload.is_empty() {
        return Ok(());
    }
    for frame in Frames::new(payload)? {
        let frame = frame?;
        match frame {
            Frame::Stream {
                id,
                offset,
                data,
                fin,
            } => streams.on_stream(id, offset, data, fin)?,
            Frame::ResetStream {
                id,
                code,
                final_size,
            } => streams.on_reset_stream(id, code, final_size)?,
            Frame::ResetStreamAt {
                id,
                code,
                final_size,
                reliable_size,
            } => streams.on_reset_stream_at(id, code, final_size, reliable_size)?,
            Frame::StopSending { id, code } => streams.on_stop_sending(id, code)?,
            Frame::MaxData { limit } => streams.on_max_data(limit),
            Frame::MaxStreamData { id, limit } => streams.on_max_stream_data(id, limit)?,
            Frame::MaxStreams { direction, limit } => streams.on_max_streams(direction, limit),
            Frame::StreamDataBlocked { id, limit } => streams.on_stream_data_blocked(id, limit)?,
            Frame::DataBlocked { .. } | Frame::StreamsBlocked { .. } | Frame::Padding { .. } => {}
            Frame::Ping
            | Frame::Ack(_)
            | Frame::Crypto { .. }
            | Frame::NewToken { .. }
            | Frame::NewConnectionId { .. }
            | Frame::RetireConnectionId { .. }
            | Frame::PathChallenge { .. }
            | Frame::PathResponse { .. }
            | Frame::ConnectionClose(_)
            | Frame::HandshakeDone
            | Frame::ImmediateAck
            | Frame::AckFrequency { .. }
            | Frame::Datagram { .. } => panic!("{frame:?} is not of streams"),
        }
    }
    Ok(())
}

fn acked(streams: &mut Streams, packet: &Packet) {
    for record in &packet.records {
        streams.on_acked(*record);
    }
}

fn lost(streams: &mut Streams, packet: &Packet) {
    for record in &packet.records {
        streams.on_lost(*record);
    }
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| streams.next_event()).collect()
}

/// An epoch for virtual time.
#[expect(
    clippy::disallowed_methods,
    reason = "virtual time has to start somewhere"
)]
fn epoch() -> std::time::Instant {
    std::time::Instant::now()
}
