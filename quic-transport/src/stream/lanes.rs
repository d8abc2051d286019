//! Lists of streams that wait for something: each step O(1), whatever the number of streams.
//!
//! The links lie beside each other by slot, so a stream is in at most one of the `N` lanes, and being put in again is
//! harmless.

use super::table::Slot;

/// No slot: the end of a list.
const NONE: u32 = u32::MAX;

/// `N` lists, at most 32.
#[derive(Debug)]
pub(super) struct Lanes<const N: usize> {
    links: Vec<Link>,
    ends: [Ends; N],
    /// A bit for each lane that isn't empty.
    occupied: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
    lane: u8,
}

impl Link {
    const FREE: Self = Self {
        previous: NONE,
        next: NONE,
        lane: u8::MAX,
    };
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

impl<const N: usize> Default for Lanes<N> {
    fn default() -> Self {
        const { assert!(N <= 32, "a bit for each lane") };
        Self {
            links: Vec::new(),
            ends: [Ends {
                first: NONE,
                last: NONE,
            }; N],
            occupied: 0,
        }
    }
}

impl<const N: usize> Lanes<N> {
    /// Whether all lanes are empty.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// A bit for each lane that isn't empty, lane 0 in the lowest.
    #[inline]
    pub(super) const fn occupied(&self) -> u32 {
        self.occupied
    }

    /// The first of a lane.
    #[inline]
    pub(super) fn first(&self, lane: u8) -> Option<Slot> {
        let first = self.ends.get(usize::from(lane))?.first;
        (first != NONE).then_some(Slot(first))
    }

    /// Whether a lane has no more than one stream.
    #[inline]
    pub(super) fn is_alone(&self, lane: u8) -> bool {
        let ends = self.ends.get(usize::from(lane));
        ends.is_none_or(|ends| ends.first == ends.last)
    }

    /// The lane that the stream is in.
    #[inline]
    pub(super) fn lane_of(&self, slot: Slot) -> Option<u8> {
        let lane = self.links.get(slot.index())?.lane;
        (lane != u8::MAX).then_some(lane)
    }

    /// Gives the links back; no stream is in any lane.
    pub(super) fn rest(&mut self) {
        debug_assert!(self.is_empty(), "a stream waits for something");
        self.links = Vec::new();
    }

    /// Puts the stream at the end of a lane, unless it is in one.
    #[inline]
    pub(super) fn push_back(&mut self, slot: Slot, lane: u8) {
        let last = self.ends.get(usize::from(lane)).map_or(NONE, |e| e.last);
        self.place(slot, lane, last, NONE);
    }

    /// Puts the stream at the start of a lane, unless it is in one.
    pub(super) fn push_front(&mut self, slot: Slot, lane: u8) {
        let first = self.ends.get(usize::from(lane)).map_or(NONE, |e| e.first);
        self.place(slot, lane, NONE, first);
    }

    /// Takes the first of a lane out.
    #[inline]
    pub(super) fn pop_front(&mut self, lane: u8) -> Option<Slot> {
        let slot = self.first(lane)?;
        self.remove(slot);
        Some(slot)
    }

    /// Takes the stream out of the lane that it is in.
    pub(super) fn remove(&mut self, slot: Slot) {
        let Some(link) = self.links.get_mut(slot.index()) else {
            return;
        };
        let Link {
            previous,
            next,
            lane,
        } = std::mem::replace(link, Link::FREE);
        let Some(ends) = self.ends.get_mut(usize::from(lane)) else {
            return;
        };
        if previous == NONE {
            ends.first = next;
        }
        if next == NONE {
            ends.last = previous;
        }
        if ends.first == NONE {
            self.occupied &= !(1 << lane);
        }
        self.join(previous, next);
    }

    /// Moves the first of a lane to its end.
    #[inline]
    pub(super) fn rotate(&mut self, lane: u8) {
        if let Some(ends) = self.ends.get(usize::from(lane))
            && ends.first != ends.last
            && let Some(slot) = self.pop_front(lane)
        {
            self.push_back(slot, lane);
        }
    }

    fn place(&mut self, slot: Slot, lane: u8, previous: u32, next: u32) {
        if self.links.len() <= slot.index() {
            self.links.resize(slot.index() + 1, Link::FREE);
        }
        let (Some(link), Some(ends)) = (
            self.links.get_mut(slot.index()),
            self.ends.get_mut(usize::from(lane)),
        ) else {
            return;
        };
        if link.lane != u8::MAX {
            return;
        }
        *link = Link {
            previous,
            next,
            lane,
        };
        if previous == NONE {
            ends.first = slot.0;
        }
        if next == NONE {
            ends.last = slot.0;
        }
        self.occupied |= 1 << lane;
        self.join(previous, slot.0);
        self.join(slot.0, next);
    }

    /// Links two neighbours, either of which may be the end.
    fn join(&mut self, previous: u32, next: u32) {
        if let Some(link) = self.links.get_mut(Slot(previous).index())
            && previous != NONE
        {
            link.next = next;
        }
        if let Some(link) = self.links.get_mut(Slot(next).index())
            && next != NONE
        {
            link.previous = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use quic_common::Random;

    use super::{Lanes, Slot};

    /// Seeded: agrees with one queue for each lane.
    #[test]
    fn agrees_with_a_model() {
        let mut random = Random::from_seed([3; 32]);
        let mut lanes = Lanes::<3>::default();
        let mut model: [VecDeque<u32>; 3] = Default::default();
        for _ in 0..20_000 {
            let number = u32::try_from(random.below(12)).unwrap();
            let lane = u8::try_from(random.below(3)).unwrap();
            let slot = Slot(number);
            let queue = usize::from(lane);
            let waits = model.iter().any(|queue| queue.contains(&number));
            match random.below(5) {
                0 => {
                    lanes.push_back(slot, lane);
                    if !waits {
                        model[queue].push_back(number);
                    }
                }
                1 => {
                    lanes.push_front(slot, lane);
                    if !waits {
                        model[queue].push_front(number);
                    }
                }
                2 => {
                    lanes.remove(slot);
                    for queue in &mut model {
                        queue.retain(|n| *n != number);
                    }
                }
                3 => {
                    lanes.rotate(lane);
                    if let Some(number) = model[queue].pop_front() {
                        model[queue].push_back(number);
                    }
                }
                _ => assert_eq!(
                    lanes.pop_front(lane),
                    model[queue].pop_front().map(Slot),
                    "the oldest first"
                ),
            }
            for (lane, queue) in (0..).zip(&model) {
                assert_eq!(lanes.first(lane).map(|slot| slot.0), queue.front().copied());
                assert_eq!(lanes.occupied() & (1 << lane) != 0, !queue.is_empty());
                for number in queue {
                    assert_eq!(lanes.lane_of(Slot(*number)), Some(lane));
                }
            }
            assert_eq!(lanes.is_empty(), model.iter().all(VecDeque::is_empty));
        }
    }
}
