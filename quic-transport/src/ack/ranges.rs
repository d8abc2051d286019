//! The ranges of packet numbers that will be acknowledged, at most [`ACK_RANGES`] of them.
//!
//! Nearly every packet extends the newest range, so the ranges lie in a ring in ascending order and are searched
//! from the new end.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::limits::ACK_RANGES;

/// Disjoint ranges that don't touch, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: VecDeque<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u64,
    last: u64,
}

impl Ranges {
    /// No ranges.
    pub(super) const fn new() -> Self {
        Self {
            ranges: VecDeque::new(),
        }
    }

    /// The largest number.
    #[inline]
    pub(super) fn largest(&self) -> Option<u64> {
        self.ranges.back().map(|span| span.last)
    }

    /// Adds `number`. When there are too many ranges, the lowest is forgotten.
    #[inline]
    pub(super) fn insert(&mut self, number: u64) {
        match self.ranges.back_mut() {
            Some(span) if span.last.checked_add(1) == Some(number) => span.last = number,
            _ => self.insert_apart(number),
        }
    }

    /// Adds the `count` numbers behind the largest.
    #[inline]
    pub(super) fn insert_next(&mut self, count: u64) {
        if let Some(span) = self.ranges.back_mut() {
            span.last = span.last.saturating_add(count);
        }
    }

    fn insert_apart(&mut self, number: u64) {
        // The first range that ends at or behind the number, or touches it from below.
        let at = self
            .ranges
            .partition_point(|span| span.last.saturating_add(1) < number);
        let span = Span {
            first: number,
            last: number,
        };
        let Some(found) = self.ranges.get_mut(at) else {
            self.ranges.push_back(span);
            self.limit();
            return;
        };
        if found.last.saturating_add(1) == number {
            found.last = number;
            self.join(at);
        } else if number.saturating_add(1) == found.first {
            found.first = number;
        } else if number < found.first {
            self.ranges.insert(at, span);
            self.limit();
        }
    }

    /// Joins the range at `at` with the one above, if they touch.
    fn join(&mut self, at: usize) {
        let Some(last) = self.ranges.get(at).map(|span| span.last) else {
            return;
        };
        let above = at.saturating_add(1);
        if let Some(joined) = self
            .ranges
            .get(above)
            .copied()
            .filter(|span| last.saturating_add(1) >= span.first)
        {
            if let Some(span) = self.ranges.get_mut(at) {
                span.last = joined.last;
            }
            self.ranges.remove(above);
        }
    }

    fn limit(&mut self) {
        if self.ranges.len() > ACK_RANGES {
            self.ranges.pop_front();
        }
    }

    /// Forgets the numbers below `floor`; the largest is always kept.
    pub(super) fn forget_below(&mut self, floor: u64) {
        while self.ranges.len() > 1 && self.ranges.front().is_some_and(|span| span.last < floor) {
            self.ranges.pop_front();
        }
        if let Some(span) = self.ranges.front_mut() {
            span.first = span.first.max(floor.min(span.last));
        }
    }

    /// The ranges from the largest down.
    pub(super) fn descending(&self) -> impl Iterator<Item = RangeInclusive<u64>> + Clone + '_ {
        self.ranges.iter().rev().map(|span| span.first..=span.last)
    }

    /// How many ranges there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::RangeInclusive;

    use quic_common::Random;

    use super::{ACK_RANGES, Ranges};

    fn of(numbers: impl IntoIterator<Item = u64>) -> Ranges {
        let mut ranges = Ranges::new();
        numbers.into_iter().for_each(|number| ranges.insert(number));
        ranges
    }

    fn list(ranges: &Ranges) -> Vec<RangeInclusive<u64>> {
        ranges.descending().collect()
    }

    #[test]
    fn neighbours_join() {
        assert_eq!(list(&of([0, 1, 2])), [0..=2]);
        assert_eq!(list(&of([5, 1, 3])), [5..=5, 3..=3, 1..=1]);
        assert_eq!(list(&of([5, 1, 3, 4])), [3..=5, 1..=1]);
        assert_eq!(list(&of([5, 1, 3, 4, 2, 2])), [1..=5]);
        assert_eq!(list(&of([5, 4, 3])), [3..=5]);
        assert_eq!(list(&of([u64::MAX, 0])), [u64::MAX..=u64::MAX, 0..=0]);
    }

    /// RFC 9000, 13.2.3: the number of ranges is limited, and the oldest go.
    #[test]
    fn the_lowest_range_goes_when_there_are_too_many() {
        let cap = u64::try_from(ACK_RANGES).unwrap();
        let mut ranges = of((0..cap).map(|n| n * 2));
        assert_eq!(
            (ranges.len(), ranges.descending().last()),
            (ACK_RANGES, Some(0..=0))
        );
        ranges.insert(cap * 2);
        assert_eq!(
            (ranges.len(), ranges.descending().last()),
            (ACK_RANGES, Some(2..=2))
        );
        ranges.insert(0);
        assert_eq!(
            (ranges.len(), ranges.descending().last()),
            (ACK_RANGES, Some(2..=2))
        );
    }

    #[test]
    fn the_largest_is_never_forgotten() {
        let mut ranges = of([0, 1, 5, 6, 9]);
        ranges.forget_below(6);
        assert_eq!(list(&ranges), [9..=9, 6..=6]);
        ranges.forget_below(100);
        assert_eq!(list(&ranges), [9..=9]);
        let mut none = Ranges::new();
        none.forget_below(3);
        assert_eq!(none.largest(), None);
    }

    #[test]
    fn agrees_with_a_plain_set() {
        let mut random = Random::from_seed([6; 32]);
        let (mut ranges, mut plain) = (Ranges::new(), BTreeSet::new());
        for _ in 0..400 {
            let number = random.below(400);
            ranges.insert(number);
            plain.insert(number);
            let got: BTreeSet<_> = ranges.descending().flatten().collect();
            assert_eq!(got, plain);
            let list = list(&ranges);
            assert!(list.is_sorted_by(|a, b| *a.start() > b.end() + 1));
        }
    }
}
