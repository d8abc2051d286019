//! Packets in order, taken together and one by one.

use std::time::{Duration, Instant};

use quic_common::{Ecn, Random};

use super::{Frequency, ReceivedPackets};
use crate::transmit::Space;

fn frequency(sequence: u64, random: &mut Random) -> Frequency {
    Frequency {
        sequence,
        threshold: random.below(30),
        max_delay: Duration::from_millis(40),
        reordering: random.below(8),
    }
}

/// All that is known, and what is made of it, `next` being near the largest number: but for the bound below which missing
/// numbers are not searched for, which is raised where one is looked for.
fn facts(packets: &ReceivedPackets, next: u64, now: Instant) -> impl std::fmt::Debug + PartialEq {
    let mut known = packets.clone();
    if let Some(asked) = &mut known.asked {
        asked.missing_from = 0;
    }
    let around = (next.saturating_sub(5000)..next + 3).step_by(7);
    (
        format!("{known:?}"),
        (packets.is_due(now), packets.delay(now)),
        around
            .map(|number| packets.is_duplicate(number))
            .collect::<Vec<_>>(),
    )
}

/// Whatever has come before, and whatever the peer has asked for.
#[test]
fn packets_in_order_may_be_taken_together() {
    let mut random = Random::from_seed([5; 32]);
    for round in 0..600 {
        let space = Space::ALL[round % 3];
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        let mut now = Instant::now();
        let packets = ReceivedPackets::new(space, Duration::from_millis(25));
        let mut both = [packets.clone(), packets];
        let mut next = 0;
        for sequence in 0..120 {
            let what = random.below(20);
            let ecn = Ecn::from_bits(random.array::<1>()[0]);
            if what < 10 && next > 0 {
                let count = u32::try_from(1 + random.below(40)).unwrap();
                let numbers = next..next + u64::from(count);
                next = numbers.end;
                both[1].on_packets_in_order(count, ecn, now);
                for number in numbers {
                    both[0].on_packet(number, true, ecn, now);
                }
            }
            let skipped = random.below(3) / 2 * random.below(70);
            let late = next.saturating_sub(random.below(30));
            let is_eliciting = random.below(4) > 0;
            let asked = frequency(sequence, &mut random);
            for packets in &mut both {
                match what {
                    0..10 => {}
                    10..15 => packets.on_packet(next + skipped, is_eliciting, ecn, now),
                    15 if packets.is_duplicate(late) => {}
                    15 => packets.on_packet(late, true, ecn, now),
                    16 => packets.on_frequency(asked),
                    17 => packets.rest(),
                    _ => packets.on_ack_sent(),
                }
            }
            next = both[0].largest().map_or(0, |largest| largest + 1);
            let [one_by_one, together] = &both;
            assert_eq!(
                facts(one_by_one, next, now),
                facts(together, next, now),
                "{round} {sequence}"
            );
            now += Duration::from_millis(random.below(3) * 9);
        }
    }
}
