//! Datagrams in a row that hold nothing but the next bytes of one stream: most of what a bulk transfer receives.
//!
//! What is the same for all of them is looked up once, and what counts only as a sum is counted once. The first that is
//! different ends the row, and goes the way of all others from where that shows. So it makes no difference for anything but
//! time whether datagrams come together or one by one.

use std::{net::SocketAddr, time::Instant};

use quic_common::{Datagram, Ecn};

use super::{
    Connection,
    dispatch::LARGE_PACKET,
    unprotect::{Opened, Unmasked, unmask},
};
use crate::{
    stream::{Row, RowEnd},
    tls::{Choice, OneRttKeys, Phase, TAG_LENGTH},
    wire::{
        CidPattern, ConnectionId, Frames, MAX_CID_LENGTH, ResetToken, has_reserved_bits,
        is_short_with, key_phase_bit, wide,
    },
};

/// A row of datagrams that has begun.
struct Train<'c> {
    remote: &'c SocketAddr,
    local: &'c Option<SocketAddr>,
    ecn: Ecn,
    /// Bits that the first byte must have.
    required: u8,
    cid: CidPattern,
    number_offset: usize,
    keys: &'c OneRttKeys,
    row: Row<'c>,
    /// The largest packet number so far.
    largest: u64,
    count: Count,
}

/// What a train adds up to.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    datagrams: u64,
    bytes: u64,
    /// Packets that were processed.
    packets: u32,
    /// The first byte of the last of them.
    first: u8,
    has_large: bool,
}

/// What became of a datagram that is offered to a train.
enum Taken {
    /// It has been processed.
    Whole,
    /// Nothing has been done to it or counted of it: it goes the way of all others from the start, and may begin another row.
    Not,
    /// It was opened with the key of that choice, and its packet isn't one of the row.
    Opened(Unmasked, Choice),
    /// It isn't authentic, but may be a reset.
    Forged(Option<ResetToken>),
}

impl Train<'_> {
    #[inline]
    fn take(&mut self, datagram: &mut Datagram<'_>) -> Taken {
        let is_here = datagram.remote == *self.remote && datagram.local == *self.local;
        let payload = &mut *datagram.payload;
        let Some((first, rest)) = payload.split_first() else {
            return Taken::Not;
        };
        let is_for_us = is_short_with(*first, self.required)
            && rest
                .first_chunk::<MAX_CID_LENGTH>()
                .is_some_and(|start| self.cid.matches(start));
        if !is_here || !is_for_us || datagram.ecn != self.ecn {
            return Taken::Not;
        }
        let size = wide(payload.len());
        let tail = ResetToken::at_end_of(payload);
        let header_key = self.keys.remote_header();
        let Some(unmasked) = unmask(header_key, payload, self.number_offset, Some(self.largest))
        else {
            return Taken::Not;
        };
        self.count.datagrams += 1;
        self.count.bytes += size;
        let Unmasked {
            first,
            number,
            header_length,
        } = unmasked;
        // Nothing is made of what the header says before it is known to be authentic (RFC 9001, 9.5).
        let phase = key_phase_bit(first);
        let Some((payload, choice)) = self.keys.open(number, phase, header_length, payload) else {
            return Taken::Forged(tail);
        };
        let is_next = choice == Choice::Current
            && number == self.largest.saturating_add(1)
            && !has_reserved_bits(first);
        if !is_next || !self.take_frame(payload) {
            return Taken::Opened(unmasked, choice);
        }
        self.largest = number;
        self.count.packets += 1;
        self.count.first = first;
        self.count.has_large |= payload.len() >= LARGE_PACKET;
        Taken::Whole
    }

    /// Takes the only frame of a packet, if it is one of the row.
    #[inline]
    fn take_frame(&mut self, payload: &[u8]) -> bool {
        let Ok(mut frames) = Frames::new(payload) else {
            return false;
        };
        let Some(Ok(frame)) = frames.next_stream() else {
            return false;
        };
        frames.is_empty() && self.row.take(&frame)
    }
}

