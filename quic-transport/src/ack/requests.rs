//! What we ask of the peer's acknowledgments, draft-ietf-quic-ack-frequency-14, 4 and 8.
//!
//! An acknowledgment for each pair of packets tells a large window little, and costs both ends. A peer that can be asked
//! is asked for a few in a round trip, once the window is large enough for that to be fewer, and again when it has
//! changed much.

use std::time::{Duration, Instant};

use crate::wire::Frame;

/// Acknowledgments for a window that grows fast, whose growth follows them, and whose delay samples end it.
const SHARES_OF_SLOW_START: u64 = 16;

/// Acknowledgments for a window otherwise.
const SHARES: u64 = 4;

/// What a first request asks for at least: less isn't worth the frame.
const WORTH_ASKING: u64 = 4;

/// What the peer is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    /// Ack-eliciting packets that it need not acknowledge at once.
    threshold: u64,
    max_delay: Duration,
    reordering: u64,
}

/// What a wish is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// Of the path.
    pub(crate) smoothed_rtt: Duration,
    /// The congestion window, in packets.
    pub(crate) window: u64,
    pub(crate) is_slow_start: bool,
    /// How many packets later a packet is lost (RFC 9002, 6.1.1).
    pub(crate) packet_threshold: u64,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckRequests {
    /// The peer's min_ack_delay; `None` when it can't, or is not to, be asked.
    least_delay: Option<Duration>,
    /// The peer's max_ack_delay.
    most_delay: Duration,
    /// The sequence number of the next frame.
    next: u64,
    asked: Option<Wish>,
    asked_at: Option<Instant>,
    is_owed: bool,
}

impl AckRequests {
    /// The peer delays its acknowledgments by `least` to `most` when asked to.
    pub(crate) const fn allow(&mut self, least: Duration, most: Duration) {
        self.least_delay = Some(least);
        self.most_delay = most;
    }

    /// Whether the peer takes ACK_FREQUENCY and IMMEDIATE_ACK frames.
    pub(crate) const fn is_possible(&self) -> bool {
        self.least_delay.is_some()
    }

    /// Whether a frame is to be sent.
    #[inline]
    pub(crate) const fn is_owed(&self) -> bool {
        self.is_owed
    }

    /// Looks whether the peer should be asked for something else; at most once in a round trip.
    pub(crate) fn consider(&mut self, now: Instant, situation: &Situation) {
        let Some(least) = self.least_delay else {
            return;
        };
        let since = self.asked_at.map(|at| now.saturating_duration_since(at));
        if self.is_owed || since.is_some_and(|since| since < situation.smoothed_rtt) {
            return;
        }
        let shares = if situation.is_slow_start {
            SHARES_OF_SLOW_START
        } else {
            SHARES
        };
        let wish = Wish {
            threshold: (situation.window / shares).max(1),
            max_delay: (situation.smoothed_rtt / 4).clamp(least, self.most_delay.max(least)),
            reordering: situation.packet_threshold,
        };
        let is_worth_it = self
            .asked
            .map_or(wish.threshold >= WORTH_ASKING, |asked| wish.differs(&asked));
        if is_worth_it {
            self.asked = Some(wish);
            self.asked_at = Some(now);
            self.is_owed = true;
        }
    }

    /// The frame to be sent, and its sequence number.
    pub(crate) fn owed(&self) -> Option<(u64, Frame<'static>)> {
        let wish = self.asked.filter(|_| self.is_owed)?;
        let frame = Frame::AckFrequency {
            sequence: self.next,
            threshold: wish.threshold,
            max_delay: u64::try_from(wish.max_delay.as_micros()).unwrap_or(u64::MAX),
            reordering: wish.reordering,
        };
        Some((self.next, frame))
    }

    /// It has been sent. Returns the delay that the peer may now have.
    pub(crate) fn on_sent(&mut self) -> Duration {
        self.next += 1;
        self.is_owed = false;
        self.asked.map_or(Duration::ZERO, |wish| wish.max_delay)
    }

    /// The frame arrived. Returns the delay that the peer has from now on, if no newer frame is under way.
    pub(crate) fn on_acked(&self, sequence: u64) -> Option<Duration> {
        self.asked
            .filter(|_| self.is_newest(sequence))
            .map(|wish| wish.max_delay)
    }

    /// The frame was lost: it is sent again, with a new number, unless another has taken its place.
    pub(crate) const fn on_lost(&mut self, sequence: u64) {
        self.is_owed |= self.is_newest(sequence);
    }

