//! What we let the peer send, for a stream or for the connection, and how that grows.
//!
//! The window is the distance that the peer's data may run ahead of what the application has used. It doubles when
//! half of it is used within two round trips, since then it may be what limits the peer; a reader that is slow never
//! makes it grow. New credit is announced once a quarter of the window has been used.

use std::time::{Duration, Instant};

/// A window's size at first, and the most that it may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowSize {
    /// Bytes at first.
    pub(crate) initial: u64,
    /// Bytes at most.
    pub(crate) most: u64,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    /// What the peer has been told, or is just being told.
    limit: u64,
    /// What has been used by the application, or discarded for it.
    used: u64,
    window: u64,
    /// When and at how many used bytes the present measurement began.
    since: Option<(Instant, u64)>,
}

impl ReceiveWindow {
    /// A window that the peer knows from the transport parameters.
    pub(crate) const fn new(window: u64) -> Self {
        Self {
            limit: window,
            used: 0,
            window,
            since: None,
        }
    }

    /// The offset that the peer may send up to.
    #[inline]
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that have been used.
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Bytes that the peer's data may run ahead.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// The application has used `bytes`; returns whether it is time to [`settle`](Self::settle).
    #[inline]
    pub(crate) const fn on_used(&mut self, bytes: u64) -> bool {
        self.used = self.used.saturating_add(bytes);
        self.is_due()
    }

    /// Whether there is enough new credit to be worth a frame.
    #[inline]
    pub(crate) const fn is_due(&self) -> bool {
        self.used
            .saturating_add(self.window)
            .saturating_sub(self.limit)
            >= self.window.div_ceil(4)
            && self.window > 0
    }

    /// Measures, and doubles the window up to `most` if it was used fast; returns whether it grew.
    pub(crate) fn settle(&mut self, now: Instant, rtt: Duration, most: u64) -> bool {
        let Some((start, used)) = self.since else {
            self.since = Some((now, self.used));
            return false;
        };
        if self.used.saturating_sub(used) < self.window / 2 {
            return false;
        }
        self.since = Some((now, self.used));
        let fast = now.saturating_duration_since(start) <= rtt.saturating_mul(2);
        fast && self.raise(self.window.saturating_mul(2).min(most))
    }

    /// Makes the window at least `window` bytes; returns whether it grew.
    pub(crate) const fn raise(&mut self, window: u64) -> bool {
        let grew = window > self.window;
        if grew {
            self.window = window;
        }
        grew
    }

    /// The limit to announce now, which from now on holds.
    #[inline]
    pub(crate) fn advance(&mut self) -> u64 {
        let limit = self.used.saturating_add(self.window);
        self.limit = self.limit.max(limit).min(quic_common::MAX_VARINT);
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::ReceiveWindow;

    const RTT: Duration = Duration::from_millis(10);
    #[expect(clippy::disallowed_methods, reason = "an epoch for virtual time")]
    fn epoch() -> Instant {
        Instant::now()
    }

    #[test]
    fn credit_is_announced_by_the_quarter() {
        let mut window = ReceiveWindow::new(100);
        assert!(!window.on_used(24));
        assert!(window.on_used(1));
        assert_eq!(window.advance(), 125);
        assert!(!window.is_due());
        assert_eq!(window.limit(), 125);
    }

    #[test]
    fn a_fast_reader_doubles_the_window_up_to_the_most() {
        let mut now = epoch();
        let mut window = ReceiveWindow::new(100);
        assert!(!window.settle(now, RTT, 350));
        for expected in [200, 350, 350] {
            now += 2 * RTT;
            window.on_used(window.window() / 2);
            let grew = window.window() < expected;
            assert_eq!(window.settle(now, RTT, 350), grew);
            assert_eq!(window.window(), expected);
        }
    }

    #[test]
    fn a_slow_reader_never_grows_the_window() {
        let mut now = epoch();
        let mut window = ReceiveWindow::new(100);
        for _ in 0..10 {
            assert!(!window.settle(now, RTT, 1000));
            now += 2 * RTT + Duration::from_nanos(1);
            window.on_used(50);
        }
        assert_eq!(window.window(), 100);
    }

    #[test]
    fn small_reads_are_measured_together() {
        let mut now = epoch();
        let mut window = ReceiveWindow::new(100);
        assert!(!window.settle(now, RTT, 1000));
        for used in [10, 20, 30, 40, 50] {
            now += RTT / 2;
            window.on_used(10);
            assert_eq!(window.used(), used);
            assert!(!window.settle(now, RTT, 1000), "half took 2.5 round trips");
        }
    }

    #[test]
    fn the_limit_never_shrinks_or_leaves_the_varints() {
        let mut window = ReceiveWindow::new(u64::MAX);
        window.on_used(u64::MAX);
        assert_eq!(window.advance(), quic_common::MAX_VARINT);
        assert!(!ReceiveWindow::new(0).is_due());
    }
}
