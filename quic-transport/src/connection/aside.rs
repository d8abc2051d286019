//! What is sent on a path beside the one in use: probing packets alone,
//! [RFC 9000, section 9.1](https://www.rfc-editor.org/rfc/rfc9000#section-9.1).
//!
//! For the time of a packet the path takes the place of the one in use, so that all that is booked is booked there.

use std::time::Instant;

use quic_common::BatchHead;

use super::Connection;
use crate::{
    config::MIN_DATAGRAM,
    limits::{PATHS, SMALLEST_DATAGRAM},
    recovery::PacketFlags,
    transmit::PathId,
    wire::wide,
};

impl Connection {
    /// Builds the next datagram for another path, if one of them owes any and its limits permit.
    #[cold]
    pub(super) fn assemble_aside(&mut self, now: Instant, buffer: &mut [u8]) -> Option<BatchHead> {
        self.mind_key_limits();
        let mut owing = [None; PATHS];
        let others = self
            .others
            .iter()
            .filter(|other| other.path.probing.is_owing());
        for (place, other) in owing.iter_mut().zip(others) {
            *place = Some(other.path.id);
        }
        let mut owing = owing.into_iter().flatten();
        owing.find_map(|id| self.assemble_probing(id, now, buffer))
    }

    fn assemble_probing(
        &mut self,
        id: PathId,
        now: Instant,
        buffer: &mut [u8],
    ) -> Option<BatchHead> {
        if !self.life.is_open() {
            return None;
        }
        let cid = self.cid_of_path(id)?;
        let in_use = self.remote_cids.current_sequence();
        self.remote_cids.select(cid);
        let current = self.path.id;
        self.others.exchange(id, &mut self.path);
        let head = self.probing_datagram(now, buffer);
        self.others.exchange(current, &mut self.path);
        self.remote_cids.select(in_use);
        head
    }

    fn probing_datagram(&mut self, now: Instant, buffer: &mut [u8]) -> Option<BatchHead> {
        let room = self.path.amplification.allowance().min(MIN_DATAGRAM.into());
        if room < SMALLEST_DATAGRAM || self.path.controller.available() < room {
            return None;
        }
        self.path.ecn.on_batch();
        let datagram = buffer.get_mut(..usize::try_from(room).ok()?)?;
        let mut draft = self.draft_probing(datagram)?;
        Self::pad(&mut draft, datagram, usize::from(MIN_DATAGRAM));
        let size = draft.size();
        if size >= usize::from(MIN_DATAGRAM) {
            self.path.probing.on_full();
        }
        self.seal(&draft, PacketFlags::NONE, datagram, now);
        self.path.amplification.on_sent(wide(size));
        Some(self.path.head(size, size))
    }
}
