//! ACK frames, [RFC 9000, section 19.3](https://www.rfc-editor.org/rfc/rfc9000#section-19.3).
//!
//! The ranges of a received frame are walked once to check them, and stay where they are: the iterator over them can't
//! fail. Their number is bounded by the packet. When sending, the newest ranges that fit are sent.

use std::ops::RangeInclusive;

use quic_common::{Reader, Writer, varint_size};

use super::types::{ACK, ACK_ECN};
use crate::wire::ecn_counts::EcnCounts;
use crate::wire::encode::{Encode, wide};
use crate::wire::malformed::Malformed;

/// A received ACK frame, whose ranges have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckFrame<'a> {
    /// The largest packet number acknowledged.
    pub(crate) largest: u64,
    /// The delay as it stands in the frame: microseconds, shifted right by the sender's exponent.
    pub(crate) delay: u64,
    /// The ECN counts, when the sender reports them.
    pub(crate) ecn: Option<EcnCounts>,
    /// The smallest packet number of the first range.
    smallest: u64,
    /// The pairs of gap and length that follow the first range.
    blocks: &'a [u8],
}

impl<'a> AckFrame<'a> {
    /// The acknowledged packet numbers, the largest first.
    #[inline]
    pub(crate) const fn ranges(&self) -> AckRanges<'a> {
        AckRanges {
            next: Some((self.smallest, self.largest)),
            blocks: Reader::new(self.blocks),
        }
    }

    /// Decodes what follows the type.
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'a>, frame_type: u64) -> Result<Self, Malformed> {
        let largest = reader.varint()?;
        let delay = reader.varint()?;
        let count = reader.varint()?;
        let first = reader.varint()?;
        let smallest = largest.checked_sub(first).ok_or(BELOW_ZERO)?;
        let blocks = if count == 0 {
            &[]
        } else {
            check_blocks(reader, count, smallest)?
        };
        let ecn = if frame_type == ACK_ECN {
            Some(EcnCounts {
                ect0: reader.varint()?,
                ect1: reader.varint()?,
                ce: reader.varint()?,
            })
        } else {
            None
        };
        Ok(Self {
            largest,
            delay,
            ecn,
            smallest,
            blocks,
        })
    }
}

/// A packet number below zero (RFC 9000, 19.3.1).
const BELOW_ZERO: Malformed = Malformed::frame(ACK, "a range goes below packet number 0");

/// Walks over `count` pairs of gap and length, and returns them.
fn check_blocks<'a>(
    reader: &mut Reader<'a>,
    count: u64,
    mut smallest: u64,
) -> Result<&'a [u8], Malformed> {
    let all = reader.rest();
    for _ in 0..count {
        (smallest, _) = read_block(reader, smallest)?.ok_or(BELOW_ZERO)?;
    }
    let used = all.len().saturating_sub(reader.remaining());
    Ok(all.get(..used).unwrap_or_default())
}

/// Reads the range below the one that begins at `above`; `None` when it would go below zero.
#[inline]
fn read_block(reader: &mut Reader<'_>, above: u64) -> Result<Option<(u64, u64)>, Malformed> {
    let gap = reader.varint()?;
    let length = reader.varint()?;
    let largest = above.checked_sub(gap + 2);
    Ok(largest.and_then(|largest| Some((largest.checked_sub(length)?, largest))))
}

/// The ranges of an [`AckFrame`], in descending order and never touching.
#[derive(Clone, Debug)]
pub(crate) struct AckRanges<'a> {
    /// Smallest and largest of the range that comes next.
    next: Option<(u64, u64)>,
    blocks: Reader<'a>,
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    #[inline]
    fn next(&mut self) -> Option<RangeInclusive<u64>> {
        let (smallest, largest) = self.next?;
        self.next = if self.blocks.is_empty() {
            None
        } else {
            read_block(&mut self.blocks, smallest).ok().flatten()
        };
        Some(smallest..=largest)
    }
}

/// An ACK frame to be sent, already cut to the room that there is.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingAck<I> {
    ranges: I,
    /// How many of the ranges are sent, at least 1.
    count: usize,
    size: usize,
    delay: u64,
    ecn: Option<EcnCounts>,
}

