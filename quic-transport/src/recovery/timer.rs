//! When to look for losses, and when to probe, [RFC 9002, section 6.2](https://www.rfc-editor.org/rfc/rfc9002#section-6.2).
//!
//! One timer serves all packet number spaces. The backoff is common to them, as the load on the network is.

use std::time::{Duration, Instant};

use super::sent_packets::SpaceTimes;
use crate::limits::{PTO, PTO_EXPONENT};
use crate::rtt::Rtt;
use crate::transmit::{SPACES, Space};

/// The backoff, and the moment that a probe without packets in flight counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossTimer {
    /// Probe timeouts since the last acknowledgment.
    count: u32,
    /// Since when a client has had nothing in flight while the server may be waiting for it.
    waiting_since: Option<Instant>,
}

/// What the timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// Packets of the space are lost by then.
    Loss(Space),
    /// The space must send one or two packets that elicit an acknowledgment, whatever the window says.
    Probe(Space),
}

/// How far the handshake is, as loss recovery sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeProgress {
    /// A client that doesn't know whether the server has validated its address: no Handshake packet of it has been
    /// acknowledged. The server may be unable to send, so the client must go on (RFC 9002, 6.2.2.1).
    Unvalidated {
        /// Whether Handshake packets can be sent.
        handshake_keys: bool,
    },
    /// Under way: a server, or a client whose address is validated.
    Unconfirmed,
    /// The handshake is confirmed (RFC 9001, 4.1.2).
    Confirmed,
}

/// All that the timer is computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimerState<'a> {
    /// The spaces, in the order of [`Space::ALL`]; a discarded one is empty.
    pub(crate) spaces: [SpaceTimes; SPACES],
    /// Of the path in use.
    pub(crate) rtt: &'a Rtt,
    /// The peer's.
    pub(crate) max_ack_delay: Duration,
    /// How far the handshake is.
    pub(crate) handshake: HandshakeProgress,
    /// Whether the anti-amplification limit forbids sending (RFC 9002, 6.2.2.1).
    pub(crate) is_blocked: bool,
}

impl LossTimer {
    /// No timeouts so far.
    pub(crate) const fn new() -> Self {
        Self {
            count: 0,
            waiting_since: None,
        }
    }

    /// When the timer goes off next, and what for; it may lie in the past.
    pub(crate) fn deadline(
        &mut self,
        now: Instant,
        state: &TimerState<'_>,
    ) -> Option<(Instant, Expiry)> {
        let loss = Space::ALL
            .into_iter()
            .zip(state.spaces)
            .filter_map(|(space, times)| Some((times.loss?, Expiry::Loss(space))))
            .min_by_key(|(at, _)| *at);
        // A probe timer MUST NOT be set beside one for losses.
        if loss.is_some() {
            return loss;
        }
        if state.is_blocked {
            return None;
        }
        let probe = Space::ALL
            .into_iter()
            .zip(state.spaces)
            .filter(|(space, _)| {
                *space != Space::Application || state.handshake == HandshakeProgress::Confirmed
            })
            .filter_map(|(space, times)| {
                let at = times.eliciting?.checked_add(self.pto(space, state))?;
                Some((at, Expiry::Probe(space)))
            })
            .min_by_key(|(at, _)| *at);
        if probe.is_some() {
            self.waiting_since = None;
            return probe;
        }
        let HandshakeProgress::Unvalidated { handshake_keys } = state.handshake else {
            self.waiting_since = None;
            return None;
        };
        let space = if handshake_keys {
            Space::Handshake
        } else {
            Space::Initial
        };
        let since = *self.waiting_since.get_or_insert(now);
        let at = since.checked_add(self.pto(space, state))?;
        Some((at, Expiry::Probe(space)))
    }

