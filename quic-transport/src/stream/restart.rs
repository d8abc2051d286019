//! All our streams from the start again, when the peer has rejected what was sent in 0-RTT packets
//! ([RFC 9001, section 4.6.2](https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2)).
//!
//! Nothing was acknowledged, so everything is still there. The limits may be smaller than those that the streams were
//! opened under: streams beyond the new one are barred, and wait until the peer lets them in.

use super::output::owed;
use super::streams::{PeerLimits, Streams, place};
use super::table::Slot;
use crate::flow::SendCredit;

impl Streams {
    /// Takes everything back that was sent, and keeps to `limits` from here on.
    pub(crate) fn restart(&mut self, limits: PeerLimits) {
        self.peer = limits;
        self.credit = SendCredit::new(limits.data);
        self.in_flight = 0;
        for (local, limit) in self
            .local
            .iter_mut()
            .zip([limits.bidirectional, limits.unidirectional])
        {
            self.has_barred |= local.restart(limit);
        }
        for slot in self.table.slots() {
            let Some(stream) = self.table.get_mut(slot) else {
                continue;
            };
            let limit = limits.for_stream(stream.id, self.side);
            if let Some(send) = stream.send.as_mut() {
                send.restart(limit);
                if send.reset_frame().is_some() {
                    stream.owed.insert(owed::RESET_STREAM);
                }
            }
            let receive = stream.receive.as_ref();
            let stops = receive.and_then(super::receive::ReceiveStream::stop_frame);
            if stops.is_some() {
                stream.owed.insert(owed::STOP_SENDING);
            }
            stream.owed.remove(owed::STREAM_DATA_BLOCKED);
            self.scheduled.remove(slot);
            self.owing.remove(slot);
            self.put_to_work(slot);
        }
    }

    /// The peer lets us open more streams: those that were barred may be among them.
    #[cold]
    pub(super) fn admit_barred(&mut self) {
        self.has_barred = self.local.iter().any(crate::flow::LocalStreams::is_over);
        for slot in self.table.slots() {
            self.put_to_work(slot);
        }
    }

    /// Whether the peer doesn't let the stream in yet.
    #[cold]
    pub(super) fn is_barred(&self, slot: Slot) -> bool {
        self.table
            .get(slot)
            .map(|stream| stream.id)
            .filter(|id| id.initiator() == self.side)
            .and_then(|id| Some((id, self.local.get(place(id.direction()))?)))
            .is_some_and(|(id, local)| !local.is_permitted(id.index()))
    }

    /// What a stream has to send, it sends, unless it is barred.
    fn put_to_work(&mut self, slot: Slot) {
        if self.has_barred && self.is_barred(slot) {
            return;
        }
        let owes = self.table.get(slot).is_some_and(|s| !s.owed.is_empty());
        if owes {
            self.owing.push_back(slot, 0);
        }
        self.schedule(slot);
    }
}
