//! The ring of sent packets against the rules of RFC 9002, sections 6 and 7.6.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use quic_common::Random;

use super::{
    Acked, Losses, Lost, PACKET_THRESHOLD, QUIET_PACKETS, SENT_PACKETS, SKIPPED_NUMBERS,
    SentPacket, SentPackets, Slot,
};
use crate::recovery::PacketFlags;
use crate::rtt::Rtt;
use crate::transmit::PathId;

const MS: Duration = Duration::from_millis(1);
const FLIGHT: PacketFlags = PacketFlags::ACK_ELICITING.with(PacketFlags::IN_FLIGHT);

fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "any instant serves")]
    Instant::now()
}

fn packet(sent: Instant, flags: PacketFlags) -> SentPacket {
    SentPacket {
        sent,
        frames_start: 0,
        frames_count: 0,
        size: 1200,
        flags,
        path: PathId(0),
    }
}

/// Packets from 0 on, sent a millisecond apart.
fn sent(count: u64, now: Instant) -> SentPackets {
    let mut packets = SentPackets::new();
    for number in 0..count {
        packets.on_sent(number, packet(now + Duration::from_millis(number), FLIGHT));
    }
    packets
}

fn ack(packets: &mut SentPackets, range: RangeInclusive<u64>) -> Vec<u64> {
    let mut acked = Vec::new();
    packets.check([range.clone()]).unwrap();
    packets.take_acked(range, &mut acked);
    acked.iter().map(|acked: &Acked| acked.number).collect()
}

fn lost(packets: &mut SentPackets, now: Instant, rtt: &Rtt) -> (Vec<u64>, Losses) {
    let mut lost = Vec::new();
    let losses = packets.detect_lost(now, rtt, MS * 25, &mut lost);
    (lost.iter().map(|lost: &Lost| lost.number).collect(), losses)
}

/// An estimator whose only sample is `sample`; the time threshold is 9/8 of that, the PTO 3 times.
fn rtt(now: Instant, sample: Duration) -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(now, sample, Duration::ZERO, true, Duration::ZERO);
    rtt
}

#[test]
fn packets_are_acknowledged_once_and_in_order() {
    let mut packets = sent(10, start());
    assert_eq!(
        (packets.in_flight(), packets.has_eliciting()),
        (12_000, true)
    );
    assert_eq!(ack(&mut packets, 7..=8), [7, 8]);
    assert_eq!(ack(&mut packets, 2..=8), [2, 3, 4, 5, 6]);
    assert_eq!(ack(&mut packets, 0..=8), [0, 1]);
    assert_eq!(ack(&mut packets, 0..=8), [0; 0]);
    assert_eq!(
        (packets.in_flight(), packets.slots.len(), packets.base),
        (1200, 1, 9)
    );
    assert_eq!(packets.largest_acked(), Some(8));
    assert_eq!(ack(&mut packets, 9..=9), [9]);
    assert!(!packets.has_eliciting() && packets.slots.is_empty());
}

/// RFC 9000, 13.1: an ACK of a packet that was not sent is a PROTOCOL_VIOLATION; 21.4: so is one of a skipped number.
#[test]
fn what_was_not_sent_cannot_be_acknowledged() {
    let now = start();
    let mut packets = sent(5, now);
    packets.on_sent(6, packet(now, FLIGHT));
    assert!(packets.check([7..=7]).is_err());
    assert!(packets.check([6..=6, 0..=u64::MAX]).is_err());
    assert!(packets.check([5..=5]).is_err());
    assert!(packets.check([0..=6]).is_err());
    assert!(packets.check([6..=6, 0..=4]).is_ok());
    assert_eq!(ack(&mut packets, 0..=4), [0, 1, 2, 3, 4]);
    assert_eq!(ack(&mut packets, 6..=6), [6]);
    assert!(
        packets.check([3..=6]).is_err(),
        "the gap is remembered after its neighbours are gone"
    );
}

#[test]
fn only_the_latest_gaps_are_remembered() {
    let now = start();
    let mut packets = SentPackets::new();
    let cap = u64::try_from(SKIPPED_NUMBERS).unwrap();
    for number in 0..cap {
        packets.on_sent(2 * number + 1, packet(now, FLIGHT));
    }
    assert!(packets.check([0..=0]).is_err());
    packets.on_sent(2 * cap + 1, packet(now, FLIGHT));
    assert!(packets.check([0..=0]).is_ok());
    assert!(packets.check([2..=2]).is_err());
}

