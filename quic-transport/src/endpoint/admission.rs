//! Who is there already: handshakes under way and connections, by the client's address, and the memory that all of them
//! take. One for all endpoints of a server, so that a client can't have its share at each.
//!
//! Hosts of one IPv6 network choose among 2^64 addresses, so they count together. A connection counts as one only when
//! its handshake is complete: nobody but the client itself can make its address count there.
//!
//! This is looked at when a client comes, gets in or goes, never for a packet. Addresses are spread over several locks,
//! and what an endpoint holds is told in steps. Several endpoints that let clients in at the same moment may go beyond a
//! bound by one each.

use std::array;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use quic_common::{KeyedHasher, KeyedMap};

use crate::limits::{
    HALF_OPEN, HALF_OPEN_BEFORE_RETRY, HALF_OPEN_OF_ADDRESS, HALF_OPEN_OF_ADDRESS_BEFORE_RETRY,
};

/// The locks that the addresses are spread over.
const SHARDS: usize = 16;

/// What the endpoints of a server count together; clones share it. See
/// [`EndpointConfig::admission`](super::EndpointConfig::admission).
#[derive(Clone, Debug, Default)]
pub struct Admission(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    half_open: AtomicUsize,
    memory: AtomicU64,
    /// Made by the first endpoint, which brings a hash key.
    addresses: OnceLock<Addresses>,
}

#[derive(Debug)]
struct Addresses {
    hasher: KeyedHasher,
    shards: [Mutex<KeyedMap<IpAddr, Clients>>; SHARDS],
}

/// The clients with one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Clients {
    half_open: usize,
    connected: usize,
}

/// What is done about one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// There is room.
    Light,
    /// It should show that it receives what is sent to its address.
    Heavy,
    /// There are too many.
    Full,
}

impl Admission {
    /// An endpoint is made, with a hash key that is used if it is the first one.
    pub(super) fn join(&self, hasher: KeyedHasher) {
        self.0.addresses.get_or_init(|| Addresses::new(hasher));
    }

    /// What one more handshake from this address meets.
    pub(super) fn load(&self, address: IpAddr) -> Load {
        let total = self.half_open();
        let same = self.of(address).half_open;
        if total >= HALF_OPEN || same >= HALF_OPEN_OF_ADDRESS {
            Load::Full
        } else if total >= HALF_OPEN_BEFORE_RETRY || same >= HALF_OPEN_OF_ADDRESS_BEFORE_RETRY {
            Load::Heavy
        } else {
            Load::Light
        }
    }

    /// How many connections there are with this address, or with its /64 network of IPv6.
    pub(super) fn connections_of(&self, address: IpAddr) -> usize {
        self.of(address).connected
    }

    /// One more handshake.
    pub(super) fn begin(&self, address: IpAddr) {
        self.0.half_open.fetch_add(1, Relaxed);
        self.change(address, |clients| clients.half_open += 1);
    }

    /// A handshake less: it is gone.
    pub(super) fn give_up(&self, address: IpAddr) {
        self.0.half_open.fetch_sub(1, Relaxed);
        self.change(address, |clients| less(&mut clients.half_open));
    }

    /// A handshake is complete, and so a connection.
    pub(super) fn complete(&self, address: IpAddr) {
        self.0.half_open.fetch_sub(1, Relaxed);
        self.change(address, |clients| {
            less(&mut clients.half_open);
            clients.connected += 1;
        });
    }

    /// A connection less.
    pub(super) fn leave(&self, address: IpAddr) {
        self.change(address, |clients| less(&mut clients.connected));
    }

    /// Whichever of the two it is.
    pub(super) fn release(&self, address: IpAddr, is_half_open: bool) {
        if is_half_open {
            self.give_up(address);
        } else {
            self.leave(address);
        }
    }

    /// Handshakes under way.
    fn half_open(&self) -> usize {
        self.0.half_open.load(Relaxed)
    }

    /// Bytes that all endpoints have told of.
    pub(super) fn memory(&self) -> u64 {
        self.0.memory.load(Relaxed)
    }

    /// An endpoint that has told of `before` bytes now holds so many.
    pub(super) fn tell_memory(&self, before: u64, now: u64) {
        if now > before {
            self.0.memory.fetch_add(now - before, Relaxed);
        } else {
            self.0.memory.fetch_sub(before - now, Relaxed);
        }
    }

    fn of(&self, address: IpAddr) -> Clients {
        let address = network(address);
        let shard = self.shard(address);
        shard
            .and_then(|shard| shard.get(&address).copied())
            .unwrap_or_default()
    }

    fn change(&self, address: IpAddr, change: impl FnOnce(&mut Clients)) {
        let address = network(address);
        let Some(mut shard) = self.shard(address) else {
            return;
        };
        let clients = shard.entry(address).or_default();
        change(clients);
        if *clients == Clients::default() {
            shard.remove(&address);
            super::shrink(&mut shard);
        }
    }

