//! Frames for the peer: what is owed first, as it is now, then stream data by priority until the packet is full.

use super::priority::NEW_LANES;
use super::send::Offer;
use super::streams::{Streams, place};
use super::table::Slot;
use crate::buffer::{SendBuffer, to_length, to_offset};
use crate::limits::LEAST_FRAGMENT;
use crate::transmit::{PacketWriter, SentFrame};
use crate::wire::{Direction, Encode as _, Frame, StreamHeader, StreamId};

/// What a stream may owe the peer besides data.
pub(super) mod owed {
    pub(in super::super) const RESET_STREAM: u8 = 1;
    pub(in super::super) const STOP_SENDING: u8 = 2;
    pub(in super::super) const MAX_STREAM_DATA: u8 = 4;
    pub(in super::super) const STREAM_DATA_BLOCKED: u8 = 8;
    pub(in super::super) const RESET_STREAM_AT: u8 = 16;
}

/// New data of one stream that nothing else comes before or between.
#[derive(Debug)]
pub(crate) struct Bulk<'s> {
    /// The stream.
    pub(crate) id: StreamId,
    /// Where the data begins.
    pub(crate) offset: u64,
    /// Where it ends; the FIN is left to another packet.
    pub(crate) end: u64,
    /// What it lies in.
    pub(crate) buffer: &'s mut SendBuffer,
}

/// Whether there may be room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Left,
    Full,
}

impl Streams {
    /// Writes what fits.
    #[inline]
    pub(crate) fn write(&mut self, packet: &mut PacketWriter<'_>) {
        if self.has_pending_control() && self.write_control(packet) == Room::Full {
            return;
        }
        loop {
            let lanes = self.sendable_lanes();
            let Ok(lane) = u8::try_from(lanes.trailing_zeros()) else {
                return;
            };
            let Some(slot) = self.scheduled.first(lane) else {
                return;
            };
            if self.write_stream(slot, lane, packet) == Room::Full {
                return;
            }
        }
    }

