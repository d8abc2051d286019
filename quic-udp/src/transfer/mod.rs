//! Sending and receiving with the policy for everything that can go wrong, over any [`Calls`].

mod icmp_queue;
mod send;
mod receive;

#[cfg(all(test, unix))]
pub(crate) mod script;

pub use send::Sent;

use icmp_queue::IcmpQueue;
use quic_common::MAX_BATCH_SEGMENTS;

use crate::{address::Bound, calls::Calls, counters::Counters, fault::is_missing_call};

/// A socket's state beside the system's.
#[derive(Debug)]
pub(crate) struct Transfer<C> {
    pub(crate) calls: C,
    pub(crate) bound: Bound,
    pub(crate) counters: Counters,
    pub(crate) icmp: IcmpQueue,
    /// How many datagrams one send may carry; 1 once the system has failed to segment.
    segments: usize,
    /// Sends that went out without the ECN mark asked for.
    unmarked: u32,
    /// Failed reads in a row.
    failed_reads: u32,
    /// The system refuses the call that sends with options: datagrams go out without.
    sends_plainly: bool,
    /// The system refuses the call that receives with options.
    reads_plainly: bool,
}

impl<C: Calls> Transfer<C> {
    pub(crate) fn new(calls: C, bound: Bound) -> Self {
        let segments = calls.max_segments().clamp(1, MAX_BATCH_SEGMENTS);
        // Known before anything has arrived, so that nothing is joined that couldn't be told apart.
        let reads_plainly = calls
            .receive(&mut [], &mut [])
            .is_err_and(|error| is_missing_call(&error));
        if reads_plainly {
            calls.separate();
        }
        Self {
            calls,
            bound,
            counters: Counters::default(),
            icmp: IcmpQueue::default(),
            segments,
            unmarked: 0,
            failed_reads: 0,
            sends_plainly: false,
            reads_plainly,
        }
    }

    pub(crate) const fn segments(&self) -> usize {
        self.segments
    }
}
