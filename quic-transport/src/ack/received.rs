//! The packets received in one packet number space, and the acknowledgment that they are owed.
//!
//! The first packets of a batch only set flags; the ACK frame is built once, when a packet is assembled.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use quic_common::Ecn;

use super::duplicates::Duplicates;
use super::ranges::Ranges;
use crate::limits::ACK_RANGES_SENT;
use crate::transmit::Space;
use crate::wire::EcnCounts;

/// Ack-eliciting packets after which an ACK is sent at once (RFC 9000, 13.2.2).
const DEFAULT_THRESHOLD: u32 = 2;

/// What has been received in a space.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedPackets {
    seen: Duplicates,
    ranges: Ranges,
    largest_received: Option<Instant>,
    ecn: EcnCounts,
    /// The largest number of an ack-eliciting packet, and one more.
    eliciting_end: u64,
    /// Ack-eliciting packets since an ACK was sent.
    unacknowledged: u32,
    due: Due,
    policy: Policy,
}

/// When an ACK is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Never,
    At(Instant),
    Now,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    immediate: bool,
    threshold: u32,
    max_delay: Duration,
}

impl ReceivedPackets {
    /// Nothing received. In the handshake's spaces every ack-eliciting packet is acknowledged at once, in the
    /// application's after `max_ack_delay` at the latest, which is the delay that we announced.
    pub(crate) fn new(space: Space, max_ack_delay: Duration) -> Self {
        Self {
            seen: Duplicates::new(),
            ranges: Ranges::new(),
            largest_received: None,
            ecn: EcnCounts::default(),
            eliciting_end: 0,
            unacknowledged: 0,
            due: Due::Never,
            policy: Policy {
                immediate: space != Space::Application,
                threshold: DEFAULT_THRESHOLD,
                max_delay: max_ack_delay,
            },
        }
    }

    /// Whether the packet `number` has been processed, or is too old to tell. Asked after the packet was decrypted
    /// (RFC 9000, 12.3).
    #[inline]
    pub(crate) fn is_duplicate(&self, number: u64) -> bool {
        self.seen.contains(number)
    }

