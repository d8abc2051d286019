//! What has been received, and when it is acknowledged.

use std::time::{Duration, Instant};

use quic_common::Ecn;

use super::{ACK_RANGES_SENT, Frequency, ReceivedPackets, Space};

const DELAY: Duration = Duration::from_millis(25);
/// What a timer may be late by.
const LATENESS: Duration = Duration::from_millis(1);
const HOLD: Duration = DELAY.saturating_sub(LATENESS);

fn received(space: Space) -> (ReceivedPackets, Instant) {
    #[expect(clippy::disallowed_methods, reason = "any instant serves")]
    let now = Instant::now();
    (ReceivedPackets::new(space, DELAY), now)
}

/// RFC 9000, 13.2.2: an ACK after two ack-eliciting packets; 13.2.1 and 18.2: or in time for max_ack_delay, though the timer
/// be late.
#[test]
fn every_second_packet_is_acknowledged_at_once() {
    let (mut packets, now) = received(Space::Application);
    packets.on_packet(0, true, Ecn::NotEct, now);
    assert!(!packets.is_due(now) && packets.is_pending());
    assert_eq!(packets.deadline(), Some(now + HOLD));
    assert!(!packets.is_due(now + HOLD / 2) && packets.is_due(now + HOLD));
    packets.on_packet(1, true, Ecn::NotEct, now);
    assert!(packets.is_due(now));
    packets.on_ack_sent();
    assert!(!packets.is_due(now + DELAY) && !packets.is_pending());
}

/// RFC 9000, 18.2: timers for little time go off less late.
#[test]
fn short_delays_leave_the_timer_less() {
    let ms = Duration::from_millis(1);
    for (delay, expected) in [
        (Duration::ZERO, Duration::ZERO),
        (ms, ms * 31 / 32),
        (ms * 10, ms * 310 / 32),
        (ms * 11, ms * 10),
        (ms * 1000, ms * 999),
    ] {
        let (_, now) = received(Space::Application);
        let mut packets = ReceivedPackets::new(Space::Application, delay);
        packets.on_packet(0, true, Ecn::NotEct, now);
        assert_eq!(packets.deadline(), Some(now + expected), "{delay:?}");
    }
}

fn asked(threshold: u64, reordering: u64) -> Frequency {
    Frequency {
        sequence: 0,
        threshold,
        max_delay: 2 * DELAY,
        reordering,
    }
}

/// Which of these packets are acknowledged at once, when each ACK is sent as soon as it is due.
fn acknowledged(packets: &mut ReceivedPackets, numbers: &[u64], now: Instant) -> Vec<u64> {
    let due = numbers.iter().copied().filter(|number| {
        packets.on_packet(*number, true, Ecn::NotEct, now);
        let is_due = packets.is_due(now);
        if is_due {
            packets.on_ack_sent();
        }
        is_due
    });
    due.collect()
}

/// draft-ietf-quic-ack-frequency-14, 4 and 6: after more than so many packets, or the delay.
#[test]
fn the_peer_says_how_many_packets_may_go_unacknowledged() {
    for (threshold, due) in [
        (0, vec![0, 1, 2, 3]),
        (1, vec![1, 3]),
        (3, vec![3]),
        (9, vec![]),
    ] {
        let (mut packets, now) = received(Space::Application);
        packets.on_frequency(asked(threshold, 1));
        assert_eq!(acknowledged(&mut packets, &[0, 1, 2, 3], now), due);
        if due.is_empty() {
            assert_eq!(packets.deadline(), Some(now + DELAY + HOLD));
        }
    }
}

/// draft-ietf-quic-ack-frequency-14, 4: a frame MUST be ignored unless its number is greater than the last one's.
#[test]
fn older_requests_are_ignored() {
    let (mut packets, now) = received(Space::Application);
    packets.on_frequency(Frequency {
        sequence: 5,
        ..asked(3, 1)
    });
    for sequence in [0, 4, 5] {
        packets.on_frequency(Frequency {
            sequence,
            ..asked(0, 1)
        });
    }
    assert_eq!(acknowledged(&mut packets, &[0, 1, 2, 3], now), [3]);
    packets.on_frequency(Frequency {
        sequence: 6,
        ..asked(0, 1)
    });
    assert_eq!(acknowledged(&mut packets, &[4], now), [4]);
}