    /// The probe timeout of a space with its backoff.
    pub(crate) fn pto(&self, space: Space, state: &TimerState<'_>) -> Duration {
        let max_ack_delay = match space {
            Space::Initial | Space::Handshake => Duration::ZERO,
            Space::Application => state.max_ack_delay,
        };
        let factor = 1_u32.checked_shl(self.count).unwrap_or(u32::MAX);
        state
            .rtt
            .pto_base(max_ack_delay)
            .saturating_mul(factor)
            .min(PTO)
    }

    /// The timer went off for a probe.
    pub(crate) fn on_probe(&mut self) {
        self.count = self.count.saturating_add(1).min(PTO_EXPONENT);
        self.waiting_since = None;
    }

    /// Packets were newly acknowledged. A client that may be probing a slow server does not start over
    /// (RFC 9002, 6.2.1).
    pub(crate) const fn on_acked(&mut self, handshake: HandshakeProgress) {
        self.waiting_since = None;
        if !matches!(handshake, HandshakeProgress::Unvalidated { .. }) {
            self.count = 0;
        }
    }

    /// The keys of a space were discarded, which is progress (RFC 9002, 6.2.2), or Retry came.
    pub(crate) const fn reset(&mut self) {
        self.count = 0;
        self.waiting_since = None;
    }

