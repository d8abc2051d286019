//! Connection IDs, [RFC 9000, section 5.1](https://www.rfc-editor.org/rfc/rfc9000#section-5.1).
//!
//! One lies inline, so that it is copied and compared without an allocation.

use std::hash::{Hash, Hasher};

use quic_common::Random;

/// The longest connection ID of QUIC versions 1 and 2, in bytes (RFC 9000, 17.2).
pub const MAX_CID_LENGTH: usize = 20;

/// A connection ID of 0 to 20 bytes.
#[derive(Clone, Copy)]
pub struct ConnectionId {
    length: u8,
    /// Zero beyond `length`, so that equal IDs are equal as a whole.
    bytes: [u8; MAX_CID_LENGTH],
}

impl ConnectionId {
    /// The connection ID of length zero.
    pub const EMPTY: Self = Self {
        length: 0,
        bytes: [0; MAX_CID_LENGTH],
    };

    /// A connection ID of these bytes; `None` when they are more than [`MAX_CID_LENGTH`].
    #[must_use]
    #[inline]
    pub fn new(id: &[u8]) -> Option<Self> {
        let length = u8::try_from(id.len()).ok()?;
        let mut bytes = [0; MAX_CID_LENGTH];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { length, bytes })
    }

    /// A connection ID of `length` random bytes; empty when that is more than [`MAX_CID_LENGTH`].
    pub(crate) fn draw(random: &mut Random, length: usize) -> Self {
        Self::prefix(random.array(), length).unwrap_or_default()
    }

    /// The first `length` bytes of `chunk`, copied all at once; `None` when that is more than there are.
    #[inline]
    pub(crate) fn prefix(chunk: [u8; MAX_CID_LENGTH], length: usize) -> Option<Self> {
        let [head @ .., p, q, r, s] = chunk;
        let length = u8::try_from(length).ok()?;
        let bits = u32::from(length) * 8;
        // What lies beyond the length is cleared, in two words.
        let beyond_low = u128::MAX.checked_shl(bits).unwrap_or_default();
        let beyond_high = bits.checked_sub(128).map_or(u32::MAX, |bits| {
            u32::MAX.checked_shl(bits).unwrap_or_default()
        });
        let low = u128::from_le_bytes(head) & !beyond_low;
        let high = u32::from_le_bytes([p, q, r, s]) & !beyond_high;
        let mut bytes = [0; MAX_CID_LENGTH];
        let (head, tail) = bytes.split_first_chunk_mut()?;
        *head = low.to_le_bytes();
        tail.copy_from_slice(&high.to_le_bytes());
        (usize::from(length) <= MAX_CID_LENGTH).then_some(Self { length, bytes })
    }

    /// The bytes.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len()).unwrap_or_default()
    }

    /// The bytes, and zeros up to the longest that there could be: a copy of these takes no call.
    #[inline]
    pub(crate) const fn padded(&self) -> &[u8; MAX_CID_LENGTH] {
        &self.bytes
    }

    #[inline]
    fn words(&self) -> [u64; 4] {
        let [b0, b1, b2, b3, b4, b5, b6, b7, rest @ ..] = self.bytes;
        let [c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3] = rest;
        [
            u64::from_ne_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
            u64::from_ne_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
            u64::from_ne_bytes([d0, d1, d2, d3, 0, 0, 0, 0]),
            u64::from(self.length),
        ]
    }

    /// How many bytes it has.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        #[expect(clippy::as_conversions, reason = "`From` is not const")]
        let length = self.length as usize;
        length
    }

    /// Whether it is the zero-length one.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// A [`ConnectionId`] as two words and which of their bits count, to be compared with one that lies in a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CidPattern {
    low: (u128, u128),
    high: (u32, u32),
}

impl CidPattern {
    pub(crate) fn new(id: &ConnectionId) -> Self {
        let mut mask = [0; MAX_CID_LENGTH];
        mask.iter_mut().take(id.len()).for_each(|byte| *byte = 0xff);
        let (id, mask) = (words(&id.bytes), words(&mask));
        Self {
            low: (id.0, mask.0),
            high: (id.1, mask.1),
        }
    }

