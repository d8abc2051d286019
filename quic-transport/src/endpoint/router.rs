//! Which connection a datagram belongs to: connection IDs to slots, and the slots themselves; and whose peer has lost its
//! state: reset tokens to slots.
//!
//! A slot is reused, so a [`Handle`] carries the slot's generation: an old handle finds nothing instead of a stranger.

use quic_common::{KeyedHasher, KeyedMap, Random};

use crate::wire::{ConnectionId, ResetToken};

/// Names one connection of an endpoint. It never comes to mean another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    index: u32,
    generation: u32,
}

impl Handle {
    pub(super) const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// The connections of an endpoint and the ways to find them.
#[derive(Debug)]
pub(super) struct Router<T> {
    cids: KeyedMap<ConnectionId, Handle>,
    /// What the last datagram was for.
    recent: Option<(ConnectionId, Handle)>,
    /// Keyed, so that the time of a search says nothing of the tokens (RFC 9000, 10.3.1).
    reset_tokens: KeyedMap<ResetToken, Handle>,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Router<T> {
    pub(super) fn new(random: &mut Random) -> Self {
        let hasher = KeyedHasher::new(random);
        Self {
            cids: KeyedMap::with_hasher(hasher.clone()),
            recent: None,
            reset_tokens: KeyedMap::with_hasher(hasher),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// How many connections there are.
    pub(super) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Stores a connection; `None` when there are 2^32 already.
    pub(super) fn insert(&mut self, value: T) -> Option<Handle> {
        let index = self.free.pop().map_or_else(|| self.grow(), Some)?;
        let slot = self.slots.get_mut(usize::try_from(index).ok()?)?;
        slot.value = Some(value);
        Some(Handle::new(index, slot.generation))
    }

    /// The connection that `handle` names, if it still exists.
    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        self.slot_mut(handle)?.value.as_mut()
    }

    /// The connection that `handle` names, if it still exists.
    pub(super) fn get(&self, handle: Handle) -> Option<&T> {
        let slot = self.slots.get(usize::try_from(handle.index).ok()?)?;
        slot.value
            .as_ref()
            .filter(|_| slot.generation == handle.generation)
    }

    /// Takes a connection out. Its IDs have to be removed apart.
    pub(super) fn remove(&mut self, handle: Handle) -> Option<T> {
        let slot = self.slot_mut(handle)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(handle.index);
        Some(value)
    }

    /// Where datagrams for `cid` go.
    pub(super) fn find(&self, cid: &ConnectionId) -> Option<Handle> {
        self.cids.get(cid).copied()
    }

    /// [`Self::find`] for a datagram: as a rule the one before was for the same ID.
    #[inline]
    pub(super) fn route(&mut self, cid: &ConnectionId) -> Option<Handle> {
        if let Some((recent, handle)) = self.recent
            && recent == *cid
        {
            return Some(handle);
        }
        let handle = self.find(cid)?;
        self.recent = Some((*cid, handle));
        Some(handle)
    }

    /// From now on `cid` leads to `handle`, unless it leads to another connection; returns whether it does.
    pub(super) fn add_cid(&mut self, cid: ConnectionId, handle: Handle) -> bool {
        self.recent = None;
        *self.cids.entry(cid).or_insert(handle) == handle
    }

    /// From now on `cid` leads nowhere, if it led to `handle`.
    pub(super) fn remove_cid(&mut self, cid: &ConnectionId, handle: Handle) {
        if self.find(cid) == Some(handle) {
            self.recent = None;
            self.cids.remove(cid);
            super::shrink(&mut self.cids);
        }
    }

    /// Which connection a datagram resets that ends with `tail` and names none.
    pub(super) fn find_reset(&self, tail: ResetToken) -> Option<Handle> {
        if self.reset_tokens.is_empty() {
            return None;
        }
        self.reset_tokens.get(&tail).copied()
    }

    /// The peer of `handle` has a token for resets, or another than before, or none any more.
    pub(super) fn change_reset_token(
        &mut self,
        before: Option<ResetToken>,
        now: Option<ResetToken>,
        handle: Handle,
    ) {
        if let Some(before) = before
            && self.find_reset(before) == Some(handle)
        {
            self.reset_tokens.remove(&before);
            super::shrink(&mut self.reset_tokens);
        }
        if let Some(now) = now {
            self.reset_tokens.insert(now, handle);
        }
    }

    /// All connections.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Handle, &mut T)> {
        (0..).zip(&mut self.slots).filter_map(|(index, slot)| {
            let handle = Handle::new(index, slot.generation);
            slot.value.as_mut().map(|value| (handle, value))
        })
    }

    /// Adds a slot and returns its index.
    fn grow(&mut self) -> Option<u32> {
        let index = u32::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot {
            generation: 0,
            value: None,
        });
        Some(index)
    }

    fn slot_mut(&mut self, handle: Handle) -> Option<&mut Slot<T>> {
        self.slots
            .get_mut(usize::try_from(handle.index).ok()?)
            .filter(|slot| slot.generation == handle.generation)
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::Router;
    use crate::wire::ConnectionId;

    #[test]
    fn an_old_handle_finds_nothing() {
        let mut router = Router::new(&mut Random::from_seed([0; 32]));
        let first = router.insert('a').unwrap();
        assert_eq!(router.remove(first), Some('a'));
        let second = router.insert('b').unwrap();
        assert_eq!((router.get(first), router.get(second)), (None, Some(&'b')));
        assert_eq!(router.remove(first), None);
        assert_eq!(router.len(), 1);
    }

    #[test]
    fn a_cid_is_removed_only_by_its_owner() {
        let mut router = Router::new(&mut Random::from_seed([0; 32]));
        let (a, b) = (router.insert('a').unwrap(), router.insert('b').unwrap());
        let cid = ConnectionId::new(&[1; 8]).unwrap();
        assert!(router.add_cid(cid, a) && router.add_cid(cid, a));
        assert!(!router.add_cid(cid, b), "it is another's");
        router.remove_cid(&cid, b);
        for _ in 0..2 {
            assert_eq!((router.find(&cid), router.route(&cid)), (Some(a), Some(a)));
        }
        router.remove_cid(&cid, a);
        assert_eq!((router.find(&cid), router.route(&cid)), (None, None));
        assert!(router.add_cid(cid, b));
        assert_eq!(router.route(&cid), Some(b));
        router.remove_cid(&cid, b);
        assert!(router.add_cid(cid, a));
        assert_eq!(router.route(&cid), Some(a), "what was last asked for");
    }
}
