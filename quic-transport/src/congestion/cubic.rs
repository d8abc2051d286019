//! CUBIC, [RFC 9438](https://www.rfc-editor.org/rfc/rfc9438): after congestion the window returns along a cubic curve
//! to where it was, lingers there, and then goes looking for more.
//!
//! Windows are in bytes, so that the algorithm survives a change of the datagram's size; time is in seconds.

use std::time::{Duration, Instant};

use super::algorithm::Algorithm;
use super::window::Window;

/// How steep the curve is, in segments per cubed second (RFC 9438, 5).
const C: f64 = 0.4;

/// What congestion leaves of the window (RFC 9438, 4.6).
const BETA: f64 = 0.7;

/// The segments per round trip that are as fair as Reno's one, given [`BETA`] (RFC 9438, 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC's congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cubic {
    /// The window before the last congestion, or less when it fell twice; zero when unknown.
    w_max: f64,
    /// The window before the last congestion.
    prior: f64,
    /// What Reno's window would be.
    w_est: f64,
    /// Seconds until the curve is back at `w_max`.
    k: f64,
    epoch: Option<Instant>,
    /// Since when the window hasn't been full.
    underused: Option<Instant>,
    /// The part of a byte that the window should be larger.
    fraction: f64,
}

impl Cubic {
    /// Begins a stage of congestion avoidance (RFC 9438, 4.2).
    fn start(&mut self, window: f64, segment: f64, now: Instant) -> Instant {
        if self.prior <= 0.0 {
            self.prior = window;
        }
        self.w_est = window;
        if self.w_max > window {
            self.k = ((self.w_max - window) / (C * segment)).cbrt();
        } else {
            self.w_max = window;
            self.k = 0.0;
        }
        self.underused = None;
        self.epoch = Some(now);
        now
    }

    /// The curve at `t` (RFC 9438, 4.2, figure 1).
    #[expect(
        clippy::suboptimal_flops,
        reason = "where the processor has no fused multiply-add, it is a call"
    )]
    fn curve(&self, t: f64, segment: f64) -> f64 {
        let from_k = t - self.k;
        (C * segment) * (from_k * from_k * from_k) + self.w_max
    }
}

impl Algorithm for Cubic {
    fn on_acked(&mut self, window: &mut Window, acked: u64, now: Instant, rtt: Duration) {
        let (cwnd, segment, acked) = (float(window.bytes), float(window.datagram), float(acked));
        let mut epoch = self.epoch.unwrap_or_else(|| self.start(cwnd, segment, now));
        if let Some(since) = self.underused.take() {
            // Time without need for a larger window is no time on the curve (RFC 9438, 4.2 and 5.8).
            epoch = epoch
                .checked_add(now.saturating_duration_since(since))
                .unwrap_or(now);
            self.epoch = Some(epoch);
        }
        let t = now.saturating_duration_since(epoch).as_secs_f64();
        let alpha = if self.w_est >= self.prior { 1.0 } else { ALPHA };
        self.w_est += alpha * segment * (acked / cwnd);
        let increase = if self.curve(t, segment) < self.w_est {
            self.w_est - cwnd
        } else {
            let target = self
                .curve(t + rtt.as_secs_f64(), segment)
                .clamp(cwnd, 1.5 * cwnd);
            (target - cwnd) * (acked / cwnd)
        };
        let increase = increase.max(0.0) + self.fraction;
        let bytes = whole(increase);
        self.fraction = increase - float(bytes);
        window.grow(bytes);
    }

    fn on_congestion(&mut self, window: &mut Window) {
        let cwnd = float(window.bytes);
        // Fast convergence (RFC 9438, 4.7).
        self.w_max = if cwnd < self.w_max {
            cwnd * f64::midpoint(1.0, BETA)
        } else {
            cwnd
        };
        self.prior = cwnd;
        self.fraction = 0.0;
        self.epoch = None;
        window.reduce(whole(cwnd * BETA));
    }

    fn on_persistent_congestion(&mut self) {
        // The next stage begins with K = 0 wherever slow start ends (RFC 9438, 4.8).
        self.w_max = 0.0;
        self.epoch = None;
    }

    fn on_underused(&mut self, now: Instant) {
        if self.epoch.is_some() {
            self.underused.get_or_insert(now);
        }
    }
}

/// Bytes as a float; exact below 2^53.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "no other conversion exists, and windows are far below 2^53"
)]
const fn float(bytes: u64) -> f64 {
    bytes as f64
}

