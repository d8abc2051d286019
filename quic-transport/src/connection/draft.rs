//! One packet on its way out: its header, its frames, and at last its protection,
//! [RFC 9001, section 5](https://www.rfc-editor.org/rfc/rfc9001#section-5).
//!
//! A packet stays a draft until it is known whether another follows it in the datagram, because the last one takes the
//! padding.
//!
//! Nearly all packets are 1-RTT packets: what depends on the level is settled for those when this is compiled.
#![expect(
    clippy::inline_always,
    reason = "with the level known, what is asked of it for each packet goes away"
)]

use std::time::Instant;

use quic_common::{Ecn, Writer};

use super::{
    Connection,
    datagrams::frames_of_packet,
    life::Farewell,
    rare::RareFrames,
    space::{SpaceOf as _, SpaceState},
};
use crate::{
    ack::ReceivedPackets,
    datagram::OutgoingDatagrams,
    limits::ACK_RANGES_SENT,
    observe::{Observation, ObservedPacket},
    recovery::{PacketFlags, SentPacket},
    stream::Streams,
    tls::TAG_LENGTH,
    transmit::{PacketWriter, SentFrame, Space, Written},
    wire::{
        ConnectionId, FIXED, Frame, Level, LongHeader, OutgoingAck, PacketKind, PacketNumber,
        ShortHeader, write_length,
    },
};

/// A packet whose frames are written and whose protection is not.
#[derive(Debug)]
pub(super) struct Draft {
    opening: Opening,
    written: Written,
}

impl Draft {
    /// Bytes of the packet, its tag included.
    pub(super) const fn size(&self) -> usize {
        self.opening.header_length + self.written.length + TAG_LENGTH
    }

    pub(super) const fn end(&self) -> usize {
        self.opening.start + self.size()
    }

    pub(super) const fn is_ack_eliciting(&self) -> bool {
        self.written.ack_eliciting
    }

    pub(super) const fn is_in_flight(&self) -> bool {
        self.written.in_flight
    }
}

/// A packet is so much longer than our connection IDs: a stateless reset is one byte shorter than what it answers, and has
/// a byte, a connection ID, four bytes that look like a packet number, and the token (RFC 9000, 10.3).
const RESET_EXCESS: usize = 22;

/// The exponent of the delay in our ACK frames: the default, which goes without saying (RFC 9000, 18.2).
const ACK_DELAY_EXPONENT: u32 = 3;

/// What may go into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// ACK frames only: the window is full.
    Acks,
    /// Everything.
    Everything,
}

/// The header of a packet whose frames are still to be written.
#[derive(Debug)]
struct Opening {
    level: Level,
    number: PacketNumber,
    number_length: usize,
    /// Where the packet starts in the datagram.
    start: usize,
    /// From there: the length field of a long header.
    length_offset: Option<usize>,
    number_offset: usize,
    header_length: usize,
    /// Bytes that the whole packet has at least.
    least_packet: usize,
}

impl Opening {
    /// The part of the datagram that the frames go into; `None` when not even the smallest packet fits.
    #[inline]
    fn payload<'d>(&self, datagram: &'d mut [u8]) -> Option<&'d mut [u8]> {
        let end = datagram.len().checked_sub(TAG_LENGTH)?;
        datagram
            .get_mut(self.start + self.header_length..end)
            .filter(|payload| payload.len() >= self.least())
    }

    /// RFC 9001, 5.4.2: packet number and payload have at least 4 bytes, so that there is a sample; RFC 9000, 10.3: short
    /// packets are as long as the stateless resets of a connection ID like ours, so that those don't stand out.
    fn least(&self) -> usize {
        let sample = 4_usize.saturating_sub(self.number_length);
        let overhead = self.header_length + TAG_LENGTH;
        sample.max(self.least_packet.saturating_sub(overhead))
    }

    const fn into_draft(self, written: Written) -> Draft {
        Draft {
            opening: self,
            written,
        }
    }
}

impl Connection {
    /// Writes a packet of `level` into `datagram` from `start`; `None`, and nothing is changed, when there is nothing
    /// to say or no room to say it.
    pub(super) fn draft(
        &mut self,
        level: Level,
        content: Content,
        datagram: &mut [u8],
        start: usize,
        now: Instant,
    ) -> Option<Draft> {
        self.draft_known(level, content, datagram, start, now)
    }

