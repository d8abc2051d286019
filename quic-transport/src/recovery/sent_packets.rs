//! The packets in flight in one packet number space, in a ring by number.
//!
//! The ring begins with the oldest packet in flight, so a loss is always found at its front, and the search ends at
//! the first packet that isn't lost. A slot whose packet has been settled tells how many settled ones follow, so that
//! an acknowledgment costs what it newly acknowledges, however often a peer repeats it.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::late::{LatePackets, Spurious};
use super::sent_packet::{Acked, Lost, PacketFlags, SentPacket};
use crate::error::Error;
use crate::limits::{PACKET_THRESHOLD, QUIET_PACKETS, SENT_PACKETS, SKIPPED_NUMBERS};
use crate::rtt::Rtt;
use crate::transmit::PathId;

/// How far out of order packets may be acknowledged at first (RFC 9002, 6.1.1).
const INITIAL_THRESHOLD: u64 = 3;

/// Ack-eliciting packets in flight of which one will be acknowledged soon, on any path that works.
const ENOUGH_IN_FLIGHT: u64 = 8;

/// The frame type of ACK.
const ACK: u64 = 2;

/// The sent packets of a space.
#[derive(Debug)]
pub(crate) struct SentPackets {
    slots: VecDeque<Slot>,
    /// The number that the front slot has.
    base: u64,
    largest_acked: Option<u64>,
    in_flight: u64,
    eliciting: u64,
    last_eliciting: Option<Instant>,
    loss_time: Option<Instant>,
    /// The path in use: losses on others say nothing of it.
    path: PathId,
    /// Packets in a row that elicit no acknowledgment.
    quiet: u32,
    threshold: u64,
    /// When the first of the ack-eliciting packets was sent that were lost with none acknowledged since.
    loss_run: Option<Instant>,
    skipped: Skipped,
    /// What has lower numbers was thrown away by the peer.
    rejected_below: u64,
    late: LatePackets,
    spurious: Option<Spurious>,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    InFlight(SentPacket),
    /// This and the following slots, `run` in all, have no packet in flight.
    Settled {
        run: u32,
        acked: bool,
    },
}

const _: () = assert!(
    size_of::<Slot>() <= 32,
    "two packets in flight share a cache line"
);

/// What a search for losses found, apart from the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// When the newest of them was sent.
    pub(crate) newest: Option<Instant>,
    /// How many packets were lost on the path in use, probes of the MTU apart.
    pub(crate) count: u32,
    /// Whether the losses amount to persistent congestion (RFC 9002, 7.6).
    pub(crate) is_persistent: bool,
}

/// The times that the loss timer of a connection is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpaceTimes {
    /// When the oldest packet can be declared lost.
    pub(crate) loss: Option<Instant>,
    /// When the last ack-eliciting packet was sent, if any is in flight.
    pub(crate) eliciting: Option<Instant>,
}

impl Default for SentPackets {
    fn default() -> Self {
        Self::new()
    }
}

impl SentPackets {
    /// Nothing sent.
    pub(crate) const fn new() -> Self {
        Self {
            slots: VecDeque::new(),
            base: 0,
            largest_acked: None,
            in_flight: 0,
            eliciting: 0,
            last_eliciting: None,
            loss_time: None,
            path: PathId(0),
            quiet: 0,
            threshold: INITIAL_THRESHOLD,
            loss_run: None,
            skipped: Skipped::new(),
            rejected_below: 0,
            late: LatePackets::new(),
            spurious: None,
        }
    }

