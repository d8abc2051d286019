//! Another path comes into use, and what that asks of the one before,
//! [RFC 9000, section 9](https://www.rfc-editor.org/rfc/rfc9000#section-9).
//!
//! What can be said of the one path in use is the same whichever it is: its record is swapped with that of another.

use std::{
    mem,
    net::SocketAddr,
    time::{Duration, Instant},
};

use super::Connection;
use crate::{
    event::{Event, PathEvent, PathNews},
    limits::PATH_EVENTS,
    path::{OtherPath, Path},
    rtt::Rtt,
    transmit::PathId,
};

impl Connection {
    /// The path with this ID, in use or not.
    pub(super) fn path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        if id == self.path.id {
            return Some(&mut self.path);
        }
        self.others.get_mut(id).map(|other| &mut other.path)
    }

    /// Adds a path that the connection ID with the number `cid` will be used on, in the place of another if need be.
    pub(super) fn add_path(
        &mut self,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        cid: Option<u64>,
    ) -> PathId {
        while let Some(surplus) = self.others.surplus() {
            self.forget_path(surplus);
        }
        let id = self.others.next_id(self.path.id);
        let mut path = self.path.branch(id, remote, local, &self.config.path());
        path.mtu.limit(self.peer.max_udp_payload);
        self.others.push(OtherPath::new(path, cid));
        // Each path takes an ID of its own, in both directions (RFC 9000, 9.5).
        self.give_all_cids();
        id
    }

    /// From now on the peer has as many connection IDs as it stores.
    pub(super) fn give_all_cids(&mut self) {
        self.local_cids.expect_moves();
        self.local_cids
            .replenish(self.peer.cid_limit, &mut self.random);
    }

    /// Nobody uses the path any more: its connection ID is retired, unless another path has it too.
    pub(super) fn forget_path(&mut self, id: PathId) {
        let Some(gone) = self.others.take(id) else {
            return;
        };
        if let Some(cid) = gone.cid
            && self.others.iter().all(|other| other.cid != gone.cid)
        {
            self.remote_cids.release(cid);
        }
    }

    /// Asks the peer to show that it can be reached on a path, unless that is being asked already.
    pub(super) fn begin_validation(&mut self, id: PathId, now: Instant) {
        let delay = self.peer.max_ack_delay;
        // RFC 9000, 8.2.4: three times the larger of both paths' PTO.
        let unknown = Rtt::new(self.config.initial_rtt).pto_base(delay);
        let patience = self.pto().max(unknown).saturating_mul(3);
        let data = self.random.array();
        if let Some(path) = self.path_mut(id).filter(|path| !path.probing.is_pending()) {
            let pto = path.rtt.pto_base(delay);
            path.probing.begin(data, pto, patience, now);
        }
    }

    /// A connection ID of the peer to use on the path; `None` while it has given none to spare.
    pub(super) fn cid_of_path(&mut self, id: PathId) -> Option<u64> {
        let other = self.others.get_mut(id)?;
        if other.cid.is_none_or(|cid| !self.remote_cids.has(cid)) {
            other.cid = self.remote_cids.take_unused();
        }
        other.cid
    }

    /// Uses another path from now on; `false` if there is none with this ID, or no connection ID to send to on it.
    pub(super) fn switch_to(&mut self, id: PathId) -> bool {
        let Some(cid) = self.cid_of_path(id) else {
            return false;
        };
        let Some(next) = self.others.take(id) else {
            return false;
        };
        let previous = OtherPath {
            is_left: true,
            ..OtherPath::new(
                mem::replace(&mut self.path, next.path),
                Some(self.remote_cids.current_sequence()),
            )
        };
        self.remote_cids.select(cid);
        self.first_byte.on_new_cid(&mut self.random);
        self.others.push(previous);
        self.spaces.application.sent.on_path_change(id);
        self.timer.reset();
        self.pacing_deadline = None;
        self.tell_of_path(id, PathNews::InUse);
        true
    }

    /// The paths that were left are forgotten once nothing can be under way on them any more.
    pub(super) fn let_go(&mut self, now: Instant) {
        let until = now.checked_add(self.closing_time());
        for other in self.others.iter_mut() {
            if other.is_left && !other.path.probing.is_pending() && other.keep_until.is_none() {
                other.keep_until = until;
            }
        }
    }

    /// Three PTOs, after which late packets are no longer expected (RFC 9000, 10.2).
    pub(super) fn closing_time(&self) -> Duration {
        self.pto().saturating_mul(3)
    }

    /// Tells the application what has become of a path.
    pub(super) fn tell_of_path(&mut self, id: PathId, news: PathNews) {
        let Some(path) = self.path_mut(id) else {
            return;
        };
        let event = PathEvent {
            path: id,
            remote: path.remote,
            local: path.local,
            news,
        };
        let is_of_path = |event: &Event| matches!(event, Event::Path(_));
        if self.events.iter().filter(|e| is_of_path(e)).count() >= PATH_EVENTS
            && let Some(oldest) = self.events.iter().position(is_of_path)
        {
            self.events.remove(oldest);
        }
        self.events.push_back(Event::Path(Box::new(event)));
    }
}
