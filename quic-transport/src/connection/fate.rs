//! What became of a frame that was sent: its owner is told that it was acknowledged or lost.

use super::Connection;
use crate::transmit::{SentFrame, Space};

impl Connection {
    /// The packet with this frame was acknowledged.
    #[inline]
    pub(super) fn on_frame_acked(&mut self, space: Space, frame: SentFrame) {
        match frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream(_)
            | SentFrame::ResetStreamAt { .. }
            | SentFrame::StopSending(_)
            | SentFrame::MaxData
            | SentFrame::MaxStreamData(_)
            | SentFrame::MaxStreams(_)
            | SentFrame::DataBlocked { .. }
            | SentFrame::StreamDataBlocked { .. }
            | SentFrame::StreamsBlocked { .. } => self.streams.on_acked(frame),
            SentFrame::Ack { largest } => {
                if let Some(space) = self.spaces.get_mut(space) {
                    space.received.on_ack_acked(largest);
                }
            }
            SentFrame::Crypto { offset, length } => {
                if let Some(space) = self.spaces.get_mut(space) {
                    space.crypto().on_acked(offset, length);
                }
            }
            SentFrame::RetireConnectionId { sequence } => {
                self.remote_cids.on_retire_acked(sequence);
            }
            SentFrame::NewToken => self.new_token.on_acked(),
            SentFrame::AckFrequency { sequence } => {
                if let Some(delay) = self.ack_requests.on_acked(sequence) {
                    self.peer.max_ack_delay = delay;
                }
            }
            SentFrame::Datagram { id } => self.datagrams.outgoing.on_acked(id),
            SentFrame::NewConnectionId { .. }
            | SentFrame::PathChallenge
            | SentFrame::PathResponse
            | SentFrame::HandshakeDone
            | SentFrame::Ping
            | SentFrame::MtuProbe => {}
        }
    }

    /// The packet with this frame was lost: what still matters is owed again, as it is now (RFC 9000, 13.3).
    pub(super) fn on_frame_lost(&mut self, space: Space, frame: SentFrame) {
        match frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream(_)
            | SentFrame::ResetStreamAt { .. }
            | SentFrame::StopSending(_)
            | SentFrame::MaxData
            | SentFrame::MaxStreamData(_)
            | SentFrame::MaxStreams(_)
            | SentFrame::DataBlocked { .. }
            | SentFrame::StreamDataBlocked { .. }
            | SentFrame::StreamsBlocked { .. } => self.streams.on_lost(frame),
            SentFrame::Crypto { offset, length } => {
                if let Some(space) = self.spaces.get_mut(space) {
                    space.crypto().on_lost(offset, length);
                }
            }
            SentFrame::NewConnectionId { sequence } => self.local_cids.on_lost(sequence),
            SentFrame::RetireConnectionId { sequence } => self.remote_cids.on_retire_lost(sequence),
            SentFrame::HandshakeDone => self.owes_handshake_done = true,
            SentFrame::NewToken => self.new_token.owe(),
            SentFrame::AckFrequency { sequence } => self.ack_requests.on_lost(sequence),
            SentFrame::Datagram { id } => self.datagrams.outgoing.on_lost(id),
            // A response is sent once, and a challenge not again (RFC 9000, 13.3); a newer ACK or probe takes the place of
            // the lost one.
            SentFrame::Ack { .. }
            | SentFrame::PathChallenge
            | SentFrame::PathResponse
            | SentFrame::Ping
            | SentFrame::MtuProbe => {}
        }
    }
}
