//! A batch: packets into datagrams, datagrams end to end,
//! [RFC 9000, sections 12.2 and 14.1](https://www.rfc-editor.org/rfc/rfc9000#section-12.2).
//!
//! The common path is a run of datagrams of the path's MTU with one 1-RTT packet each, all in one batch.

use std::time::Instant;

use quic_common::{BatchHead, MAX_BATCH_BYTES, MAX_BATCH_SEGMENTS};

use super::{
    Connection,
    draft::{Content, Draft},
    life::Life,
    space::SpaceOf as _,
};
use crate::{
    config::MIN_DATAGRAM,
    path::MAXIMUM_MTU_V6,
    recovery::PacketFlags,
    tls::TAG_LENGTH,
    transmit::Space,
    wire::{Level, ShortHeader, wide},
};

/// The levels of a datagram's packets, in their order.
///
/// A client's 0-RTT packets go with its Initials; in a CONNECTION_CLOSE's place they would tell a server nothing more.
const LEVELS: [Level; 4] = [
    Level::Initial,
    Level::ZeroRtt,
    Level::Handshake,
    Level::OneRtt,
];

/// What the window, the pacer and the anti-amplification limit leave for the next datagram.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Bytes in flight that may be added.
    window: u64,
    /// Bytes that may be sent to an address that isn't validated.
    allowance: u64,
    /// Less of them is as good as nothing.
    least: u64,
}

impl Connection {
    /// Builds the next batch at the start of `buffer`; `None` when there is nothing to send now.
    pub(super) fn assemble(&mut self, now: Instant, buffer: &mut [u8]) -> Option<BatchHead> {
        self.pacing_deadline = None;
        self.path.ecn.on_batch();
        self.first_byte.draw(&mut self.random);
        let head = match self.life {
            Life::Open if !self.others.is_empty() => self
                .assemble_aside(now, buffer)
                .or_else(|| self.assemble_here(now, buffer)),
            Life::Open => self.assemble_here(now, buffer),
            Life::Closing(_) => self.assemble_close(now, buffer),
            Life::Draining { .. } | Life::Closed => None,
        }?;
        self.stats.datagrams_sent += wide(head.datagrams());
        self.stats.bytes_sent += wide(head.length);
        Some(head)
    }

    /// The next batch on the path in use.
    fn assemble_here(&mut self, now: Instant, buffer: &mut [u8]) -> Option<BatchHead> {
        self.assemble_probe(now, buffer)
            .or_else(|| self.assemble_open(now, buffer))
    }

    fn assemble_open(&mut self, now: Instant, buffer: &mut [u8]) -> Option<BatchHead> {
        self.mind_key_limits();
        if !self.life.is_open() {
            return None;
        }
        let limit = if self.path.remote.is_ipv6() {
            MAXIMUM_MTU_V6.into()
        } else {
            MAX_BATCH_BYTES
        };
        let mut budget = self.budget(now);
        let mut segment = self.full_datagram(budget.window);
        let limit = limit.min(segment * MAX_BATCH_SEGMENTS);
        let mut length = 0;
        while let Some(rest) = buffer.get_mut(length..limit)
            && let Some(datagram) = rest.get_mut(..segment)
        {
            // The first packet takes along what else there is to say, so that those behind it often have only data.
            let size = self.datagram(&mut budget, datagram, now);
            length += size;
            if size < segment {
                // A first datagram that is shorter than the MTU is the only one.
                segment = if length == size { size } else { segment };
                break;
            }
            let rest = rest.get_mut(segment..).unwrap_or_default();
            let bulk = segment * self.bulk(rest, segment, budget.full(segment), now);
            budget.window = budget.window.saturating_sub(wide(bulk));
            budget.allowance = budget.allowance.saturating_sub(wide(bulk));
            length += bulk;
        }
        (length > 0).then(|| self.path.head(length, segment))
    }

    /// Bytes of a datagram that is full: the path's MTU, less what would be left over from whole blocks of the
    /// [cipher](crate::tls::CipherSuite::block).
    ///
    /// What has a size of its own gets the whole MTU: packets of a handshake, a PATH_CHALLENGE, a DATAGRAM.
    #[inline]
    fn full_datagram(&self, window: u64) -> usize {
        let mtu = usize::from(self.path.mtu.current());
        // Most of those that send nothing, or nothing large, find out here.
        if window < wide(mtu) || !self.streams.has_pending_frames() {
            return mtu;
        }
        let Some(keys) = self.keys.one_rtt.as_ref().filter(|_| {
            self.spaces.is_settled()
                && !self.path.probing.is_owing()
                && !self.datagrams.outgoing.is_pending()
        }) else {
            return mtu;
        };
        let header = ShortHeader::size_to(
            &self.remote_cids.current(),
            self.spaces.application.number_length(),
        );
        let plaintext = mtu.saturating_sub(header + TAG_LENGTH);
        mtu - plaintext % keys.suite().block()
    }

