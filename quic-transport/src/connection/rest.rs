//! Silence: what a connection needs only to be fast is given back after a while, and taken again when there is something
//! to do.
//!
//! A connection is woken once for that; then it holds what it must not forget, and no more. Where the silence is looked for
//! in vain, once a second, is also where it shows that a connection lasts.

use std::time::Instant;

use super::{
    Connection, Scratch,
    life::{Life, Progress},
};

impl Connection {
    /// Whether nothing has happened for so long that the connection has given back what it needs only to be fast: a good
    /// time for what runs above it to do the same.
    #[must_use]
    pub const fn is_at_rest(&self) -> bool {
        self.keys.is_dormant()
    }

    /// Before a batch: makes the keys again if there is something to say, and tells whether there is.
    #[cold]
    pub(super) fn rouse(&mut self, now: Instant) -> bool {
        let is_needed = !self.is_quiet(now);
        if is_needed && self.keys.wake().is_some() {
            self.idle.on_woken(now);
        }
        is_needed
    }

    /// Nothing is to be sent: rests, if that has been so for long enough.
    #[inline]
    pub(super) fn consider_rest(&mut self, now: Instant) {
        if self.idle.is_look_due(now) {
            self.look_at_silence(now);
        }
    }

    #[cold]
    fn look_at_silence(&mut self, now: Instant) {
        if !self.idle.is_silent(now) {
            self.consider_supply();
        } else if self.is_quiet(now) {
            self.rest();
        }
    }

    /// A client whose address is gone can't ask for more connection IDs, and each attempt to be heard from elsewhere takes
    /// one (RFC 9000, 9.5): a server gives all of them as soon as the connection has turned out to last.
    fn consider_supply(&mut self) {
        let may_move = self.side.is_server() && self.progress == Progress::Confirmed;
        if may_move && self.idle.is_lasting(self.setup.started) {
            self.give_all_cids();
        }
    }

    /// Whether nothing is in flight, nothing is to be sent, and nothing is known to come.
    #[cold]
    fn is_quiet(&mut self, now: Instant) -> bool {
        let application = &self.spaces.application;
        application.sent.is_settled()
            && !application.received.owes_ack()
            && application.probes == 0
            && !application.has_pending_crypto()
            && !self.has_application_data()
            && matches!(self.life, Life::Open)
            && self.progress == Progress::Confirmed
            && self.others.is_empty()
            && self.path.probing.deadline().is_none()
            && self.drop_old_keys_at.is_none()
            && !self.keys.has_previous()
            && self.mtu_probe(now).is_none()
    }

    #[cold]
    fn rest(&mut self) {
        self.keys.sleep();
        self.scratch = Scratch::default();
        self.random.rest();
        self.pacing_deadline = None;
        self.events.shrink_to_fit();
        self.spaces.application.rest(self.session.is_over());
        self.streams.rest();
        self.datagrams.rest();
        self.local_cids.rest();
        self.remote_cids.rest();
    }
}