    /// [`Connection::draft`] of a 1-RTT packet that is alone in its datagram.
    #[inline]
    pub(super) fn draft_short(
        &mut self,
        content: Content,
        datagram: &mut [u8],
        now: Instant,
    ) -> Option<Draft> {
        self.draft_known(Level::OneRtt, content, datagram, 0, now)
    }

    #[inline(always)]
    fn draft_known(
        &mut self,
        level: Level,
        content: Content,
        datagram: &mut [u8],
        start: usize,
        now: Instant,
    ) -> Option<Draft> {
        let opening = self.open_packet(level, datagram, start)?;
        let payload = opening.payload(datagram)?;
        let written = self.write_frames(level, content, payload, opening.least(), now)?;
        (written.length > 0).then(|| opening.into_draft(written))
    }

    /// Writes a packet that says goodbye.
    pub(super) fn draft_close(
        &mut self,
        level: Level,
        farewell: &Farewell,
        datagram: &mut [u8],
        start: usize,
    ) -> Option<Draft> {
        let opening = self.open_packet(level, datagram, start)?;
        let payload = opening.payload(datagram)?;
        let state = self.spaces.get_mut(level.space())?;
        let mut writer = PacketWriter::new(payload, &mut state.log);
        let close = farewell.frame().at(level).fit(writer.remaining())?;
        writer.unrecorded(&close);
        Some(opening.into_draft(writer.finish()))
    }

    /// Writes a packet that does nothing but probe the path's MTU.
    pub(super) fn draft_probe(&mut self, datagram: &mut [u8]) -> Option<Draft> {
        let opening = self.open_packet(Level::OneRtt, datagram, 0)?;
        let payload = opening.payload(datagram)?;
        let mut writer = PacketWriter::new(payload, &mut self.spaces.application.log);
        writer.frame(&Frame::Ping, SentFrame::MtuProbe);
        Some(opening.into_draft(writer.finish()))
    }

    /// Writes a packet that does nothing but ask and answer whether the path works.
    pub(super) fn draft_probing(&mut self, datagram: &mut [u8]) -> Option<Draft> {
        let opening = self.open_packet(Level::OneRtt, datagram, 0)?;
        let payload = opening.payload(datagram)?;
        let mut writer = PacketWriter::new(payload, &mut self.spaces.application.log);
        self.path.probing.write(&mut writer);
        (!writer.is_empty()).then(|| opening.into_draft(writer.finish()))
    }

    /// Pads a draft with zeros so that the datagram has `size` bytes.
    pub(super) fn pad(draft: &mut Draft, datagram: &mut [u8], size: usize) {
        let from = draft.opening.start + draft.opening.header_length + draft.written.length;
        let missing = size.saturating_sub(draft.end());
        if let Some(space) = datagram
            .get_mut(from..from + missing)
            .filter(|_| missing > 0)
        {
            space.fill(0);
            draft.written.length += missing;
            draft.written.in_flight = true;
        }
    }

    /// Protects a draft and books it as sent.
    pub(super) fn seal(
        &mut self,
        draft: &Draft,
        flags: PacketFlags,
        datagram: &mut [u8],
        now: Instant,
    ) {
        self.seal_known(draft.opening.level, draft, flags, datagram, now);
    }

    /// [`Connection::seal`] for a draft of [`Connection::draft_short`].
    #[inline]
    pub(super) fn seal_short(&mut self, draft: &Draft, datagram: &mut [u8], now: Instant) {
        self.seal_known(Level::OneRtt, draft, PacketFlags::NONE, datagram, now);
    }

    #[inline(always)]
    fn seal_known(
        &mut self,
        level: Level,
        draft: &Draft,
        flags: PacketFlags,
        datagram: &mut [u8],
        now: Instant,
    ) {
        let Some(packet) = datagram.get_mut(draft.opening.start..draft.end()) else {
            return;
        };
        if let Some(offset) = draft.opening.length_offset {
            write_length(packet, offset, packet.len() - draft.opening.number_offset);
        }
        if self.tap.is_some() {
            self.tell_sent(level, draft, flags, packet, now);
        }
        let number = draft.opening.number.value();
        let (offset, length) = (draft.opening.number_offset, draft.opening.number_length);
        if level == Level::OneRtt {
            if let Some(keys) = self.keys.one_rtt.as_mut() {
                keys.seal(number, draft.opening.header_length, packet);
                keys.local_header().protect(packet, offset, length);
            }
        } else if let Some(keys) = self.keys.of_long(level) {
            if let Some(first) = packet.first_mut() {
                *first &= !FIXED | self.first_byte.bits();
            }
            keys.local
                .packet
                .seal(number, draft.opening.header_length, packet);
            keys.local.header.protect(packet, offset, length);
        }
        self.book(level, draft, flags, now);
    }

