//! All deadlines of a connection: the earliest is waited for, and what has expired is acted upon.

use std::time::{Duration, Instant};

use super::{
    Connection,
    life::{Life, Progress},
    space::SpaceState,
};
use crate::{
    config::MIN_DATAGRAM,
    error::CloseReason,
    event::Event,
    limits::{HALF_OPEN_TIMEOUT, SMALLEST_DATAGRAM},
    recovery::{Expiry, TimerState},
    transmit::{SentFrame, Space},
};

/// Packets that a probe timeout allows (RFC 9002, 6.2.4).
const PROBES: usize = 2;

/// Probe timeouts in a row after which the path may have come to carry only small datagrams.
const BLACK_HOLE_PROBES: u32 = 3;

impl Connection {
    /// Has [`Event::Alarm`] happen at a time, once, instead of any that was asked for before; `None` for no time.
    pub const fn set_alarm(&mut self, at: Option<Instant>) {
        self.alarm = at;
    }

    /// Changes [`Config::keep_alive`](crate::Config::keep_alive).
    pub const fn set_keep_alive(&mut self, after: Option<Duration>) {
        self.config.keep_alive = after;
    }

    /// Acts on the deadlines that have passed at `now`.
    pub(super) fn expire(&mut self, now: Instant) {
        if matches!(self.life, Life::Closing(_)) {
            let end = self.end_of_closing(now);
            if let Life::Closing(closing) = &mut self.life {
                closing.until.get_or_insert(end);
            }
        }
        match self.life.deadline() {
            Some(until) if until <= now => self.life = Life::Closed,
            Some(_) => return,
            None => {}
        }
        if !self.life.is_open() {
            return;
        }
        if self.idle.is_overlong(now) && self.idle_deadline().is_some_and(|at| at <= now) {
            return self.abandon(CloseReason::IdleTimeout);
        }
        if self.handshake_deadline().is_some_and(|at| at <= now) {
            return self.abandon(CloseReason::HandshakeTimeout);
        }
        if self.alarm.is_some_and(|at| at <= now) {
            self.alarm = None;
            self.events.push_back(Event::Alarm);
        }
        if self.keep_alive_deadline().is_some_and(|at| at <= now) {
            self.idle.on_keep_alive(now);
            let probes = &mut self.spaces.application.probes;
            *probes = (*probes).max(1);
        }
        if self.blocked_deadline().is_some_and(|at| at <= now) {
            self.idle.on_keep_alive(now);
            self.streams.repeat_blocked();
        }
        if self.drop_old_keys_at.is_some_and(|at| at <= now) {
            self.drop_old_keys_at = None;
            self.keys.early = None;
            if let Some(keys) = self.keys.one_rtt.as_mut() {
                keys.drop_previous();
            }
        }
        if self.paths_deadline().is_some_and(|at| at <= now) {
            self.expire_paths(now);
        }
        if let Some((at, expiry)) = self.loss_deadline(now)
            && at <= now
        {
            self.on_loss_timer(expiry, now);
        }
    }

