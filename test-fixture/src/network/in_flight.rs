//! Datagrams that have been sent and have not arrived: ordered by time of arrival, in buffers that are used again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use quic_common::Ecn;

use super::party::Route;

/// Bytes of a new buffer: the MTU of Ethernet, so that few ever grow.
const BUFFER: usize = 1500;

/// A datagram on its way.
#[derive(Debug)]
pub(super) struct Flying {
    pub(super) route: Route,
    pub(super) ecn: Ecn,
    pub(super) bytes: Vec<u8>,
}

/// All datagrams on their way.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Time of arrival, order of sending, place in `slots`.
    order: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    slots: Vec<Option<Flying>>,
    empty: Vec<usize>,
    spare: Vec<Vec<u8>>,
    sent: u64,
    newest: usize,
}

impl InFlight {
    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse((at, ..))| *at)
    }

    pub(super) fn add(&mut self, at: Instant, route: Route, ecn: Ecn, payload: &[u8]) {
        let mut bytes = self
            .spare
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(BUFFER));
        bytes.clear();
        bytes.extend_from_slice(payload);
        let flying = Some(Flying { route, ecn, bytes });
        let slot = self.empty.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = flying;
        self.newest = slot;
        self.order.push(Reverse((at, self.sent, slot)));
        self.sent += 1;
    }

    /// Changes one bit of the datagram that was added last.
    pub(super) fn flip(&mut self, bit: usize) {
        if let Some(flying) = &mut self.slots[self.newest] {
            flying.bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    /// Takes the first datagram that has arrived by `now`. Its bytes come back through [`recycle`](Self::recycle).
    pub(super) fn take(&mut self, now: Instant) -> Option<Flying> {
        self.next_arrival().filter(|at| *at <= now)?;
        let Reverse((_, _, slot)) = self.order.pop()?;
        self.empty.push(slot);
        self.slots[slot].take()
    }

    pub(super) fn recycle(&mut self, bytes: Vec<u8>) {
        self.spare.push(bytes);
    }
}
