//! The numbers of a space's packets, some of which are skipped.
//!
//! A peer that acknowledges what it hasn't received, to make us send faster than the path permits, sooner or later
//! acknowledges a number that was never sent
//! ([RFC 9000, section 21.4](https://www.rfc-editor.org/rfc/rfc9000#section-21.4)).

use std::ops::Range;

use quic_common::{MAX_VARINT, Random};

/// The fewest packets between two skipped numbers.
const SHORTEST_GAP: u64 = 64;

/// Gives out packet numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketNumbers {
    next: u64,
    skip_at: u64,
}

impl PacketNumbers {
    /// Numbers without a gap, for the short life of the handshake's spaces.
    pub(crate) const fn new() -> Self {
        Self {
            next: 0,
            skip_at: u64::MAX,
        }
    }

    /// Numbers with gaps.
    pub(crate) fn with_gaps(random: &mut Random) -> Self {
        Self {
            next: 0,
            skip_at: 1 + random.below(SHORTEST_GAP),
        }
    }

    /// The number that the next packet has; `None` once they are used up, and the connection must close without a
    /// word (RFC 9000, 12.3).
    #[inline]
    pub(crate) fn upcoming(&self) -> Option<u64> {
        (self.next <= MAX_VARINT).then_some(self.next)
    }

    /// The upcoming number and those behind it, up to `most` of them and not beyond one that is to be skipped.
    #[inline]
    pub(crate) fn upcoming_run(&self, most: u64) -> Range<u64> {
        let end = self.next.saturating_add(most);
        self.next..end.min(self.skip_at).min(MAX_VARINT)
    }

    /// The upcoming `count` numbers have been used; returns whether the one behind them is to be [skipped](Self::skip).
    #[inline]
    #[must_use]
    pub(crate) const fn on_used(&mut self, count: u64) -> bool {
        self.next = self.next.saturating_add(count);
        self.next == self.skip_at
    }

    /// Goes on at `next`, as if all below had been used.
    #[cfg(test)]
    pub(crate) const fn jump(&mut self, next: u64) {
        self.next = next;
        self.skip_at = u64::MAX;
    }

    /// Skips a number. The next gap is from one to two windows of `window_packets` away.
    pub(crate) fn skip(&mut self, window_packets: u64, random: &mut Random) {
        let gap = window_packets.clamp(SHORTEST_GAP, 1 << 32);
        self.next = self.next.saturating_add(1);
        self.skip_at = self
            .next
            .saturating_add(gap)
            .saturating_add(random.below(gap));
    }
}

#[cfg(test)]
mod tests {
    use quic_common::{MAX_VARINT, Random};

    use super::PacketNumbers;

    fn gaps(window: u64, count: u32) -> Vec<u64> {
        let mut random = Random::from_seed([9; 32]);
        let mut numbers = PacketNumbers::with_gaps(&mut random);
        let (mut expected, mut gaps) = (0, Vec::new());
        for _ in 0..count {
            let number = numbers.upcoming().unwrap();
            if number != expected {
                gaps.push(expected);
            }
            expected = number + 1;
            if numbers.on_used(1) {
                numbers.skip(window, &mut random);
            }
        }
        gaps
    }

    /// RFC 9000, 21.4: numbers are skipped, at a rate that scales with the window.
    #[test]
    fn the_gaps_scale_with_the_window() {
        for window in [10, 64, 1000, 10_000] {
            let gaps = gaps(window, 100_000);
            let window = window.max(64);
            assert!(gaps.len() > 5);
            assert!(
                gaps.windows(2)
                    .all(|pair| (window..2 * window + 2).contains(&(pair[1] - pair[0])))
            );
        }
    }

    #[test]
    fn every_connection_skips_a_number_soon() {
        for seed in 0..=u8::MAX {
            let mut numbers = PacketNumbers::with_gaps(&mut Random::from_seed([seed; 32]));
            assert!((0..64).any(|_| numbers.on_used(1)), "seed {seed}");
        }
    }

    #[test]
    fn a_run_ends_before_a_number_that_is_skipped() {
        let mut random = Random::from_seed([9; 32]);
        let mut numbers = PacketNumbers::with_gaps(&mut random);
        let run = numbers.upcoming_run(u64::MAX);
        assert_eq!(run, 0..numbers.skip_at);
        assert_eq!(numbers.upcoming_run(1), 0..1);
        assert!(!numbers.on_used(0));
        assert!(numbers.on_used(run.end));
        numbers.skip(64, &mut random);
        assert_eq!(numbers.upcoming(), Some(run.end + 1));
        numbers.jump(MAX_VARINT - 1);
        assert_eq!(numbers.upcoming_run(9), MAX_VARINT - 1..MAX_VARINT);
        numbers.jump(MAX_VARINT + 1);
        assert!(numbers.upcoming_run(9).is_empty());
    }

    #[test]
    fn a_handshake_skips_nothing() {
        let mut numbers = PacketNumbers::new();
        for number in 0..10_000 {
            assert_eq!(numbers.upcoming(), Some(number));
            assert!(!numbers.on_used(1));
        }
    }

    /// RFC 9000, 12.3: a packet number is never reused.
    #[test]
    fn the_last_number_is_the_last() {
        let mut numbers = PacketNumbers {
            next: MAX_VARINT,
            skip_at: u64::MAX,
        };
        assert_eq!(numbers.upcoming(), Some(MAX_VARINT));
        assert!(!numbers.on_used(1));
        assert_eq!(numbers.upcoming(), None);
    }
}
