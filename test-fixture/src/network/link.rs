//! What happens to datagrams on their way from one node to another.

use std::time::{Duration, Instant};

use quic_common::{Ecn, Random};

use super::chance::Chance;

/// Bytes of the IPv4 and UDP headers that a datagram takes on the wire besides its payload.
const HEADERS: usize = 28;

/// The properties of a path in one direction. The default does nothing: no delay, no limit, no loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The time from one end to the other, without queueing.
    pub delay: Duration,
    /// Bits per second of the narrowest part, IP headers counted; `None` has no limit.
    pub bandwidth: Option<u64>,
    /// Bytes that may wait for the narrowest part before datagrams are dropped at its tail.
    pub queue: usize,
    /// The largest UDP payload that passes; larger ones vanish.
    pub largest: usize,
    /// Random loss.
    pub loss: Chance,
    /// Datagrams that come late by [`reorder_delay`](Self::reorder_delay), so that others overtake them.
    pub reorder: Chance,
    /// How late.
    pub reorder_delay: Duration,
    /// Datagrams that arrive twice.
    pub duplicate: Chance,
    /// Datagrams in which one bit changes.
    pub corrupt: Chance,
    /// ECN-capable datagrams that are marked as having met congestion.
    pub mark: Chance,
    /// ECN-capable datagrams that find more bytes than this in the queue are marked.
    pub mark_above: usize,
    /// Whether the ECN field is cleared on the way.
    pub bleach: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            bandwidth: None,
            queue: usize::MAX,
            largest: usize::MAX,
            loss: Chance::NEVER,
            reorder: Chance::NEVER,
            reorder_delay: Duration::ZERO,
            duplicate: Chance::NEVER,
            corrupt: Chance::NEVER,
            mark: Chance::NEVER,
            mark_above: usize::MAX,
            bleach: false,
        }
    }
}

impl Link {
    /// A path with this delay in each direction and nothing else.
    #[must_use]
    pub fn delayed(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::default()
        }
    }
}

/// What has happened on a link so far, in datagrams where nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Handed to the link.
    pub sent: u64,
    /// UDP payload handed to the link, in bytes.
    pub sent_bytes: u64,
    /// Lost by chance or by a filter.
    pub lost: u64,
    /// Dropped because the queue was full.
    pub overflowed: u64,
    /// Dropped because they were larger than the link takes.
    pub oversized: u64,
    /// Delivered late.
    pub reordered: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Delivered with a wrong bit.
    pub corrupted: u64,
    /// Delivered with a congestion mark set by the link.
    pub marked: u64,
}

/// A link in use.
#[derive(Debug)]
pub(super) struct Direction {
    link: Link,
    is_perfect: bool,
    /// When the narrowest part has sent all that waits.
    free_at: Instant,
    pub(super) passed: Passed,
}

/// How a datagram arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) ecn: Ecn,
    /// The bit that is wrong, counted from the start of the payload.
    pub(super) wrong_bit: Option<usize>,
    /// When it arrives once more.
    pub(super) again: Option<Instant>,
}

impl Direction {
    pub(super) fn new(link: Link, now: Instant) -> Self {
        Self {
            is_perfect: link == Link::default(),
            link,
            free_at: now,
            passed: Passed::default(),
        }
    }

    pub(super) const fn is_perfect(&self) -> bool {
        self.is_perfect
    }

    pub(super) fn set_link(&mut self, link: Link) {
        self.is_perfect = link == Link::default();
        self.link = link;
    }

    pub(super) fn on_sent(&mut self, datagrams: usize, bytes: usize) {
        self.passed.sent += u64::try_from(datagrams).unwrap();
        self.passed.sent_bytes += u64::try_from(bytes).unwrap();
    }

    /// Decides the fate of a datagram that enters the link now; `None` if it doesn't arrive.
    pub(super) fn pass(
        &mut self,
        length: usize,
        mut ecn: Ecn,
        now: Instant,
        random: &mut Random,
    ) -> Option<Arrival> {
        let Self { link, passed, .. } = self;
        if length > link.largest {
            passed.oversized += 1;
            return None;
        }
        let waiting = waiting(link, self.free_at, now);
        if waiting > link.queue {
            passed.overflowed += 1;
            return None;
        }
        self.free_at = self.free_at.max(now) + transmission(link, length);
        if link.loss.happens(random) {
            passed.lost += 1;
            return None;
        }
        let congested = waiting > link.mark_above || link.mark.happens(random);
        if ecn != Ecn::NotEct && congested {
            passed.marked += 1;
            ecn = Ecn::Ce;
        }
        if link.bleach {
            ecn = Ecn::NotEct;
        }
        let mut at = self.free_at + link.delay;
        if link.reorder.happens(random) {
            passed.reordered += 1;
            at += link.reorder_delay;
        }
        let corrupt = link.corrupt.happens(random) && length > 0;
        let wrong_bit = corrupt.then(|| {
            passed.corrupted += 1;
            usize::try_from(random.below(u64::try_from(length * 8).unwrap())).unwrap()
        });
        let again = link.duplicate.happens(random).then(|| {
            passed.duplicated += 1;
            at
        });
        Some(Arrival {
            at,
            ecn,
            wrong_bit,
            again,
        })
    }
}

fn transmission(link: &Link, length: usize) -> Duration {
    let bits = u128::try_from((length + HEADERS) * 8).unwrap();
    let nanoseconds = link.bandwidth.map_or(0, |rate| {
        bits * Duration::from_secs(1).as_nanos() / u128::from(rate.max(1))
    });
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap())
}

/// Bytes in the queue, headers counted.
fn waiting(link: &Link, free_at: Instant, now: Instant) -> usize {
    let busy = free_at.saturating_duration_since(now).as_nanos();
    let bytes = link.bandwidth.map_or(0, |rate| {
        busy * u128::from(rate) / 8 / Duration::from_secs(1).as_nanos()
    });
    usize::try_from(bytes).unwrap()
}
