//! Numbers as the tables want them: the only conversions that round.

/// Counts and sizes as real numbers, for quotients and for people.
pub(crate) trait Real {
    /// The nearest one.
    fn real(self) -> f64;
}

macro_rules! real {
    ($($integer:ty),*) => {
        $(impl Real for $integer {
            #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "figures are rounded anyway")]
            fn real(self) -> f64 {
                self as f64
            }
        })*
    };
}

real!(u64, i64, usize);

/// The smaller of a length and what is left to do, which may be beyond a length.
pub(crate) fn at_most(length: usize, left: u64) -> usize {
    usize::try_from(left).map_or(length, |left| left.min(length))
}

/// A length as a count.
pub(crate) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
