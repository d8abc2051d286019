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
mod tests {
    use std::hash::BuildHasher as _;

    use super::{IdMap, KeyedHasher, KeyedMap};
    use crate::random::Random;

    #[test]
    fn hashes_depend_on_the_key() {
        let mut random = Random::from_seed([1; 32]);
        let (a, b) = (KeyedHasher::new(&mut random), KeyedHasher::new(&mut random));
        assert_ne!(a.hash_one(1_u64), b.hash_one(1_u64));
        assert_eq!(a.hash_one(1_u64), a.hash_one(1_u64));
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
