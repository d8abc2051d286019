//! When each connection wants to be woken next: a heap in which nothing is searched for.
//!
//! A connection's deadline moves with nearly every packet, mostly to a later time. So a later one isn't entered at
//! all: the entry there is comes up too early, and the connection is asked again. What an earlier one has replaced, or
//! belongs to a connection that is gone, is outdated, and dropped when it is the first.

use std::{cmp::Reverse, collections::BinaryHeap, time::Instant};

use super::Handle;

/// A heap of (time, connection), with one entry at most for each connection that isn't outdated.
#[derive(Debug)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, Handle)>>,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::with_capacity(128),
        }
    }
}

impl Deadlines {
    /// Asks for a wake-up of `handle` at `at`, given the one that `scheduled` says is on the heap already.
    pub(super) fn schedule(
        &mut self,
        handle: Handle,
        at: Instant,
        scheduled: &mut Option<Instant>,
    ) {
        if scheduled.is_none_or(|earlier| at < earlier) {
            *scheduled = Some(at);
            self.heap.push(Reverse((at, handle)));
        }
    }

    /// Takes one connection whose entry has come up at `now`.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(Instant, Handle)> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// The earliest entry that `is_wanted`; the outdated ones before it are dropped.
    pub(super) fn next(&mut self, is_wanted: impl Fn(Instant, Handle) -> bool) -> Option<Instant> {
        while let Some(Reverse((at, handle))) = self.heap.peek() {
            if is_wanted(*at, *handle) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// How many entries there are, outdated ones included.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Drops the entries that `keep` doesn't want.
    pub(super) fn retain(&mut self, keep: impl Fn(Instant, Handle) -> bool) {
        self.heap.retain(|Reverse((at, handle))| keep(*at, *handle));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Deadlines;
    use crate::endpoint::Handle;

    #[expect(clippy::disallowed_methods, reason = "any instant will do as an epoch")]
    fn epoch() -> Instant {
        Instant::now()
    }

    /// Nobody wakes up for a connection that is gone.
    #[test]
    fn what_is_not_wanted_is_passed_over() {
        let start = epoch();
        let [gone, here] = [1, 2].map(|index| Handle::new(index, 0));
        let mut deadlines = Deadlines::default();
        for (handle, seconds) in [(gone, 1), (here, 2), (gone, 3)] {
            let at = start + Duration::from_secs(seconds);
            deadlines.schedule(handle, at, &mut None);
        }
        let next = deadlines.next(|_, handle| handle == here);
        assert_eq!(next, Some(start + Duration::from_secs(2)));
        assert_eq!(deadlines.len(), 2);
        assert_eq!(deadlines.next(|_, _| false), None);
    }

    #[test]
    fn a_later_deadline_waits_for_the_earlier_entry() {
        let start = epoch();
        let at = |seconds| start + Duration::from_secs(seconds);
        let handle = Handle::new(1, 0);
        let mut deadlines = Deadlines::default();
        let mut scheduled = None;
        deadlines.schedule(handle, at(5), &mut scheduled);
        deadlines.schedule(handle, at(9), &mut scheduled);
        assert_eq!(deadlines.len(), 1);
        deadlines.schedule(handle, at(3), &mut scheduled);
        assert_eq!((deadlines.len(), scheduled), (2, Some(at(3))));
        assert_eq!(deadlines.take_due(at(2)), None);
        assert_eq!(deadlines.take_due(at(3)), Some((at(3), handle)));
        assert_eq!(deadlines.next(|_, _| true), Some(at(5)));
    }
}