impl<I: Iterator<Item = RangeInclusive<u64>> + Clone> OutgoingAck<I> {
    /// Takes as many of `ranges` as fit in `room` bytes, at most `max_ranges`; `None` when not even one does.
    ///
    /// The ranges descend, and at least one number is missing between two of them. The delay is as on the wire.
    #[inline]
    pub(crate) fn fit(
        ranges: I,
        delay: u64,
        ecn: Option<EcnCounts>,
        room: usize,
        max_ranges: usize,
    ) -> Option<Self> {
        let mut rest = ranges.clone().take(max_ranges);
        let (mut below, largest) = rest.next()?.into_inner();
        let mut size = 1
            + varint_size(largest)
            + varint_size(delay)
            + varint_size(largest.saturating_sub(below))
            + ecn.map_or(0, ecn_size);
        let mut count = 1;
        if size + varint_size(0) > room {
            return None;
        }
        for range in rest {
            let (smallest, largest) = range.into_inner();
            let block =
                varint_size(gap(below, largest)) + varint_size(largest.saturating_sub(smallest));
            if size + block + varint_size(wide(count)) > room {
                break;
            }
            size += block;
            count += 1;
            below = smallest;
        }
        Some(Self {
            ranges,
            count,
            size: size + varint_size(wide(count - 1)),
            delay,
            ecn,
        })
    }

    /// How many ranges are sent.
    #[cfg(test)]
    pub(crate) const fn count(&self) -> usize {
        self.count
    }
}

const fn ecn_size(ecn: EcnCounts) -> usize {
    varint_size(ecn.ect0) + varint_size(ecn.ect1) + varint_size(ecn.ce)
}

impl<I: Iterator<Item = RangeInclusive<u64>> + Clone> Encode for OutgoingAck<I> {
    #[inline]
    fn size(&self) -> usize {
        self.size
    }

    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        let mut ranges = self.ranges.clone().take(self.count);
        let Some((mut below, largest)) = ranges.next().map(RangeInclusive::into_inner) else {
            return;
        };
        writer.varint(if self.ecn.is_some() { ACK_ECN } else { ACK });
        writer.varint(largest);
        writer.varint(self.delay);
        writer.varint(wide(self.count - 1));
        writer.varint(largest.saturating_sub(below));
        for range in ranges {
            let (smallest, largest) = range.into_inner();
            writer.varint(gap(below, largest));
            writer.varint(largest.saturating_sub(smallest));
            below = smallest;
        }
        if let Some(ecn) = self.ecn {
            writer.varint(ecn.ect0);
            writer.varint(ecn.ect1);
            writer.varint(ecn.ce);
        }
    }
}