    /// The earliest deadline, if nothing else happens.
    pub(super) fn deadline(&mut self, now: Instant) -> Option<Instant> {
        if !self.life.is_open() {
            return self.life.deadline();
        }
        let may_acknowledge = self.keys.one_rtt.is_some()
            && self.path.amplification.allowance() >= self.least_datagram();
        let received = &self.spaces.application.received;
        let ack = received.deadline().filter(|_| may_acknowledge);
        let search = self.path.mtu.deadline().filter(|_| self.may_probe_mtu());
        [
            self.loss_deadline(now).map(|(at, _)| at),
            ack,
            self.pacing_deadline,
            search,
            self.paths_deadline(),
            self.silence_deadline(now),
            self.keep_alive_deadline(),
            self.blocked_deadline(),
            self.alarm,
            self.handshake_deadline(),
            self.drop_old_keys_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Bytes without which no datagram is sent to an address that isn't validated: a full one, if an Initial has to fit it
    /// (RFC 9000, 14.1).
    #[inline]
    pub(super) fn least_datagram(&self) -> u64 {
        if self.spaces.is_settled() {
            SMALLEST_DATAGRAM
        } else {
            MIN_DATAGRAM.into()
        }
    }

    /// Whether it is the time to try larger datagrams: while it is in doubt that anything arrives, sizes are not the
    /// question.
    pub(super) fn may_probe_mtu(&self) -> bool {
        self.is_confirmed() && self.timer.count() == 0 && self.path.is_validated
    }

    /// When something follows from silence: a rest, and in the end that the connection is given up.
    #[inline]
    fn silence_deadline(&self, now: Instant) -> Option<Instant> {
        self.idle
            .next_rest(now)
            .filter(|_| self.progress == Progress::Confirmed)
            .or_else(|| self.idle_deadline())
    }

    fn idle_deadline(&self) -> Option<Instant> {
        self.idle.deadline(self.pto())
    }

    /// Silence is broken once the handshake is complete; before, others see to it.
    fn keep_alive_deadline(&self) -> Option<Instant> {
        let after = self
            .config
            .keep_alive
            .filter(|_| self.progress != Progress::Handshaking)?;
        self.idle.keep_alive_deadline(after)
    }

    /// Without credit, and with nothing in flight, an end speaks up before the silence ends the connection.
    fn blocked_deadline(&mut self) -> Option<Instant> {
        let is_waiting = self.progress != Progress::Handshaking
            && self.spaces.application.sent.times().eliciting.is_none()
            && self.streams.waits_for_credit();
        if !is_waiting {
            return None;
        }
        self.idle.blocked_deadline(self.pto())
    }

    fn handshake_deadline(&self) -> Option<Instant> {
        let timeout = if self.path.amplification.is_validated() {
            self.config.handshake_timeout
        } else {
            // Anyone can begin a handshake in the name of any address.
            self.config.handshake_timeout.min(HALF_OPEN_TIMEOUT)
        };
        self.setup
            .started
            .checked_add(timeout)
            .filter(|_| self.progress == Progress::Handshaking)
    }

    pub(super) fn loss_deadline(&mut self, now: Instant) -> Option<(Instant, Expiry)> {
        let state = TimerState {
            spaces: Space::ALL.map(|space| {
                self.spaces
                    .get(space)
                    .map_or_else(Default::default, |s| s.sent.times())
            }),
            rtt: &self.path.rtt,
            max_ack_delay: self.peer.max_ack_delay,
            handshake: self.handshake_progress(),
            is_blocked: self.path.is_blocked(),
        };
        self.timer.deadline(now, &state)
    }

    fn on_loss_timer(&mut self, expiry: Expiry, now: Instant) {
        match expiry {
            Expiry::Loss(space) => {
                self.detect_lost(space, now);
                self.path.controller.settle(now, self.path.rtt.smoothed());
            }
            Expiry::Probe(space) => {
                self.stats.probe_timeouts += 1;
                self.timer.on_probe();
                if self.timer.count() >= BLACK_HOLE_PROBES {
                    self.path.on_black_hole();
                }
                self.probe_space(space);
                // RFC 9002, 6.2.4: where other spaces wait too, their probes go along, in the same datagrams: the peer
                // may have the keys of only one of them.
                for other in Space::ALL.into_iter().filter(|other| *other != space) {
                    let waits = |state: &SpaceState| state.sent.times().eliciting.is_some();
                    if self.spaces.get(other).is_some_and(waits) {
                        self.probe_space(other);
                    }
                }
            }
        }
    }

    /// RFC 9002, 6.2.4: one or two packets that carry new data, or else what may have been lost, rather than a bare PING.
    ///
    /// Each timeout repeats the packets that come after those that the last one repeated: a peer that can't
    /// acknowledge anything before it has everything, such as a server with half a ClientHello, gets everything.
    fn probe_space(&mut self, space: Space) {
        let Some(state) = self.spaces.get_mut(space) else {
            return;
        };
        if space == Space::Application && self.streams.new_data() > 0 {
            let is_plenty = self.streams.new_data() > self.path.mtu.current().into();
            state.probes = if is_plenty { PROBES } else { 1 };
            return;
        }
        state.probes = PROBES;
        let from = state.repeated_to;
        let mut packets = [None; PROBES];
        let newer = state.sent.eliciting().filter(|(number, _)| *number >= from);
        let older = state.sent.eliciting().filter(|(number, _)| *number < from);
        for (place, packet) in packets.iter_mut().zip(newer.chain(older)) {
            *place = Some(packet);
        }
        for (number, packet) in packets.into_iter().flatten() {
            if let Some(state) = self.spaces.get_mut(space) {
                state.repeated_to = number.saturating_add(1);
            }
            for index in packet.frames() {
                if let Some(frame) = self
                    .spaces
                    .get(space)
                    .and_then(|state| state.log.get(index))
                    .filter(SentFrame::is_repeated)
                {
                    self.on_frame_lost(space, frame);
                }
            }
        }
    }
}
