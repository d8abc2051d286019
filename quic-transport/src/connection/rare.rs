//! The frames that hardly any packet has: written before the streams, and cheap to be found missing.

use crate::{
    cid::{LocalCids, RemoteCids},
    path::Path,
    transmit::{PacketWriter, SentFrame},
    wire::Frame,
};

/// Who may owe such a frame.
pub(super) struct RareFrames<'c> {
    pub(super) local_cids: &'c mut LocalCids,
    pub(super) remote_cids: &'c mut RemoteCids,
    pub(super) path: &'c mut Path,
    pub(super) owes_handshake_done: &'c mut bool,
}

impl RareFrames<'_> {
    /// Whether any frame is owed.
    pub(super) fn is_pending(&self) -> bool {
        *self.owes_handshake_done
            || self.local_cids.is_owing()
            || self.remote_cids.is_owing()
            || self.path.responses.next().is_some()
    }

    /// Writes what is owed, as far as it fits.
    pub(super) fn write(self, writer: &mut PacketWriter<'_>) {
        if !self.is_pending() {
            return;
        }
        if *self.owes_handshake_done
            && writer.frame(&Frame::HandshakeDone, SentFrame::HandshakeDone)
        {
            *self.owes_handshake_done = false;
        }
        while let Some(data) = self.path.responses.next() {
            if !writer.frame(&Frame::PathResponse { data }, SentFrame::PathResponse) {
                return;
            }
            self.path.responses.on_sent();
        }
        while let Some((sequence, frame)) = self.local_cids.owed() {
            if !writer.frame(&frame, SentFrame::NewConnectionId { sequence }) {
                return;
            }
            self.local_cids.on_sent(sequence);
        }
        while let Some(sequence) = self.remote_cids.owed_retirement() {
            let frame = Frame::RetireConnectionId { sequence };
            if !writer.frame(&frame, SentFrame::RetireConnectionId { sequence }) {
                return;
            }
            self.remote_cids.on_retire_sent(sequence);
        }
    }
}
