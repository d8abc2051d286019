//! The application's side of the streams.

use super::Connection;
use crate::{
    error::StreamError,
    stream::{Fill, Priority, Read},
    wire::{Direction, StreamId},
};

impl Connection {
    /// Opens a stream; `None` while the peer permits no more: an event says when it does.
    #[must_use]
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.life
            .is_open()
            .then(|| self.streams.open(direction))
            .flatten()
    }

    /// Copies as much of `data` into the stream's send buffer as fits, and returns how much that is, in bytes.
    ///
    /// After less than all of it, a writable event follows once there is room.
    ///
    /// # Errors
    ///
    /// When the stream is unknown, goes the other way, or has been finished, reset or stopped.
    pub fn stream_send(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError> {
        self.streams.send(id, data)
    }

    /// Ends the sending part of a stream; everything sent so far is delivered first.
    ///
    /// # Errors
    ///
    /// As [`Connection::stream_send`].
    pub fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        self.streams.finish(id)
    }

    /// Gives up the sending part of a stream, with an application's code below 2^62 (RFC 9000, 3.5).
    ///
    /// # Errors
    ///
    /// When the stream is unknown, goes the other way, or has ended.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        self.streams.reset(id, code)
    }

    /// Gives up the sending part of a stream, but for its first `reliable_size` bytes of those that
    /// [`Connection::stream_send`] took: these are delivered before the peer's application hears of the reset
    /// (draft-ietf-quic-reliable-stream-reset-10). It may be done again with a smaller size; the code of the first time
    /// stands.
    ///
    /// # Errors
    ///
    /// When the stream is unknown, goes the other way, has ended or was given up with fewer bytes, or when the peer doesn't
    /// know how.
    pub fn reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), StreamError> {
        if reliable_size > 0 && !self.peer.takes_reset_stream_at {
            return Err(StreamError::Unsupported);
        }
        self.streams.reset_at(id, code, reliable_size)
    }

    /// Asks the peer to stop sending on a stream; what has arrived is thrown away (RFC 9000, 3.5).
    ///
    /// # Errors
    ///
    /// When the stream is unknown, goes the other way, or has ended.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        self.streams.stop(id, code)
    }

    /// Copies bytes that have arrived in order into `buffer`.
    ///
    /// # Errors
    ///
    /// When the stream is unknown, goes the other way, or the peer has reset it.
    pub fn stream_read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<Read, StreamError> {
        self.streams.read(id, buffer)
    }

    /// Borrows bytes that have arrived in order, as far as they lie together; take them with [`Connection::consume`].
    /// An end without bytes is taken at once.
    ///
    /// An end that comes without bytes is shown once, and there is nothing to take then.
    ///
    /// # Errors
    ///
    /// As [`Connection::stream_read`].
    pub fn fill(&mut self, id: StreamId) -> Result<Fill<'_>, StreamError> {
        self.streams.fill(id)
    }

    /// Takes `length` of the bytes that [`Connection::fill`] has shown.
    ///
    /// # Errors
    ///
    /// As [`Connection::stream_read`].
    pub fn consume(&mut self, id: StreamId, length: usize) -> Result<(), StreamError> {
        self.streams.consume(id, length)
    }

    /// Sets who goes first when several streams have data: urgency 0 (first) to 7, and whether the stream shares its
    /// turn with others of the same urgency (RFC 9218, 4).
    ///
    /// # Errors
    ///
    /// When the stream is unknown, or goes the other way.
    pub fn set_priority(
        &mut self,
        id: StreamId,
        urgency: u8,
        incremental: bool,
    ) -> Result<(), StreamError> {
        self.streams
            .set_priority(id, Priority::new(urgency, incremental))
    }
}
