//! The two hash maps of the stack.
//!
//! A key that a peer chooses goes into a [`KeyedMap`]: without the hash key, nobody can make entries collide.
//! A key that we chose, such as an index, goes into an [`IdMap`], whose hash is one multiplication.

use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use siphasher::sip::SipHasher13;

use crate::random::Random;

/// A map whose keys a peer may choose: SipHash-1-3 under a random key.
///
/// Make one with `KeyedMap::with_hasher(KeyedHasher::new(&mut random))`.
#[expect(
    clippy::disallowed_types,
    reason = "this is the map that the lint asks for"
)]
pub type KeyedMap<K, V> = std::collections::HashMap<K, V, KeyedHasher>;

/// A map whose keys we choose ourselves.
#[expect(
    clippy::disallowed_types,
    reason = "this is the map that the lint asks for"
)]
pub type IdMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// The hash key of a [`KeyedMap`].
#[derive(Clone)]
pub struct KeyedHasher {
    keys: (u64, u64),
}

impl std::fmt::Debug for KeyedHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedHasher").finish_non_exhaustive()
    }
}

impl KeyedHasher {
    /// Draws a hash key.
    #[must_use]
    pub fn new(random: &mut Random) -> Self {
        Self {
            keys: (random.u64(), random.u64()),
        }
    }
}

impl BuildHasher for KeyedHasher {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.keys.0, self.keys.1)
    }
}

/// Multiplies by an odd constant and folds the halves: enough for indexes, and no more than that.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher {
    state: u64,
}

impl IdHasher {
    const fn mix(&mut self, value: u64) {
        let product = (self.state ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.state = product ^ (product >> 32);
    }
}

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_types,
    reason = "a map with a hash of the test's own"
)]
mod tests {
    use std::{
        cell::Cell,
        hash::{BuildHasher, BuildHasherDefault, Hash, Hasher},
    };

    use super::{IdMap, KeyedHasher, KeyedMap};
    use crate::random::Random;

    #[test]
    fn hashes_depend_on_the_key() {
        let mut random = Random::from_seed([1; 32]);
        let (a, b) = (KeyedHasher::new(&mut random), KeyedHasher::new(&mut random));
        assert_ne!(a.hash_one(1_u64), b.hash_one(1_u64));
        assert_eq!(a.hash_one(1_u64), a.hash_one(1_u64));
    }

    /// A hash without a key, as many maps have it: anyone can work out IDs that collide.
    #[derive(Default)]
    struct Unkeyed(u64);

    impl Unkeyed {
        const FACTOR: u64 = 0x517c_c1b7_2722_0a95;

        /// Two words that hash like all others which this makes.
        const fn collide(first: u64) -> [u64; 2] {
            [first, first.wrapping_mul(Self::FACTOR).rotate_left(5) ^ 1]
        }
    }

    impl Hasher for Unkeyed {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.write_u64((*byte).into());
            }
        }

        fn write_u64(&mut self, word: u64) {
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(Self::FACTOR);
        }
    }

    thread_local! {
        static COMPARED: Cell<u64> = const { Cell::new(0) };
    }

    /// A connection ID that counts how often it is compared with another.
    #[derive(Eq)]
    struct Id([u64; 2]);

    impl PartialEq for Id {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Hash for Id {
        fn hash<H: Hasher>(&self, state: &mut H) {
            state.write_u64(self.0[0]);
            state.write_u64(self.0[1]);
        }
    }

    /// How often IDs are compared while `count` of them are put into a map and looked up.
    fn comparisons<S: BuildHasher>(hasher: S, count: u64) -> u64 {
        let mut map = std::collections::HashMap::with_hasher(hasher);
        COMPARED.set(0);
        for first in 0..count {
            map.insert(Id(Unkeyed::collide(first)), first);
        }
        for first in 0..count {
            assert_eq!(map.get(&Id(Unkeyed::collide(first))), Some(&first));
        }
        COMPARED.get()
    }

    /// Ten thousand IDs that collide under a hash without a key are as good as any under one with a key.
    #[test]
    fn ids_that_were_made_to_collide_do_not() {
        let unkeyed = comparisons(BuildHasherDefault::<Unkeyed>::default(), 1000);
        assert!(unkeyed >= 1000 * 1000 / 2, "{unkeyed}: they do collide");
        let mut random = Random::from_seed([2; 32]);
        for _ in 0..4 {
            let keyed = comparisons(KeyedHasher::new(&mut random), 10_000);
            assert!(keyed < 2 * 10_000, "{keyed}");
        }
    }

    #[test]
    fn both_maps_map() {
        let mut keyed = KeyedMap::with_hasher(KeyedHasher::new(&mut Random::from_seed([0; 32])));
        let mut id = IdMap::default();
        for key in 0..100_u64 {
            assert_eq!(keyed.insert(key, key), None);
            assert_eq!(id.insert(key, key), None);
        }
        assert_eq!(keyed.get(&7), id.get(&7));
    }
}
