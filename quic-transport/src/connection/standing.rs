//! How things stand at the end of a turn, for the observer.

use std::time::Instant;

use super::{Connection, life::Progress};
use crate::{
    observe::{CongestionState, HandshakeState, LossTimerKind, Observation, RoundTrip, Standing},
    recovery::Expiry,
};

impl Connection {
    /// Shows the observer how things stand.
    #[cold]
    pub(super) fn tell_standing(&mut self, now: Instant) {
        let Some(mut tap) = self.tap.take() else {
            return;
        };
        let loss_timer = self.loss_deadline(now).map(|(at, expiry)| {
            let kind = match expiry {
                Expiry::Loss(_) => LossTimerKind::Loss,
                Expiry::Probe(_) => LossTimerKind::Probe,
            };
            (at, kind)
        });
        let (rtt, controller) = (&self.path.rtt, &self.path.controller);
        let standing = Standing {
            version: self.version,
            alpn: self.alpn(),
            cipher_suite: self.cipher_suite(),
            is_resumed: self.is_resumed(),
            handshake: match self.progress {
                Progress::Handshaking => HandshakeState::Started,
                Progress::Complete => HandshakeState::Completed,
                Progress::Confirmed => HandshakeState::Confirmed,
            },
            has_keys: [
                self.keys.initial.is_some(),
                self.keys.handshake.is_some(),
                self.keys.has_one_rtt(),
            ],
            rtt: rtt.first_sample().map(|_| RoundTrip {
                min: rtt.min(),
                smoothed: rtt.smoothed(),
                latest: rtt.latest(),
                variation: rtt.var(),
            }),
            probe_timeouts: self.timer.count(),
            congestion_window: controller.window(),
            bytes_in_flight: controller.in_flight(),
            slow_start_threshold: controller.threshold(),
            congestion: if controller.is_slow_start() {
                CongestionState::SlowStart
            } else {
                CongestionState::Avoidance
            },
            mtu: self.path.mtu.current(),
            ecn: self.path.ecn.state(),
            loss_timer,
        };
        tap.tell(&Observation::Standing(&standing), now);
        self.tap = Some(tap);
    }
}
