//! The round-trip time of a path, [RFC 9002, section 5](https://www.rfc-editor.org/rfc/rfc9002#section-5).
//!
//! A peer can report any acknowledgment delay it likes; the minimum, which is observed here alone, bounds what such a
//! report can do.

use std::time::{Duration, Instant};

/// What is assumed before the first sample (RFC 9002, 6.2.2).
pub(crate) const INITIAL_RTT: Duration = Duration::from_millis(333);

/// The finest interval that timers are set for (RFC 9002, 6.1.2).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// No estimate falls below this, so that rates computed from it stay finite.
const MINIMUM: Duration = Duration::from_micros(1);

/// A sample longer than this is a clock that jumped, not a path.
const MAXIMUM: Duration = Duration::from_mins(5);

/// The estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rtt {
    latest: Duration,
    smoothed: Duration,
    var: Duration,
    min: Duration,
    first_sample: Option<Instant>,
}

impl Default for Rtt {
    fn default() -> Self {
        Self::new(INITIAL_RTT)
    }
}

impl Rtt {
    /// An estimator that assumes `initial` until there is a sample.
    pub(crate) fn new(initial: Duration) -> Self {
        let initial = initial.clamp(MINIMUM, MAXIMUM);
        Self {
            latest: initial,
            smoothed: initial,
            var: initial / 2,
            min: initial,
            first_sample: None,
        }
    }

