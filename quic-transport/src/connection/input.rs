//! Datagrams in: each is split into the packets that were coalesced in it,
//! [RFC 9000, section 12.2](https://www.rfc-editor.org/rfc/rfc9000#section-12.2).

use std::time::Instant;

use quic_common::{Datagram, Ecn};

use super::{
    Connection,
    life::Life,
    unprotect::{Opened, Packet, Unprocessed},
};
use crate::{
    config::MIN_DATAGRAM,
    error::CloseReason,
    limits::COALESCED_PACKETS,
    observe::DropReason,
    wire::{
        ConnectionId, Level, PacketHeader, PacketKind, ResetToken, parse_header, parse_short_cid,
        wide,
    },
};

impl Connection {
    /// Takes one datagram.
    ///
    /// Only what it says is taken in; what follows from it is worked out once for all datagrams of a wake-up, in
    /// [`Connection::settle`].
    pub fn input(&mut self, datagram: Datagram<'_>, now: Instant) {
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += wide(datagram.payload.len());
        let is_here = datagram.remote == self.path.remote && datagram.local == self.path.local;
        if !is_here && !self.is_on_path(datagram.remote, datagram.local) {
            return self.input_elsewhere(datagram, now);
        }
        let Datagram { ecn, payload, .. } = datagram;
        self.path.amplification.on_received(wide(payload.len()));
        match &mut self.life {
            Life::Open => {}
            Life::Closing(closing) => {
                closing.on_datagram();
                return self.look_for_close(payload, now);
            }
            Life::Draining { .. } | Life::Closed => return,
        }
        let tail = ResetToken::at_end_of(payload);
        if !self.packets(payload, ecn, now) {
            self.look_for_reset(tail, now);
        }
    }

    /// Processes the packets of a datagram; returns whether any of them could be opened, or may be later.
    ///
    /// Nearly all datagrams hold one packet with a short header, which goes on to their end.
    #[inline]
    fn packets(&mut self, datagram: &mut [u8], ecn: Ecn, now: Instant) -> bool {
        let required = self.first_byte.required();
        match parse_short_cid(datagram, self.local_cids.length(), required) {
            Ok(dcid) => self.short_packet(datagram, &dcid, ecn, now),
            Err(_) => self.coalesced_packets(datagram, ecn, now),
        }
    }

    #[inline]
    fn short_packet(
        &mut self,
        packet: &mut [u8],
        dcid: &ConnectionId,
        ecn: Ecn,
        now: Instant,
    ) -> bool {
        if !self.local_cids.contains(dcid) {
            self.drop_packet(packet.len(), DropReason::UnknownConnection, now);
            return false;
        }
        match self.unprotect_short(packet, dcid.len() + 1, now) {
            Opened::Packet(opened) => self.on_short_packet(&opened, dcid, ecn, now),
            Opened::Not(not) => return self.on_not_opened(not, packet, ecn, now),
        }
        true
    }

    /// Processes an authentic packet with a short header.
    #[inline]
    pub(super) fn on_short_packet(
        &mut self,
        opened: &Packet<'_>,
        dcid: &ConnectionId,
        ecn: Ecn,
        now: Instant,
    ) {
        self.stats.packets_received += 1;
        if let Err(error) = self.on_packet(opened, dcid, ecn, now) {
            self.fail(error);
        }
    }

    fn coalesced_packets(&mut self, mut rest: &mut [u8], ecn: Ecn, now: Instant) -> bool {
        let is_small = rest.len() < usize::from(MIN_DATAGRAM);
        let mut first_dcid: Option<ConnectionId> = None;
        let mut any = false;
        for _ in 0..COALESCED_PACKETS {
            if rest.is_empty() || !self.life.is_open() {
                break;
            }
            let Ok(header) = parse_header(rest, self.local_cids.length()) else {
                self.drop_packet(rest.len(), DropReason::Invalid, now);
                break;
            };
            let Some((packet, tail)) = rest.split_at_mut_checked(header.end) else {
                break;
            };
            rest = tail;
            // RFC 9000, 12.2: packets for another connection are not to be processed.
            let is_for_another = *first_dcid.get_or_insert(header.dcid) != header.dcid;
            // RFC 9000, 17.2 and 17.3.1; RFC 9287, 3: unless the peer was told that it may.
            let is_alien = header.is_fixed_bit_clear() && !self.config.grease;
            // RFC 9000, 14.1: nor are a client's Initials in small datagrams.
            let is_cheap = is_small && self.side.is_server() && header.kind == PacketKind::Initial;
            if is_for_another || is_alien || is_cheap {
                let why = if is_alien || is_cheap {
                    DropReason::Invalid
                } else {
                    DropReason::UnknownConnection
                };
                self.drop_packet(packet.len(), why, now);
                continue;
            }
            any |= self.packet(packet, &header, ecn, now);
        }
        any
    }

