//! A set of offsets, kept as disjoint ranges that don't touch.
//!
//! Every step is logarithmic in the number of ranges, whatever order a peer makes them in; what arrives in order
//! never gets here, since the buffers keep their in-order part as a single offset.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::ops::Range;

/// Disjoint half-open ranges, by start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Whether nothing is in the set.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many separate ranges there are.
    #[inline]
    pub(crate) fn pieces(&self) -> usize {
        self.ranges.len()
    }

    /// The lowest range.
    #[inline]
    pub(crate) fn first(&self) -> Option<Range<u64>> {
        self.ranges
            .first_key_value()
            .map(|(start, end)| *start..*end)
    }

    /// Whether `value` is in the set.
    pub(crate) fn contains(&self, value: u64) -> bool {
        self.ranges
            .range(..=value)
            .next_back()
            .is_some_and(|(_, end)| *end > value)
    }

    /// Adds a range; returns how many of its values are new.
    pub(crate) fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let Range { mut start, mut end } = range;
        let mut fresh = end - start;
        if let Some((before, stop)) = self.ranges.range_mut(..start).next_back()
            && *stop >= start
        {
            fresh -= end.min(*stop) - start;
            start = *before;
            end = end.max(*stop);
        }
        while let Some((next, stop)) = self
            .ranges
            .range(range.start..=range.end)
            .next()
            .map(|(next, stop)| (*next, *stop))
        {
            fresh -= range.end.min(stop) - next;
            end = end.max(stop);
            self.ranges.remove(&next);
        }
        self.ranges.insert(start, end);
        fresh
    }

    /// Takes a range out.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some((_, stop)) = self.ranges.range_mut(..range.start).next_back() {
            let rest = *stop;
            *stop = rest.min(range.start);
            if rest > range.end {
                self.ranges.insert(range.end, rest);
                return;
            }
        }
        while let Some((next, stop)) = self
            .ranges
            .range(range.clone())
            .next()
            .map(|(next, stop)| (*next, *stop))
        {
            self.ranges.remove(&next);
            if stop > range.end {
                self.ranges.insert(range.end, stop);
            }
        }
    }

    /// The parts of `range` that are not in the set, ascending.
    pub(crate) fn gaps(&self, range: Range<u64>) -> Gaps<'_> {
        let covered = self
            .ranges
            .range(..range.start)
            .next_back()
            .map_or(0, |(_, end)| *end);
        Gaps {
            cursor: range.start.max(covered),
            end: range.end,
            rest: (!range.is_empty()).then(|| self.ranges.range(range)),
        }
    }

    /// Moves `front` over the ranges that it touches, and takes them out.
    pub(crate) fn absorb(&mut self, mut front: u64) -> u64 {
        while let Some(first) = self.ranges.first_entry() {
            if *first.key() > front {
                break;
            }
            front = front.max(first.remove());
        }
        front
    }

    /// Empties the set.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }
}

/// See [`RangeSet::gaps`].
#[derive(Debug)]
pub(crate) struct Gaps<'a> {
    cursor: u64,
    end: u64,
    rest: Option<btree_map::Range<'a, u64, u64>>,
}

impl Iterator for Gaps<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let rest = self.rest.as_mut()?;
        for (start, end) in rest {
            let gap = self.cursor..*start;
            self.cursor = self.cursor.max(*end);
            if !gap.is_empty() {
                return Some(gap);
            }
        }
        self.rest = None;
        let gap = self.cursor..self.end;
        (!gap.is_empty()).then_some(gap)
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::RangeSet;

    fn set(ranges: &[std::ops::Range<u64>]) -> RangeSet {
        let mut set = RangeSet::default();
        for range in ranges {
            set.insert(range.clone());
        }
        set
    }

    #[test]
    fn touching_ranges_become_one() {
        let mut ranges = set(&[0..2, 4..6]);
        assert_eq!(ranges.pieces(), 2);
        assert_eq!(ranges.insert(1..5), 2);
        assert_eq!(ranges, set(&[0..3, 3..6]));
    }

    #[test]
    fn removing_the_middle_splits() {
        let mut ranges = set(&[0..5, 5..10]);
        ranges.remove(3..5);
        assert_eq!(ranges, set(&[0..3, 5..10]));
        ranges.remove(0..7);
        assert_eq!(ranges, set(&[7..8, 8..10]));
    }

    #[test]
    fn gaps_are_what_is_missing() {
        let ranges = set(&[2..4, 6..8]);
        let gaps = |range| ranges.gaps(range).collect::<Vec<_>>();
        assert_eq!(gaps(0..10), [0..2, 4..6, 8..10]);
        assert_eq!(gaps(3..9), [4..6, 8..9]);
        assert_eq!(gaps(2..4), []);
        assert_eq!(gaps(5..5), []);
    }

    #[test]
    fn absorbing_stops_at_a_gap() {
        let mut ranges = set(&[2..4, 5..8, 10..12]);
        assert_eq!(ranges.absorb(1), 1);
        assert_eq!(ranges.absorb(2), 4);
        assert_eq!(ranges.absorb(6), 8);
        assert_eq!(ranges, set(&[10..11, 11..12]));
        ranges.clear();
        assert_eq!(ranges, RangeSet::default());
    }

    /// Seeded: the set agrees with one bool for each value.
    #[test]
    fn agrees_with_a_model() {
        let mut random = Random::from_seed([7; 32]);
        let mut ranges = RangeSet::default();
        let mut model = [false; 64];
        for _ in 0..20_000 {
            let start = random.below(64);
            let end = start + random.below(65 - start);
            let span = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
            match random.below(3) {
                0 => {
                    let fresh = model[span.clone()].iter().filter(|set| !**set).count();
                    assert_eq!(ranges.insert(start..end), u64::try_from(fresh).unwrap());
                    model[span].fill(true);
                }
                1 => {
                    ranges.remove(start..end);
                    model[span].fill(false);
                }
                _ => {
                    let mut missing = [false; 64];
                    for gap in ranges.gaps(start..end) {
                        for value in gap {
                            missing[usize::try_from(value).unwrap()] = true;
                        }
                    }
                    for value in span {
                        assert_eq!(missing[value], !model[value]);
                    }
                }
            }
            for value in 0..64 {
                assert_eq!(
                    ranges.contains(value),
                    model[usize::try_from(value).unwrap()]
                );
            }
            let mut runs = 0;
            let mut previous = false;
            for set in model {
                runs += usize::from(set && !previous);
                previous = set;
            }
            assert_eq!((ranges.pieces(), ranges.is_empty()), (runs, runs == 0));
        }
    }
}
