//! Connections whose handshake is complete, by the client's address: one client may not take all places.
//!
//! Nobody but the client itself can make its address count here: the handshake has shown that it is where it says.

use std::net::IpAddr;

use quic_common::{KeyedHasher, KeyedMap};

use super::half_open::network;

/// See the module.
#[derive(Debug)]
pub(super) struct Guests {
    addresses: KeyedMap<IpAddr, usize>,
}

impl Guests {
    pub(super) const fn new(hasher: KeyedHasher) -> Self {
        Self {
            addresses: KeyedMap::with_hasher(hasher),
        }
    }

    /// How many connections there are with this address, or with its /64 network of IPv6.
    pub(super) fn of(&self, address: IpAddr) -> usize {
        let same = self.addresses.get(&network(address)).copied();
        same.unwrap_or_default()
    }

    /// One more.
    pub(super) fn enter(&mut self, address: IpAddr) {
        *self.addresses.entry(network(address)).or_default() += 1;
    }

    /// One less.
    pub(super) fn leave(&mut self, address: IpAddr) {
        let address = network(address);
        let Some(same) = self.addresses.get_mut(&address) else {
            debug_assert!(false, "left without having entered");
            return;
        };
        *same = same.saturating_sub(1);
        if *same == 0 {
            self.addresses.remove(&address);
            super::shrink(&mut self.addresses);
        }
    }
}