    /// The packet `number`, larger than all before, was sent. Numbers left out count as skipped.
    #[expect(
        clippy::inline_always,
        reason = "a packet that is made for the call is moved through memory, and read before it has settled there"
    )]
    #[inline(always)]
    pub(crate) fn on_sent(&mut self, number: u64, packet: SentPacket) {
        let next = self.next();
        if number != next {
            self.skip(next, number);
        }
        if packet.is_ack_eliciting() {
            self.quiet = 0;
            self.eliciting = self.eliciting.saturating_add(1);
            self.last_eliciting = Some(packet.sent);
        } else {
            self.quiet = self.quiet.saturating_add(1);
        }
        if packet.is_in_flight() {
            self.in_flight = self.in_flight.saturating_add(packet.size.into());
            self.slots.push_back(Slot::InFlight(packet));
        } else {
            self.push_settled();
        }
    }

    /// The numbers from `next` up to `number` are left out.
    #[cold]
    fn skip(&mut self, next: u64, number: u64) {
        debug_assert!(number > next, "packet numbers ascend");
        for skipped in next..number {
            self.skipped.push(skipped);
            self.push_settled();
        }
    }

    /// A number without a packet in flight takes no place at the front.
    #[inline(never)]
    fn push_settled(&mut self) {
        if self.slots.is_empty() {
            self.base = self.base.saturating_add(1);
        } else {
            self.slots.push_back(Slot::Settled {
                run: 1,
                acked: false,
            });
        }
    }

    /// Whether no packet waits for its fate.
    pub(crate) fn is_settled(&self) -> bool {
        self.slots.is_empty()
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.slots.shrink_to_fit();
    }

    /// Checks the ranges of an ACK frame before anything is changed by it.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when it acknowledges a packet that was not sent (RFC 9000, 13.1).
    pub(crate) fn check(
        &self,
        ranges: impl IntoIterator<Item = RangeInclusive<u64>>,
    ) -> Result<(), Error> {
        let next = self.next();
        for range in ranges {
            if *range.end() >= next {
                return Err(Error::protocol(
                    ACK,
                    "a packet that was not sent is acknowledged",
                ));
            }
            if *range.start() < self.rejected_below {
                return Err(Error::protocol(
                    ACK,
                    "a 0-RTT packet that was rejected is acknowledged",
                ));
            }
            if self.skipped.any_in(&range) {
                return Err(Error::protocol(
                    ACK,
                    "a packet that was skipped is acknowledged",
                ));
            }
        }
        Ok(())
    }

    /// Takes the packets in `range`, which has been [checked](Self::check), out, and tells of them at the end of `acked`, in
    /// ascending order.
    #[inline]
    pub(crate) fn take_acked(&mut self, range: RangeInclusive<u64>, acked: &mut Vec<Acked>) {
        if !self.late.is_empty() {
            self.find_spurious(&range);
        }
        let (first, last) = range.into_inner();
        self.largest_acked = self.largest_acked.max(Some(last));
        let position = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let at = position(first.saturating_sub(self.base));
        let end = position(last.saturating_add(1).saturating_sub(self.base)).min(self.slots.len());
        if at == 0 {
            self.take_oldest(end, acked);
        } else {
            self.take_between(at, end, acked);
        }
        self.trim();
    }

    /// Takes the `count` oldest slots, which is how nearly all packets are acknowledged.
    fn take_oldest(&mut self, count: usize, acked: &mut Vec<Acked>) {
        let before = acked.len();
        let mut last: Option<Acked> = None;
        for (number, slot) in (self.base..).zip(self.slots.range(..count)) {
            let Slot::InFlight(packet) = slot else {
                continue;
            };
            if last.as_mut().is_some_and(|last| last.join(number, packet)) {
                continue;
            }
            if let Some(complete) = last.replace(Acked::new(number, packet)) {
                acked.push(complete);
            }
        }
        drop(self.slots.drain(..count));
        self.base = self.base.saturating_add(index(count));
        acked.extend(last);
        for run in acked.get(before..).unwrap_or_default() {
            self.in_flight = self.in_flight.saturating_sub(run.bytes);
            if run.flags.has(PacketFlags::ACK_ELICITING) {
                self.eliciting = self.eliciting.saturating_sub(run.count);
            }
            self.loss_run = None;
        }
    }

    /// Takes the packets in flight from slot `at` to slot `end`.
    fn take_between(&mut self, mut at: usize, end: usize, acked: &mut Vec<Acked>) {
        while at < end {
            let Some(slot) = self.slots.get_mut(at) else {
                return;
            };
            match *slot {
                Slot::InFlight(packet) => {
                    // All up to the end is about to be settled.
                    *slot = Slot::Settled {
                        run: u32::try_from(end.saturating_sub(at)).unwrap_or(1),
                        acked: true,
                    };
                    self.settle(&packet);
                    let number = self.base.saturating_add(index(at));
                    if !acked
                        .last_mut()
                        .is_some_and(|last| last.join(number, &packet))
                    {
                        acked.push(Acked::new(number, &packet));
                    }
                    at = at.saturating_add(1);
                }
                Slot::Settled { run, .. } => at = self.join_runs(at, run),
            }
        }
    }

    /// Joins the run at `at` with the one behind it, so that the next search takes both in one step; returns where
    /// they end.
    fn join_runs(&mut self, at: usize, run: u32) -> usize {
        let behind = at.saturating_add(usize::try_from(run).unwrap_or(1).max(1));
        let Some(Slot::Settled { run: more, .. }) = self.slots.get(behind).copied() else {
            return behind;
        };
        let joined = run.saturating_add(more);
        if let Some(Slot::Settled { run, .. }) = self.slots.get_mut(at) {
            *run = joined;
        }
        at.saturating_add(usize::try_from(joined).unwrap_or(1))
    }

    fn find_spurious(&mut self, range: &RangeInclusive<u64>) {
        let Some(found) = self.late.take(range) else {
            return;
        };
        self.loss_run = None;
        let largest = self.largest_acked.unwrap_or(0).max(*range.end());
        let distance = largest.saturating_sub(found.lowest).saturating_add(1);
        self.threshold = self.threshold.max(distance.min(PACKET_THRESHOLD));
        self.spurious = Some(self.spurious.map_or(found, |earlier| Spurious {
            count: earlier.count.saturating_add(found.count),
            newest: earlier.newest.max(found.newest),
            lowest: earlier.lowest.min(found.lowest),
        }));
    }

    /// Moves the packets that are lost by now to the end of `lost`, in ascending order.
    ///
    /// Called after acknowledgments and when [`loss_time`](Self::times) has come. `max_ack_delay` is the peer's.
    pub(crate) fn detect_lost(
        &mut self,
        now: Instant,
        rtt: &Rtt,
        max_ack_delay: Duration,
        lost: &mut Vec<Lost>,
    ) -> Losses {
        self.loss_time = None;
        let mut losses = Losses::default();
        let Some(largest) = self.largest_acked.filter(|largest| self.base < *largest) else {
            return losses;
        };
        let delay = rtt.loss_delay();
        while self.base < largest {
            let Some(Slot::InFlight(packet)) = self.slots.front().copied() else {
                break;
            };
            let number = self.base;
            let at = packet.sent.checked_add(delay);
            if number.saturating_add(self.threshold) > largest && at.is_some_and(|at| at > now) {
                self.loss_time = at;
                break;
            }
            self.slots.pop_front();
            self.base = number.saturating_add(1);
            self.settle(&packet);
            if !packet.is_mtu_probe() && packet.path == self.path {
                losses.newest = losses.newest.max(Some(packet.sent));
                losses.count = losses.count.saturating_add(1);
                losses.is_persistent |= self.is_persistent(&packet, rtt, max_ack_delay);
                self.late.on_lost(number, packet.sent);
            }
            lost.push(Lost { number, packet });
            self.trim();
        }
        if let Some(horizon) = now.checked_sub(rtt.persistent_congestion(max_ack_delay)) {
            self.late.expire(horizon);
        }
        losses
    }

    /// Another path is in use from now on. Reordering between the two is no sign of losses that were none.
    pub(crate) fn on_path_change(&mut self, path: PathId) {
        self.path = path;
        self.loss_run = None;
        self.late.clear();
        self.spurious = None;
    }

    /// Whether a run of losses that ends with `packet` is persistent congestion: it is longer than three PTOs, of
    /// ack-eliciting packets that were sent after the first RTT sample (RFC 9002, 7.6.2).
    fn is_persistent(&mut self, packet: &SentPacket, rtt: &Rtt, max_ack_delay: Duration) -> bool {
        let sampled = rtt.first_sample().is_some_and(|at| packet.sent >= at);
        if !packet.is_ack_eliciting() || !sampled {
            return false;
        }
        let start = *self.loss_run.get_or_insert(packet.sent);
        let span = packet.sent.saturating_duration_since(start);
        span > rtt.persistent_congestion(max_ack_delay)
    }

    /// Takes the packet from the sums.
    #[inline]
    fn settle(&mut self, packet: &SentPacket) {
        self.in_flight = self.in_flight.saturating_sub(packet.size.into());
        self.eliciting = self
            .eliciting
            .saturating_sub(packet.is_ack_eliciting().into());
    }

    /// Drops the settled slots at the front.
    #[inline]
    fn trim(&mut self) {
        while let Some(Slot::Settled { acked, .. }) = self.slots.front() {
            if *acked {
                self.loss_run = None;
            }
            self.slots.pop_front();
            self.base = self.base.saturating_add(1);
        }
    }

    /// The packet that was sent last never left, being a probe of the MTU that the system refused: it is forgotten.
    pub(crate) fn withdraw_mtu_probe(&mut self) {
        let Some(slot) = self.slots.back_mut() else {
            return;
        };
        let Slot::InFlight(packet) = *slot else {
            return;
        };
        if packet.is_mtu_probe() {
            *slot = Slot::Settled {
                run: 1,
                acked: false,
            };
            self.settle(&packet);
            self.trim();
        }
    }

    /// Takes what was found spurious since the last call: packets declared lost whose acknowledgment was only late.
    #[inline]
    pub(crate) const fn take_spurious(&mut self) -> Option<Spurious> {
        self.spurious.take()
    }

    /// Moves all packets in flight to the end of `lost`: Retry came, or 0-RTT was rejected. That says nothing about
    /// congestion. Returns how many bytes they had.
    pub(crate) fn take_all(&mut self, lost: &mut Vec<Lost>) -> u64 {
        let first = self.base;
        lost.extend(
            (first..)
                .zip(&self.slots)
                .filter_map(|(number, slot)| match *slot {
                    Slot::InFlight(packet) => Some(Lost { number, packet }),
                    Slot::Settled { .. } => None,
                }),
        );
        self.discard()
    }

    /// The peer has rejected all packets so far: it must not acknowledge them (RFC 9001, 4.6.2).
    pub(crate) fn reject(&mut self) {
        self.rejected_below = self.next();
    }

    /// Forgets all packets, whose keys are gone; returns how many bytes are no longer in flight (RFC 9002, 6.4).
    pub(crate) fn discard(&mut self) -> u64 {
        self.base = self.next();
        self.slots.clear();
        self.late.clear();
        self.loss_time = None;
        self.loss_run = None;
        self.spurious = None;
        self.eliciting = 0;
        std::mem::take(&mut self.in_flight)
    }

    /// The ack-eliciting packets in flight, oldest first: what a probe could repeat.
    pub(crate) fn eliciting(&self) -> impl Iterator<Item = (u64, SentPacket)> + '_ {
        (self.base..)
            .zip(&self.slots)
            .filter_map(|(number, slot)| match *slot {
                Slot::InFlight(packet) if packet.is_ack_eliciting() => Some((number, packet)),
                Slot::InFlight(_) | Slot::Settled { .. } => None,
            })
    }

    /// The index of the oldest record in the frame log that may still be asked for; `None` when none may.
    #[inline]
    pub(crate) fn oldest_frames(&self) -> Option<u64> {
        match self.slots.front() {
            Some(Slot::InFlight(packet)) => Some(packet.frames_start),
            Some(Slot::Settled { .. }) | None => None,
        }
    }

    /// The number after the last one sent.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.base.saturating_add(index(self.slots.len()))
    }

    /// After how many later packets one is declared lost (RFC 9002, 6.1.1).
    pub(crate) const fn packet_threshold(&self) -> u64 {
        self.threshold
    }

    /// The largest number acknowledged.
    #[inline]
    pub(crate) const fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Bytes in flight.
    #[cfg(any(test, feature = "fuzzing"))]
    #[inline]
    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Whether any ack-eliciting packet is in flight.
    #[cfg(any(test, feature = "fuzzing"))]
    #[inline]
    pub(crate) const fn has_eliciting(&self) -> bool {
        self.eliciting > 0
    }

    /// Whether so many packets in a row elicited no acknowledgment that the next should: else we would never learn
    /// which of our ACKs have arrived (RFC 9000, 13.2.4). When some are in flight already, one more is no use.
    #[inline]
    pub(crate) const fn wants_ping(&self) -> bool {
        self.quiet >= QUIET_PACKETS && self.eliciting < ENOUGH_IN_FLIGHT
    }

    /// Whether more packets are remembered than an honest peer lets pile up: it leaves ack-eliciting ones
    /// unacknowledged, which RFC 9000, 13.2.1 forbids, and goes on sending.
    #[inline]
    pub(crate) fn is_overfull(&self) -> bool {
        self.slots.len() > SENT_PACKETS
    }

    /// The times for the loss timer.
    #[inline]
    pub(crate) fn times(&self) -> SpaceTimes {
        SpaceTimes {
            loss: self.loss_time,
            eliciting: self.last_eliciting.filter(|_| self.eliciting > 0),
        }
    }
}

/// A position, as a number.
#[inline]
fn index(at: usize) -> u64 {
    u64::try_from(at).unwrap_or(u64::MAX)
}

/// The latest numbers that were skipped.
#[derive(Clone, Copy, Debug)]
struct Skipped {
    /// Rotates; unused places hold a number that no packet has.
    numbers: [u64; SKIPPED_NUMBERS],
}

impl Skipped {
    const fn new() -> Self {
        Self {
            numbers: [u64::MAX; SKIPPED_NUMBERS],
        }
    }

    const fn push(&mut self, number: u64) {
        self.numbers.rotate_right(1);
        if let Some(first) = self.numbers.first_mut() {
            *first = number;
        }
    }

    #[inline]
    fn any_in(&self, range: &RangeInclusive<u64>) -> bool {
        self.numbers.iter().any(|number| range.contains(number))
    }
}

#[cfg(test)]
#[path = "sent_packets_tests.rs"]
mod tests;