impl Connection {
    /// Takes the datagrams that have arrived at `now`. Payloads are decrypted where they lie.
    #[inline]
    pub fn process_multiple_input<'d>(
        &mut self,
        datagrams: impl IntoIterator<Item = Datagram<'d>>,
        now: Instant,
    ) {
        let mut datagrams = datagrams.into_iter();
        let mut next = datagrams.next();
        while let Some(datagram) = next {
            next = self.input_train(datagram, &mut datagrams, now);
        }
    }

    /// Takes one datagram, and those behind it that are for the same connection ID as far as they are alike. Returns the
    /// next one.
    #[inline]
    pub(crate) fn input_train<'d>(
        &mut self,
        datagram: Datagram<'d>,
        others: &mut impl Iterator<Item = Datagram<'d>>,
        now: Instant,
    ) -> Option<Datagram<'d>> {
        let ecn = datagram.ecn;
        self.streaming = None;
        self.input(datagram, now);
        let is_last = others.size_hint().1 == Some(0);
        let Some(dcid) = self.streaming.filter(|_| !is_last) else {
            return others.next();
        };
        let Some(mut train) = self.train(&dcid, ecn) else {
            return others.next();
        };
        let end = loop {
            let Some(mut datagram) = others.next() else {
                break None;
            };
            match train.take(&mut datagram) {
                Taken::Whole => {}
                taken @ (Taken::Not | Taken::Opened(..) | Taken::Forged(_)) => {
                    break Some((datagram, taken));
                }
            }
        };
        let (count, row) = (train.count, train.row.end());
        self.on_train(count, ecn, row, now);
        match end? {
            (datagram, Taken::Not | Taken::Whole) => Some(datagram),
            (datagram, taken) => {
                self.on_different(datagram, &taken, &dcid, now);
                others.next()
            }
        }
    }

    /// Begins a row of datagrams with packets like the last, if nothing stands against one.
    fn train(&mut self, dcid: &ConnectionId, ecn: Ecn) -> Option<Train<'_>> {
        let keys = self.keys.one_rtt.as_deref()?;
        let is_plain = self.life.is_open()
            && self.tap.is_none()
            && self.keys.opens_one_rtt
            && keys.is_answered()
            && self.local_cids.contains(dcid);
        if !is_plain {
            return None;
        }
        Some(Train {
            remote: &self.path.remote,
            local: &self.path.local,
            ecn,
            required: self.first_byte.required(),
            cid: CidPattern::new(dcid),
            number_offset: dcid.len() + 1,
            keys,
            row: self.streams.row()?,
            largest: self.spaces.application.received.largest()?,
            count: Count::default(),
        })
    }

    /// Counts what a train has taken.
    fn on_train(&mut self, count: Count, ecn: Ecn, row: RowEnd, now: Instant) {
        self.stats.datagrams_received += count.datagrams;
        self.stats.bytes_received += count.bytes;
        self.path.amplification.on_received(count.bytes);
        if count.packets == 0 {
            return;
        }
        self.stats.packets_received += u64::from(count.packets);
        let received = &mut self.spaces.application.received;
        received.on_packets_in_order(count.packets, ecn, now);
        if count.has_large {
            received.on_large();
        }
        if let (Some(keys), Some(largest)) = (&mut self.keys.one_rtt, received.largest()) {
            let phase = keys.on_opened(largest, Choice::Current);
            debug_assert_eq!(phase, Ok(Phase::Current), "nothing else begins a train");
        }
        self.first_byte.on_newest(count.first);
        self.streams.on_row(row);
        self.idle.on_received(now);
    }

    /// Goes on with a datagram that was opened, or could not be, and is not like those before it.
    #[inline(never)]
    fn on_different(
        &mut self,
        datagram: Datagram<'_>,
        taken: &Taken,
        dcid: &ConnectionId,
        now: Instant,
    ) {
        let Datagram { ecn, payload, .. } = datagram;
        let payload = &*payload;
        let (opened, tail) = match *taken {
            Taken::Opened(unmasked, choice) => {
                let end = payload.len().saturating_sub(TAG_LENGTH);
                let frames = payload.get(unmasked.header_length..end);
                let frames = frames.unwrap_or_default();
                (self.authentic(unmasked, choice, frames, now), None)
            }
            Taken::Forged(tail) => (self.on_forged_short(), tail),
            Taken::Whole | Taken::Not => return,
        };
        match opened {
            Opened::Packet(opened) => self.on_short_packet(&opened, dcid, ecn, now),
            Opened::Not(not) => {
                if !self.on_not_opened(not, payload, ecn, now) {
                    self.look_for_reset(tail, now);
                }
            }
        }
    }
}