    fn budget(&mut self, now: Instant) -> Budget {
        let window = self.path.budget(now);
        if window == 0 {
            self.pacing_deadline = self.path.pacer.deadline();
        }
        Budget {
            window,
            allowance: self.path.amplification.allowance(),
            least: self.least_datagram(),
        }
    }

    /// Fills one datagram; returns its size, 0 when there is nothing to send.
    fn datagram(&mut self, budget: &mut Budget, datagram: &mut [u8], now: Instant) -> usize {
        if budget.allowance < budget.least {
            return 0;
        }
        let allowed = usize::try_from(budget.allowance).unwrap_or(usize::MAX);
        let room = datagram.len().min(allowed);
        let Some(datagram) = datagram.get_mut(..room) else {
            return 0;
        };
        let size = if self.spaces.is_settled() {
            self.short_datagram(budget, datagram, now)
        } else {
            self.coalesced_datagram(budget, datagram, now)
        };
        let sent = wide(size);
        budget.allowance = budget.allowance.saturating_sub(sent);
        self.path.amplification.on_sent(sent);
        size
    }

    #[inline]
    fn short_datagram(&mut self, budget: &mut Budget, datagram: &mut [u8], now: Instant) -> usize {
        let Some(content) = self.content(Level::OneRtt, budget, datagram.len(), now) else {
            return 0;
        };
        let answers_challenge = self.answers_challenge(content);
        let Some(mut draft) = self.draft_short(content, datagram, now) else {
            return 0;
        };
        if answers_challenge {
            Self::pad(&mut draft, datagram, usize::from(MIN_DATAGRAM));
            if draft.size() >= usize::from(MIN_DATAGRAM) {
                self.path.probing.on_full();
            }
        }
        budget.spend(&draft);
        self.seal_short(&draft, datagram, now);
        draft.size()
    }

    /// Several packets in one datagram, while the handshake isn't over.
    fn coalesced_datagram(
        &mut self,
        budget: &mut Budget,
        datagram: &mut [u8],
        now: Instant,
    ) -> usize {
        let room = datagram.len().min(usize::from(MIN_DATAGRAM));
        let Some(datagram) = datagram.get_mut(..room) else {
            return 0;
        };
        let mut last: Option<Draft> = None;
        let mut needs_padding = false;
        let mut has_handshake = false;
        for level in LEVELS {
            let start = last.as_ref().map_or(0, Draft::end);
            let Some(content) = self.content(level, budget, datagram.len() - start, now) else {
                continue;
            };
            needs_padding |= level == Level::OneRtt && self.answers_challenge(content);
            let Some(draft) = self.draft(level, content, datagram, start, now) else {
                continue;
            };
            // RFC 9000, 14.1: a client pads every Initial, a server those that elicit an acknowledgment.
            needs_padding |=
                level == Level::Initial && (self.side.is_client() || draft.is_ack_eliciting());
            has_handshake |= level == Level::Handshake;
            if let Some(previous) = last.replace(draft) {
                budget.spend(&previous);
                self.seal(&previous, PacketFlags::NONE, datagram, now);
            }
        }
        let Some(mut last) = last else { return 0 };
        if needs_padding {
            Self::pad(&mut last, datagram, room);
        }
        budget.spend(&last);
        self.seal(&last, PacketFlags::NONE, datagram, now);
        if has_handshake && self.side.is_client() {
            // RFC 9001, 4.9.1: a client has no use for its Initial keys once it sends a Handshake packet.
            self.discard(Space::Initial);
        }
        last.end()
    }

