//! The frames that hardly any packet has: written before the streams, and cheap to be found missing.

use std::time::Duration;

use super::Connection;
use crate::{
    ack::AckRequests,
    cid::{LocalCids, RemoteCids},
    path::Path,
    stats::Stats,
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
    pub(super) ack_requests: &'c mut AckRequests,
    /// What the peer's acknowledgments may be delayed by.
    pub(super) max_ack_delay: &'c mut Duration,
    pub(super) stats: &'c mut Stats,
}

/// The token that a server gives to its client, until it has arrived.
#[derive(Debug, Default)]
pub(super) struct NewToken {
    token: Option<Vec<u8>>,
    is_owed: bool,
    /// The client has moved: the token is for an address that it has left.
    is_outdated: bool,
}

impl NewToken {
    pub(super) const fn new(token: Option<Vec<u8>>) -> Self {
        Self {
            token,
            is_owed: false,
            is_outdated: false,
        }
    }

    pub(super) fn on_acked(&mut self) {
        (self.token, self.is_owed) = (None, false);
    }

    /// The client was found at another address (RFC 9000, 9.3).
    pub(super) const fn on_move(&mut self) {
        self.is_outdated = true;
    }

    /// Sends this one, or none.
    pub(super) fn replace(&mut self, token: Option<Vec<u8>>) {
        *self = Self::new(token);
        self.owe();
    }

    /// Whether another token is wanted, for where the client is now.
    #[inline]
    pub(super) const fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// The handshake is complete, or the frame was lost.
    pub(super) const fn owe(&mut self) {
        self.is_owed = self.token.is_some();
    }
}

impl Connection {
    /// Whether a packet has something to say that hardly any has: see [`RareFrames`].
    #[inline]
    pub(super) const fn owes_rare_frames(&self) -> bool {
        self.owes_handshake_done
            || self.new_token.is_owed
            || self.ack_requests.is_owed()
            || self.local_cids.is_owing()
            || self.remote_cids.is_owing()
            || self.path.probing.is_owing()
    }
}

impl RareFrames<'_> {
    /// Whether any frame is owed.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        *self.owes_handshake_done
            || self.new_token.is_owed
            || self.ack_requests.is_owed()
            || self.local_cids.is_owing()
            || self.remote_cids.is_owing()
            || self.path.probing.is_owing()
    }

    /// Writes what is owed, as far as it fits.
    #[inline(never)] // Hardly any packet has such frames.
    pub(super) fn write(self, writer: &mut PacketWriter<'_>) {
        // The first packet on a new path has room for little.
        if self.path.probing.is_owing() {
            self.path.probing.write(writer);
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
        if let Some((sequence, frame)) = self.ack_requests.owed()
            && writer.frame(&frame, SentFrame::AckFrequency { sequence })
        {
            // The longer delay counts until the frame is acknowledged (draft-ietf-quic-ack-frequency-14, 7).
            let delay = self.ack_requests.on_sent();
            *self.max_ack_delay = delay.max(*self.max_ack_delay);
            self.stats.ack_requests_sent += 1;
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