/// RFC 9002, 6.1.1: three packets before an acknowledged one.
#[test]
fn the_packet_threshold_is_three() {
    let now = start();
    let (mut packets, rtt) = (sent(10, now), rtt(now, MS * 1000));
    ack(&mut packets, 2..=2);
    assert_eq!(lost(&mut packets, now, &rtt).0, [0; 0]);
    ack(&mut packets, 4..=4);
    let (numbers, losses) = lost(&mut packets, now, &rtt);
    assert_eq!(numbers, [0, 1]);
    assert_eq!(
        (losses.newest, losses.count, losses.is_persistent),
        (Some(now + MS), 2, false)
    );
    assert_eq!(packets.times().loss, Some(now + MS * 3 + MS * 1125));
    assert_eq!(packets.in_flight(), 6 * 1200);
}

/// RFC 9002, 6.1.2: 9/8 of the RTT before an acknowledged one; a timer is set for the rest.
#[test]
fn the_time_threshold_sets_a_timer() {
    let now = start();
    let (mut packets, rtt) = (sent(3, now), rtt(now, MS * 80));
    ack(&mut packets, 1..=1);
    assert_eq!(lost(&mut packets, now + MS * 89, &rtt).0, [0; 0]);
    assert_eq!(packets.times().loss, Some(now + MS * 90));
    assert_eq!(lost(&mut packets, now + MS * 90, &rtt).0, [0]);
    assert_eq!(
        packets.times().loss,
        None,
        "packet 2 was sent after the last acknowledged one"
    );
    assert_eq!(packets.times().eliciting, Some(now + MS * 2));
}

/// RFC 9002, 7.6.3: the example, with a PTO of 2 s and a threshold of 3.
#[test]
fn persistent_congestion_of_the_rfc() {
    for (last, persistent) in [(8, true), (7, false)] {
        let now = start();
        let second = Duration::from_secs(1);
        // RTT 1.2 s would do; with var 0.2 the PTO is 2 s.
        let mut rtt = rtt(now, second);
        for _ in 0..200 {
            rtt.update(now, second, Duration::ZERO, true, Duration::ZERO);
        }
        let base = rtt.pto_base(Duration::ZERO);
        let pad = (second * 2).saturating_sub(base);
        let mut packets = SentPackets::new();
        for (number, at) in (0..).zip([0, 1, 2, 3, 4, 5, 6, last]) {
            packets.on_sent(number, packet(now + second * at, FLIGHT));
        }
        let mut lost = Vec::new();
        packets.take_acked(0..=0, &mut Vec::new());
        packets.on_sent(8, packet(now + second * 12, FLIGHT));
        packets.take_acked(8..=8, &mut Vec::new());
        let losses = packets.detect_lost(now + second * 20, &rtt, pad, &mut lost);
        assert_eq!(losses.count, 7);
        assert_eq!(losses.is_persistent, persistent, "packets at 1 to {last} s");
    }
}

/// RFC 9002, 7.6.2: both ends of the span MUST be packets that elicit an acknowledgment.
#[test]
fn padding_alone_is_no_persistent_congestion() {
    let now = start();
    let rtt = rtt(now, MS);
    let long = Duration::from_secs(1);
    for (ends, persistent) in [(FLIGHT, true), (PacketFlags::IN_FLIGHT, false)] {
        let mut packets = SentPackets::new();
        for (number, flags) in (0..).zip([ends, FLIGHT, ends, FLIGHT, FLIGHT, FLIGHT]) {
            let seconds = [0, 5, 10, 20, 20, 20][usize::try_from(number).unwrap()];
            packets.on_sent(number, packet(now + long * seconds, flags));
        }
        ack(&mut packets, 5..=5);
        let mut found = Vec::new();
        let losses = packets.detect_lost(now + long * 20, &rtt, Duration::ZERO, &mut found);
        assert_eq!((losses.count, losses.is_persistent), (3, persistent));
    }
}