    /// Takes the sample `latest`: the time since the largest packet that is newly acknowledged was sent.
    ///
    /// `ack_delay` is what the peer says that it waited; it counts up to `max_ack_delay` once the handshake is
    /// confirmed, and never so far that the path would look shorter than its minimum.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        latest: Duration,
        ack_delay: Duration,
        handshake_confirmed: bool,
        max_ack_delay: Duration,
    ) {
        let latest = latest.clamp(MINIMUM, MAXIMUM);
        self.latest = latest;
        if self.first_sample.is_none() {
            self.first_sample = Some(now);
            self.smoothed = latest;
            self.var = latest / 2;
            self.min = latest;
            return;
        }
        self.min = self.min.min(latest);
        let ack_delay = if handshake_confirmed {
            ack_delay.min(max_ack_delay)
        } else {
            ack_delay
        };
        let adjusted = if latest >= self.min.saturating_add(ack_delay) {
            latest.saturating_sub(ack_delay)
        } else {
            latest
        };
        self.var = (self.var * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = ((self.smoothed * 7 + adjusted) / 8).max(MINIMUM);
    }

    /// Starts the minimum anew from the latest sample, after persistent congestion (RFC 9002, 5.2).
    pub(crate) const fn reset_min(&mut self) {
        self.min = self.latest;
    }

    /// The latest sample, or the initial assumption.
    pub(crate) const fn latest(&self) -> Duration {
        self.latest
    }

    /// The moving average.
    #[inline]
    pub(crate) const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation.
    pub(crate) const fn var(&self) -> Duration {
        self.var
    }

    /// The smallest sample.
    pub(crate) const fn min(&self) -> Duration {
        self.min
    }

    /// When the first sample was taken.
    pub(crate) const fn first_sample(&self) -> Option<Instant> {
        self.first_sample
    }

    /// The probe timeout before backoff: `max_ack_delay` is zero for the handshake's spaces (RFC 9002, 6.2.1).
    pub(crate) fn pto_base(&self, max_ack_delay: Duration) -> Duration {
        self.smoothed
            .saturating_add((self.var * 4).max(GRANULARITY))
            .saturating_add(max_ack_delay)
    }

    /// How long before a later packet's acknowledgment a packet is given up (RFC 9002, 6.1.2).
    pub(crate) fn loss_delay(&self) -> Duration {
        let rtt = self.smoothed.max(self.latest);
        (rtt + rtt / 8).max(GRANULARITY)
    }

    /// The span of losses that is persistent congestion (RFC 9002, 7.6.1).
    pub(crate) fn persistent_congestion(&self, max_ack_delay: Duration) -> Duration {
        self.pto_base(max_ack_delay).saturating_mul(3)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{INITIAL_RTT, Rtt};

    const MS: Duration = Duration::from_millis(1);

    fn sampled(samples: &[(u32, u32)], confirmed: bool) -> Rtt {
        let mut rtt = Rtt::default();
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        let now = Instant::now();
        for (latest, ack_delay) in samples {
            rtt.update(now, MS * *latest, MS * *ack_delay, confirmed, MS * 25);
        }
        rtt
    }

    /// RFC 9002, 6.2.2: an initial RTT of 333 ms makes the first PTO about one second.
    #[test]
    fn handshakes_start_with_a_pto_of_a_second() {
        let rtt = Rtt::default();
        assert_eq!(rtt.smoothed(), INITIAL_RTT);
        assert_eq!(rtt.pto_base(Duration::ZERO), MS * 999);
    }

    /// RFC 9002, 5.3: the first sample replaces the assumption, whatever delay is reported with it.
    #[test]
    fn the_first_sample_replaces_the_assumption() {
        let rtt = sampled(&[(100, 50)], true);
        assert_eq!(
            (rtt.smoothed(), rtt.var(), rtt.min(), rtt.latest()),
            (MS * 100, MS * 50, MS * 100, MS * 100)
        );
        assert!(rtt.first_sample().is_some());
    }

    /// RFC 9002, 5.3: 7/8 and 1/8, 3/4 and 1/4, the deviation being taken from the average before the sample.
    #[test]
    fn averages_follow_the_formulae() {
        let rtt = sampled(&[(80, 0), (120, 0)], true);
        assert_eq!(rtt.smoothed(), MS * 85);
        assert_eq!(rtt.var(), MS * 40);
        assert_eq!(rtt.min(), MS * 80);
        assert_eq!(rtt.pto_base(MS * 25), MS * (85 + 160 + 25));
        assert_eq!(rtt.persistent_congestion(MS * 25), MS * (3 * 270));
    }

    /// RFC 9002, 5.3: the delay counts up to max_ack_delay, but only after the handshake is confirmed.
    #[test]
    fn reported_delay_is_limited_once_confirmed() {
        assert_eq!(
            sampled(&[(80, 0), (160, 60)], true).smoothed(),
            (MS * 560 + MS * 135) / 8
        );
        assert_eq!(
            sampled(&[(80, 0), (160, 60)], false).smoothed(),
            (MS * 560 + MS * 100) / 8
        );
    }

    /// RFC 9002, 5.3: the delay MUST NOT be subtracted if the result is below min_rtt.
    #[test]
    fn reported_delay_never_beats_the_minimum() {
        let rtt = sampled(&[(80, 0), (90, 20)], true);
        assert_eq!(rtt.smoothed(), (MS * 560 + MS * 90) / 8);
    }

    /// RFC 9002, 6.1.2: 9/8 of the larger of average and latest, and no less than the granularity.
    #[test]
    fn the_loss_delay_is_nine_eighths() {
        assert_eq!(sampled(&[(80, 0)], true).loss_delay(), MS * 90);
        assert_eq!(sampled(&[(80, 0), (160, 0)], true).loss_delay(), MS * 180);
        assert_eq!(sampled(&[(0, 0)], true).loss_delay(), MS);
    }

    /// RFC 9002, 5.2: after persistent congestion the minimum is the newest sample.
    #[test]
    fn the_minimum_can_start_anew() {
        let mut rtt = sampled(&[(80, 0), (160, 0)], true);
        rtt.reset_min();
        assert_eq!(rtt.min(), MS * 160);
    }

    #[test]
    fn absurd_samples_and_delays_are_cut() {
        let rtt = sampled(&[(0, 0), (0, u32::MAX), (0, 0)], false);
        assert!(rtt.smoothed() >= Duration::from_micros(1));
        assert!(rtt.min() >= Duration::from_micros(1));
        let rtt = sampled(&[(u32::MAX, 0), (u32::MAX, u32::MAX)], false);
        assert!(rtt.pto_base(Duration::MAX) == Duration::MAX);
        assert!(rtt.smoothed() <= Duration::from_mins(5));
    }
}
