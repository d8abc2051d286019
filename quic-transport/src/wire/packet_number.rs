//! Packet numbers and their truncation, [RFC 9000, section 17.1](https://www.rfc-editor.org/rfc/rfc9000#section-17.1)
//! and appendix A.
//!
//! A header carries only as many of the low bits as the peer needs to tell the number from those near it.

use quic_common::MAX_VARINT;

/// The number of a packet in its packet number space, at most 2^62 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PacketNumber(pub(crate) u64);

impl PacketNumber {
    /// The last number of a space: no packet may follow it (RFC 9000, 12.3).
    #[cfg(test)]
    pub(crate) const MAX: Self = Self(MAX_VARINT);

    /// The value.
    #[inline]
    pub(crate) const fn value(self) -> u64 {
        self.0
    }

    /// Bytes that the header needs for this number, 1 to 4, when `largest_acked` is the largest that the peer is
    /// known to have (RFC 9000, A.2).
    #[inline]
    pub(crate) const fn encoded_length(self, largest_acked: Option<u64>) -> usize {
        let unacked = match largest_acked {
            Some(acked) => self.0.saturating_sub(acked),
            None => self.0.saturating_add(1),
        };
        // Twice as many numbers as are in doubt must be told apart.
        match unacked {
            0..=0x7f => 1,
            0x80..=0x7fff => 2,
            0x8000..=0x7f_ffff => 3,
            _ => 4,
        }
    }

    /// The number whose low `length` bytes (1 to 4) are `truncated` and that lies closest to the one expected next,
    /// which follows `largest` (RFC 9000, A.3).
    #[inline]
    pub(crate) const fn decode(truncated: u64, length: usize, largest: Option<u64>) -> Self {
        let expected = match largest {
            Some(largest) if largest < MAX_VARINT => largest + 1,
            Some(_) => MAX_VARINT,
            None => 0,
        };
        let window: u64 = match length {
            1 => 1 << 8,
            2 => 1 << 16,
            3 => 1 << 24,
            _ => 1 << 32,
        };
        let half = window / 2;
        let mask = window - 1;
        let candidate = (expected & !mask) | (truncated & mask);
        let number = if candidate.saturating_add(half) <= expected
            && candidate < (1_u64 << 62).saturating_sub(window)
        {
            candidate.saturating_add(window)
        } else if candidate > expected.saturating_add(half) && candidate >= window {
            candidate.saturating_sub(window)
        } else {
            candidate
        };
        Self(number)
    }
}

#[cfg(test)]
mod tests {
    use quic_common::{MAX_VARINT, Random};

    use super::PacketNumber;

    /// RFC 9000, A.2: the two examples, and the first packet of a space.
    #[test]
    fn lengths_of_the_rfc() {
        assert_eq!(PacketNumber(0xac_5c02).encoded_length(Some(0xab_e8b3)), 2);
        assert_eq!(PacketNumber(0xac_e8fe).encoded_length(Some(0xab_e8b3)), 3);
        assert_eq!(PacketNumber(0).encoded_length(None), 1);
    }

    /// RFC 9000, A.3: the example.
    #[test]
    fn number_of_the_rfc() {
        assert_eq!(
            PacketNumber::decode(0x9b32, 2, Some(0xa82f_30ea)),
            PacketNumber(0xa82f_9b32)
        );
    }

    #[test]
    fn numbers_at_the_ends_of_the_space_stay_inside() {
        assert_eq!(PacketNumber::decode(0xff, 1, None), PacketNumber(0xff));
        assert_eq!(PacketNumber::decode(0, 1, Some(255)), PacketNumber(256));
        assert_eq!(PacketNumber::decode(255, 1, Some(256)), PacketNumber(255));
        for length in 1..=4 {
            for truncated in [0, 1, 0x7f, 0x80, 0xff, u64::MAX] {
                let number = PacketNumber::decode(truncated, length, Some(MAX_VARINT));
                assert!(number <= PacketNumber::MAX, "{number:?}");
            }
        }
    }

    /// RFC 9000, A.3: of two numbers that lie as near to the expected one, it is the larger.
    #[test]
    fn of_two_as_near_it_is_the_larger() {
        let expected_180 = Some(0x17f);
        assert_eq!(
            PacketNumber::decode(0, 1, expected_180),
            PacketNumber(0x200)
        );
        let expected_100 = Some(0xff);
        assert_eq!(
            PacketNumber::decode(0x80, 1, expected_100),
            PacketNumber(0x180)
        );
    }

    #[test]
    fn what_is_truncated_for_a_peer_is_decoded_by_it() {
        let mut random = Random::from_seed([3; 32]);
        for _ in 0..20_000 {
            let shift = random.below(62);
            let number = random.below(MAX_VARINT >> shift);
            // The peer has received anything between what it acknowledged and the packet before this one.
            let acked = number.checked_sub(1 + random.below(1 << 22));
            let largest = acked.map_or_else(
                || number.checked_sub(1),
                |acked| Some(acked + random.below(number - acked)),
            );
            let length = PacketNumber(number).encoded_length(acked);
            if acked.is_none() && number >= 1 << 31 {
                continue;
            }
            let mask = (1_u64 << (8 * length)) - 1;
            assert_eq!(
                PacketNumber::decode(number & mask, length, largest),
                PacketNumber(number),
                "acked {acked:?}, largest {largest:?}"
            );
        }
    }
}
