//! A sender that waits for credit says so again when the connection would fall silent for it
//! ([RFC 9000, section 4.1](https://www.rfc-editor.org/rfc/rfc9000#section-4.1)): one frame, for one of those that wait.

use super::output::owed;
use super::priority::NEW_LANES;
use super::streams::Streams;
use super::table::Slot;

impl Streams {
    /// Whether the peer's limits stop any data, and all that could be said of it has been.
    pub(crate) fn waits_for_credit(&mut self) -> bool {
        self.is_stopped() || self.first_stopped().is_some()
    }

    /// Owes one of the frames again that told the peer so.
    pub(crate) fn repeat_blocked(&mut self) {
        if self.is_stopped() {
            return self.credit.repeat_blocked();
        }
        let Some(slot) = self.first_stopped() else {
            return;
        };
        self.stopped.rotate(0);
        if let Some(send) = self.table.get_mut(slot).and_then(|s| s.send.as_mut()) {
            send.credit.repeat_blocked();
            self.owe(slot, owed::STREAM_DATA_BLOCKED);
        }
    }

    /// Whether the limit for all streams together stops any of them.
    fn is_stopped(&self) -> bool {
        self.credit.is_told() && self.scheduled.occupied() & NEW_LANES != 0
    }

    /// The first stream that its own limit stops. Those that got credit meanwhile are found out here, once.
    fn first_stopped(&mut self) -> Option<Slot> {
        while let Some(slot) = self.stopped.first(0) {
            let send = self.table.get(slot).and_then(|stream| stream.send.as_ref());
            if send.is_some_and(|send| send.is_blocked() && send.credit.is_told()) {
                return Some(slot);
            }
            self.stopped.remove(slot);
        }
        None
    }
}