    /// The packet `number`, which is no duplicate, was processed.
    #[inline]
    pub(crate) fn on_packet(&mut self, number: u64, ack_eliciting: bool, ecn: Ecn, now: Instant) {
        let expected = self.ranges.largest().map_or(0, |l| l.saturating_add(1));
        self.seen.insert(number);
        self.ranges.insert(number);
        if number >= expected {
            self.largest_received = Some(now);
        }
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ecn.ect0 = self.ecn.ect0.saturating_add(1),
            Ecn::Ect1 => self.ecn.ect1 = self.ecn.ect1.saturating_add(1),
            Ecn::Ce => self.ecn.ce = self.ecn.ce.saturating_add(1),
        }
        if !ack_eliciting {
            return;
        }
        // Out of order: below one that was received, or above a gap (RFC 9000, 13.2.1).
        let reordered =
            number < self.eliciting_end || (number > expected && self.eliciting_end > 0);
        self.eliciting_end = self.eliciting_end.max(number.saturating_add(1));
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        if self.policy.immediate
            || reordered
            || ecn == Ecn::Ce
            || self.unacknowledged >= self.policy.threshold
        {
            self.due = Due::Now;
        } else if self.due == Due::Never {
            self.due = now
                .checked_add(self.policy.max_delay)
                .map_or(Due::Now, Due::At);
        }
    }

    /// Whether an ACK must go out now, alone if need be.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        match self.due {
            Due::Never => false,
            Due::At(at) => at <= now,
            Due::Now => true,
        }
    }

    /// Whether an ACK would tell of an ack-eliciting packet: worth adding to a packet that goes out anyway.
    #[inline]
    pub(crate) const fn is_pending(&self) -> bool {
        self.unacknowledged > 0
    }

    /// When an ACK must go out, if one is waiting. One that is due already is found by [`is_due`](Self::is_due).
    #[inline]
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.due {
            Due::At(at) => Some(at),
            Due::Never | Due::Now => None,
        }
    }

    /// Asks for an ACK at once, whatever the number of packets.
    #[inline]
    pub(crate) const fn request(&mut self) {
        self.due = Due::Now;
    }

    /// The largest number received.
    #[inline]
    pub(crate) fn largest(&self) -> Option<u64> {
        self.ranges.largest()
    }

    /// What the ACK frame says: the newest ranges, from the largest number down.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u64>> + Clone + '_ {
        self.ranges.descending().take(ACK_RANGES_SENT)
    }

    /// How long the largest packet has waited (RFC 9000, 13.2.5).
    pub(crate) fn delay(&self, now: Instant) -> Duration {
        self.largest_received
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }

    /// The counts for the ACK frame, once any packet has come with a mark (RFC 9000, 13.4.1).
    pub(crate) fn ecn_counts(&self) -> Option<EcnCounts> {
        (self.ecn != EcnCounts::default()).then_some(self.ecn)
    }

    /// An ACK of all this was sent.
    #[inline]
    pub(crate) const fn on_ack_sent(&mut self) {
        self.unacknowledged = 0;
        self.due = Due::Never;
    }

    /// Our ACK of packets up to `largest` was received: the peer needs to hear no more of those (RFC 9000, 13.2.4).
    #[inline]
    pub(crate) fn on_ack_acked(&mut self, largest: u64) {
        self.ranges.forget_below(largest.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use quic_common::Ecn;

    use super::{ACK_RANGES_SENT, ReceivedPackets, Space};

    const DELAY: Duration = Duration::from_millis(25);

    fn received(space: Space) -> (ReceivedPackets, Instant) {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        let now = Instant::now();
        (ReceivedPackets::new(space, DELAY), now)
    }

    /// RFC 9000, 13.2.2: an ACK after two ack-eliciting packets; 13.2.1: or after max_ack_delay.
    #[test]
    fn every_second_packet_is_acknowledged_at_once() {
        let (mut packets, now) = received(Space::Application);
        packets.on_packet(0, true, Ecn::NotEct, now);
        assert!(!packets.is_due(now) && packets.is_pending());
        assert_eq!(packets.deadline(), Some(now + DELAY));
        assert!(packets.is_due(now + DELAY));
        packets.on_packet(1, true, Ecn::NotEct, now);
        assert!(packets.is_due(now));
        packets.on_ack_sent();
        assert!(!packets.is_due(now + DELAY) && !packets.is_pending());
    }

    /// RFC 9000, 13.2.1: the deadline is that of the first packet, and is not put off by later ones.
    #[test]
    fn packets_that_elicit_nothing_are_not_acknowledged_for_themselves() {
        let (mut packets, now) = received(Space::Application);
        for number in 0..9 {
            packets.on_packet(number, false, Ecn::NotEct, now);
        }
        assert!(!packets.is_pending() && packets.deadline().is_none());
        packets.on_packet(9, true, Ecn::NotEct, now);
        packets.on_packet(10, false, Ecn::NotEct, now + DELAY / 2);
        assert_eq!(packets.deadline(), Some(now + DELAY));
        assert!(packets.ranges().eq([0..=10]));
    }

    /// RFC 9000, 13.2.1: Initial and Handshake packets are acknowledged immediately.
    #[test]
    fn handshake_packets_are_acknowledged_at_once() {
        for space in [Space::Initial, Space::Handshake] {
            let (mut packets, now) = received(space);
            packets.on_packet(0, false, Ecn::NotEct, now);
            assert!(!packets.is_due(now));
            packets.on_packet(1, true, Ecn::NotEct, now);
            assert!(packets.is_due(now));
        }
    }

    /// RFC 9000, 13.2.1: a packet below one received, or above a gap, is acknowledged immediately, and so is CE.
    #[test]
    fn disorder_and_congestion_are_reported_at_once() {
        let (mut packets, now) = received(Space::Application);
        packets.on_packet(5, true, Ecn::NotEct, now);
        assert!(!packets.is_due(now), "there is no gap before the first");
        packets.on_ack_sent();
        packets.on_packet(7, true, Ecn::NotEct, now);
        assert!(packets.is_due(now), "a gap");
        packets.on_ack_sent();
        packets.on_packet(6, true, Ecn::NotEct, now);
        assert!(packets.is_due(now), "late");
        packets.on_ack_sent();
        packets.on_packet(8, true, Ecn::NotEct, now);
        assert!(!packets.is_due(now));
        packets.on_ack_sent();
        packets.on_packet(9, true, Ecn::Ce, now);
        assert!(packets.is_due(now), "congestion");
    }

    #[test]
    fn an_ack_that_is_asked_for_is_due_at_once() {
        let (mut packets, now) = received(Space::Application);
        packets.on_packet(7, true, Ecn::NotEct, now);
        packets.request();
        assert!(packets.is_due(now));
        assert_eq!(packets.largest(), Some(7));
    }

    /// RFC 9000, 13.2.5: the delay is that of the largest packet.
    #[test]
    fn the_delay_is_the_largest_packets() {
        let (mut packets, now) = received(Space::Application);
        packets.on_packet(3, true, Ecn::NotEct, now);
        packets.on_packet(2, true, Ecn::NotEct, now + DELAY);
        assert_eq!(packets.delay(now + DELAY), DELAY);
        packets.on_packet(4, true, Ecn::NotEct, now + DELAY);
        assert_eq!(packets.delay(now + DELAY), Duration::ZERO);
        assert_eq!(packets.delay(now), Duration::ZERO, "a clock that went back");
    }

    /// RFC 9000, 13.4.1: counts of each mark, once there is one.
    #[test]
    fn marks_are_counted() {
        let (mut packets, now) = received(Space::Application);
        packets.on_packet(0, true, Ecn::NotEct, now);
        assert_eq!(packets.ecn_counts(), None);
        for (number, ecn) in [(1, Ecn::Ect0), (2, Ecn::Ect0), (3, Ecn::Ce), (4, Ecn::Ect1)] {
            packets.on_packet(number, false, ecn, now);
        }
        let counts = packets.ecn_counts().unwrap();
        assert_eq!((counts.ect0, counts.ect1, counts.ce), (2, 1, 1));
    }

    /// RFC 9000, 13.2.4: once an ACK is acknowledged, what it said need not be repeated; 12.3: duplicates are still
    /// recognised.
    #[test]
    fn acknowledged_ranges_are_forgotten_but_not_seen_again() {
        let (mut packets, now) = received(Space::Application);
        for number in [0, 1, 2, 5, 6] {
            packets.on_packet(number, true, Ecn::NotEct, now);
        }
        packets.on_ack_acked(5);
        assert!(packets.ranges().eq([6..=6]));
        packets.on_ack_acked(6);
        assert!(
            packets.ranges().eq([6..=6]),
            "an ACK needs a largest number"
        );
        for (number, seen) in [(0, true), (2, true), (3, false), (6, true), (7, false)] {
            assert_eq!(packets.is_duplicate(number), seen);
        }
        packets.on_packet(3, true, Ecn::NotEct, now);
        assert!(packets.ranges().eq([6..=6, 3..=3]));
    }

    #[test]
    fn few_ranges_are_sent_of_the_many_kept() {
        let (mut packets, now) = received(Space::Application);
        for number in (0..1000).step_by(2) {
            assert!(!packets.is_duplicate(number));
            packets.on_packet(number, true, Ecn::NotEct, now);
        }
        assert_eq!(packets.ranges().count(), ACK_RANGES_SENT);
        assert_eq!(packets.ranges().next(), Some(998..=998));
        assert!(
            !packets.is_duplicate(1),
            "a dropped range makes nothing old"
        );
    }
}