    /// Whether these bytes begin with the ID.
    #[inline]
    pub(crate) const fn matches(&self, bytes: &[u8; MAX_CID_LENGTH]) -> bool {
        let (low, high) = words(bytes);
        (low ^ self.low.0) & self.low.1 == 0 && (high ^ self.high.0) & self.high.1 == 0
    }
}

#[inline]
const fn words(bytes: &[u8; MAX_CID_LENGTH]) -> (u128, u32) {
    let [low @ .., p, q, r, s] = *bytes;
    (u128::from_le_bytes(low), u32::from_le_bytes([p, q, r, s]))
}

/// In the words that it was written in: a load of more than one of them would wait until they have settled in memory.
impl PartialEq for ConnectionId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let [head, middle, tail, length] = self.words();
        let [its_head, its_middle, its_tail, its_length] = other.words();
        (head ^ its_head) | (middle ^ its_middle) | (tail ^ its_tail) | (length ^ its_length) == 0
    }
}

impl Eq for ConnectionId {}

impl Default for ConnectionId {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Hash for ConnectionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.as_slice());
    }
}

impl std::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_slice()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use quic_common::{KeyedHasher, Random};

    use super::{CidPattern, ConnectionId};

    #[test]
    fn a_pattern_matches_what_begins_with_the_id() {
        let bytes: [u8; 20] = std::array::from_fn(|n| u8::try_from(n + 1).unwrap());
        for length in 0..=20 {
            let pattern = CidPattern::new(&ConnectionId::new(&bytes[..length]).unwrap());
            assert!(pattern.matches(&bytes));
            for byte in 0..20 {
                let mut other = bytes;
                other[byte] ^= 0x10;
                assert_eq!(pattern.matches(&other), byte >= length, "{length} {byte}");
            }
        }
    }

    #[test]
    fn twenty_bytes_fit_and_twenty_one_do_not() {
        assert_eq!(ConnectionId::new(&[7; 20]).unwrap().as_slice(), [7; 20]);
        assert_eq!(ConnectionId::new(&[7; 21]), None);
        assert_eq!(ConnectionId::new(&[0; 256]), None);
    }

    #[test]
    fn a_prefix_is_the_same_id() {
        let chunk: [u8; 20] = std::array::from_fn(|n| u8::try_from(n + 1).unwrap());
        for length in 0..=20 {
            assert_eq!(
                ConnectionId::prefix(chunk, length),
                ConnectionId::new(&chunk[..length])
            );
        }
        assert_eq!(ConnectionId::prefix(chunk, 21), None);
        assert_eq!(ConnectionId::prefix(chunk, 256), None);
    }

    #[test]
    fn ids_of_zeros_differ_by_their_length() {
        assert_ne!(ConnectionId::new(&[0; 4]), ConnectionId::new(&[0; 5]));
        assert_eq!(ConnectionId::new(&[]), Some(ConnectionId::EMPTY));
        assert!(ConnectionId::EMPTY.is_empty());
    }

    #[test]
    fn drawn_ids_are_of_their_length_and_differ() {
        let mut random = Random::from_seed([2; 32]);
        for length in 0..=20 {
            let ids = [length; 2].map(|length| ConnectionId::draw(&mut random, length));
            assert_eq!(ids.map(|id| id.len()), [length; 2]);
            assert!(length < 8 || ids[0] != ids[1]);
        }
        assert!(ConnectionId::draw(&mut random, 21).is_empty());
    }

    #[test]
    fn different_ids_hash_differently() {
        let hasher = KeyedHasher::new(&mut Random::from_seed([1; 32]));
        let hash = |bytes: &[u8]| hasher.hash_one(ConnectionId::new(bytes).unwrap());
        assert_eq!(hash(&[1, 2]), hash(&[1, 2]));
        assert_ne!(hash(&[1, 2]), hash(&[1, 3]));
        assert_ne!(hash(&[0; 4]), hash(&[0; 5]));
    }

    #[test]
    fn shown_as_hex() {
        let id = ConnectionId::new(&[0x0a, 0xff]).unwrap();
        assert_eq!(format!("{id} {id:?}"), "0aff ConnectionId(0aff)");
    }
}