/// RFC 9002, 7.6.2: an acknowledged packet in between, or the lack of an RTT sample, rules it out.
#[test]
fn an_acknowledgment_in_between_is_no_persistent_congestion() {
    let now = start();
    let rtt = rtt(now, MS);
    let long = Duration::from_secs(1);
    let flight = |middle: Option<u64>, late: bool| {
        let mut packets = SentPackets::new();
        for number in 0..8 {
            let at = if late {
                now.checked_sub(long * 100).unwrap()
            } else {
                now
            };
            packets.on_sent(
                number,
                packet(at + long * u32::try_from(number).unwrap(), FLIGHT),
            );
        }
        if let Some(middle) = middle {
            ack(&mut packets, middle..=middle);
        }
        ack(&mut packets, 7..=7);
        lost(&mut packets, now + long * 9, &rtt).1.is_persistent
    };
    assert!(flight(None, false));
    assert!(flight(Some(0), false));
    assert!(!flight(None, true), "sent before the first sample");

    let mut packets = SentPackets::new();
    for (number, at) in (0..).zip([now, now + long, now + long, now + long, now + long * 2]) {
        packets.on_sent(number, packet(at, FLIGHT));
    }
    ack(&mut packets, 1..=3);
    let (numbers, losses) = lost(&mut packets, now + long * 3, &rtt);
    assert_eq!((numbers, losses.is_persistent), (vec![0], false));
    packets.on_sent(5, packet(now + long * 4, FLIGHT));
    ack(&mut packets, 5..=5);
    let (numbers, losses) = lost(&mut packets, now + long * 9, &rtt);
    assert_eq!((numbers, losses.is_persistent), (vec![4], false));
}

/// The losses of one run may be found one by one.
#[test]
fn persistent_congestion_is_found_across_calls() {
    let now = start();
    let (rtt, long) = (rtt(now, MS), Duration::from_secs(1));
    let mut packets = SentPackets::new();
    let mut persistent = Vec::new();
    for number in 0..4 {
        let at = now + long * number;
        packets.on_sent(u64::from(number) * 2, packet(at, FLIGHT));
        packets.on_sent(
            u64::from(number) * 2 + 1,
            packet(at, PacketFlags::IN_FLIGHT),
        );
    }
    for number in [1, 3] {
        // Not acknowledged, but declared lost with a later one's acknowledgment.
        ack(&mut packets, 7..=7);
        persistent.push(
            lost(&mut packets, now + long * number, &rtt)
                .1
                .is_persistent,
        );
    }
    assert!(persistent.contains(&true));
}

/// RFC 9000, 14.4: the loss of a probe of the MTU says nothing about congestion.
#[test]
fn lost_probes_of_the_mtu_are_not_counted() {
    let now = start();
    let mut packets = SentPackets::new();
    packets.on_sent(0, packet(now, FLIGHT.with(PacketFlags::MTU_PROBE)));
    packets.on_sent(1, packet(now, FLIGHT));
    ack(&mut packets, 1..=1);
    let (numbers, losses) = lost(&mut packets, now + MS * 1000, &rtt(now, MS));
    assert_eq!((numbers, losses), (vec![0], Losses::default()));
}

/// RFC 9002, 6.1: a spurious loss is noticed, and raises the packet threshold.
#[test]
fn late_acknowledgments_raise_the_threshold() {
    let now = start();
    let (mut packets, rtt) = (sent(40, now), rtt(now, MS * 1000));
    ack(&mut packets, 2..=9);
    assert_eq!(lost(&mut packets, now, &rtt).0, [0, 1]);
    assert_eq!(packets.take_spurious(), None);
    assert_eq!(
        ack(&mut packets, 1..=1),
        [0; 0],
        "its frames are being sent again"
    );
    let spurious = packets.take_spurious().unwrap();
    assert_eq!((spurious.count, spurious.newest), (1, now + MS));
    assert_eq!(packets.take_spurious(), None);
    assert_eq!(packets.threshold, 9);
    ack(&mut packets, 11..=18);
    assert_eq!(lost(&mut packets, now, &rtt).0, [0; 0]);
    ack(&mut packets, 19..=19);
    assert_eq!(lost(&mut packets, now, &rtt).0, [10]);
}

