//! An ACK frame: what it newly acknowledges leaves the network,
//! [RFC 9002, appendix A.7](https://www.rfc-editor.org/rfc/rfc9002#appendix-A.7).
//!
//! Losses are looked for later, once for all ACK frames of a wake-up.

use std::time::{Duration, Instant};

use super::Connection;
use crate::{
    congestion::Congestion,
    error::Error,
    recovery::{Acked, PacketFlags},
    tls::Phase,
    transmit::{Run, Space},
    wire::AckFrame,
};

impl Connection {
    /// Processes an ACK frame for `space` that came in a packet of key phase `carrier`.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when it acknowledges what was never sent, before anything is changed;
    /// KEY_UPDATE_ERROR when new keys are acknowledged with old ones.
    pub(super) fn on_ack(
        &mut self,
        ack: &AckFrame<'_>,
        space: Space,
        carrier: Phase,
        now: Instant,
    ) -> Result<(), Error> {
        let Some(state) = self.spaces.get_mut(space) else {
            return Ok(());
        };
        state.sent.check(ack.ranges())?;
        let is_newest = state
            .sent
            .largest_acked()
            .is_none_or(|largest| ack.largest > largest);
        if space == Space::Application
            && let Some(keys) = self.keys.one_rtt.as_mut()
        {
            keys.on_acked(ack.largest, carrier)?;
        }
        self.stats.acks_received += 1;
        let mut acked = std::mem::take(&mut self.scratch.acked);
        for range in ack.ranges() {
            state.sent.take_acked(range, &mut acked);
        }
        if !acked.is_empty() {
            self.on_newly_acked(&acked, ack, space, now);
        }
        self.on_ecn_counts(ack, &acked, space, is_newest, now);
        acked.clear();
        self.scratch.acked = acked;
        self.needs_loss_detection = true;
        Ok(())
    }

    fn on_newly_acked(&mut self, acked: &[Acked], ack: &AckFrame<'_>, space: Space, now: Instant) {
        self.update_rtt(acked, ack, space, now);
        self.timer.on_acked(self.handshake_progress());
        if !self.spaces.is_settled() {
            for acked in acked {
                self.setup.outcomes.on_acked(acked.sent);
            }
        }
        let Some(state) = self.spaces.get_mut(space) else {
            return;
        };
        // Nothing that is told of a frame's fate looks at the records.
        let log = std::mem::take(&mut state.log);
        let mut run = Run::default();
        // The ranges of a frame descend. Data is released in one piece when it is told of in ascending order.
        for range in acked.chunk_by(|one, next| one.number < next.number).rev() {
            for acked in range {
                if acked.path != self.path.id {
                    self.on_acked_elsewhere(acked);
                } else if acked.fills_window() {
                    self.path.controller.on_acked(acked.bytes, acked.sent);
                    self.path.mtu.on_acked(acked.largest);
                } else if acked.is_mtu_probe() {
                    self.path.on_mtu_probe_acked(acked.largest);
                }
                for frame in log.range(acked.frames.clone()) {
                    if let Some(complete) = run.push(frame) {
                        self.on_frame_acked(space, complete);
                    }
                }
            }
        }
        if let Some(frame) = run.take() {
            self.on_frame_acked(space, frame);
        }
        if let Some(state) = self.spaces.get_mut(space) {
            state.log = log;
            state.release_frames();
        }
    }

    /// RFC 9000, 9.4: what was sent on another path says nothing of the one in use.
    #[cold]
    fn on_acked_elsewhere(&mut self, acked: &Acked) {
        let Some(path) = self.path_mut(acked.path) else {
            return;
        };
        if acked.fills_window() {
            path.controller.on_acked(acked.bytes, acked.sent);
        }
        if acked.is_mtu_probe() {
            path.on_mtu_probe_acked(acked.largest);
        }
    }

    /// RFC 9000, 13.4.2 and RFC 9002, 7.1: the counts validate the path's marking, and a rise of CE is congestion.
    fn on_ecn_counts(
        &mut self,
        ack: &AckFrame<'_>,
        acked: &[Acked],
        space: Space,
        is_newest: bool,
        now: Instant,
    ) {
        let is_marked = |acked: &&Acked| acked.flags.has(PacketFlags::ECT0);
        let marked = || acked.iter().filter(is_marked);
        let count = marked().map(|acked| acked.count).sum();
        let Some(state) = self.spaces.get_mut(space) else {
            return;
        };
        // The peer counts for all paths together: with packets of several, the counts tell of none.
        let is_other = |acked: &Acked| acked.path != self.path.id;
        if !self.others.is_empty() && acked.iter().any(is_other) {
            return state.ecn.on_mixed(ack.ecn.filter(|_| is_newest));
        }
        let is_congested = self
            .path
            .ecn
            .on_ack(&mut state.ecn, count, ack.ecn, is_newest);
        if is_congested && let Some(newest) = marked().map(|acked| acked.sent).max() {
            self.stats.congestion_events += 1;
            self.path
                .controller
                .on_congestion(newest, now, Congestion::Ecn);
        }
    }

    /// RFC 9002, 5.1: a sample needs the largest acknowledged packet to be new, and an ack-eliciting one among them.
    fn update_rtt(&mut self, acked: &[Acked], ack: &AckFrame<'_>, space: Space, now: Instant) {
        let largest = acked.iter().rfind(|acked| acked.number == ack.largest);
        let is_eliciting = |acked: &Acked| acked.flags.has(PacketFlags::ACK_ELICITING);
        let Some(largest) = largest.filter(|_| acked.iter().any(is_eliciting)) else {
            return;
        };
        let delay = match space {
            // RFC 9002, 5.3: the delay of Initial packets is ignored; Handshake ones are sent at once.
            Space::Initial | Space::Handshake => Duration::ZERO,
            Space::Application => self.ack_delay(ack.delay),
        };
        let latest = now.saturating_duration_since(largest.sent);
        let is_confirmed = self.is_confirmed();
        let max_ack_delay = self.peer.max_ack_delay;
        if let Some(path) = self.path_mut(largest.path) {
            path.controller.on_rtt_sample(latest);
            path.rtt
                .update(now, latest, delay, is_confirmed, max_ack_delay);
        }
    }

    fn ack_delay(&self, field: u64) -> Duration {
        let micros = field.saturating_mul(1 << self.peer.ack_delay_exponent.min(20));
        Duration::from_micros(micros)
    }
}
