//! ICMP errors taken from the kernel and not yet asked for.
//!
//! While reports are on, the kernel returns a pending ICMP error in place of the result of whatever call comes next.
//! Its queue tells such a guest from an error of the call itself.

use std::collections::VecDeque;

use crate::{calls::Calls, icmp::IcmpError, limits::MAX_ICMP_ERRORS};

/// A bounded queue; off, it costs nothing.
#[derive(Debug, Default)]
pub(crate) struct IcmpQueue {
    enabled: bool,
    waiting: VecDeque<IcmpError>,
}

impl IcmpQueue {
    /// From now on the kernel queues errors.
    pub(crate) fn enable(&mut self) {
        self.enabled = true;
        self.waiting.reserve(MAX_ICMP_ERRORS);
    }

    /// Takes what the kernel has; returns whether it had anything. Later errors say nothing that the first ones don't,
    /// so they are dropped when there are too many.
    pub(crate) fn collect(&mut self, calls: &impl Calls) -> bool {
        if !self.enabled {
            return false;
        }
        let mut found = false;
        for _ in 0..MAX_ICMP_ERRORS {
            let Ok(Some(error)) = calls.icmp_error() else {
                break;
            };
            found = true;
            if self.waiting.len() < MAX_ICMP_ERRORS {
                self.waiting.push_back(error);
            }
        }
        found
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn pop(&mut self, calls: &impl Calls) -> Option<IcmpError> {
        if self.waiting.is_empty() {
            self.collect(calls);
        }
        self.waiting.pop_front()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::IcmpQueue;
    use crate::{limits::MAX_ICMP_ERRORS, transfer::script::Script};

    #[test]
    fn a_queue_that_is_off_asks_nothing() {
        let script = Script::new().icmp_errors(3);
        let mut queue = IcmpQueue::default();
        assert!(!queue.collect(&script));
        assert_eq!(queue.pop(&script), None);
        assert_eq!(script.icmp_errors_left(), 3);
    }

    #[test]
    fn a_flood_is_cut_to_the_bound() {
        let script = Script::new().icmp_errors(3 * MAX_ICMP_ERRORS);
        let mut queue = IcmpQueue::default();
        queue.enable();
        assert!(queue.collect(&script));
        assert!(queue.collect(&script));
        assert_eq!(queue.waiting.len(), MAX_ICMP_ERRORS);
        assert_eq!(script.icmp_errors_left(), MAX_ICMP_ERRORS);
    }
}