    /// Probe timeouts since the last acknowledgment.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{
        Expiry, HandshakeProgress as H, LossTimer, PTO, PTO_EXPONENT, Space, SpaceTimes, TimerState,
    };
    use crate::rtt::Rtt;

    const MS: Duration = Duration::from_millis(1);

    fn now() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        Instant::now()
    }

    /// The PTO of the handshake's spaces is 30 ms, that of the application's 55.
    fn rtt(now: Instant) -> Rtt {
        let mut rtt = Rtt::default();
        rtt.update(now, MS * 10, Duration::ZERO, true, MS * 25);
        rtt
    }

    fn state(rtt: &Rtt, spaces: [Option<Instant>; 3], handshake: H) -> TimerState<'_> {
        TimerState {
            spaces: spaces.map(|eliciting| SpaceTimes {
                loss: None,
                eliciting,
            }),
            rtt,
            max_ack_delay: MS * 25,
            handshake,
            is_blocked: false,
        }
    }

    /// RFC 9002, 6.2.2: when keys are discarded the backoff begins anew.
    #[test]
    fn discarded_keys_start_the_backoff_anew() {
        let now = now();
        let rtt = rtt(now);
        let state = state(&rtt, [None, Some(now), None], H::Unconfirmed);
        let mut timer = LossTimer::new();
        let first = timer.pto(Space::Handshake, &state);
        timer.on_probe();
        timer.on_probe();
        assert_eq!(timer.pto(Space::Handshake, &state), first * 4);
        timer.reset();
        assert_eq!(timer.pto(Space::Handshake, &state), first);
    }

    /// RFC 9002, 6.2.1: the earlier of the spaces, without max_ack_delay in Initial and Handshake.
    #[test]
    fn the_earliest_space_is_probed() {
        let now = now();
        let rtt = rtt(now);
        let mut timer = LossTimer::new();
        let all = [Some(now + MS * 9), Some(now), Some(now)];
        assert_eq!(
            timer.deadline(now, &state(&rtt, all, H::Confirmed)),
            Some((now + MS * 30, Expiry::Probe(Space::Handshake)))
        );
        assert_eq!(
            timer.deadline(now, &state(&rtt, [None, None, Some(now)], H::Confirmed)),
            Some((now + MS * 55, Expiry::Probe(Space::Application)))
        );
    }

    /// RFC 9002, 6.2.1: no PTO for application data until the handshake is confirmed.
    #[test]
    fn application_data_waits_for_confirmation() {
        let now = now();
        let rtt = rtt(now);
        let mut timer = LossTimer::new();
        let spaces = [None, None, Some(now)];
        assert_eq!(
            timer.deadline(now, &state(&rtt, spaces, H::Unconfirmed)),
            None
        );
        let keys = H::Unvalidated {
            handshake_keys: false,
        };
        assert_eq!(
            timer.deadline(now, &state(&rtt, spaces, keys)),
            Some((now + MS * 30, Expiry::Probe(Space::Initial))),
            "early data in flight must not stop the client from probing"
        );
    }

    /// RFC 9002, 6.2.1: each timeout doubles the period in all spaces; an acknowledgment resets it.
    #[test]
    fn backoff_doubles_until_an_acknowledgment() {
        let now = now();
        let rtt = rtt(now);
        let mut timer = LossTimer::new();
        let one = state(&rtt, [None, None, Some(now)], H::Confirmed);
        timer.on_probe();
        timer.on_probe();
        assert_eq!(timer.deadline(now, &one).unwrap().0, now + MS * 55 * 4);
        assert_eq!(timer.pto(Space::Initial, &one), MS * 30 * 4);
        timer.on_acked(H::Unvalidated {
            handshake_keys: true,
        });
        assert_eq!(
            timer.count(),
            2,
            "a client that may not be validated goes on"
        );
        timer.on_acked(H::Confirmed);
        assert_eq!(timer.deadline(now, &one).unwrap().0, now + MS * 55);
        timer.on_probe();
        timer.reset();
        assert_eq!(timer.count(), 0, "discarded keys start over");
    }

    #[test]
    fn backoff_is_bounded() {
        let now = now();
        let rtt = rtt(now);
        let mut timer = LossTimer::new();
        for _ in 0..100 {
            timer.on_probe();
        }
        assert_eq!(timer.count(), PTO_EXPONENT);
        let one = state(&rtt, [None, None, Some(now)], H::Confirmed);
        assert_eq!(timer.deadline(now, &one).unwrap().0, now + PTO);
    }

    /// RFC 9002, 6.2.1: the PTO timer MUST NOT be set if a timer is set for time threshold loss detection.
    #[test]
    fn a_loss_timer_replaces_the_probe() {
        let now = now();
        let rtt = rtt(now);
        let mut state = state(&rtt, [Some(now), None, Some(now)], H::Confirmed);
        state.spaces[2].loss = Some(now + MS * 500);
        state.is_blocked = true;
        assert_eq!(
            LossTimer::new().deadline(now, &state),
            Some((now + MS * 500, Expiry::Loss(Space::Application)))
        );
    }

    /// RFC 9002, 6.2.2.1: a server that may not send arms no timer.
    #[test]
    fn a_blocked_server_waits() {
        let now = now();
        let rtt = rtt(now);
        let mut state = state(&rtt, [Some(now), None, None], H::Unconfirmed);
        state.is_blocked = true;
        assert_eq!(LossTimer::new().deadline(now, &state), None);
    }

    /// RFC 9002, 6.2.2.1: a client MUST arm the timer even with nothing in flight, until it knows that the server has
    /// validated its address; it sends a Handshake packet if it can.
    #[test]
    fn a_client_unblocks_its_server() {
        let now = now();
        let rtt = rtt(now);
        let mut timer = LossTimer::new();
        let none = |handshake_keys| state(&rtt, [None; 3], H::Unvalidated { handshake_keys });
        assert_eq!(
            timer.deadline(now, &none(false)),
            Some((now + MS * 30, Expiry::Probe(Space::Initial)))
        );
        assert_eq!(
            timer.deadline(now + MS * 20, &none(true)),
            Some((now + MS * 30, Expiry::Probe(Space::Handshake))),
            "asking again does not put it off"
        );
        timer.on_probe();
        assert_eq!(
            timer.deadline(now + MS * 30, &none(true)),
            Some((now + MS * 90, Expiry::Probe(Space::Handshake)))
        );
        assert_eq!(
            timer.deadline(now, &state(&rtt, [None; 3], H::Unconfirmed)),
            None
        );
    }
}