/// draft-ietf-quic-ack-frequency-14, 6.2: the two examples, and the thresholds 0 and 1.
#[test]
fn reordering_is_told_when_the_peer_can_act_on_it() {
    let at_once = |reordering, numbers: &[u64]| {
        let (mut packets, now) = received(Space::Application);
        packets.on_frequency(asked(1000, reordering));
        acknowledged(&mut packets, numbers, now)
    };
    assert_eq!(at_once(3, &[0, 1, 3, 4, 5, 8, 9, 10]), [5, 9, 10]);
    assert_eq!(at_once(5, &[0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
    assert_eq!(at_once(0, &[0, 1, 9, 20, 5]), [0; 0]);
    assert_eq!(at_once(1, &[0, 1, 3, 4, 2]), [3, 2]);
    // What comes after it was declared lost is told at once; what comes before, is not.
    assert_eq!(at_once(3, &[0, 4, 1, 5]), [4, 1, 5]);
    assert_eq!(at_once(3, &[0, 2, 1, 3, 4, 5]), [0; 0]);
}

/// draft-ietf-quic-ack-frequency-14, 6.3: of CE marks in a row the first is told at once.
#[test]
fn a_change_to_congestion_is_told_at_once() {
    let marks = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ce];
    for (threshold, due) in [(100, vec![1, 4]), (1, vec![1, 2, 4])] {
        let (mut packets, now) = received(Space::Application);
        packets.on_frequency(asked(threshold, 1));
        let told = (0..).zip(marks).filter_map(|(number, ecn)| {
            packets.on_packet(number, true, ecn, now);
            let is_due = packets.is_due(now);
            packets.on_ack_sent();
            is_due.then_some(number)
        });
        assert_eq!(told.collect::<Vec<u64>>(), due);
    }
}

/// draft-ietf-quic-ack-frequency-14, 6: ranges are acknowledged before there are more than a frame holds.
#[test]
fn disorder_is_told_before_it_outgrows_a_frame() {
    let (mut packets, now) = received(Space::Application);
    packets.on_frequency(asked(100_000, 0));
    let numbers: Vec<u64> = (0..1000).step_by(2).collect();
    let told = acknowledged(&mut packets, &numbers, now);
    assert_eq!(told.len(), 499 / (ACK_RANGES_SENT / 2));
}

/// A peer that skips very many numbers costs no more than the window of numbers that are remembered.
#[test]
fn a_leap_in_numbers_is_cheap() {
    let (mut packets, now) = received(Space::Application);
    packets.on_frequency(asked(100_000, 3));
    for power in 10..62 {
        packets.on_packet(1 << power, true, Ecn::NotEct, now);
        assert!(packets.is_due(now));
        packets.on_ack_sent();
    }
}

/// A large packet is acknowledged at once only if the peer has no wish.
#[test]
fn a_wish_counts_for_large_packets_too() {
    let (mut packets, now) = received(Space::Application);
    packets.on_packet(0, true, Ecn::NotEct, now);
    packets.on_large();
    assert!(packets.is_due(now));
    packets.on_ack_sent();
    packets.on_frequency(asked(9, 3));
    packets.on_packet(1, true, Ecn::NotEct, now);
    packets.on_large();
    assert!(!packets.is_due(now));
}

/// RFC 9000, 13.2.1: the deadline is that of the first packet, and is not put off by later ones.
#[test]
fn packets_that_elicit_nothing_are_not_acknowledged_for_themselves() {
    let (mut packets, now) = received(Space::Application);
    for number in 0..9 {
        packets.on_packet(number, false, Ecn::NotEct, now);
    }
    assert!(!packets.is_pending() && packets.deadline().is_none());
    packets.on_packet(9, true, Ecn::NotEct, now);
    packets.on_packet(10, false, Ecn::NotEct, now + DELAY / 2);
    assert_eq!(packets.deadline(), Some(now + HOLD));
    assert!(packets.ranges().eq([0..=10]));
}

/// RFC 9000, 13.2.1: Initial and Handshake packets are acknowledged immediately.
#[test]
fn handshake_packets_are_acknowledged_at_once() {
    for space in [Space::Initial, Space::Handshake] {
        let (mut packets, now) = received(space);
        packets.on_packet(0, false, Ecn::NotEct, now);
        assert!(!packets.is_due(now));
        packets.on_packet(1, true, Ecn::NotEct, now);
        assert!(packets.is_due(now));
    }
}

/// RFC 9000, 13.2.1: a packet below one received, or above a gap, is acknowledged immediately, and so is CE.
#[test]
fn disorder_and_congestion_are_reported_at_once() {
    let (mut packets, now) = received(Space::Application);
    packets.on_packet(5, true, Ecn::NotEct, now);
    assert!(!packets.is_due(now), "there is no gap before the first");
    packets.on_ack_sent();
    packets.on_packet(7, true, Ecn::NotEct, now);
    assert!(packets.is_due(now), "a gap");
    packets.on_ack_sent();
    packets.on_packet(6, true, Ecn::NotEct, now);
    assert!(packets.is_due(now), "late");
    packets.on_ack_sent();
    packets.on_packet(8, true, Ecn::NotEct, now);
    assert!(!packets.is_due(now));
    packets.on_ack_sent();
    packets.on_packet(9, true, Ecn::Ce, now);
    assert!(packets.is_due(now), "congestion");
}

#[test]
fn an_ack_that_is_asked_for_is_due_at_once() {
    let (mut packets, now) = received(Space::Application);
    packets.on_packet(7, true, Ecn::NotEct, now);
    packets.request();
    assert!(packets.is_due(now));
    assert_eq!(packets.largest(), Some(7));
}

/// RFC 9000, 13.2.5: the delay is that of the largest packet.
#[test]
fn the_delay_is_the_largest_packets() {
    let (mut packets, now) = received(Space::Application);
    packets.on_packet(3, true, Ecn::NotEct, now);
    packets.on_packet(2, true, Ecn::NotEct, now + DELAY);
    assert_eq!(packets.delay(now + DELAY), DELAY);
    packets.on_packet(4, true, Ecn::NotEct, now + DELAY);
    assert_eq!(packets.delay(now + DELAY), Duration::ZERO);
    assert_eq!(packets.delay(now), Duration::ZERO, "a clock that went back");
}

/// RFC 9000, 13.4.1: counts of each mark, once there is one.
#[test]
fn marks_are_counted() {
    let (mut packets, now) = received(Space::Application);
    packets.on_packet(0, true, Ecn::NotEct, now);
    assert_eq!(packets.ecn_counts(), None);
    for (number, ecn) in [(1, Ecn::Ect0), (2, Ecn::Ect0), (3, Ecn::Ce), (4, Ecn::Ect1)] {
        packets.on_packet(number, false, ecn, now);
    }
    let counts = packets.ecn_counts().unwrap();
    assert_eq!((counts.ect0, counts.ect1, counts.ce), (2, 1, 1));
}

/// RFC 9000, 13.2.4: once an ACK is acknowledged, what it said need not be repeated; 12.3: duplicates are still
/// recognised.
#[test]
fn acknowledged_ranges_are_forgotten_but_not_seen_again() {
    let (mut packets, now) = received(Space::Application);
    for number in [0, 1, 2, 5, 6] {
        packets.on_packet(number, true, Ecn::NotEct, now);
    }
    packets.on_ack_acked(5);
    assert!(packets.ranges().eq([6..=6]));
    packets.on_ack_acked(6);
    assert!(
        packets.ranges().eq([6..=6]),
        "an ACK needs a largest number"
    );
    for (number, seen) in [(0, true), (2, true), (3, false), (6, true), (7, false)] {
        assert_eq!(packets.is_duplicate(number), seen);
    }
    packets.on_packet(3, true, Ecn::NotEct, now);
    assert!(packets.ranges().eq([6..=6, 3..=3]));
}

#[test]
fn few_ranges_are_sent_of_the_many_kept() {
    let (mut packets, now) = received(Space::Application);
    for number in (0..1000).step_by(2) {
        assert!(!packets.is_duplicate(number));
        packets.on_packet(number, true, Ecn::NotEct, now);
    }
    assert_eq!(packets.ranges().count(), ACK_RANGES_SENT);
    assert_eq!(packets.ranges().next(), Some(998..=998));
    assert!(
        !packets.is_duplicate(1),
        "a dropped range makes nothing old"
    );
}