    #[cold]
    fn tell_sent(
        &mut self,
        level: Level,
        draft: &Draft,
        flags: PacketFlags,
        packet: &[u8],
        now: Instant,
    ) {
        let from = draft.opening.header_length;
        // A packet that probes another path has another.
        let dcid = packet
            .get(1..draft.opening.number_offset)
            .filter(|_| level == Level::OneRtt)
            .and_then(ConnectionId::new)
            .unwrap_or_else(|| self.remote_cids.current());
        let sent = ObservedPacket {
            kind: level.into(),
            version: self.version,
            number: Some(draft.opening.number.value()),
            dcid,
            scid: (level != Level::OneRtt).then(|| self.local_cids.first()),
            size: draft.size(),
            frames: packet
                .get(from..from + draft.written.length)
                .unwrap_or_default(),
            ecn: self.path.ecn.mark(),
            is_mtu_probe: flags.has(PacketFlags::MTU_PROBE),
        };
        if let Some(tap) = &mut self.tap {
            tap.tell(&Observation::PacketSent(sent), now);
        }
    }

    #[inline(always)]
    fn book(&mut self, level: Level, draft: &Draft, flags: PacketFlags, now: Instant) {
        let written = &draft.written;
        let packet = SentPacket {
            sent: now,
            frames_start: written.frames_start,
            frames_count: written.frames_count,
            size: u16::try_from(draft.size()).unwrap_or(u16::MAX),
            flags: flags
                .with_if(PacketFlags::ACK_ELICITING, written.ack_eliciting)
                .with_if(PacketFlags::IN_FLIGHT, written.in_flight)
                .with_if(PacketFlags::ECT0, self.path.ecn.mark() == Ecn::Ect0),
            path: self.path.id,
        };
        if let Some(state) = self.spaces.get_mut(level.space()) {
            state.sent.on_sent(draft.opening.number.value(), packet);
            if state.numbers.on_used(1) {
                let mtu = u64::from(self.path.mtu.current()).max(1);
                let window = self.path.controller.window() / mtu;
                state.numbers.skip(window, &mut self.random);
            }
            if packet.is_ect0() {
                self.path.ecn.on_sent(&mut state.ecn, 1);
            }
            if written.ack_eliciting {
                state.probes = state.probes.saturating_sub(1);
            }
        }
        if packet.fills_window() {
            self.path.controller.on_sent(packet.size.into());
            self.path.pacer.on_sent(packet.size.into());
        }
        self.stats.packets_sent += 1;
        if written.ack_eliciting {
            self.idle.on_sent(now);
        }
    }

    /// Writes the header of the next packet of `level`; `None` without keys, or without room.
    #[inline(always)]
    fn open_packet(&self, level: Level, datagram: &mut [u8], start: usize) -> Option<Opening> {
        let state = self.spaces.get(level.space())?;
        let number = PacketNumber(state.numbers.upcoming()?);
        let number_length = state.number_length();
        let mut writer = Writer::new(datagram.get_mut(start..)?);
        let dcid = self.remote_cids.current();
        let (length_offset, number_offset) = if level == Level::OneRtt {
            let header = ShortHeader {
                dcid,
                bits: self.first_byte.bits(),
                key_phase: self.keys.one_rtt.as_ref()?.phase(),
            };
            (None, header.write(&mut writer, number, number_length)?)
        } else {
            self.keys.of_long(level)?;
            let header = LongHeader {
                kind: match level {
                    Level::Initial => PacketKind::Initial,
                    Level::ZeroRtt => PacketKind::ZeroRtt,
                    Level::Handshake | Level::OneRtt => PacketKind::Handshake,
                },
                version: self.version,
                dcid,
                scid: self.local_cids.first(),
                token: &self.setup.token,
            };
            let offsets = header.write(&mut writer, number, number_length)?;
            (Some(offsets.length), offsets.number)
        };
        Some(Opening {
            level,
            number,
            number_length,
            start,
            length_offset,
            number_offset,
            header_length: writer.len(),
            least_packet: if level == Level::OneRtt {
                self.local_cids.length() + RESET_EXCESS
            } else {
                0
            },
        })
    }

