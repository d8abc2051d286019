//! NewReno, [RFC 9002, section 7.3](https://www.rfc-editor.org/rfc/rfc9002#section-7.3): one datagram more for each
//! window that is acknowledged, and half when there is congestion.

use std::time::{Duration, Instant};

use super::algorithm::Algorithm;
use super::window::Window;

/// NewReno's congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NewReno {
    /// Bytes acknowledged since the window last grew.
    acked: u64,
}

impl Algorithm for NewReno {
    fn on_acked(&mut self, window: &mut Window, acked: u64, _now: Instant, _rtt: Duration) {
        self.acked = self.acked.saturating_add(acked);
        // Once at most for each window: what is left over after a jump counts for the next.
        if self.acked >= window.bytes {
            self.acked = self.acked.saturating_sub(window.bytes).min(window.bytes);
            window.grow(window.datagram);
        }
    }

    fn on_congestion(&mut self, window: &mut Window) {
        self.acked = 0;
        window.reduce(window.bytes / 2);
    }

    fn on_persistent_congestion(&mut self) {
        self.acked = 0;
    }

    fn on_underused(&mut self, _now: Instant) {}
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Algorithm as _, NewReno, Window};

    /// RFC 9002, 7.3.3: at most one datagram for each window that is acknowledged; 7.3.2: half on congestion.
    #[test]
    fn additive_increase_and_multiplicative_decrease() {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        let now = Instant::now();
        let (mut reno, mut window) = (NewReno::default(), Window::new(1200));
        window.bytes = 24_000;
        reno.on_congestion(&mut window);
        assert_eq!((window.bytes, window.threshold), (12_000, 12_000));
        for _ in 0..9 {
            reno.on_acked(&mut window, 1200, now, Duration::ZERO);
        }
        assert_eq!(window.bytes, 12_000);
        reno.on_acked(&mut window, 1200, now, Duration::ZERO);
        assert_eq!(window.bytes, 13_200);
        reno.on_acked(&mut window, 13_199, now, Duration::ZERO);
        assert_eq!(window.bytes, 13_200);
        reno.on_acked(&mut window, 1, now, Duration::ZERO);
        assert_eq!(window.bytes, 14_400);
    }

    /// RFC 9002, 7.2: the window is never less than two datagrams.
    #[test]
    fn the_minimum_holds() {
        let (mut reno, mut window) = (NewReno::default(), Window::new(1200));
        for _ in 0..20 {
            reno.on_congestion(&mut window);
        }
        assert_eq!(window.bytes, 2400);
    }
}