    const fn is_newest(&self, sequence: u64) -> bool {
        sequence.saturating_add(1) == self.next && !self.is_owed
    }
}

impl Wish {
    /// Whether it differs by so much that the peer should know.
    fn differs(&self, asked: &Self) -> bool {
        let (threshold, delay) = (asked.threshold, asked.max_delay);
        self.reordering != asked.reordering
            || self.threshold >= threshold.saturating_mul(2)
            || self.threshold <= threshold / 2
            || self.max_delay >= delay.saturating_mul(2)
            || self.max_delay <= delay / 2
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{AckRequests, Situation};
    use crate::wire::Frame;

    const MS: Duration = Duration::from_millis(1);

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        Instant::now()
    }

    fn possible() -> AckRequests {
        let mut requests = AckRequests::default();
        requests.allow(MS, 25 * MS);
        requests
    }

    const fn situation(window: u64, is_slow_start: bool) -> Situation {
        Situation {
            smoothed_rtt: Duration::from_millis(40),
            window,
            is_slow_start,
            packet_threshold: 3,
        }
    }

    fn asks(
        requests: &mut AckRequests,
        now: Instant,
        situation: &Situation,
    ) -> Option<Frame<'static>> {
        requests.consider(now, situation);
        let (_, frame) = requests.owed()?;
        requests.on_sent();
        Some(frame)
    }

    const fn frame(sequence: u64, threshold: u64, max_delay: u64) -> Frame<'static> {
        Frame::AckFrequency {
            sequence,
            threshold,
            max_delay,
            reordering: 3,
        }
    }

    #[test]
    fn who_cannot_be_asked_is_not() {
        let mut requests = AckRequests::default();
        assert!(!requests.is_possible());
        assert_eq!(asks(&mut requests, start(), &situation(1000, false)), None);
    }

    /// 8.1: no more packets than a window holds, and no longer than a round trip.
    #[test]
    fn a_large_window_asks_for_few_acknowledgments() {
        let (mut requests, now) = (possible(), start());
        assert_eq!(asks(&mut requests, now, &situation(15, false)), None);
        let asked = asks(&mut requests, now, &situation(160, true));
        assert_eq!(asked, Some(frame(0, 10, 10_000)));
        let asked = asks(&mut requests, now + 40 * MS, &situation(160, false));
        assert_eq!(asked, Some(frame(1, 40, 10_000)));
    }

    /// 8.1: once per round trip is enough, and only when something has changed.
    #[test]
    fn little_changes_are_not_worth_a_frame() {
        let (mut requests, now) = (possible(), start());
        assert!(asks(&mut requests, now, &situation(100, false)).is_some());
        let later = now + 39 * MS;
        assert_eq!(asks(&mut requests, later, &situation(1000, false)), None);
        let later = now + 40 * MS;
        assert_eq!(asks(&mut requests, later, &situation(199, false)), None);
        assert_eq!(asks(&mut requests, later, &situation(52, false)), None);
        assert!(asks(&mut requests, later, &situation(48, false)).is_some());
        let reordered = Situation {
            packet_threshold: 9,
            ..situation(48, false)
        };
        assert!(asks(&mut requests, later + 40 * MS, &reordered).is_some());
    }

    /// 3 and 4: a delay under the peer's least is invalid.
    #[test]
    fn the_delay_is_what_the_peer_can_do() {
        for (rtt, micros) in [(0, 1000), (2, 1000), (8, 2000), (400, 25_000)] {
            let situation = Situation {
                smoothed_rtt: rtt * MS,
                ..situation(100, false)
            };
            let asked = asks(&mut possible(), start(), &situation);
            assert_eq!(asked, Some(frame(0, 25, micros)));
        }
    }

    /// 4: numbers increase; a lost frame is sent again, unless a newer one has been.
    #[test]
    fn a_lost_frame_is_sent_again_with_a_new_number() {
        let (mut requests, now) = (possible(), start());
        asks(&mut requests, now, &situation(100, false));
        assert_eq!(requests.on_acked(1), None);
        requests.on_lost(0);
        assert_eq!(requests.owed(), Some((1, frame(1, 25, 10_000))));
        assert_eq!(requests.on_sent(), 10 * MS);
        asks(&mut requests, now + 40 * MS, &situation(1000, false));
        requests.on_lost(1);
        assert!(!requests.is_owed());
        assert_eq!(requests.on_acked(1), None);
        assert_eq!(requests.on_acked(2), Some(10 * MS));
    }
}
