//! Handshakes under way, by the client's address: none of them may have more than its share.
//!
//! Clients that knock count, and connections until their handshake is complete. Hosts of one IPv6 network choose among
//! 2^64 addresses, so they count together.

use std::net::{IpAddr, Ipv6Addr};

use quic_common::{KeyedHasher, KeyedMap};

use crate::limits::{
    HALF_OPEN, HALF_OPEN_BEFORE_RETRY, HALF_OPEN_OF_ADDRESS, HALF_OPEN_OF_ADDRESS_BEFORE_RETRY,
};

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

/// See the module.
#[derive(Debug)]
pub(super) struct HalfOpen {
    total: usize,
    addresses: KeyedMap<IpAddr, usize>,
}

impl HalfOpen {
    pub(super) const fn new(hasher: KeyedHasher) -> Self {
        Self {
            total: 0,
            addresses: KeyedMap::with_hasher(hasher),
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.total
    }

    /// What one more from this address meets.
    pub(super) fn load(&self, address: IpAddr) -> Load {
        let same = self.addresses.get(&network(address)).copied();
        let same = same.unwrap_or_default();
        if self.total >= HALF_OPEN || same >= HALF_OPEN_OF_ADDRESS {
            Load::Full
        } else if self.total >= HALF_OPEN_BEFORE_RETRY || same >= HALF_OPEN_OF_ADDRESS_BEFORE_RETRY
        {
            Load::Heavy
        } else {
            Load::Light
        }
    }

    /// One more.
    pub(super) fn enter(&mut self, address: IpAddr) {
        self.total += 1;
        *self.addresses.entry(network(address)).or_default() += 1;
    }

    /// One less: it is gone, or its handshake is complete.
    pub(super) fn leave(&mut self, address: IpAddr) {
        let address = network(address);
        let Some(same) = self.addresses.get_mut(&address) else {
            debug_assert!(false, "left without having entered");
            return;
        };
        self.total = self.total.saturating_sub(1);
        *same = same.saturating_sub(1);
        if *same == 0 {
            self.addresses.remove(&address);
            super::shrink(&mut self.addresses);
        }
    }
}

/// What counts as one address.
pub(super) fn network(address: IpAddr) -> IpAddr {
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

    use quic_common::{KeyedHasher, Random};

    use super::{HalfOpen, Load};
    use crate::limits::{
        HALF_OPEN, HALF_OPEN_BEFORE_RETRY, HALF_OPEN_OF_ADDRESS, HALF_OPEN_OF_ADDRESS_BEFORE_RETRY,
    };

    fn hasher() -> KeyedHasher {
        KeyedHasher::new(&mut Random::from_seed([0; 32]))
    }

    fn address(index: usize) -> IpAddr {
        std::net::Ipv4Addr::from_bits(u32::try_from(index).unwrap()).into()
    }

    #[test]
    fn all_addresses_have_bounds_together() {
        let mut open = HalfOpen::new(hasher());
        for index in 0..HALF_OPEN {
            let heavy = index >= HALF_OPEN_BEFORE_RETRY;
            let expected = if heavy { Load::Heavy } else { Load::Light };
            assert_eq!(open.load(address(index)), expected);
            open.enter(address(index));
        }
        assert_eq!(open.load(address(HALF_OPEN)), Load::Full);
        for index in 0..HALF_OPEN {
            open.leave(address(index));
        }
        assert_eq!((open.len(), open.addresses.len()), (0, 0));
        assert!(open.addresses.capacity() < 200, "the map shrinks");
    }

    #[test]
    fn an_address_has_bounds_of_its_own() {
        let mut open = HalfOpen::new(hasher());
        for same in 0..HALF_OPEN_OF_ADDRESS {
            let heavy = same >= HALF_OPEN_OF_ADDRESS_BEFORE_RETRY;
            let expected = if heavy { Load::Heavy } else { Load::Light };
            assert_eq!(open.load(address(1)), expected);
            open.enter(address(1));
        }
        assert_eq!(open.load(address(1)), Load::Full);
        assert_eq!(open.load("::ffff:0.0.0.1".parse().unwrap()), Load::Full);
        assert_ne!(open.load(address(2)), Load::Full);
        open.leave(address(1));
        assert_ne!(open.load(address(1)), Load::Full);
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
        let mut open = HalfOpen::new(hasher());
        for host in 0..HALF_OPEN_OF_ADDRESS {
            open.enter(format!("2001:db8::{host:x}").parse().unwrap());
        }
        assert_eq!(open.load("2001:db8::ffff:1".parse().unwrap()), Load::Full);
        assert_ne!(open.load("2001:db8:0:1::1".parse().unwrap()), Load::Full);
    }
}