/// RFC 9000, 9.4: packets of the path that was left say nothing about the one in use.
#[test]
fn packets_of_another_path_are_lost_without_a_word() {
    let now = start();
    let (mut packets, rtt) = (sent(10, now), rtt(now, MS * 1000));
    ack(&mut packets, 5..=5);
    assert_eq!(lost(&mut packets, now, &rtt).0, [0, 1, 2]);
    packets.on_path_change(PathId(1));
    ack(&mut packets, 0..=2);
    assert_eq!(packets.take_spurious(), None, "only late");
    ack(&mut packets, 8..=8);
    let (numbers, losses) = lost(&mut packets, now, &rtt);
    assert_eq!((numbers, losses), (vec![3, 4], Losses::default()));
}

#[test]
fn the_threshold_has_a_bound() {
    let now = start();
    let (mut packets, rtt) = (sent(5000, now), rtt(now, MS * 10_000));
    ack(&mut packets, 1..=4999);
    assert_eq!(lost(&mut packets, now, &rtt).0, [0]);
    ack(&mut packets, 0..=0);
    assert_eq!(packets.threshold, PACKET_THRESHOLD);
}

/// RFC 9002, 6.4: with the keys go the packets, and their bytes in flight.
#[test]
fn discarded_packets_leave_nothing() {
    let now = start();
    let mut packets = sent(7, now);
    ack(&mut packets, 3..=3);
    assert_eq!(packets.discard(), 6 * 1200);
    assert_eq!(
        (packets.in_flight(), packets.times()),
        (0, super::SpaceTimes::default())
    );
    assert_eq!(packets.next(), 7);
    assert_eq!(ack(&mut packets, 0..=6), [0; 0]);

    let mut packets = sent(7, now);
    ack(&mut packets, 5..=5);
    assert_eq!(lost(&mut packets, now, &rtt(now, MS * 1000)).0, [0, 1, 2]);
    packets.discard();
    ack(&mut packets, 0..=6);
    assert_eq!(packets.take_spurious(), None);

    let mut packets = sent(3, now);
    ack(&mut packets, 1..=1);
    let mut all = Vec::new();
    packets.take_all(&mut all);
    assert_eq!(
        all.iter().map(|lost| lost.number).collect::<Vec<_>>(),
        [0, 2]
    );
    assert_eq!(packets.in_flight(), 0);
}

/// RFC 9000, 13.2.4: a receiver that sends only ACKs sends a PING now and then, and keeps nothing of the ACKs.
#[test]
fn packets_that_elicit_nothing_take_no_room() {
    let now = start();
    let mut packets = SentPackets::new();
    for number in 0..1000 {
        assert_eq!(packets.wants_ping(), number >= u64::from(QUIET_PACKETS));
        packets.on_sent(number, packet(now, PacketFlags::NONE));
        assert!(packets.slots.is_empty());
    }
    packets.on_sent(1000, packet(now, FLIGHT));
    assert!(!packets.wants_ping());
    packets.on_sent(1001, packet(now, PacketFlags::NONE));
    assert_eq!((packets.slots.len(), packets.in_flight()), (2, 1200));
    assert_eq!(ack(&mut packets, 0..=1001), [1000]);
    assert!(packets.slots.is_empty());
}

#[test]
fn no_ping_is_wanted_while_enough_is_in_flight() {
    let now = start();
    for (count, wanted) in [(7, true), (8, false)] {
        let mut packets = sent(count, now);
        for number in 0..u64::from(QUIET_PACKETS) {
            packets.on_sent(count + number, packet(now, PacketFlags::NONE));
        }
        assert_eq!(packets.wants_ping(), wanted, "{count} in flight");
    }
}

/// The records of settled packets may be forgotten, those of packets in flight may not.
#[test]
fn the_oldest_packet_in_flight_keeps_its_frames() {
    let now = start();
    let mut packets = SentPackets::new();
    assert_eq!(packets.oldest_frames(), None);
    for number in 0..3 {
        let frames_start = 10 + number;
        packets.on_sent(
            number,
            SentPacket {
                frames_start,
                ..packet(now, FLIGHT)
            },
        );
    }
    assert_eq!(packets.oldest_frames(), Some(10));
    ack(&mut packets, 0..=1);
    assert_eq!(packets.oldest_frames(), Some(12));
}

