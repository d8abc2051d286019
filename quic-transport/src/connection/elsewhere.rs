//! A datagram that came to or from another address than those in use,
//! [RFC 9000, section 9.3](https://www.rfc-editor.org/rfc/rfc9000#section-9.3).
//!
//! A server follows its client: at once to another address of the client's, which gets little before it is validated;
//! to another address of its own once that is. What a client gets from where it has sent nothing is dropped.

use std::{net::SocketAddr, time::Instant};

use quic_common::{Datagram, Ecn};

use super::{
    Connection,
    unprotect::{Opened, Packet, Unprocessed},
};
use crate::{
    observe::DropReason,
    transmit::PathId,
    wire::{ConnectionId, ResetToken, parse_short_cid, wide},
};

/// What a datagram from elsewhere says of itself.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    remote: SocketAddr,
    local: Option<SocketAddr>,
    ecn: Ecn,
    bytes: u64,
    known: Option<PathId>,
    dcid: ConnectionId,
}

impl Connection {
    /// Whether a datagram with these addresses is on the path in use, though they aren't the ones that are known.
    ///
    /// A client learns its own address from what arrives there; its system may have given the socket another, or its
    /// embedder have taken another socket.
    #[cold]
    pub(super) fn is_on_path(&mut self, remote: SocketAddr, local: Option<SocketAddr>) -> bool {
        if remote != self.path.remote {
            return false;
        }
        let Some(local) = local else { return true };
        let is_same_socket = |source: SocketAddr| source.port() == local.port();
        let is_ours = self.path.local.is_none()
            || (self.side.is_client()
                && self.path.source.is_none_or(is_same_socket)
                && self.others.find_exact(remote, local).is_none());
        if is_ours {
            self.path.local = Some(local);
        }
        is_ours
    }

    /// Takes a datagram that isn't on the path in use.
    #[cold]
    pub(super) fn input_elsewhere(&mut self, datagram: Datagram<'_>, now: Instant) {
        let Datagram {
            remote,
            local,
            ecn,
            payload,
        } = datagram;
        let known = self.others.find(remote, local);
        let is_welcome = self.life.is_open()
            // RFC 9000, 9: nobody moves before the handshake is confirmed, and servers never do.
            && self.is_confirmed()
            && (known.is_some() || self.side.is_server());
        let required = self.first_byte.required();
        let dcid = parse_short_cid(payload, self.local_cids.length(), required)
            .ok()
            .filter(|dcid| is_welcome && self.local_cids.contains(dcid));
        let Some(dcid) = dcid else {
            return self.drop_packet(payload.len(), DropReason::UnknownConnection, now);
        };
        let arrival = Arrival {
            remote,
            local,
            ecn,
            bytes: wide(payload.len()),
            known,
            dcid,
        };
        let tail = ResetToken::at_end_of(payload);
        match self.unprotect_short(payload, dcid.len() + 1, now) {
            Opened::Packet(packet) => self.on_packet_elsewhere(&packet, &arrival, now),
            Opened::Not(Unprocessed::Broken(error)) => self.fail(error),
            Opened::Not(not) => {
                let is_strange = !matches!(not, Unprocessed::Duplicate);
                let why = if is_strange {
                    DropReason::Undecryptable
                } else {
                    DropReason::Duplicate
                };
                self.drop_packet(payload.len(), why, now);
                self.look_for_reset(tail.filter(|_| is_strange && known.is_some()), now);
            }
        }
    }

    fn on_packet_elsewhere(&mut self, packet: &Packet<'_>, arrival: &Arrival, now: Instant) {
        let is_newest = self.spaces.application.received.largest() < Some(packet.number);
        let is_move = is_newest && !packet.is_probing() && self.side.is_server();
        if is_move && self.has_left(arrival) {
            return self.drop_packet(packet.payload.len(), DropReason::UnknownConnection, now);
        }
        self.stats.packets_received += 1;
        let id = arrival.known.unwrap_or_else(|| self.meet(arrival));
        if let Some(other) = self.others.get_mut(id) {
            other.path.amplification.on_received(arrival.bytes);
        }
        self.others.set_arrival(Some(id));
        let result = self.on_packet(packet, &arrival.dcid, arrival.ecn, now);
        self.others.set_arrival(None);
        if let Err(error) = result {
            self.fail(error);
        } else if is_move {
            self.follow(id, now);
        } else if self
            .others
            .get(id)
            .is_some_and(|other| !other.path.is_validated)
        {
            self.begin_validation(id, now);
        }
    }

    /// RFC 9000, 9.6.2: once the client has come to the preferred address, nothing new counts at the one before.
    fn has_left(&self, arrival: &Arrival) -> bool {
        let other = arrival.known.and_then(|id| self.others.get(id));
        other.is_some_and(|other| other.is_left && other.path.local != self.path.local)
    }

    /// A path that the client has come from for the first time.
    ///
    /// It gets a connection ID of its own. A client that uses its old one may not know that it moved: then the one in
    /// use may go on being used, too (RFC 9000, 9.5).
    fn meet(&mut self, arrival: &Arrival) -> PathId {
        let is_unaware = self.local_cids.see(&arrival.dcid) && arrival.local == self.path.local;
        let cid = self.remote_cids.take_unused();
        let may_share = is_unaware || self.remote_cids.is_empty();
        let shared = self.remote_cids.current_sequence();
        let cid = cid.or_else(|| may_share.then_some(shared));
        let id = self.add_path(arrival.remote, arrival.local, cid);
        if arrival.remote == self.path.remote
            && self.path.is_validated
            && let Some(other) = self.others.get_mut(id)
        {
            // It is the way to us that is new.
            other.path.amplification.validate();
        }
        id
    }

    /// The client has sent its newest packet from another path, and it was no probe.
    fn follow(&mut self, id: PathId, now: Instant) {
        let local = self.path.local;
        let Some(other) = self.others.get_mut(id) else {
            return;
        };
        let is_validated = other.path.is_validated;
        // RFC 9000, 9.6.2: a server moves to its preferred address only when that is validated.
        if !is_validated && other.path.local != local {
            other.is_awaited = true;
            return self.begin_validation(id, now);
        }
        let previous = self.path.id;
        if !self.switch_to(id) {
            return;
        }
        if !is_validated {
            self.begin_validation(id, now);
        }
        match self.others.get(previous) {
            // RFC 9000, 9.3.3: in case somebody only pretends that the client has moved.
            Some(other) if other.path.is_validated => self.begin_validation(previous, now),
            _ => self.forget_path(previous),
        }
    }
}