    #[inline(always)]
    fn write_frames(
        &mut self,
        level: Level,
        content: Content,
        payload: &mut [u8],
        least: usize,
        now: Instant,
    ) -> Option<Written> {
        let space = level.space();
        let state = self.spaces.get_mut(space)?;
        let SpaceState {
            received,
            sent,
            log,
            crypto,
            probes,
            ..
        } = state;
        let mut writer = PacketWriter::new(payload, log);
        let says_more = content == Content::Everything;
        if received.is_due(now) || (says_more && received.is_pending()) {
            let exponent = if space == Space::Application {
                ACK_DELAY_EXPONENT
            } else {
                0
            };
            if write_ack(&mut writer, received, exponent, now) {
                self.stats.acks_sent += 1;
                if let Some(keys) = self
                    .keys
                    .one_rtt
                    .as_mut()
                    .filter(|_| space == Space::Application)
                {
                    keys.on_ack_sent();
                }
            }
        }
        if says_more {
            if let Some(crypto) = crypto.as_mut().filter(|crypto| crypto.has_pending_frames()) {
                crypto.write(&mut writer);
            }
            if level == Level::OneRtt {
                let rare = RareFrames {
                    local_cids: &mut self.local_cids,
                    remote_cids: &mut self.remote_cids,
                    path: &mut self.path,
                    owes_handshake_done: &mut self.owes_handshake_done,
                    new_token: &mut self.new_token,
                    ack_requests: &mut self.ack_requests,
                    max_ack_delay: &mut self.peer.max_ack_delay,
                    stats: &mut self.stats,
                };
                if rare.is_pending() {
                    rare.write(&mut writer);
                }
            }
            if matches!(level, Level::OneRtt | Level::ZeroRtt) {
                if self.datagrams.outgoing.is_pending() {
                    let room =
                        frames_of_packet(self.path.mtu.current(), &self.remote_cids.current());
                    let datagrams = &mut self.datagrams.outgoing;
                    write_data(&mut writer, &mut self.streams, datagrams, room);
                } else {
                    self.streams.write(&mut writer);
                }
            }
        }
        if *probes > 0 && level == Level::OneRtt && self.ack_requests.is_possible() {
            // The answer is waited for (draft-ietf-quic-ack-frequency-14, 7).
            writer.frame(&Frame::ImmediateAck, SentFrame::Ping);
        }
        let wants_ping = *probes > 0 || (!writer.is_empty() && sent.wants_ping());
        if wants_ping && !writer.is_ack_eliciting() {
            writer.frame(&Frame::Ping, SentFrame::Ping);
        }
        if !writer.is_empty() && writer.len() < least {
            writer.padding(least - writer.len());
        }
        Some(writer.finish())
    }
}

/// Writes datagrams and streams, in turn first when both have something; `room` is what an empty packet has.
#[inline(never)] // Most connections have no datagrams.
fn write_data(
    writer: &mut PacketWriter<'_>,
    streams: &mut Streams,
    datagrams: &mut OutgoingDatagrams,
    room: usize,
) {
    if datagrams.take_turn(streams.has_pending_frames()) {
        datagrams.write(writer, room);
        streams.write(writer);
    } else {
        streams.write(writer);
        datagrams.write(writer, room);
    }
}

/// Writes an ACK frame of all that has been received.
#[inline(never)] // Once in a batch.
fn write_ack(
    writer: &mut PacketWriter<'_>,
    received: &mut ReceivedPackets,
    exponent: u32,
    now: Instant,
) -> bool {
    let Some(largest) = received.largest() else {
        return false;
    };
    let delay = u64::try_from(received.delay(now).as_micros()).unwrap_or(u64::MAX) >> exponent;
    let is_written = OutgoingAck::fit(
        received.ranges(),
        delay,
        received.ecn_counts(),
        writer.remaining(),
        ACK_RANGES_SENT,
    )
    .is_some_and(|ack| writer.frame(&ack, SentFrame::Ack { largest }));
    if is_written {
        received.on_ack_sent();
    }
    is_written
}
