//! Packets that arrived before their keys: a bounded number of them is kept,
//! [RFC 9001, section 5.7](https://www.rfc-editor.org/rfc/rfc9001#section-5.7).

use std::time::Instant;

use quic_common::Ecn;

use super::{Connection, setup::Undecryptable};
use crate::{
    limits::{UNDECRYPTABLE_PACKETS, UNDECRYPTABLE_SIZE},
    observe::{DropReason, Observation},
    wire::Level,
};

impl Connection {
    /// Keeps a copy of a packet whose keys will come, while there is room.
    pub(super) fn keep_undecryptable(
        &mut self,
        level: Level,
        packet: &[u8],
        ecn: Ecn,
        now: Instant,
    ) {
        let size = packet.len();
        if self.setup.undecryptable.len() >= UNDECRYPTABLE_PACKETS || size > UNDECRYPTABLE_SIZE {
            return self.drop_packet(size, DropReason::Full, now);
        }
        if let Some(tap) = &mut self.tap {
            let kind = level.into();
            tap.tell(&Observation::PacketBuffered { kind, size }, now);
        }
        self.setup.undecryptable.push(Undecryptable {
            level,
            ecn,
            arrived: now,
            packet: packet.to_vec(),
        });
    }

    /// TLS has read the ClientHello: 0-RTT packets whose keys have not come by now will never be opened.
    pub(super) fn drop_rejected(&mut self) {
        if self.keys.early.is_none() {
            let kept = &mut self.setup.undecryptable;
            kept.retain(|kept| kept.level != Level::ZeroRtt);
        }
    }

    /// Takes the oldest packet that can be opened by now.
    pub(super) fn take_decryptable(&mut self) -> Option<Undecryptable> {
        if self.setup.undecryptable.is_empty() || !self.life.is_open() {
            return None;
        }
        let kept = &mut self.setup.undecryptable;
        let index = kept
            .iter()
            .position(|kept| self.keys.can_open(kept.level))?;
        let packet = kept.remove(index);
        if kept.is_empty() {
            *kept = Vec::new();
        }
        Some(packet)
    }
}
