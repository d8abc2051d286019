//! Datagrams in their order, end to end in one ring of bytes that keeps its memory.

use std::collections::VecDeque;

/// What a datagram counts for besides its bytes, so that empty ones are bounded too.
pub(super) const OVERHEAD: usize = 32;

/// See the module.
#[derive(Debug)]
pub(super) struct Queue {
    bytes: VecDeque<u8>,
    lengths: VecDeque<usize>,
    limit: usize,
}

impl Queue {
    /// An empty queue of `limit` bytes, [`OVERHEAD`] for each datagram included.
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            lengths: VecDeque::new(),
            limit,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Gives back the room that isn't needed now.
    pub(super) fn rest(&mut self) {
        self.bytes.shrink_to_fit();
        self.lengths.shrink_to_fit();
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Bytes that they count for.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.lengths.len() * OVERHEAD
    }

    /// The largest datagram that an empty queue takes; `None` if it takes none.
    pub(super) const fn most(&self) -> Option<usize> {
        self.limit.checked_sub(OVERHEAD)
    }

    /// Whether one of `length` bytes fits.
    pub(super) fn has_room(&self, length: usize) -> bool {
        let free = self.limit.saturating_sub(self.size());
        length <= free.saturating_sub(OVERHEAD) && free >= OVERHEAD
    }

    /// Whether there is room for more than a trickle.
    pub(super) fn is_half_empty(&self) -> bool {
        self.size() <= self.limit / 2
    }

    /// Adds one; the caller has asked whether it fits.
    pub(super) fn push(&mut self, data: &[u8]) {
        debug_assert!(self.has_room(data.len()), "more than the limit");
        self.bytes.extend(data);
        self.lengths.push_back(data.len());
    }

    /// The length of the oldest.
    pub(super) fn front_length(&self) -> Option<usize> {
        self.lengths.front().copied()
    }

    /// The oldest, in the two parts that it may lie in.
    pub(super) fn front(&self) -> Option<(&[u8], &[u8])> {
        let length = self.front_length()?;
        let (first, second) = self.bytes.as_slices();
        let split = first.len().min(length);
        Some((first.get(..split)?, second.get(..length - split)?))
    }

    /// Forgets the oldest; returns its length.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let length = self.lengths.pop_front()?;
        drop(self.bytes.drain(..length.min(self.bytes.len())));
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use quic_common::Random;

    use super::{OVERHEAD, Queue};

    fn front(queue: &Queue) -> Option<Vec<u8>> {
        queue
            .front()
            .map(|parts| <[&[u8]; 2]>::from(parts).concat())
    }

    /// Seeded: agrees with a queue of vectors.
    #[test]
    fn agrees_with_a_model() {
        let mut random = Random::from_seed([5; 32]);
        let (mut queue, mut model) = (Queue::new(4000), VecDeque::<Vec<u8>>::new());
        for step in 0..20_000_u32 {
            if random.below(2) == 0 {
                let data = vec![step.to_be_bytes()[3]; usize::try_from(random.below(900)).unwrap()];
                let held: usize = model.iter().map(|data| data.len() + OVERHEAD).sum();
                let fits = held + data.len() + OVERHEAD <= 4000;
                assert_eq!(queue.has_room(data.len()), fits);
                if fits {
                    queue.push(&data);
                    model.push_back(data);
                }
            } else {
                assert_eq!(front(&queue).as_ref(), model.front());
                assert_eq!(queue.pop(), model.pop_front().map(|data| data.len()));
            }
            assert_eq!(
                (queue.len(), queue.is_empty()),
                (model.len(), model.is_empty())
            );
        }
    }

    #[test]
    fn the_limit_is_exact_and_empty_datagrams_count() {
        let mut queue = Queue::new(10 * OVERHEAD);
        assert_eq!(queue.most(), Some(9 * OVERHEAD));
        assert!(queue.has_room(9 * OVERHEAD) && !queue.has_room(9 * OVERHEAD + 1));
        for _ in 0..10 {
            assert!(queue.has_room(0));
            queue.push(b"");
        }
        assert!(!queue.has_room(0));
        assert_eq!(queue.size(), 10 * OVERHEAD);
        assert!(!Queue::new(OVERHEAD - 1).has_room(0));
        assert_eq!(Queue::new(OVERHEAD - 1).most(), None);
    }

    #[test]
    fn the_ring_keeps_its_memory() {
        let mut queue = Queue::new(10_000);
        for _ in 0..10_000 {
            while queue.has_room(1000) {
                queue.push(&[7; 1000]);
            }
            queue.pop();
        }
        assert!(queue.bytes.capacity() <= 20_000 && queue.lengths.capacity() <= 20);
    }
}
