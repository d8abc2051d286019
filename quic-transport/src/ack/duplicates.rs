//! Which of the latest packet numbers have been seen: a bitmap that slides.
//!
//! It is apart from the ranges that are acknowledged, so that a range that was dropped never makes a new packet look
//! old ([RFC 9000, section 12.3](https://www.rfc-editor.org/rfc/rfc9000#section-12.3)). After a silence it is forgotten:
//! what is older counts as seen then.

use crate::limits::DUPLICATE_WINDOW;

const WORDS: usize = 64;
const BITS: u64 = 64;

const _: () = assert!(
    DUPLICATE_WINDOW == 4096,
    "the window is 64 words of 64 bits"
);

/// A window of [`DUPLICATE_WINDOW`] numbers that ends at the largest seen.
#[derive(Clone, Debug)]
pub(super) struct Duplicates {
    /// `None` while all numbers below `end` count as seen: as long as they come in order, or since they were forgotten.
    words: Option<Box<[u64; WORDS]>>,
    /// One more than the largest number seen.
    end: u64,
}

impl Duplicates {
    /// A window that has seen nothing.
    pub(super) const fn new() -> Self {
        Self {
            words: None,
            end: 0,
        }
    }

    /// Takes all numbers below the largest seen for seen.
    pub(super) fn forget(&mut self) {
        self.words = None;
    }

    /// Whether `number` has been seen, or is so old that nobody can tell.
    #[inline]
    pub(super) fn contains(&self, number: u64) -> bool {
        if number >= self.end {
            return false;
        }
        if number.saturating_add(DUPLICATE_WINDOW) < self.end {
            return true;
        }
        let (word, bit) = place(number);
        let Some(words) = &self.words else {
            return true;
        };
        words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Marks the `count` numbers behind the largest seen as seen.
    #[inline]
    pub(super) fn insert_next(&mut self, count: u64) {
        let from = self.end;
        self.end = from.saturating_add(count);
        if self.words.is_some() {
            self.mark(from, self.end, true);
        }
    }

    /// Marks `number` as seen.
    #[inline]
    pub(super) fn insert(&mut self, number: u64) {
        if number == self.end && self.words.is_none() {
            self.end = number.saturating_add(1);
            return;
        }
        if number > self.end {
            self.mark(self.end, number, false);
        } else if number.saturating_add(DUPLICATE_WINDOW) < self.end {
            return;
        }
        self.end = self.end.max(number.saturating_add(1));
        let (word, bit) = place(number);
        if let Some(word) = self.words().get_mut(word) {
            *word |= bit;
        }
    }

    #[inline]
    fn words(&mut self) -> &mut [u64; WORDS] {
        self.words
            .get_or_insert_with(|| Box::new([u64::MAX; WORDS]))
    }

    /// Marks `from..to` as seen or not; their places belonged to numbers that leave the window.
    #[cold]
    fn mark(&mut self, from: u64, to: u64, are_seen: bool) {
        if to.saturating_sub(from) >= DUPLICATE_WINDOW {
            *self.words() = [if are_seen { u64::MAX } else { 0 }; WORDS];
            return;
        }
        let mut number = from;
        while number < to {
            let (word, _) = place(number);
            let first = number % BITS;
            let count = (BITS - first).min(to.saturating_sub(number));
            let mask = (u64::MAX >> (BITS - count)) << first;
            if let Some(word) = self.words().get_mut(word) {
                *word = if are_seen {
                    *word | mask
                } else {
                    *word & !mask
                };
            }
            number = number.saturating_add(count);
        }
    }
}

/// The word and the bit of `number`.
#[inline]
fn place(number: u64) -> (usize, u64) {
    let at = number % DUPLICATE_WINDOW;
    (usize::try_from(at / BITS).unwrap_or(0), 1 << (at % BITS))
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::{DUPLICATE_WINDOW, Duplicates};

    #[test]
    fn the_window_is_exact_at_its_edge() {
        let mut seen = Duplicates::new();
        seen.insert(0);
        seen.insert(DUPLICATE_WINDOW - 1);
        assert!(seen.contains(0) && !seen.contains(1), "at the cap");
        seen.insert(DUPLICATE_WINDOW + 1);
        assert!(seen.contains(1), "cap + 1: too old to tell");
        assert!(!seen.contains(2) && !seen.contains(DUPLICATE_WINDOW));
    }

    #[test]
    fn what_is_forgotten_counts_as_seen() {
        let mut seen = Duplicates::new();
        (0..10).for_each(|number| seen.insert(number));
        assert!(seen.words.is_none() && seen.contains(9) && !seen.contains(10));
        seen.insert(100);
        assert!(!seen.contains(50) && seen.contains(9));
        seen.forget();
        assert!(seen.contains(50) && seen.contains(100) && !seen.contains(101));
        seen.insert(105);
        assert!(seen.contains(50) && seen.contains(100) && seen.contains(105));
        assert!(!seen.contains(101) && !seen.contains(104) && !seen.contains(106));
        seen.insert(100 + DUPLICATE_WINDOW);
        assert!(seen.contains(105) && !seen.contains(104) && seen.contains(99));
    }

    #[test]
    fn jumps_leave_nothing_behind() {
        let mut seen = Duplicates::new();
        for number in 0..DUPLICATE_WINDOW {
            seen.insert(number);
        }
        seen.insert(u64::MAX / 8);
        for number in (u64::MAX / 8 - DUPLICATE_WINDOW + 1)..u64::MAX / 8 {
            assert!(!seen.contains(number));
        }
    }

    #[test]
    fn the_oldest_number_of_the_window_is_remembered_and_older_ones_change_nothing() {
        let mut seen = Duplicates::new();
        seen.insert(5000);
        let oldest = 5001 - DUPLICATE_WINDOW;
        assert!(!seen.contains(oldest) && seen.contains(oldest - 1));
        seen.insert(oldest);
        assert!(seen.contains(oldest));
        seen.insert(oldest - 2);
        assert!(!seen.contains(oldest - 2 + DUPLICATE_WINDOW));
    }

    /// Against a set of all that was inserted.
    #[test]
    fn agrees_with_a_plain_set() {
        let mut random = Random::from_seed([5; 32]);
        let (mut seen, mut plain, mut largest) =
            (Duplicates::new(), std::collections::BTreeSet::new(), 0);
        for _ in 0..50_000 {
            let number = match random.below(20) {
                0 => largest + 1 + random.below(300),
                1 => largest + 1 + random.below(9000),
                2..=6 => random.below(largest + 1),
                7..=10 => (largest + 5).saturating_sub(random.below(DUPLICATE_WINDOW + 9)),
                _ => largest + 1,
            };
            let expected = plain.contains(&number)
                || (number + DUPLICATE_WINDOW <= largest && !plain.is_empty());
            assert_eq!(seen.contains(number), expected, "{number} of {largest}");
            if !expected {
                seen.insert(number);
                plain.insert(number);
                largest = largest.max(number);
            }
        }
    }
}