/// The whole bytes of a float; what is out of range becomes the nearest that isn't.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no other conversion exists, and it saturates"
)]
const fn whole(bytes: f64) -> u64 {
    bytes as u64
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{ALPHA, Algorithm as _, BETA, C, Cubic, Window, float};

    const MSS: u64 = 1000;
    const RTT: Duration = Duration::from_millis(100);

    fn now() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        Instant::now()
    }

    fn window(segments: u64) -> Window {
        let mut window = Window::new(MSS);
        window.bytes = segments * MSS;
        window
    }

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} and {b}");
    }

    /// RFC 9438, 4.6: 0.7 of the window, and at least two segments; 4.7: fast convergence.
    #[test]
    fn congestion_leaves_seven_tenths() {
        let (mut cubic, mut window) = (Cubic::default(), window(1000));
        cubic.on_congestion(&mut window);
        assert_eq!((window.bytes, window.threshold), (700 * MSS, 700 * MSS));
        near(cubic.w_max, 1_000_000.0, 0.1);
        cubic.on_congestion(&mut window);
        near(cubic.w_max, 700_000.0 * f64::midpoint(1.0, BETA), 0.1);
        near(cubic.prior, 700_000.0, 0.1);
        for _ in 0..50 {
            cubic.on_congestion(&mut window);
        }
        assert_eq!(window.bytes, 2 * MSS);
    }

    /// RFC 9438, 4.2: K is the cube root of (W_max - cwnd) / C, and after K seconds the window is W_max again.
    #[test]
    fn the_curve_is_back_after_k_seconds() {
        let start = now();
        let (mut cubic, mut window) = (Cubic::default(), window(10_000));
        cubic.on_congestion(&mut window);
        cubic.on_acked(&mut window, MSS, start, RTT);
        let k = (3000.0_f64 / C).cbrt();
        near(cubic.k, k, 1e-9);
        // A window is acknowledged in each RTT, in pieces.
        let mut at = start;
        while at < start + Duration::from_secs_f64(k) {
            for _ in 0..100 {
                at += RTT / 100;
                let piece = window.bytes / 100;
                cubic.on_acked(&mut window, piece, at, RTT);
            }
            // Between the curve now and the curve an RTT ahead.
            let t = (at - start).as_secs_f64();
            let w = |t: f64| (C * (t - k).powi(3)).mul_add(1000.0, 10_000_000.0);
            let bytes = float(window.bytes);
            assert!(
                bytes >= w(t - 0.1) * 0.99 && bytes <= w(t + 0.1) * 1.01,
                "{t}: {bytes}"
            );
        }
        near(float(window.bytes), 10_000_000.0, 50_000.0);
    }

    /// RFC 9438, 4.2: never more than half a window in an RTT.
    #[test]
    fn the_target_is_at_most_half_a_window_more() {
        let start = now();
        let (mut cubic, mut window) = (Cubic::default(), window(100));
        cubic.on_congestion(&mut window);
        cubic.on_acked(&mut window, 1, start, RTT);
        let bytes = window.bytes;
        cubic.on_acked(&mut window, bytes, start + Duration::from_secs(1000), RTT);
        near(float(window.bytes), float(bytes) * 1.5, 2.0);
    }

    /// RFC 9438, 4.3: with a short RTT the window follows Reno's: alpha segments in an RTT, and a whole one once it
    /// is where it was.
    #[test]
    fn reno_is_followed_where_it_is_faster() {
        let (start, rtt) = (now(), Duration::from_millis(1));
        let (mut cubic, mut window) = (Cubic::default(), window(20));
        cubic.on_congestion(&mut window);
        let mut expected = 14.0;
        for round in 0..30 {
            let bytes = window.bytes;
            cubic.on_acked(&mut window, bytes, start + rtt * round, rtt);
            expected += if expected >= 20.0 { 1.0 } else { ALPHA };
            near(float(window.bytes) / 1000.0, expected, 0.02);
        }
        near(ALPHA, 0.529, 0.001);
    }

    /// RFC 9438, 4.10: without congestion before, K is 0 and W_max the window.
    #[test]
    fn after_a_calm_slow_start_the_curve_begins_flat() {
        let start = now();
        let (mut cubic, mut window) = (Cubic::default(), window(5000));
        window.threshold = window.bytes;
        cubic.on_acked(&mut window, MSS, start, RTT);
        near(cubic.k, 0.0, 0.0);
        near(cubic.w_max, 5_000_000.0, 0.0);
        assert!(window.bytes < 5002 * MSS);
    }

    /// RFC 9438, 4.2: t MUST NOT include periods without growth because the window wasn't used.
    #[test]
    fn idle_time_is_no_time_on_the_curve() {
        let start = now();
        let idle = Duration::from_secs(100);
        let run = |pause: bool| {
            let (mut cubic, mut window) = (Cubic::default(), window(1000));
            cubic.on_congestion(&mut window);
            cubic.on_acked(&mut window, MSS, start, RTT);
            let mut at = start + RTT;
            if pause {
                cubic.on_underused(at);
                cubic.on_underused(at + idle / 2);
                at += idle;
            }
            cubic.on_acked(&mut window, 700 * MSS, at, RTT);
            window.bytes
        };
        assert_eq!(run(true), run(false));
    }

    #[test]
    fn small_acknowledgments_add_up() {
        let start = now();
        let grow = |pieces: u64| {
            let (mut cubic, mut window) = (Cubic::default(), window(20));
            cubic.on_congestion(&mut window);
            for _ in 0..pieces {
                cubic.on_acked(&mut window, 140_000 / pieces, start, RTT);
            }
            window.bytes
        };
        near(float(grow(140_000)), float(grow(1000)), 60.0);
    }
}
