//! The packets received in one packet number space, and the acknowledgment that they are owed.
//!
//! The first packets of a batch only set flags; the ACK frame is built once, when a packet is assembled.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use quic_common::Ecn;

use super::duplicates::Duplicates;
use super::frequency::Frequency;
use super::ranges::Ranges;
use crate::limits::{ACK_RANGES_SENT, DUPLICATE_WINDOW};
use crate::transmit::Space;
use crate::wire::EcnCounts;

/// Ack-eliciting packets after which an ACK is sent at once (RFC 9000, 13.2.2).
const DEFAULT_THRESHOLD: u32 = 2;

/// How late a timer may go off.
const LATENESS: Duration = Duration::from_millis(1);

/// Timers for no more than this are set with care, and late by a 32nd at most.
const BRIEF: Duration = Duration::from_millis(10);

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
    /// What the peer has asked for instead of the policy.
    asked: Option<Asked>,
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
    /// What the timer is set to.
    hold: Duration,
}

/// What the peer has asked for, and what its conditions are computed from
/// (draft-ietf-quic-ack-frequency-14, 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    frequency: Frequency,
    /// Every number below has been received, or has been reported as missing.
    missing_from: u64,
    /// What the last ACK frame acknowledged at most.
    largest_acked: Option<u64>,
    /// The packet before had a CE mark.
    is_marked: bool,
    /// Packets since the last ACK frame that came out of order or behind a gap.
    disorder: usize,
}

