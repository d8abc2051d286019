//! What tells one congestion control from another: how the window grows after slow start, and how it shrinks.

use std::time::{Duration, Instant};

use super::window::Window;

/// Congestion avoidance.
pub(super) trait Algorithm {
    /// `acked` bytes that were sent after the last congestion have arrived, and the window was full.
    fn on_acked(&mut self, window: &mut Window, acked: u64, now: Instant, rtt: Duration);

    /// There was congestion: cuts the window and the threshold.
    fn on_congestion(&mut self, window: &mut Window);

    /// There was persistent congestion, for which the window has been cut to the minimum.
    fn on_persistent_congestion(&mut self);

    /// Bytes have arrived but the window wasn't full, so it doesn't grow.
    fn on_underused(&mut self, now: Instant);
}