    /// Processes one packet; returns whether it could be opened, or may be later.
    ///
    /// What is authenticated otherwise, or not at all, may be a stateless reset in disguise (RFC 9000, 10.3).
    fn packet(&mut self, packet: &mut [u8], header: &PacketHeader, ecn: Ecn, now: Instant) -> bool {
        match header.kind {
            PacketKind::VersionNegotiation => self.on_version_negotiation(packet, header, now),
            PacketKind::Retry => self.on_retry(packet, header, now),
            PacketKind::Initial | PacketKind::Handshake | PacketKind::ZeroRtt => {
                return self.long_packet(packet, header, ecn, now);
            }
            PacketKind::Short => return self.short_packet(packet, &header.dcid, ecn, now),
            PacketKind::Unsupported => self.drop_packet(packet.len(), DropReason::Invalid, now),
        }
        false
    }

    fn long_packet(
        &mut self,
        packet: &mut [u8],
        header: &PacketHeader,
        ecn: Ecn,
        now: Instant,
    ) -> bool {
        if !self.is_ours(header) {
            self.drop_packet(packet.len(), DropReason::Invalid, now);
            return false;
        }
        self.expect_version(header);
        match self.unprotect(packet, header, now) {
            Opened::Packet(opened) => {
                self.on_opened(&opened, header, ecn, now);
                self.replay_undecryptable(now);
                true
            }
            Opened::Not(not) => self.on_not_opened(not, packet, ecn, now),
        }
    }

    /// Processes an authentic packet of any kind.
    fn on_opened(&mut self, opened: &Packet<'_>, header: &PacketHeader, ecn: Ecn, now: Instant) {
        self.stats.packets_received += 1;
        if opened.level != Level::OneRtt {
            self.follow_version(header);
            self.on_long_packet(opened.level, header);
        }
        if let Err(error) = self.on_packet(opened, &header.dcid, ecn, now) {
            self.fail(error);
        }
    }

    /// Returns whether the packet was one of the peer's, or may turn out to be.
    #[cold]
    pub(super) fn on_not_opened(
        &mut self,
        not: Unprocessed,
        packet: &[u8],
        ecn: Ecn,
        now: Instant,
    ) -> bool {
        match not {
            Unprocessed::Early(level) => self.keep_undecryptable(level, packet, ecn, now),
            Unprocessed::Broken(error) => self.fail(error),
            Unprocessed::Duplicate => self.drop_packet(packet.len(), DropReason::Duplicate, now),
            Unprocessed::Dropped => {
                self.drop_packet(packet.len(), DropReason::Undecryptable, now);
                return false;
            }
        }
        true
    }

    /// Whether the header is a long one that the peer may use on this connection.
    fn is_ours(&self, header: &PacketHeader) -> bool {
        let knows = self.local_cids.contains(&header.dcid);
        // RFC 9000, 17.2.2: a server's Initial has no token; one that has is discarded.
        if self.side.is_client() && !header.token.is_empty() {
            return false;
        }
        let first_flight = self.side.is_server() && header.dcid == self.setup.initial_dcid;
        let same_peer = self.setup.peer_cid.is_none_or(|cid| cid == header.scid);
        let negotiation = &self.setup.negotiation;
        let same_version = header.version == self.version || negotiation.admits(header);
        same_version && same_peer && (knows || first_flight)
    }

    /// Processes the packets that waited for the keys that have come since: packets with long headers bring them.
    ///
    /// They count from when they arrived: the wait is part of the delay that our ACK tells of, and no part of the round
    /// trip that an ACK of the peer measures (RFC 9000, 13.2.5 and RFC 9002, 5.3).
    pub(super) fn replay_undecryptable(&mut self, now: Instant) {
        while let Some(mut kept) = self.take_decryptable() {
            let Ok(header) = parse_header(&kept.packet, self.local_cids.length()) else {
                continue;
            };
            match self.unprotect(&mut kept.packet, &header, now) {
                Opened::Packet(opened) => {
                    self.on_opened(&opened, &header, kept.ecn, kept.arrived);
                    self.idle.on_received(now);
                }
                Opened::Not(Unprocessed::Broken(error)) => self.fail(error),
                Opened::Not(_) => {
                    self.drop_packet(kept.packet.len(), DropReason::Undecryptable, now);
                }
            }
        }
    }

    /// In the closing state only the peer's own CONNECTION_CLOSE matters.
    fn look_for_close(&mut self, payload: &mut [u8], now: Instant) {
        let Ok(header) = parse_header(payload, self.local_cids.length()) else {
            return;
        };
        let Some(packet) = payload.get_mut(..header.end) else {
            return;
        };
        if header.kind.level() == Some(Level::OneRtt)
            && let Opened::Packet(opened) = self.unprotect(packet, &header, now)
            && opened.has_connection_close()
        {
            self.drain(CloseReason::IdleTimeout, now);
        }
    }
}