    fn shard(&self, address: IpAddr) -> Option<MutexGuard<'_, KeyedMap<IpAddr, Clients>>> {
        use std::hash::BuildHasher as _;
        let Addresses { hasher, shards } = self.0.addresses.get()?;
        let [first, ..] = hasher.hash_one(address).to_le_bytes();
        let shard = shards.get(usize::from(first) % SHARDS)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Addresses {
    fn new(hasher: KeyedHasher) -> Self {
        Self {
            shards: array::from_fn(|_| Mutex::new(KeyedMap::with_hasher(hasher.clone()))),
            hasher,
        }
    }
}

fn less(count: &mut usize) {
    debug_assert!(*count > 0, "left without having entered");
    *count = count.saturating_sub(1);
}

/// What counts as one address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::thread;

    use quic_common::{KeyedHasher, Random};

    use super::{Admission, Load};
    use crate::limits::{
        HALF_OPEN, HALF_OPEN_BEFORE_RETRY, HALF_OPEN_OF_ADDRESS, HALF_OPEN_OF_ADDRESS_BEFORE_RETRY,
    };

    fn admission() -> Admission {
        let admission = Admission::default();
        admission.join(KeyedHasher::new(&mut Random::from_seed([0; 32])));
        admission
    }

    fn address(index: usize) -> IpAddr {
        std::net::Ipv4Addr::from_bits(u32::try_from(index).unwrap()).into()
    }

    /// How many addresses are known, and for how many there is room.
    fn addresses(admission: &Admission) -> (usize, usize) {
        let shards = &admission.0.addresses.get().unwrap().shards;
        shards.iter().fold((0, 0), |(known, room), shard| {
            let shard = shard.lock().unwrap();
            (known + shard.len(), room + shard.capacity())
        })
    }

    #[test]
    fn all_addresses_have_bounds_together() {
        let open = admission();
        for index in 0..HALF_OPEN {
            let heavy = index >= HALF_OPEN_BEFORE_RETRY;
            let expected = if heavy { Load::Heavy } else { Load::Light };
            assert_eq!(open.load(address(index)), expected);
            open.begin(address(index));
        }
        assert_eq!(open.load(address(HALF_OPEN)), Load::Full);
        for index in 0..HALF_OPEN {
            open.give_up(address(index));
        }
        let (known, room) = addresses(&open);
        assert_eq!((open.half_open(), known), (0, 0));
        assert!(room < 16 * 130, "the maps shrink: {room}");
    }

    #[test]
    fn an_address_has_bounds_of_its_own() {
        let open = admission();
        for same in 0..HALF_OPEN_OF_ADDRESS {
            let heavy = same >= HALF_OPEN_OF_ADDRESS_BEFORE_RETRY;
            let expected = if heavy { Load::Heavy } else { Load::Light };
            assert_eq!(open.load(address(1)), expected);
            open.begin(address(1));
        }
        assert_eq!(open.load(address(1)), Load::Full);
        assert_eq!(open.load("::ffff:0.0.0.1".parse().unwrap()), Load::Full);
        assert_ne!(open.load(address(2)), Load::Full);
        open.give_up(address(1));
        assert_ne!(open.load(address(1)), Load::Full);
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
        let open = admission();
        for host in 0..HALF_OPEN_OF_ADDRESS {
            open.begin(format!("2001:db8::{host:x}").parse().unwrap());
        }
        assert_eq!(open.load("2001:db8::ffff:1".parse().unwrap()), Load::Full);
        assert_ne!(open.load("2001:db8:0:1::1".parse().unwrap()), Load::Full);
    }

    #[test]
    fn a_complete_handshake_is_a_connection_until_that_ends() {
        let open = admission();
        open.begin(address(1));
        assert_eq!(open.connections_of(address(1)), 0);
        open.complete(address(1));
        assert_eq!((open.half_open(), open.connections_of(address(1))), (0, 1));
        open.leave(address(1));
        assert_eq!(
            (open.connections_of(address(1)), addresses(&open).0),
            (0, 0)
        );
    }

    #[test]
    fn threads_that_come_and_go_leave_nothing_behind() {
        let open = admission();
        thread::scope(|scope| {
            for first in 0..4_usize {
                let open = open.clone();
                scope.spawn(move || {
                    for index in 0..2000 {
                        let address = address((first + index) % 7);
                        open.begin(address);
                        open.tell_memory(0, 100);
                        open.complete(address);
                        open.leave(address);
                        open.tell_memory(100, 0);
                    }
                });
            }
        });
        assert_eq!((open.half_open(), open.memory()), (0, 0));
        assert_eq!(addresses(&open).0, 0);
    }
}