    /// The data that packets would be filled with one after the other, if it is new data of a single stream.
    pub(crate) fn bulk(&mut self) -> Option<Bulk<'_>> {
        let lane = u8::try_from(self.sendable_lanes().trailing_zeros()).ok()?;
        if self.has_pending_control() || 1_u32.checked_shl(lane.into())? & NEW_LANES == 0 {
            return None;
        }
        let slot = self.scheduled.first(lane)?;
        let credit = self.new_data_credit();
        let stream = self.table.get_mut(slot)?;
        let send = stream.send.as_mut()?;
        if send.priority.is_incremental() && !self.scheduled.is_alone(lane) {
            return None;
        }
        let offer = send.offer(credit);
        let length = offer.length.saturating_sub(usize::from(offer.fin));
        offer.new.then(|| Bulk {
            id: stream.id,
            offset: offer.offset,
            end: offer.offset.saturating_add(to_offset(length)),
            buffer: &mut send.buffer,
        })
    }

    /// The first `length` bytes of the [bulk](Self::bulk) of `id` have been sent.
    pub(crate) fn on_bulk(&mut self, id: StreamId, length: u64) {
        let Some(slot) = self.table.find(id) else {
            return;
        };
        let Some(send) = self.table.get_mut(slot).and_then(|s| s.send.as_mut()) else {
            return;
        };
        let offer = send.offer(length);
        send.take(offer, to_length(length), false);
        self.credit.take(length);
        self.in_flight = self.in_flight.saturating_add(length);
        self.schedule(slot);
        self.tell_room(slot);
    }

    /// Whether a frame other than STREAM is owed.
    #[inline]
    pub(super) fn has_pending_control(&self) -> bool {
        self.max_data_owed
            || !self.owing.is_empty()
            || self.credit.blocked_owed().is_some()
            || self.remote.iter().any(crate::flow::PeerStreams::is_owed)
            || self
                .local
                .iter()
                .any(|local| local.blocked_owed().is_some())
    }

    /// Writes one frame of the stream that is first in `lane`.
    #[inline]
    fn write_stream(&mut self, slot: Slot, lane: u8, packet: &mut PacketWriter<'_>) -> Room {
        let credit = self.new_data_credit();
        let Some(stream) = self.table.get_mut(slot) else {
            self.scheduled.remove(slot);
            return Room::Left;
        };
        let id = stream.id;
        let Some(send) = stream.send.as_mut() else {
            self.scheduled.remove(slot);
            return Room::Left;
        };
        let offer = send.offer(credit);
        let Some((header, length)) = fit(packet, id, offer) else {
            return Room::Full;
        };
        send.take(offer, length, header.fin);
        let record = SentFrame::Stream {
            id,
            offset: offer.offset,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            fin: header.fin,
        };
        let Some(space) = packet.fitted_frame(&header, length, record) else {
            debug_assert!(false, "a frame that was fitted does not fit");
            return Room::Full;
        };
        send.buffer.copy_to(offer.offset, space);
        let incremental = send.priority.is_incremental();
        let waiting = send.waiting;
        let next = send.demand().map(|demand| send.priority.lane(demand));
        if offer.new {
            self.credit.take(to_offset(length));
            self.in_flight = self.in_flight.saturating_add(to_offset(length));
        }
        if next != Some(lane) || self.credit.available() == 0 {
            self.schedule(slot);
        } else if incremental && 1 << lane & NEW_LANES != 0 {
            self.scheduled.rotate(lane);
        }
        if waiting {
            self.tell_room(slot);
        }
        if header.length.is_none() {
            return Room::Full;
        }
        Room::Left
    }

    fn write_control(&mut self, packet: &mut PacketWriter<'_>) -> Room {
        if self.max_data_owed {
            let limit = self.window.advance();
            if !packet.frame(&Frame::MaxData { limit }, SentFrame::MaxData) {
                return Room::Full;
            }
            self.max_data_owed = false;
        }
        if let Some(limit) = self.credit.blocked_owed() {
            let record = SentFrame::DataBlocked { at: limit };
            if !packet.frame(&Frame::DataBlocked { limit }, record) {
                return Room::Full;
            }
            self.credit.on_blocked_sent();
        }
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            if self.write_stream_limits(direction, packet) == Room::Full {
                return Room::Full;
            }
        }
        while let Some(slot) = self.owing.first(0) {
            if self.write_owed(slot, packet) == Room::Full {
                return Room::Full;
            }
            self.owing.remove(slot);
        }
        Room::Left
    }

    fn write_stream_limits(&mut self, direction: Direction, packet: &mut PacketWriter<'_>) -> Room {
        if let Some(remote) = self.remote.get_mut(place(direction))
            && remote.is_owed()
        {
            let limit = remote.next_limit();
            let frame = Frame::MaxStreams { direction, limit };
            if !packet.frame(&frame, SentFrame::MaxStreams(direction)) {
                return Room::Full;
            }
            remote.on_sent();
        }
        if let Some(local) = self.local.get_mut(place(direction))
            && let Some(limit) = local.blocked_owed()
        {
            let frame = Frame::StreamsBlocked { direction, limit };
            let record = SentFrame::StreamsBlocked {
                direction,
                at: limit,
            };
            if !packet.frame(&frame, record) {
                return Room::Full;
            }
            local.credit().on_blocked_sent();
        }
        Room::Left
    }

    /// Writes what one stream owes; what is no longer of use is left out.
    fn write_owed(&mut self, slot: Slot, packet: &mut PacketWriter<'_>) -> Room {
        let Some(stream) = self.table.get_mut(slot) else {
            return Room::Left;
        };
        let id = stream.id;
        while let Some(next) = stream.owed.lowest() {
            let (send, receive) = (stream.send.as_mut(), stream.receive.as_mut());
            let frame = match next {
                owed::RESET_STREAM => send.and_then(|s| s.reset_frame()).map(|(code, size)| {
                    let frame = Frame::ResetStream {
                        id,
                        code,
                        final_size: size,
                    };
                    (frame, SentFrame::ResetStream(id))
                }),
                owed::STOP_SENDING => receive.and_then(|r| r.stop_frame()).map(|code| {
                    let frame = Frame::StopSending { id, code };
                    (frame, SentFrame::StopSending(id))
                }),
                owed::MAX_STREAM_DATA => receive.filter(|r| r.wants_credit()).map(|r| {
                    let limit = r.window.advance();
                    let frame = Frame::MaxStreamData { id, limit };
                    (frame, SentFrame::MaxStreamData(id))
                }),
                owed::RESET_STREAM_AT => send.and_then(|s| s.reset_at_frame()).map(|reset| {
                    let frame = Frame::ResetStreamAt {
                        id,
                        code: reset.code,
                        final_size: reset.final_size,
                        reliable_size: reset.reliable_size,
                    };
                    let record = SentFrame::ResetStreamAt {
                        id,
                        reliable_size: reset.reliable_size,
                    };
                    (frame, record)
                }),
                _ => send
                    .filter(|s| s.is_blocked())
                    .and_then(|s| s.credit.blocked_owed())
                    .map(|limit| {
                        let frame = Frame::StreamDataBlocked { id, limit };
                        (frame, SentFrame::StreamDataBlocked { id, at: limit })
                    }),
            };
            let is_told = frame.is_some();
            if let Some((frame, record)) = frame
                && !packet.frame(&frame, record)
            {
                return Room::Full;
            }
            if let Some(send) = stream.send.as_mut().filter(|_| is_told) {
                match next {
                    owed::STREAM_DATA_BLOCKED => {
                        send.credit.on_blocked_sent();
                        self.stopped.push_back(slot, 0);
                    }
                    owed::RESET_STREAM_AT => send.on_reset_at_sent(),
                    _ => {}
                }
            }
            stream.owed.remove(next);
        }
        Room::Left
    }
}

/// The header for a frame in what room is left, and how many of the available bytes it takes.
///
/// `None` when it isn't worth it: a packet's last bytes are no place for a splinter of what would fill the next one.
#[inline]
fn fit(packet: &mut PacketWriter<'_>, id: StreamId, offer: Offer) -> Option<(StreamHeader, usize)> {
    let Offer {
        offset,
        length: available,
        fin,
        ..
    } = offer;
    let room = packet.remaining();
    let (header, length) = StreamHeader::fit(id, offset, room, available, fin)?;
    if length == available {
        return Some((header, length));
    }
    if header.length.is_some() {
        // All would fit but for the length field: a byte or two of padding in front makes the frame end the packet.
        let bare = StreamHeader {
            length: None,
            ..header
        };
        let spare = room.checked_sub(bare.size().saturating_add(available))?;
        packet.padding(spare);
        return StreamHeader::fit(id, offset, packet.remaining(), available, fin);
    }
    (length >= to_length(LEAST_FRAGMENT)).then_some((header, length))
}
