//! Packets that were declared lost, in case their acknowledgment is only late.
//!
//! Such a loss was spurious: the window can be restored, and the network reorders more than was thought
//! ([RFC 9002, section 6.1](https://www.rfc-editor.org/rfc/rfc9002#section-6.1)).

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Instant;

use crate::limits::LOST_PACKETS;

/// Packets that a path loses within the time that they are remembered, most of the time.
const USUAL_LOSSES: usize = 128;

/// Losses that turned out to be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spurious {
    /// How many packets.
    pub(crate) count: u32,
    /// When the newest of them was sent.
    pub(crate) newest: Instant,
    /// The lowest number among them.
    pub(super) lowest: u64,
}

#[cfg(test)]
impl Spurious {
    /// A finding for tests of what follows from it.
    pub(crate) const fn new(count: u32, newest: Instant) -> Self {
        Self {
            count,
            newest,
            lowest: 0,
        }
    }
}

/// The packets declared lost most recently, in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct LatePackets {
    packets: VecDeque<(u64, Instant)>,
}

impl LatePackets {
    /// None.
    pub(super) const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
        }
    }

    /// Whether there is nothing to look for.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The packet `number` was declared lost; numbers come in ascending order.
    pub(super) fn on_lost(&mut self, number: u64, sent: Instant) {
        if self.packets.capacity() == 0 {
            // Room for an ordinary lossy path at once, so that the first bad moments don't each cost an allocation.
            self.packets.reserve(USUAL_LOSSES);
        }
        if self.packets.len() >= LOST_PACKETS {
            self.packets.pop_front();
        }
        debug_assert!(self.packets.back().is_none_or(|last| last.0 < number));
        self.packets.push_back((number, sent));
    }

    /// Takes out the packets in `range`, which has been acknowledged.
    pub(super) fn take(&mut self, range: &RangeInclusive<u64>) -> Option<Spurious> {
        let first = self.packets.partition_point(|late| late.0 < *range.start());
        let last = self.packets.partition_point(|late| late.0 <= *range.end());
        if first >= last {
            return None;
        }
        let (lowest, _) = self.packets.get(first).copied()?;
        let (_, newest) = self.packets.get(last.saturating_sub(1)).copied()?;
        drop(self.packets.drain(first..last));
        Some(Spurious {
            count: u32::try_from(last.saturating_sub(first)).unwrap_or(u32::MAX),
            newest,
            lowest,
        })
    }

    /// Forgets what was sent before `horizon`: nothing can be that late.
    pub(super) fn expire(&mut self, horizon: Instant) {
        while self.packets.front().is_some_and(|late| late.1 < horizon) {
            self.packets.pop_front();
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{LOST_PACKETS, LatePackets, Spurious, USUAL_LOSSES};

    fn now() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        Instant::now()
    }

    #[test]
    fn a_loss_is_found_spurious_once() {
        let (mut late, now) = (LatePackets::new(), now());
        for number in [3, 4, 9] {
            late.on_lost(number, now + Duration::from_millis(number));
        }
        assert_eq!(late.take(&(5..=8)), None);
        assert_eq!(
            late.take(&(4..=9)),
            Some(Spurious {
                count: 2,
                newest: now + Duration::from_millis(9),
                lowest: 4
            })
        );
        assert_eq!(late.take(&(4..=9)), None);
        late.expire(now + Duration::from_millis(3));
        assert!(!late.is_empty());
        late.expire(now + Duration::from_millis(4));
        assert!(late.is_empty());
    }

    #[test]
    fn only_the_latest_are_remembered() {
        let (mut late, now) = (LatePackets::new(), now());
        let cap = u64::try_from(LOST_PACKETS).unwrap();
        for number in 0..cap {
            late.on_lost(number, now);
            assert!(late.packets.capacity() >= USUAL_LOSSES);
        }
        assert!(late.packets.len() == LOST_PACKETS && late.packets.front().unwrap().0 == 0);
        late.on_lost(cap, now);
        assert!(late.packets.len() == LOST_PACKETS && late.packets.front().unwrap().0 == 1);
    }
}
