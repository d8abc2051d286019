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
    pub(super) new_token: &'c mut NewToken,
}

/// The token that a server gives to its client, until it has arrived.
#[derive(Debug, Default)]
pub(super) struct NewToken {
    token: Option<Vec<u8>>,
    is_owed: bool,
}

impl NewToken {
    pub(super) const fn new(token: Option<Vec<u8>>) -> Self {
        Self {
            token,
            is_owed: false,
        }
    }

    #[inline]
    pub(super) const fn is_owed(&self) -> bool {
        self.is_owed
    }

    pub(super) fn on_acked(&mut self) {
        *self = Self::default();
    }

    /// The handshake is complete, or the frame was lost.
    pub(super) const fn owe(&mut self) {
        self.is_owed = self.token.is_some();
    }
}

impl RareFrames<'_> {
    /// Whether any frame is owed.
    pub(super) const fn is_pending(&self) -> bool {
        *self.owes_handshake_done
            || self.new_token.is_owed
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
        if self.new_token.is_owed
            && let Some(token) = &self.new_token.token
        {
            self.new_token.is_owed = !writer.frame(&Frame::NewToken { token }, SentFrame::NewToken);
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
