//! A probability, in integers so that a run repeats on every machine.

use quic_common::Random;

/// How likely something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance {
    per_million: u32,
}

impl Chance {
    /// It doesn't happen.
    pub const NEVER: Self = Self::per_million(0);
    /// It happens each time.
    pub const ALWAYS: Self = Self::per_million(1_000_000);

    /// So many times in a hundred.
    #[must_use]
    pub const fn percent(percent: u32) -> Self {
        Self::per_million(percent * 10_000)
    }

    /// So many times in a million.
    #[must_use]
    pub const fn per_million(per_million: u32) -> Self {
        Self { per_million }
    }

    /// Rolls the dice. What never happens takes nothing from `random`.
    pub fn happens(self, random: &mut Random) -> bool {
        self > Self::NEVER && random.below(1_000_000) < u64::from(self.per_million)
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::Chance;

    #[test]
    fn it_happens_about_as_often_as_it_says() {
        let mut random = Random::from_seed([0; 32]);
        let mut times =
            |chance: Chance| (0..10_000).filter(|_| chance.happens(&mut random)).count();
        assert_eq!(times(Chance::NEVER), 0);
        assert_eq!(times(Chance::ALWAYS), 10_000);
        assert!((900..1100).contains(&times(Chance::percent(10))));
    }
}