    /// What a packet of `level` may hold; `None` when it has nothing to say.
    #[inline]
    fn content(&self, level: Level, budget: &Budget, room: usize, now: Instant) -> Option<Content> {
        let state = self.spaces.get(level.space())?;
        let has_keys = match level {
            Level::OneRtt => self.keys.one_rtt.is_some(),
            Level::Initial | Level::Handshake => self.keys.of_long(level).is_some(),
            Level::ZeroRtt => self.keys.early.is_some() && self.side.is_client(),
        };
        if !has_keys {
            return None;
        }
        let fits = budget.window >= wide(room);
        let wants = match level {
            Level::OneRtt => self.has_application_data(),
            Level::ZeroRtt => {
                self.streams.has_pending_frames() || self.datagrams.outgoing.is_pending()
            }
            Level::Initial | Level::Handshake => false,
        } || state.has_pending_crypto();
        if state.probes > 0 || (fits && wants) {
            return Some(Content::Everything);
        }
        state.received.is_due(now).then_some(if fits {
            Content::Everything
        } else {
            Content::Acks
        })
    }

    /// RFC 9000, 8.2: a datagram with a PATH_CHALLENGE or PATH_RESPONSE has the smallest maximum size at least.
    #[inline]
    fn answers_challenge(&self, content: Content) -> bool {
        content == Content::Everything && self.path.probing.is_owing()
    }

    pub(super) fn has_application_data(&self) -> bool {
        // What most packets are sent for comes first.
        self.streams.has_pending_frames()
            || self.owes_rare_frames()
            || self.datagrams.outgoing.is_pending()
    }

    /// A probe of the path's MTU is a batch of its own.
    fn assemble_probe(&mut self, now: Instant, buffer: &mut [u8]) -> Option<BatchHead> {
        let probe = self.mtu_probe(now)?;
        let size = usize::from(probe);
        let datagram = buffer.get_mut(..size)?;
        let mut draft = self.draft_probe(datagram)?;
        Self::pad(&mut draft, datagram, size);
        self.path.mtu.on_probe_sent(probe);
        self.seal(&draft, PacketFlags::MTU_PROBE, datagram, now);
        Some(self.path.head(size, size))
    }

    /// The size of the probe to be sent now, if any.
    #[inline]
    pub(super) fn mtu_probe(&mut self, now: Instant) -> Option<u16> {
        if !self.may_probe_mtu() {
            return None;
        }
        let best = self.path.mtu.next_probe(now, u16::MAX)?;
        // A connection that hardly carries anything has no use for large datagrams.
        if self.stats.bytes_sent + self.stats.bytes_received < best.into() {
            return None;
        }
        // Larger than the whole window it may be, as long as nothing else is on its way.
        let controller = &self.path.controller;
        let most = controller.available().max(controller.window() / 2);
        let most = u16::try_from(most).unwrap_or(u16::MAX);
        if best <= most || controller.in_flight() == 0 {
            Some(best)
        } else {
            self.path.mtu.next_probe(now, most)
        }
    }

    /// CONNECTION_CLOSE in every packet type that the peer may be able to read (RFC 9000, 10.2.3).
    fn assemble_close(&mut self, now: Instant, buffer: &mut [u8]) -> Option<BatchHead> {
        let Life::Closing(closing) = &mut self.life else {
            return None;
        };
        if !std::mem::take(&mut closing.is_owed) {
            return None;
        }
        let farewell = closing.farewell.clone();
        let allowed = usize::try_from(self.path.amplification.allowance()).unwrap_or(usize::MAX);
        let datagram = buffer.get_mut(..usize::from(MIN_DATAGRAM).min(allowed))?;
        let mut last: Option<Draft> = None;
        let mut has_initial = false;
        for level in LEVELS {
            if level == Level::ZeroRtt {
                continue;
            }
            let start = last.as_ref().map_or(0, Draft::end);
            let Some(draft) = self.draft_close(level, &farewell, datagram, start) else {
                continue;
            };
            has_initial |= level == Level::Initial;
            if let Some(previous) = last.replace(draft) {
                self.seal(&previous, PacketFlags::NONE, datagram, now);
            }
        }
        let mut last = last?;
        if has_initial && self.side.is_client() {
            Self::pad(&mut last, datagram, usize::from(MIN_DATAGRAM));
        }
        self.seal(&last, PacketFlags::NONE, datagram, now);
        let length = last.end();
        self.path.amplification.on_sent(wide(length));
        Some(self.path.head(length, length))
    }
}

impl Budget {
    /// How many datagrams of `size` bytes it is enough for.
    fn full(&self, size: usize) -> usize {
        let least = self.window.min(self.allowance);
        usize::try_from(least / wide(size).max(1)).unwrap_or(usize::MAX)
    }

    #[inline]
    const fn spend(&mut self, draft: &Draft) {
        if draft.is_in_flight() {
            let size = wide(draft.size());
            self.window = self.window.saturating_sub(size);
        }
    }
}
