//! Datagrams in a row that hold nothing but the next bytes of one stream: most of what a bulk transfer sends.
//!
//! What is the same for all of them, or counts only as a sum, is worked out once. What remains for each is its header, its
//! bytes, its protection and its records.

use std::time::Instant;

use quic_common::{Ecn, Writer};

use super::Connection;
use crate::{
    recovery::{PacketFlags, SentPacket},
    tls::TAG_LENGTH,
    transmit::SentFrame,
    wire::{Encode as _, PacketNumber, ShortHeader, StreamHeader, wide},
};

impl Connection {
    /// Fills `datagrams` of `segment` bytes from the start of a buffer, up to `most` of them, as long as a packet has nothing
    /// to say but the next bytes of one stream, and is full of them; returns how many.
    pub(super) fn bulk(
        &mut self,
        datagrams: &mut [u8],
        segment: usize,
        most: usize,
        now: Instant,
    ) -> usize {
        // Most of those who don't send much find out here.
        if self.streams.unsent() < wide(segment) || !self.is_plain(now) {
            return 0;
        }
        let count = self.write_bulk(datagrams, segment, most, now).unwrap_or(0);
        if count > 0 {
            self.book_bulk(wide(count), wide(count * segment), now);
        }
        count
    }

    /// Whether a packet would hold stream data and no other frame.
    fn is_plain(&self, now: Instant) -> bool {
        let state = &self.spaces.application;
        self.tap.is_none()
            && state.probes == 0
            && !state.received.is_pending()
            && !state.received.is_due(now)
            && !state.has_pending_crypto()
            && !self.owes_rare_frames()
            && !self.datagrams.outgoing.is_pending()
    }

    fn write_bulk(
        &mut self,
        datagrams: &mut [u8],
        segment: usize,
        most: usize,
        now: Instant,
    ) -> Option<usize> {
        let bulk = self.streams.bulk()?;
        let keys = self.keys.one_rtt.as_mut()?;
        let state = &mut self.spaces.application;
        let numbers = state.numbers.upcoming_run(wide(most));
        let number_length = state.number_length();
        let header = ShortHeader {
            dcid: self.remote_cids.current(),
            bits: self.first_byte.bits(),
            key_phase: keys.phase(),
        };
        let header_length = header.size(number_length);
        let flags = PacketFlags::ACK_ELICITING
            .with(PacketFlags::IN_FLIGHT)
            .with_if(PacketFlags::ECT0, self.path.ecn.mark() == Ecn::Ect0);
        let size = u16::try_from(segment).ok()?;
        let (mut offset, mut count) = (bulk.offset, 0);
        for (number, datagram) in numbers.zip(datagrams.chunks_exact_mut(segment)) {
            let mut writer = Writer::new(datagram);
            let number_offset = header.write(&mut writer, PacketNumber(number), number_length);
            let frame = StreamHeader {
                id: bulk.id,
                offset,
                length: None,
                fin: false,
            };
            frame.encode(&mut writer);
            let room = writer.remaining().saturating_sub(TAG_LENGTH);
            let (Some(number_offset), Some(space)) = (number_offset, writer.space(room)) else {
                break;
            };
            if room == 0 || offset + wide(room) > bulk.end {
                break;
            }
            bulk.buffer.copy_to(offset, space);
            keys.seal(number, header_length, datagram);
            keys.local_header()
                .protect(datagram, number_offset, number_length);
            let packet = SentPacket {
                sent: now,
                frames_start: state.log.next_index(),
                frames_count: 1,
                size,
                flags,
                path: self.path.id,
            };
            state.log.push(SentFrame::Stream {
                id: bulk.id,
                offset,
                length: u32::try_from(room).unwrap_or(u32::MAX),
                fin: false,
            });
            state.sent.on_sent(number, packet);
            offset += wide(room);
            count += 1;
        }
        let (id, length) = (bulk.id, offset - bulk.offset);
        self.streams.on_bulk(id, length);
        Some(count)
    }

    /// Books so many packets, `bytes` in all.
    fn book_bulk(&mut self, packets: u64, bytes: u64, now: Instant) {
        let state = &mut self.spaces.application;
        if state.numbers.on_used(packets) {
            let mtu = u64::from(self.path.mtu.current()).max(1);
            let window = self.path.controller.window() / mtu;
            state.numbers.skip(window, &mut self.random);
        }
        if self.path.ecn.mark() == Ecn::Ect0 {
            self.path.ecn.on_sent(&mut state.ecn, packets);
        }
        self.path.controller.on_sent(bytes);
        self.path.pacer.on_sent(bytes);
        self.path.amplification.on_sent(bytes);
        self.stats.packets_sent += packets;
        self.idle.on_sent(now);
    }
}
