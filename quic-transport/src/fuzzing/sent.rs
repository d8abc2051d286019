//! Sent packets and their fate.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use quic_common::Reader;

use super::{byte, short, wide};
use crate::limits::{PACKET_THRESHOLD, SKIPPED_NUMBERS};
use crate::recovery::{Acked, Lost, PacketFlags, SentPacket, SentPackets};
use crate::rtt::Rtt;
use crate::transmit::PathId;

/// Sends, acknowledges and loses packets as the bytes say, and compares with a map of those in flight.
///
/// Each packet in flight comes back once, acknowledged or lost; what was never sent can't be acknowledged; packets are
/// lost neither too early nor too late.
#[expect(clippy::disallowed_methods, reason = "a fuzzer has to begin somewhere")]
pub fn sent_packets(bytes: &[u8]) {
    let now = Instant::now();
    let mut model = Model {
        packets: SentPackets::new(),
        in_flight: BTreeMap::new(),
        skipped: VecDeque::new(),
        next: 0,
        largest_acked: None,
        now,
        rtt: Rtt::new(Duration::from_millis(30)),
        threshold: 3,
    };
    let mut input = Reader::new(bytes);
    while model.step(&mut input).is_some() {
        model.check();
    }
}

struct Model {
    packets: SentPackets,
    in_flight: BTreeMap<u64, SentPacket>,
    /// The latest ones only.
    skipped: VecDeque<u64>,
    next: u64,
    largest_acked: Option<u64>,
    now: Instant,
    rtt: Rtt,
    /// How far behind the largest acknowledged one a packet is lost at the latest.
    threshold: u64,
}

const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

impl Model {
    fn step(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let operation = byte(input)?;
        match operation % 16 {
            0..=7 => self.send(operation >> 4),
            8..=11 => {
                let above = wide(byte(input)?);
                let length = wide(byte(input)?);
                let last = self.next.saturating_sub(above);
                self.acknowledge(&[last.saturating_sub(length)..=last]);
            }
            12 => {
                // An ACK frame of many ranges, from the largest down.
                let mut ranges = Vec::new();
                let mut below = self.next;
                for _ in 0..operation >> 4 {
                    let gaps = byte(input)?;
                    let Some(last) = below.checked_sub(2 + wide(gaps % 16)) else {
                        break;
                    };
                    let first = last.saturating_sub(wide(gaps / 16));
                    ranges.push(first..=last);
                    below = first;
                }
                self.acknowledge(&ranges);
            }
            13 => self.lose(Duration::ZERO),
            14 => self.lose(Duration::from_micros(wide(short(input)?) * 4)),
            _ if operation >> 4 == 0 => self.end(byte(input)? % 2 == 0),
            _ => self.next += wide(operation >> 4 & 3),
        }
        Some(())
    }

    fn send(&mut self, kind: usize) {
        let number = self.next;
        let flags = [
            PacketFlags::NONE,
            PacketFlags::IN_FLIGHT,
            PacketFlags::IN_FLIGHT.with(PacketFlags::ACK_ELICITING),
            PacketFlags::IN_FLIGHT
                .with(PacketFlags::ACK_ELICITING)
                .with(PacketFlags::MTU_PROBE),
        ][if kind > 3 { 2 } else { kind }];
        let packet = SentPacket {
            sent: self.now,
            frames_start: number,
            frames_count: 1,
            size: u16::try_from(1000 + kind).unwrap(),
            flags,
            path: PathId(0),
        };
        for skipped in self.packets.next()..number {
            self.skipped.push_front(skipped);
        }
        self.skipped.truncate(SKIPPED_NUMBERS);
        self.packets.on_sent(number, packet);
        if packet.is_in_flight() {
            self.in_flight.insert(number, packet);
        }
        self.next = number + 1;
        self.now += Duration::from_micros(wide(kind) * 100);
    }

    fn acknowledge(&mut self, ranges: &[RangeInclusive<u64>]) {
        let sent = self.packets.next();
        let is_wrong = ranges.iter().any(|range| {
            *range.end() >= sent || self.skipped.iter().any(|skipped| range.contains(skipped))
        });
        let checked = self.packets.check(ranges.iter().cloned());
        assert_eq!(checked.is_err(), is_wrong, "{ranges:?} of {sent}");
        if is_wrong {
            return;
        }
        let mut acked = Vec::new();
        for range in ranges {
            acked.clear();
            self.packets.take_acked(range.clone(), &mut acked);
            let mut expected: Vec<Acked> = Vec::new();
            for number in range.clone() {
                if let Some(packet) = self.in_flight.remove(&number)
                    && !expected
                        .last_mut()
                        .is_some_and(|last| last.join(number, &packet))
                {
                    expected.push(Acked::new(number, &packet));
                }
            }
            assert_eq!(acked, expected, "of {range:?}");
            self.largest_acked = self.largest_acked.max(Some(*range.end()));
        }
        // Only a loss that turns out to be none changes the threshold.
        if self.packets.take_spurious().is_some() {
            self.threshold = PACKET_THRESHOLD;
        }
    }

    fn lose(&mut self, time: Duration) {
        self.now += time;
        let mut lost = Vec::new();
        let losses = self
            .packets
            .detect_lost(self.now, &self.rtt, MAX_ACK_DELAY, &mut lost);
        let probes = lost.iter().filter(|lost| lost.packet.is_mtu_probe());
        assert_eq!(wide(lost.len() - probes.count()), u64::from(losses.count));
        assert!(lost.is_sorted_by_key(|lost| lost.number));
        let largest = self.largest_acked.unwrap_or(0);
        let is_late = |packet: &SentPacket| packet.sent + self.rtt.loss_delay() <= self.now;
        for Lost { number, packet } in lost {
            assert_eq!(self.in_flight.remove(&number), Some(packet));
            let is_right = number < largest && (number + 3 <= largest || is_late(&packet));
            assert!(is_right, "{number} is lost too early");
        }
        for (number, packet) in self.in_flight.range(..largest) {
            assert!(number + self.threshold > largest && !is_late(packet));
        }
        let waits = self.in_flight.range(..largest).next().is_some();
        assert_eq!(self.packets.times().loss.is_some(), waits, "the timer");
    }

    fn end(&mut self, keeps: bool) {
        let mut lost = Vec::new();
        if keeps {
            self.packets.take_all(&mut lost);
            let numbers = lost.iter().map(|lost| lost.number);
            assert!(numbers.eq(self.in_flight.keys().copied()));
        } else {
            let sum: u64 = self.in_flight.values().map(|p| u64::from(p.size)).sum();
            assert_eq!(self.packets.discard(), sum);
        }
        self.in_flight.clear();
    }

    fn check(&self) {
        let sum: u64 = self.in_flight.values().map(|p| u64::from(p.size)).sum();
        assert_eq!(self.packets.in_flight(), sum);
        assert_eq!(self.packets.largest_acked(), self.largest_acked);
        let eliciting = self.in_flight.iter().filter(|(_, p)| p.is_ack_eliciting());
        assert!(
            eliciting
                .clone()
                .map(|(number, packet)| (*number, *packet))
                .eq(self.packets.eliciting())
        );
        let has_eliciting = eliciting.count() > 0;
        assert_eq!(self.packets.has_eliciting(), has_eliciting);
        assert_eq!(self.packets.times().eliciting.is_some(), has_eliciting);
        let oldest = self.in_flight.values().next().map(|p| p.frames_start);
        assert_eq!(self.packets.oldest_frames(), oldest);
    }
}