#[test]
fn what_an_honest_peer_leaves_unacknowledged_has_a_bound() {
    let now = start();
    let mut packets = SentPackets::new();
    let cap = u64::try_from(SENT_PACKETS).unwrap();
    packets.on_sent(0, packet(now, FLIGHT));
    for number in 1..cap {
        packets.on_sent(number, packet(now, PacketFlags::NONE));
    }
    assert!(!packets.is_overfull());
    packets.on_sent(cap, packet(now, PacketFlags::NONE));
    assert!(packets.is_overfull());
}

/// A padded ACK is in flight though it elicits nothing: it is lost or acknowledged, but never probed for.
#[test]
fn padded_packets_are_in_flight() {
    let now = start();
    let mut packets = SentPackets::new();
    packets.on_sent(0, packet(now, PacketFlags::IN_FLIGHT));
    assert_eq!(
        (packets.in_flight(), packets.has_eliciting()),
        (1200, false)
    );
    assert_eq!(packets.times().eliciting, None);
    packets.on_sent(1, packet(now, FLIGHT));
    assert_eq!(
        packets
            .eliciting()
            .map(|(number, _)| number)
            .collect::<Vec<_>>(),
        [1]
    );
}

/// a peer that repeats wide ranges costs a step for each, not one for each packet.
#[test]
fn repeated_ranges_are_skipped_in_few_steps() {
    let mut packets = sent(20_000, start());
    for last in (10..19_999).step_by(10) {
        ack(&mut packets, last - 9..=last);
    }
    let steps = |packets: &mut SentPackets, first: u64| {
        let (mut at, mut steps) = (usize::try_from(first).unwrap(), 0);
        while let Some(Slot::Settled { run, .. }) = packets.slots.get(at).copied() {
            at = packets.join_runs(at, run);
            steps += 1;
        }
        steps
    };
    let total: i32 = (1..1000).map(|first| steps(&mut packets, first)).sum();
    assert!(
        total < 30_000,
        "{total} steps for 1000 repetitions of 2000 ranges"
    );
    assert!(packets.slots.len() > 19_000, "packet 0 is still in flight");
}

/// Against a plain set, with losses and repetitions.
#[test]
fn agrees_with_a_plain_set() {
    let now = start();
    let mut random = Random::from_seed([7; 32]);
    let (mut packets, mut plain) = (SentPackets::new(), std::collections::BTreeSet::new());
    let (mut next, rtt) = (0, rtt(now, MS * 50));
    for step in 0..20_000_u32 {
        let at = now + MS * step;
        for _ in 0..random.below(4) {
            next += u64::from(random.below(30) == 0);
            let flags = match random.below(5) {
                0 => PacketFlags::NONE,
                1 => PacketFlags::IN_FLIGHT,
                _ => FLIGHT,
            };
            packets.on_sent(next, packet(at, flags));
            if flags != PacketFlags::NONE {
                plain.insert(next);
            }
            next += 1;
        }
        if next == 0 {
            continue;
        }
        let last = next.saturating_sub(1 + random.below(30));
        let range = last.saturating_sub(random.below(20))..=last;
        let mut acked = Vec::new();
        packets.take_acked(range.clone(), &mut acked);
        let expected: Vec<_> = plain.range(range).copied().collect();
        let count = |numbers: &[u64]| u64::try_from(numbers.len()).unwrap();
        assert_eq!(acked.iter().map(|a| a.count).sum::<u64>(), count(&expected));
        for last in &acked {
            assert!(expected.contains(&last.number), "{last:?}");
        }
        for number in expected {
            assert!(plain.remove(&number));
        }
        for number in lost(&mut packets, at, &rtt).0 {
            assert!(plain.remove(&number));
        }
        assert_eq!(
            packets.in_flight(),
            1200 * u64::try_from(plain.len()).unwrap()
        );
        assert!(packets.slots.len() < 2000);
    }
}

/// RFC 9001, 4.6.2: acknowledging 0-RTT packets that were rejected is a PROTOCOL_VIOLATION.
#[test]
fn what_was_rejected_must_not_be_acknowledged() {
    let now = start();
    let mut packets = sent(3, now);
    packets.reject();
    assert_eq!(packets.take_all(&mut Vec::new()), 3600);
    packets.on_sent(3, packet(now, FLIGHT));
    for range in [0..=0, 2..=2, 0..=3, 2..=3] {
        assert!(packets.check([range]).is_err());
    }
    assert_eq!(ack(&mut packets, 3..=3), [3]);
}
