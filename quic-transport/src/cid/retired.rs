//! Which of the peer's connection IDs were retired, by their sequence numbers: a frame that gave one of them may arrive once
//! more, [RFC 9000, section 19.15](https://www.rfc-editor.org/rfc/rfc9000#section-19.15).
//!
//! A peer numbers its IDs without gaps and has few that aren't retired, so a window of the highest numbers is enough.

/// Numbers of which each is known to have been retired or not.
const WINDOW: u64 = 64;

/// The numbers that were retired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RetiredNumbers {
    floor: u64,
    /// One bit for each number of the window, the lowest being the floor's.
    bits: u64,
}

impl RetiredNumbers {
    /// Below it nothing is known.
    pub(super) const fn floor(self) -> u64 {
        self.floor
    }

    /// The number is retired.
    pub(super) fn insert(&mut self, sequence: u64) {
        let Some(offset) = sequence.checked_sub(self.floor) else {
            return;
        };
        let rise = offset.saturating_sub(WINDOW - 1);
        self.floor = self.floor.saturating_add(rise);
        let shift = u32::try_from(rise).unwrap_or(u32::MAX);
        self.bits = self.bits.checked_shr(shift).unwrap_or(0) | self.bit(sequence);
    }

    /// Whether the number is known to be retired.
    pub(super) fn contains(self, sequence: u64) -> bool {
        self.bits & self.bit(sequence) != 0
    }

    fn bit(self, sequence: u64) -> u64 {
        let offset = sequence.checked_sub(self.floor);
        let place = offset.and_then(|offset| u32::try_from(offset).ok());
        place
            .and_then(|place| 1_u64.checked_shl(place))
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{RetiredNumbers, WINDOW};

    #[test]
    fn the_window_follows_the_highest_number() {
        let mut retired = RetiredNumbers::default();
        assert!(!retired.contains(0) && !retired.contains(u64::MAX));
        for sequence in [0, 3, WINDOW - 1] {
            retired.insert(sequence);
        }
        assert_eq!(retired.floor(), 0);
        let is_in = |retired: RetiredNumbers| [0, 3, 4, WINDOW - 1].map(|n| retired.contains(n));
        assert_eq!(is_in(retired), [true, true, false, true]);
        retired.insert(WINDOW);
        assert_eq!((retired.floor(), retired.contains(WINDOW)), (1, true));
        assert_eq!(is_in(retired), [false, true, false, true]);
        retired.insert(0);
        assert!(!retired.contains(0));
        retired.insert(1 << 62);
        assert!(retired.contains(1 << 62) && !retired.contains(3));
        assert_eq!(retired.floor(), (1 << 62) - WINDOW + 1);
    }
}
