//! Once for each wake-up: what follows from all that has arrived, losses first,
//! [RFC 9002, section 6](https://www.rfc-editor.org/rfc/rfc9002#section-6).

use std::time::Instant;

use super::Connection;
use crate::{
    ack::Situation,
    congestion::Congestion,
    error::Error,
    observe::Observation,
    recovery::{Losses, Lost, Outcomes, SentPacket},
    transmit::Space,
};

impl Connection {
    /// Works out what follows from the datagrams since the last call: losses, the congestion window, flow control.
    ///
    /// [`Connection::process_output`] does it too; an embedder that reads and writes streams in between may call it
    /// earlier.
    pub fn settle(&mut self, now: Instant) {
        if self.spaces.application.sent.is_overfull() {
            let reason = "too much is left without an acknowledgment";
            self.fail(Error::protocol(0, reason));
        }
        if self.needs_loss_detection {
            self.needs_loss_detection = false;
            for space in Space::ALL {
                self.detect_lost(space, now);
            }
            self.path.controller.settle(now, self.path.rtt.smoothed());
            self.consider_acks(now);
        }
        // The application may have read since the last datagram came: credit is due for that too. Windows follow the
        // smallest RTT: a window that made the path's queues fill would otherwise find reason to grow in that.
        self.streams.settle(now, self.path.rtt.min(), self.may_grow);
    }

    /// Asks the peer for as many acknowledgments as the window needs now, if it can be asked.
    fn consider_acks(&mut self, now: Instant) {
        if !self.ack_requests.is_possible() || !self.is_confirmed() {
            return;
        }
        let datagram = u64::from(self.path.mtu.current()).max(1);
        self.ack_requests.consider(
            now,
            &Situation {
                smoothed_rtt: self.path.rtt.smoothed(),
                window: self.path.controller.window() / datagram,
                is_slow_start: self.path.controller.is_slow_start(),
                packet_threshold: self.spaces.application.sent.packet_threshold(),
            },
        );
    }

    /// Finds the packets of a space that are lost by now, and sends again what they carried.
    pub(super) fn detect_lost(&mut self, space: Space, now: Instant) {
        let Some(state) = self.spaces.get_mut(space) else {
            return;
        };
        if let Some(spurious) = state.sent.take_spurious() {
            self.stats.spurious_losses += u64::from(spurious.count);
            self.path.controller.on_spurious(spurious);
        }
        let mut lost = std::mem::take(&mut self.scratch.lost);
        let mut losses =
            state
                .sent
                .detect_lost(now, &self.path.rtt, self.peer.max_ack_delay, &mut lost);
        if !lost.is_empty() {
            losses.is_persistent |= self.is_persistent_over_spaces(&lost);
            self.on_lost(&lost, space, now);
            self.on_congestion(&losses, now);
        }
        lost.clear();
        self.scratch.lost = lost;
        self.unblock_handshake(space);
    }

    /// RFC 9002, 7.6.2: each space sees to its own packets; what counts over all of them is for the handshake to show.
    fn is_persistent_over_spaces(&mut self, lost: &[Lost]) -> bool {
        if self.spaces.is_settled() {
            return false;
        }
        let Some(sampled) = self.path.rtt.first_sample() else {
            return false;
        };
        let counts = |lost: &&Lost| {
            let packet = &lost.packet;
            packet.is_ack_eliciting() && packet.sent >= sampled
        };
        let outcomes = &mut self.setup.outcomes;
        for lost in lost.iter().filter(counts) {
            outcomes.on_lost(lost.packet.sent);
        }
        let duration = self.path.rtt.persistent_congestion(self.peer.max_ack_delay);
        let is_persistent = outcomes.longest_loss() > duration;
        if is_persistent {
            // It counts once.
            *outcomes = Outcomes::new();
        }
        is_persistent
    }

    /// The handshake must not wait behind a window that is full of 1-RTT packets: nobody acknowledges those before it
    /// is complete, and no timer runs for them (RFC 9002, 6.2.1).
    fn unblock_handshake(&mut self, space: Space) {
        if space == Space::Application {
            return;
        }
        if let Some(state) = self.spaces.get_mut(space)
            && state.has_pending_crypto()
            && state.sent.times().eliciting.is_none()
        {
            state.probes = state.probes.max(1);
        }
    }

    fn on_congestion(&mut self, losses: &Losses, now: Instant) {
        self.stats.packets_lost += u64::from(losses.count);
        let Some(newest) = losses.newest else { return };
        let before = self.path.controller.window();
        let loss = Congestion::Loss {
            count: losses.count,
            is_persistent: losses.is_persistent,
        };
        self.path.controller.on_congestion(newest, now, loss);
        self.stats.congestion_events += u64::from(self.path.controller.window() < before);
        if losses.is_persistent {
            self.path.rtt.reset_min();
        }
    }

    fn on_frames_lost(&mut self, packet: &SentPacket, space: Space) {
        for index in packet.frames() {
            if let Some(frame) = self
                .spaces
                .get(space)
                .and_then(|state| state.log.get(index))
            {
                self.on_frame_lost(space, frame);
            }
        }
    }

    /// What lost packets carried is owed again.
    pub(super) fn on_lost(&mut self, lost: &[Lost], space: Space, now: Instant) {
        for Lost { number, packet } in lost {
            if let Some(tap) = &mut self.tap {
                let lost = Observation::PacketLost {
                    kind: space.into(),
                    number: *number,
                    is_mtu_probe: packet.is_mtu_probe(),
                };
                tap.tell(&lost, now);
            }
            let Some(path) = self.path_mut(packet.path) else {
                self.on_frames_lost(packet, space);
                continue;
            };
            if packet.fills_window() {
                path.controller.on_lost(packet.size);
            }
            if packet.is_ect0() {
                path.ecn.on_lost();
            }
            if packet.is_mtu_probe() {
                path.mtu.on_probe_lost(packet.size);
            } else {
                path.on_lost(packet.size, packet.sent, now);
            }
            self.on_frames_lost(packet, space);
        }
        if let Some(state) = self.spaces.get_mut(space) {
            state.release_frames();
        }
    }
}