/// The gap field between a range that begins at `below` and the next one, whose largest number is `largest`.
#[inline]
fn gap(below: u64, largest: u64) -> u64 {
    debug_assert!(below >= largest.saturating_add(2), "ranges touch");
    below.saturating_sub(largest).saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use quic_common::{MAX_VARINT, Random, Reader, Writer};

    use super::{ACK, ACK_ECN, AckFrame, EcnCounts, OutgoingAck};
    use crate::wire::encode::Encode as _;

    fn encoded(ack: &OutgoingAck<impl Iterator<Item = RangeInclusive<u64>> + Clone>) -> Vec<u8> {
        let mut buffer = vec![0; ack.size()];
        let mut writer = Writer::new(&mut buffer);
        ack.encode(&mut writer);
        assert_eq!(writer.len(), ack.size());
        buffer
    }

    fn decoded(bytes: &[u8]) -> AckFrame<'_> {
        let mut reader = Reader::new(bytes);
        let frame_type = reader.varint().unwrap();
        let ack = AckFrame::decode(&mut reader, frame_type).unwrap();
        assert!(reader.is_empty());
        ack
    }

    /// Up to 40 descending ranges with gaps.
    fn random_ranges(random: &mut Random) -> Vec<RangeInclusive<u64>> {
        let mut ranges = Vec::new();
        let shift = random.below(60);
        let mut top = random.below(MAX_VARINT >> shift);
        for _ in 0..=random.below(40) {
            let bits = random.below(20);
            let smallest = top.saturating_sub(random.below(1 << bits));
            ranges.push(smallest..=top);
            let gap = 2 + random.below(1 << (20 - bits));
            let Some(next) = smallest.checked_sub(gap) else {
                break;
            };
            top = next;
        }
        ranges
    }

    /// RFC 9000, 19.3.1: largest = previous smallest - gap - 2.
    #[test]
    fn the_arithmetic_of_ranges() {
        let ranges = [90..=100, 50..=50, 0..=10];
        let ack = OutgoingAck::fit(ranges.iter().cloned(), 5, None, 100, 32).unwrap();
        let bytes = encoded(&ack);
        assert_eq!(bytes, [2, 0x40, 100, 5, 2, 10, 38, 0, 38, 10]);
        assert!(decoded(&bytes).ranges().eq(ranges));
    }

    #[test]
    fn round_trip() {
        let mut random = Random::from_seed([5; 32]);
        for _ in 0..2000 {
            let ranges = random_ranges(&mut random);
            let shift = random.below(62);
            let delay = random.below(MAX_VARINT >> shift);
            let ecn = (random.below(2) == 0).then(|| EcnCounts {
                ect0: random.below(MAX_VARINT),
                ect1: random.below(100),
                ce: random.below(10_000),
            });
            let room = usize::try_from(random.below(200)).unwrap();
            let max = usize::try_from(1 + random.below(40)).unwrap();
            let Some(ack) = OutgoingAck::fit(ranges.iter().cloned(), delay, ecn, room, max) else {
                assert!(room < 50);
                continue;
            };
            assert!(ack.size() <= room && ack.count() <= max);
            let bytes = encoded(&ack);
            let frame = decoded(&bytes);
            assert_eq!((frame.delay, frame.ecn), (delay, ecn));
            assert_eq!(frame.largest, *ranges[0].end());
            assert!(frame.ranges().eq(ranges.iter().take(ack.count()).cloned()));
        }
    }

    #[test]
    fn a_range_that_does_not_fit_is_left_out() {
        let ranges = || (0..40_u64).rev().map(|n| 3 * n..=3 * n);
        let sizes = (0..100).map(|room| {
            OutgoingAck::fit(ranges(), 0, None, room, 32).map(|ack| (ack.count(), ack.size()))
        });
        for (room, fit) in sizes.enumerate() {
            // Type, delay, count and first length take a byte each, the largest number two, a range two.
            let expected = room.checked_sub(6).map(|rest| (rest / 2 + 1).min(32));
            assert_eq!(fit, expected.map(|count| (count, 4 + 2 * count)));
        }
        assert!(OutgoingAck::fit(ranges(), 0, None, 100, 0).is_none());
    }

    #[test]
    fn the_count_may_take_two_bytes() {
        let ranges = || (0..100_u64).rev().map(|n| 3 * n..=3 * n);
        let ack = OutgoingAck::fit(ranges(), 0, None, 1000, 80).unwrap();
        let bytes = encoded(&ack);
        assert_eq!(decoded(&bytes).ranges().count(), 80);
        // Sixty-four more ranges need a second byte for the count, which isn't there.
        let room = 6 + 2 * 64;
        let ack = OutgoingAck::fit(ranges(), 0, None, room, 80).unwrap();
        assert_eq!(ack.count(), 64);
        assert_eq!(encoded(&ack).len(), room - 2);
    }

    /// RFC 9000, 19.3.1: a negative packet number MUST be a FRAME_ENCODING_ERROR.
    #[test]
    fn ranges_below_zero_are_malformed() {
        let rows: [&[u8]; 4] = [
            // Largest, delay, count, first length, then gap and length.
            &[5, 0, 0, 6],
            &[5, 0, 1, 4, 0, 0],
            &[5, 0, 1, 0, 4, 0],
            &[5, 0, 1, 0, 3, 1],
        ];
        for row in rows {
            assert!(AckFrame::decode(&mut Reader::new(row), ACK).is_err());
        }
        let zero = [5, 0, 1, 0, 3, 0];
        let ack = AckFrame::decode(&mut Reader::new(&zero), ACK).unwrap();
        assert!(ack.ranges().eq([5..=5, 0..=0]));
        let mut huge = vec![0xff; 8];
        huge.extend([0, 1, 0]);
        huge.extend([0xff; 16]);
        assert!(AckFrame::decode(&mut Reader::new(&huge), ACK).is_err());
    }

    #[test]
    fn a_count_beyond_the_packet_is_malformed() {
        let mut bytes = vec![0xbf, 0xff, 0xff, 0xff, 0];
        bytes.extend([0xff; 8]);
        bytes.extend([0; 1200]);
        assert!(AckFrame::decode(&mut Reader::new(&bytes), ACK).is_err());
        assert!(AckFrame::decode(&mut Reader::new(&[1, 0, 0, 0, 1, 1]), ACK_ECN).is_err());
    }
}
