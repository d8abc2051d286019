//! What has been received, and what is acknowledged.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quic_common::{Ecn, MAX_VARINT, Reader};

use super::{byte, wide};
use crate::ack::ReceivedPackets;
use crate::limits::{ACK_RANGES_SENT, DUPLICATE_WINDOW};
use crate::transmit::Space;
use crate::wire::EcnCounts;

/// Receives packets as the bytes say, and compares with the set of their numbers.
///
/// What is acknowledged was received, in descending ranges that don't touch; what was received is a duplicate, and what
/// is neither that nor old is none.
#[expect(clippy::disallowed_methods, reason = "a fuzzer has to begin somewhere")]
pub fn received_packets(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let Some(first) = byte(&mut input) else {
        return;
    };
    let space = Space::ALL[first % 3];
    let start = Instant::now();
    let mut model = Model {
        packets: ReceivedPackets::new(space, Duration::from_millis(25)),
        numbers: BTreeSet::new(),
        floor: 0,
        counts: EcnCounts::default(),
        now: start,
    };
    while model.step(&mut input).is_some() {
        model.check();
    }
}

struct Model {
    packets: ReceivedPackets,
    numbers: BTreeSet<u64>,
    /// Numbers below need not be acknowledged any more.
    floor: u64,
    counts: EcnCounts,
    now: Instant,
}

impl Model {
    fn step(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let operation = byte(input)?;
        let largest = self.numbers.last().copied().unwrap_or(0);
        match operation % 8 {
            0..=2 => self.packet(largest.saturating_add(1), operation),
            3 => self.packet(largest.saturating_add(wide(byte(input)?)), operation),
            4 => self.packet(largest.saturating_sub(wide(byte(input)?)), operation),
            5 => self.packet(input.varint().ok()?, operation),
            6 => {
                self.packets.on_ack_sent();
                assert!(!self.packets.is_pending() && !self.packets.is_due(self.now));
                assert_eq!(self.packets.deadline(), None);
                self.now += Duration::from_millis(wide(operation / 8));
            }
            _ => {
                let acked = largest.saturating_sub(wide(byte(input)?));
                self.packets.on_ack_acked(acked);
                self.floor = self.floor.max(acked.saturating_add(1));
            }
        }
        Some(())
    }

    fn packet(&mut self, number: u64, operation: usize) {
        let number = number.min(MAX_VARINT);
        let is_known = self.numbers.contains(&number);
        let end = self.numbers.last().map_or(0, |largest| largest + 1);
        let is_old = number.saturating_add(DUPLICATE_WINDOW) < end;
        assert_eq!(self.packets.is_duplicate(number), is_known || is_old);
        if is_known || is_old {
            return;
        }
        let is_eliciting = operation & 8 != 0;
        let ecn = Ecn::from_bits(u8::try_from(operation >> 4 & 3).unwrap());
        self.packets.on_packet(number, is_eliciting, ecn, self.now);
        self.numbers.insert(number);
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.counts.ect0 += 1,
            Ecn::Ect1 => self.counts.ect1 += 1,
            Ecn::Ce => self.counts.ce += 1,
        }
        assert!(self.packets.is_duplicate(number));
        if is_eliciting {
            let is_owed = self.packets.is_due(self.now) || self.packets.deadline().is_some();
            assert!(self.packets.is_pending() && is_owed, "an ACK is owed");
        }
    }

    fn check(&self) {
        assert_eq!(self.packets.largest(), self.numbers.last().copied());
        let counts = (self.counts != EcnCounts::default()).then_some(self.counts);
        assert_eq!(self.packets.ecn_counts(), counts);
        let ranges: Vec<_> = self.packets.ranges().collect();
        assert!(ranges.len() <= ACK_RANGES_SENT);
        assert!(ranges.is_sorted_by(|a, b| *a.start() > b.end() + 1));
        let mut owed = 0;
        for range in &ranges {
            let received = wide(self.numbers.range(range.clone()).count());
            assert_eq!(received, range.end() - range.start() + 1, "{range:?}");
            owed += (range.end() + 1).saturating_sub(self.floor.max(*range.start()));
        }
        if ranges.len() < ACK_RANGES_SENT {
            let all = wide(self.numbers.range(self.floor..).count());
            assert!(owed == all || self.floor > *self.numbers.last().unwrap_or(&0));
        }
    }
}
