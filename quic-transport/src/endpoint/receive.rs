//! Datagrams in: to the connection that they name, or to the rules for those that name none.

use std::{iter, time::Instant};

use quic_common::Datagram;

use super::{Application, Endpoint, Handle, admit::CID_DRAWS, stateless::ReplyPath};
use crate::{
    cid::CidChange,
    config::MIN_DATAGRAM,
    wire::{PacketHeader, PacketKind, ResetToken, parse_header, parse_short_cid},
};

impl<A: Application> Endpoint<A> {
    /// Takes the datagrams that have arrived at `now`. Payloads are decrypted where they lie.
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

    /// Takes one datagram.
    pub fn input(&mut self, datagram: Datagram<'_>, now: Instant) {
        self.input_train(datagram, &mut iter::empty(), now);
    }

    /// Takes a datagram, and those behind it that are for the same connection as far as they are alike. Returns the next
    /// one.
    #[inline]
    fn input_train<'d>(
        &mut self,
        datagram: Datagram<'d>,
        others: &mut impl Iterator<Item = Datagram<'d>>,
        now: Instant,
    ) -> Option<Datagram<'d>> {
        let length = self.config.cids.length();
        if let Ok(dcid) = parse_short_cid(datagram.payload, length, 0)
            && let Some(handle) = self.router.route(&dcid)
        {
            let Some(entry) = self.router.get_mut(handle) else {
                // It has departed, and answers nothing (RFC 9000, 10.2.2).
                return others.next();
            };
            let next = entry.connection.input_train(datagram, others, now);
            self.enqueue(handle);
            return next;
        }
        self.input_other(datagram, now);
        others.next()
    }

    /// Takes a datagram that isn't a packet with a short header for a connection.
    fn input_other(&mut self, datagram: Datagram<'_>, now: Instant) {
        let length = self.config.cids.length();
        let header = parse_header(datagram.payload, length);
        if let Ok(header) = &header
            && header.kind != PacketKind::Short
            && let Some(handle) = self.router.find(&header.dcid)
        {
            return self.deliver(handle, datagram, now);
        }
        // RFC 9000, 10.3.1: what names no connection may be a reset of one.
        let tail = ResetToken::at_end_of(datagram.payload);
        if let Some(handle) = tail.and_then(|tail| self.router.find_reset(tail)) {
            return self.deliver(handle, datagram, now);
        }
        match header {
            Ok(header) if self.is_foreign(&header.dcid, &datagram) => {}
            Ok(header) => self.on_stray(&header, &datagram, now),
            Err(_) => self.stats.dropped += 1,
        }
    }

    /// Gives a datagram to a connection and learns of the IDs that it gave out or retired.
    pub(super) fn deliver(&mut self, handle: Handle, datagram: Datagram<'_>, now: Instant) {
        let Some(entry) = self.router.get_mut(handle) else {
            return;
        };
        entry.connection.input(datagram, now);
        self.enqueue(handle);
    }

    /// Brings the router up to date with a connection's IDs, before the peer hears of new ones: short ones may be another
    /// connection's already.
    pub(super) fn follow_cids(&mut self, handle: Handle) {
        let mut draws = CID_DRAWS;
        while let Some(entry) = self.router.get_mut(handle) {
            match entry.connection.take_cid_change() {
                Some(CidChange::Added(cid)) => {
                    if !self.router.add_cid(cid, handle)
                        && let Some(entry) = self.router.get_mut(handle)
                    {
                        draws = draws.saturating_sub(1);
                        entry.connection.on_cid_taken(&cid, draws == 0);
                    }
                }
                Some(CidChange::Removed(cid)) => self.router.remove_cid(&cid, handle),
                None => return,
            }
        }
    }

    /// A datagram for no connection that we know.
    fn on_stray(&mut self, header: &PacketHeader, datagram: &Datagram<'_>, now: Instant) {
        let path = ReplyPath {
            remote: datagram.remote,
            local: datagram.local,
        };
        // Whoever is there didn't ask for anything, and would answer an answer.
        if path.is_reflective() {
            self.stats.dropped += 1;
            return;
        }
        // RFC 9000, 17.2; RFC 9287, 3: unless clients are told that they may.
        if header.is_fixed_bit_clear() && !self.config.grease {
            self.stats.dropped += 1;
            return;
        }
        self.replies.refill(now);
        let length = datagram.payload.len();
        // A version that is known and not spoken is as good as an unknown one.
        let kind = if header.kind.is_long() && !self.config.versions.contains(header.version) {
            PacketKind::Unsupported
        } else {
            header.kind
        };
        match kind {
            PacketKind::Initial => self.knock(header, datagram, now),
            PacketKind::Unsupported if length >= usize::from(MIN_DATAGRAM) => {
                let (dcid, scid) = (
                    header.dcid_span.of(datagram.payload),
                    header.scid_span.of(datagram.payload),
                );
                let versions = self.config.versions;
                self.replies
                    .version_negotiation(path, (dcid, scid), &versions, &mut self.random);
            }
            PacketKind::Short => {
                let reset_key = &self.config.reset_key;
                self.replies.reset(
                    path,
                    length,
                    |turn| reset_key.token_in_turn(turn, &header.dcid),
                    &mut self.random,
                    now,
                );
            }
            PacketKind::ZeroRtt => self.knock_early(header, datagram, now),
            PacketKind::Unsupported
            | PacketKind::Handshake
            | PacketKind::Retry
            | PacketKind::VersionNegotiation => self.stats.dropped += 1,
        }
    }
}
