//! One seedable source of randomness for everything that isn't a key: connection IDs, skipped packet numbers, jitter.
//!
//! A seed replays a simulation. Real seeds come from the operating system, through the caller.

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng as _, SeedableRng as _};

/// A ChaCha12 generator: unpredictable to a peer that sees its output, repeatable from its seed.
pub struct Random {
    seed: [u8; 32],
    /// Made from the seed when it is first asked.
    generator: Option<Box<ChaCha12Rng>>,
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Random").finish_non_exhaustive()
    }
}

impl Random {
    /// Starts the sequence that belongs to `seed`.
    #[must_use]
    pub const fn from_seed(seed: [u8; 32]) -> Self {
        Self {
            seed,
            generator: None,
        }
    }

    /// Gives memory back for a while: the sequence goes on from a new seed.
    pub fn rest(&mut self) {
        if self.generator.is_some() {
            *self = self.fork();
        }
    }

    /// Splits off an independent generator, as for a new connection.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::from_seed(self.array())
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.generator().fill_bytes(bytes);
    }

    #[inline]
    fn generator(&mut self) -> &mut ChaCha12Rng {
        let seed = self.seed;
        self.generator
            .get_or_insert_with(|| Box::new(ChaCha12Rng::from_seed(seed)))
    }

    /// The next `N` bytes.
    #[must_use]
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// The next 64 bits.
    #[must_use]
    pub fn u64(&mut self) -> u64 {
        self.generator().next_u64()
    }

    /// A value below `bound`, evenly distributed to within 2^-64 times `bound`; 0 when `bound` is 0.
    #[must_use]
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_replays() {
        let draw = |seed| {
            let mut random = Random::from_seed([seed; 32]);
            let mut fork = random.fork();
            [random.u64(), fork.u64(), random.below(1000)]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_rest_changes_the_sequence_in_the_same_way_each_time() {
        let draw = |rests: u32| {
            let mut random = Random::from_seed([1; 32]);
            random.rest();
            let first = random.u64();
            (0..rests).for_each(|_| random.rest());
            (first, random.u64())
        };
        assert_eq!(draw(1), draw(1));
        assert_eq!(draw(1), draw(2), "there is nothing to give back");
        assert_eq!(draw(0).0, draw(1).0);
        assert_ne!(draw(0).1, draw(1).1);
    }

    #[test]
    fn below_stays_below() {
        let mut random = Random::from_seed([0; 32]);
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
