//! The controller against the states of RFC 9002, figure 1.

use std::time::{Duration, Instant};

use super::{Congestion, CongestionControl, Controller, Spurious};

const RTT: Duration = Duration::from_millis(100);
const BOTH: [CongestionControl; 2] = [CongestionControl::Cubic, CongestionControl::NewReno];

fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "any instant serves")]
    Instant::now()
}

fn loss(count: u32) -> Congestion {
    Congestion::Loss {
        count,
        is_persistent: false,
    }
}

/// Fills the window at `at` and acknowledges it an RTT later.
fn round(controller: &mut Controller, at: Instant) {
    let packets = controller.available() / 1200;
    for _ in 0..packets {
        controller.on_sent(1200);
    }
    for _ in 0..packets {
        controller.on_acked(1200, at);
    }
    controller.settle(at + RTT, RTT);
}

/// RFC 9002, 7.3.1: slow start grows by all that is acknowledged.
#[test]
fn slow_start_doubles() {
    for control in BOTH {
        let mut controller = Controller::new(control, 1200);
        for n in 1..5 {
            round(&mut controller, start() + RTT * n);
            assert_eq!(controller.window(), 12_000 << n);
            assert!(controller.is_slow_start() && controller.in_flight() == 0);
        }
    }
}

/// RFC 9002, 7.3.2: one reduction in a recovery period, whatever else is lost or marked; it ends with a packet sent
/// after its start.
#[test]
fn recovery_reduces_once() {
    for (control, left) in [(BOTH[0], 8400), (BOTH[1], 6000)] {
        let mut controller = Controller::new(control, 1200);
        let now = start();
        for _ in 0..10 {
            controller.on_sent(1200);
        }
        controller.on_lost(1200);
        controller.on_congestion(now, now + RTT, loss(1));
        assert_eq!(
            (controller.window(), controller.threshold()),
            (left, Some(left))
        );
        controller.on_lost(1200);
        controller.on_congestion(now + RTT, now + RTT, loss(1));
        controller.on_congestion(now + RTT, now + RTT, Congestion::Ecn);
        assert_eq!(controller.window(), left);
        controller.on_acked(1200, now + RTT);
        controller.settle(now + RTT * 2, RTT);
        assert_eq!(
            (controller.window(), controller.in_flight()),
            (left, 7 * 1200)
        );
        controller.on_congestion(now + RTT * 2, now + RTT * 3, Congestion::Ecn);
        assert!(controller.window() < left);
    }
}

/// What was acknowledged in the wake-up that found the loss doesn't count.
#[test]
fn acknowledgments_beside_a_loss_do_not_grow_the_window() {
    let mut controller = Controller::new(CongestionControl::NewReno, 1200);
    let now = start();
    for _ in 0..10 {
        controller.on_sent(1200);
    }
    for _ in 0..9 {
        controller.on_acked(1200, now);
    }
    controller.on_lost(1200);
    controller.on_congestion(now, now + RTT, loss(1));
    controller.settle(now + RTT, RTT);
    assert_eq!((controller.window(), controller.in_flight()), (6000, 0));
}

/// RFC 9002, 7.6.2: persistent congestion leaves the minimum window; 7.3.1: and slow start up to the threshold.
#[test]
fn persistent_congestion_leaves_the_minimum() {
    for control in BOTH {
        let mut controller = Controller::new(control, 1200);
        let now = start();
        let congestion = Congestion::Loss {
            count: 10,
            is_persistent: true,
        };
        controller.on_congestion(now, now + RTT, congestion);
        let threshold = controller.threshold().unwrap();
        assert_eq!(controller.window(), 2400);
        assert!(controller.is_slow_start());
        for n in 2..9 {
            round(&mut controller, now + RTT * n);
        }
        assert!(!controller.is_slow_start() && controller.window() >= threshold);
    }
}

/// RFC 9002, 7.2: congestion leaves at least two datagrams, forged CE counts included.
#[test]
fn the_window_has_a_floor() {
    for control in BOTH {
        let mut controller = Controller::new(control, 1200);
        let now = start();
        for n in 1..100 {
            controller.on_congestion(now + RTT * n, now + RTT * n, Congestion::Ecn);
        }
        assert_eq!(controller.window(), 2400);
    }
}

/// RFC 9002, 7.8: a window that isn't used doesn't grow.
#[test]
fn an_underused_window_stays() {
    for control in BOTH {
        for avoidance in [false, true] {
            let mut controller = Controller::new(control, 1200);
            let now = start();
            for n in 0..6 {
                round(&mut controller, now + RTT * n);
            }
            if avoidance {
                controller.on_congestion(now + RTT * 6, now + RTT * 6, loss(1));
            }
            let window = controller.window();
            for n in 7..40 {
                let at = now + RTT * n;
                for _ in 0..10 {
                    controller.on_sent(1200);
                }
                for _ in 0..10 {
                    controller.on_acked(1200, at);
                }
                controller.settle(at + RTT, RTT);
            }
            assert_eq!(controller.window(), window);
            round(&mut controller, now + RTT * 41);
            round(&mut controller, now + RTT * 42);
            assert!(
                controller.window() > window,
                "and grows again when it is full"
            );
        }
    }
}

/// RFC 9438, 4.9.2: when all losses of an event were spurious, the window is as it was.
#[test]
fn a_spurious_event_is_undone() {
    for control in BOTH {
        let now = start();
        let spurious = |count| Spurious::new(count, now);
        let mut controller = Controller::new(control, 1200);
        round(&mut controller, now);
        let before = controller.window();
        controller.on_congestion(now, now + RTT, loss(2));
        controller.on_congestion(now, now + RTT, loss(1));
        controller.on_spurious(spurious(2));
        assert!(controller.window() < before);
        controller.on_spurious(spurious(1));
        assert_eq!(
            (controller.window(), controller.threshold()),
            (before, None)
        );

        controller.on_congestion(now + RTT, now + RTT * 2, loss(1));
        controller.on_congestion(now + RTT, now + RTT * 2, Congestion::Ecn);
        controller.on_spurious(spurious(9));
        assert!(controller.window() < before, "a mark is no mistake");
    }
}

/// RFC 9406: the first slow start ends without a loss when the RTT keeps rising.
#[test]
fn a_rising_rtt_ends_slow_start() {
    let mut controller = Controller::new(CongestionControl::Cubic, 1200);
    let mut at = start();
    let mut rounds = 0;
    while controller.threshold().is_none() {
        let rtt = RTT + Duration::from_millis(20) * rounds;
        for _ in 0..8 {
            controller.on_rtt_sample(rtt);
        }
        round(&mut controller, at);
        at += RTT;
        rounds += 1;
        assert!(rounds < 10);
    }
    assert!(!controller.is_slow_start() && controller.window() < 12_000 << 5);
    let before = controller.window();
    round(&mut controller, at);
    assert!(controller.window() < before + before / 4);
}

/// RFC 9002, 6.4: discarded packets are no longer in flight.
#[test]
fn bytes_in_flight_are_a_plain_sum() {
    let mut controller = Controller::new(CongestionControl::Cubic, 1200);
    controller.on_sent(1000);
    controller.on_sent(500);
    controller.on_discarded(1000);
    assert_eq!(
        (controller.in_flight(), controller.available()),
        (500, 11_500)
    );
    controller.on_discarded(u64::MAX);
    assert_eq!(controller.in_flight(), 0);
}