impl ReceivedPackets {
    /// Nothing received. In the handshake's spaces every ack-eliciting packet is acknowledged at once, in the
    /// application's after `max_ack_delay` at the latest, which is the delay that we announced; the timer is set for a little
    /// less, since it may go off late (RFC 9000, 18.2).
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
                hold: hold(max_ack_delay),
            },
            asked: None,
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
        self.ecn.count(ecn, 1);
        if !ack_eliciting {
            return;
        }
        // Out of order: below one that was received, or above a gap (RFC 9000, 13.2.1).
        let reordered =
            number < self.eliciting_end || (number > expected && self.eliciting_end > 0);
        self.eliciting_end = self.eliciting_end.max(number.saturating_add(1));
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        let is_due = if self.asked.is_none() {
            self.is_reason(reordered, ecn)
        } else {
            self.is_asked_for(number, reordered, ecn)
        };
        self.owe(is_due, now);
    }

    /// `count` ack-eliciting packets with the same mark were processed, whose numbers follow the largest without a gap: the
    /// same as [`Self::on_packet`] for each of them.
    pub(crate) fn on_packets_in_order(&mut self, count: u32, ecn: Ecn, now: Instant) {
        let Some(largest) = self.largest() else {
            debug_assert!(false, "nothing that they could follow");
            return;
        };
        let next = largest.saturating_add(1);
        if !self.is_whole_to(next) {
            for number in (next..).take(usize::try_from(count).unwrap_or_default()) {
                self.on_packet(number, true, ecn, now);
            }
            return;
        }
        self.seen.insert_next(count.into());
        self.ranges.insert_next(count.into());
        self.largest_received = Some(now);
        self.ecn.count(ecn, count.into());
        self.eliciting_end = next.saturating_add(count.into());
        self.unacknowledged = self.unacknowledged.saturating_add(count);
        let last = self.eliciting_end.saturating_sub(1);
        let is_due = if let Some(asked) = &mut self.asked {
            if asked.frequency.reordering > 1 {
                asked.missing_from = last;
            }
            self.is_asked_for(last, false, ecn)
        } else {
            self.is_reason(false, ecn)
        };
        self.owe(is_due, now);
    }

    /// Whether packets in order from `next` on make a difference by their number alone: always, unless the peer has asked to
    /// hear of missing ones, and some are missing below.
    #[inline]
    fn is_whole_to(&mut self, next: u64) -> bool {
        let Some(asked) = &self.asked else {
            return true;
        };
        let reordering = asked.frequency.reordering;
        self.eliciting_end == next
            && (reordering <= 1 || self.smallest_unreported(reordering).is_none())
    }

    /// Whether an ack-eliciting packet is reason for an ACK at once, for a peer that hasn't said when it wants them.
    #[inline]
    fn is_reason(&self, reordered: bool, ecn: Ecn) -> bool {
        self.policy.immediate
            || reordered
            || ecn == Ecn::Ce
            || self.unacknowledged >= self.policy.threshold
    }

    /// An ACK is owed, now or in a while.
    #[inline]
    fn owe(&mut self, is_due: bool, now: Instant) {
        if is_due {
            self.due = Due::Now;
        } else if self.due == Due::Never {
            self.due = now.checked_add(self.policy.hold).map_or(Due::Now, Due::At);
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

    /// Gives back what isn't needed in a silence: what hasn't come by now counts as a duplicate.
    pub(crate) fn rest(&mut self) {
        self.seen.forget();
    }

    /// Whether an ACK must go out, now or later.
    pub(crate) const fn owes_ack(&self) -> bool {
        !matches!(self.due, Due::Never)
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

    /// The packet held as much as several: reason for an ACK, if the peer hasn't said when it wants them.
    #[inline]
    pub(crate) const fn on_large(&mut self) {
        if self.asked.is_none() {
            self.due = Due::Now;
        }
    }

    /// The peer asks for another frequency; what is older than the last request is ignored.
    pub(crate) fn on_frequency(&mut self, frequency: Frequency) {
        let before = self.asked;
        if before.is_some_and(|asked| asked.frequency.sequence >= frequency.sequence) {
            return;
        }
        self.policy.hold = hold(frequency.max_delay);
        self.asked = Some(Asked {
            frequency,
            missing_from: before.map_or(self.eliciting_end, |asked| asked.missing_from),
            largest_acked: before.map_or_else(|| self.largest(), |asked| asked.largest_acked),
            is_marked: before.is_some_and(|asked| asked.is_marked),
            disorder: 0,
        });
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
    pub(crate) fn on_ack_sent(&mut self) {
        self.unacknowledged = 0;
        self.due = Due::Never;
        let largest = self.largest();
        if let Some(asked) = &mut self.asked {
            asked.largest_acked = largest;
            asked.disorder = 0;
        }
    }

    /// Whether an ack-eliciting packet is reason for an ACK at once, by what the peer has asked for
    /// (draft-ietf-quic-ack-frequency-14, 6).
    fn is_asked_for(&mut self, number: u64, reordered: bool, ecn: Ecn) -> bool {
        let Some(asked) = &mut self.asked else {
            return true;
        };
        let Frequency {
            threshold,
            reordering,
            ..
        } = asked.frequency;
        // 6.3: of CE marks in a row the first counts, unless acknowledgments are frequent anyway.
        let was_marked = std::mem::replace(&mut asked.is_marked, ecn == Ecn::Ce);
        let is_congested = ecn == Ecn::Ce && (threshold <= 1 || !was_marked);
        asked.disorder += usize::from(reordered);
        if u64::from(self.unacknowledged) > threshold
            || is_congested
            // 6: what has been received must fit into one frame.
            || asked.disorder >= ACK_RANGES_SENT / 2
        {
            return true;
        }
        match reordering {
            0 => false,
            1 => reordered,
            _ => {
                let late = asked
                    .largest_acked
                    .is_some_and(|largest| number.saturating_add(reordering) <= largest);
                late || self.smallest_unreported(reordering).is_some_and(|missing| {
                    let largest = self.eliciting_end.saturating_sub(1);
                    largest.saturating_sub(missing) >= reordering
                })
            }
        }
    }

    /// The smallest number below the largest received that is missing, and that no ACK frame has let the peer declare
    /// lost.
    fn smallest_unreported(&mut self, reordering: u64) -> Option<u64> {
        let asked = self.asked.as_mut()?;
        let reported = asked
            .largest_acked
            .and_then(|largest| largest.checked_sub(reordering));
        let largest = self.eliciting_end.saturating_sub(1);
        // What is too old to tell counts as received.
        asked.missing_from = asked
            .missing_from
            .max(reported.map_or(0, |number| number.saturating_add(1)))
            .max(largest.saturating_sub(DUPLICATE_WINDOW));
        while asked.missing_from < largest && self.seen.contains(asked.missing_from) {
            asked.missing_from += 1;
        }
        (asked.missing_from < largest).then_some(asked.missing_from)
    }

    /// Our ACK of packets up to `largest` was received: the peer needs to hear no more of those (RFC 9000, 13.2.4).
    #[inline]
    pub(crate) fn on_ack_acked(&mut self, largest: u64) {
        self.ranges.forget_below(largest.saturating_add(1));
    }
}

/// What the timer is set to for an acknowledgment to be sent within `delay`, though the timer be late.
fn hold(delay: Duration) -> Duration {
    let brief = delay.min(BRIEF);
    let brief = brief.saturating_sub(brief / 32);
    delay.saturating_sub(LATENESS).max(brief)
}

#[cfg(test)]
#[path = "in_order_tests.rs"]
mod in_order_tests;
#[cfg(test)]
#[path = "received_tests.rs"]
mod tests;
