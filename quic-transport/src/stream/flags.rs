//! A set of up to eight things that a stream owes the peer, or has to tell the application.

/// A set of bits; each user names its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    /// Adds `flag`; returns whether it was missing.
    #[inline]
    pub(super) const fn insert(&mut self, flag: u8) -> bool {
        let fresh = self.0 & flag == 0;
        self.0 |= flag;
        fresh
    }

    #[inline]
    pub(super) const fn remove(&mut self, flag: u8) {
        self.0 &= !flag;
    }

    #[cfg(test)]
    #[inline]
    pub(super) const fn contains(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The lowest flag in the set.
    #[inline]
    pub(super) const fn lowest(self) -> Option<u8> {
        if self.0 == 0 {
            return None;
        }
        Some(self.0 & self.0.wrapping_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn the_lowest_comes_first() {
        let mut flags = Flags::default();
        assert!(flags.insert(4) && flags.insert(1) && !flags.insert(4));
        assert_eq!(flags.lowest(), Some(1));
        flags.remove(1);
        assert_eq!(flags.lowest(), Some(4));
        assert!(flags.contains(4) && !flags.is_empty());
        flags.remove(4);
        assert_eq!(flags.lowest(), None);
    }
}
