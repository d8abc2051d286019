//! The application's side of datagrams, [RFC 9221](https://www.rfc-editor.org/rfc/rfc9221).

use super::Connection;
use crate::{
    datagram::DatagramId,
    error::DatagramError,
    tls::TAG_LENGTH,
    wire::{ConnectionId, MOST_SHORT_OVERHEAD},
};

impl Connection {
    /// Copies a datagram to be sent in the next packet that the congestion window lets go; it is sent once.
    ///
    /// Datagrams and streams take turns when both wait. While [early data](Connection::is_sending_early_data) is sent,
    /// datagrams are too, under what the server took the last time (RFC 9221, 3), and may be
    /// replayed as all of it may; one that the smaller packets don't hold waits for the handshake's end. What the server
    /// rejects is lost.
    ///
    /// # Errors
    ///
    /// When the peer takes none or none so large, the path doesn't carry one so large, or too many wait.
    pub fn send_datagram(&mut self, data: &[u8]) -> Result<DatagramId, DatagramError> {
        if !self.life.is_open() {
            return Err(DatagramError::Closed);
        }
        let room = self.datagram_room();
        self.datagrams.outgoing.send(data, room)
    }

    /// The largest datagram that can be sent now, in bytes; `None` when the peer takes none, or the handshake hasn't told
    /// yet. It changes with what the path is found to carry.
    #[must_use]
    pub fn max_datagram_length(&self) -> Option<usize> {
        self.datagrams.outgoing.most(self.datagram_room())
    }

    /// The next datagram that has arrived, where it lies; it is gone with the next call.
    #[must_use]
    pub fn receive_datagram(&mut self) -> Option<&[u8]> {
        self.datagrams.incoming.receive()
    }

    fn datagram_room(&self) -> usize {
        frames_of_packet(self.path.mtu.current(), &self.remote_cids.current())
    }
}

/// Bytes of frames in a 1-RTT packet that has a path's whole MTU, however long its number is.
pub(super) fn frames_of_packet(mtu: u16, dcid: &ConnectionId) -> usize {
    usize::from(mtu).saturating_sub(MOST_SHORT_OVERHEAD + dcid.len() + TAG_LENGTH)
}
