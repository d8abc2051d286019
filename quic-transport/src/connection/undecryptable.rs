//! Packets that arrived before their keys: a bounded number of them is kept,
//! [RFC 9001, section 5.7](https://www.rfc-editor.org/rfc/rfc9001#section-5.7).

use quic_common::Ecn;

use super::Connection;
use crate::{
    limits::{UNDECRYPTABLE_PACKETS, UNDECRYPTABLE_SIZE},
    wire::Level,
};

/// A packet as it arrived.
#[derive(Debug)]
pub(super) struct Undecryptable {
    pub(super) level: Level,
    pub(super) ecn: Ecn,
    pub(super) packet: Vec<u8>,
}

impl Connection {
    /// Keeps a copy of a packet whose keys will come, while there is room.
    pub(super) fn keep_undecryptable(&mut self, level: Level, packet: &[u8], ecn: Ecn) {
        if self.setup.undecryptable.len() >= UNDECRYPTABLE_PACKETS
            || packet.len() > UNDECRYPTABLE_SIZE
        {
            self.stats.packets_dropped += 1;
            return;
        }
        self.setup.undecryptable.push(Undecryptable {
            level,
            ecn,
            packet: packet.to_vec(),
        });
    }

    /// Takes the oldest packet that can be opened by now.
    pub(super) fn take_decryptable(&mut self) -> Option<Undecryptable> {
        if self.setup.undecryptable.is_empty() || !self.life.is_open() {
            return None;
        }
        let index = self
            .setup
            .undecryptable
            .iter()
            .position(|kept| self.keys.can_open(kept.level))?;
        Some(self.setup.undecryptable.remove(index))
    }
}
