//! The application's side of the streams.

use std::num::NonZeroU32;

use bytes::Bytes;

use super::Connection;
use crate::{
    error::StreamError,
    stream::{Fill, Priority, Read, StreamStats},
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

    /// Takes as much off the front of `data` as fits, and returns how much that was, in bytes; what is left in `data` is for
    /// later, as after [`Connection::stream_send`].
    ///
    /// What is taken isn't copied before it is put into packets: it stays where it is until the peer has acknowledged it,
    /// and is let go of at once when the stream is reset or stopped. Pieces of less than 4096 bytes are copied all the same,
    /// which costs less. The same limits hold as for bytes that are copied, and what is lent counts in the same way as
    /// memory that the connection holds; but a piece of a larger buffer keeps all of that buffer alive.
    ///
    /// # Errors
    ///
    /// As [`Connection::stream_send`]; `data` is as it was.
    pub fn stream_send_bytes(
        &mut self,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, StreamError> {
        self.streams.send_bytes(id, data)
    }

    /// Ends the sending part of a stream; everything sent so far is delivered first.
    ///
    /// # Errors
    ///
    /// As [`Connection::stream_send`].
    pub fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        self.streams.finish(id)
    }

    /// Gives up the sending part of a stream, with an application's code below 2^62 (RFC 9000, 3.5). When the peer knows,
    /// [`StreamEvent::ResetAcknowledged`](crate::StreamEvent::ResetAcknowledged) tells how much of it has arrived.
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

    /// Sets how many bytes a stream has room for when [`StreamEvent::Writable`](crate::StreamEvent::Writable) tells so, after
    /// it took less than it was offered. 0, and so it is at first, means half of what it takes at most: that is 256 KiB, or
    /// what the peer lets through, but 4 KiB at least. No room is waited for that there can't be: a stream with nothing left
    /// to send tells so at once.
    ///
    /// # Errors
    ///
    /// When the stream is unknown, or goes the other way.
    pub fn set_low_water_mark(&mut self, id: StreamId, bytes: u32) -> Result<(), StreamError> {
        self.streams.set_low_water_mark(id, NonZeroU32::new(bytes))
    }

    /// What a stream has done so far. Those of one that has ended can be asked for when its last event has been fetched, until
    /// the next one is, or output.
    #[must_use]
    pub fn stream_stats(&mut self, id: StreamId) -> Option<StreamStats> {
        self.streams.stats(id)
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

    /// Whether the peer may have opened this stream of its own by now, as far as our limit on them goes (RFC 9000, 4.6).
    #[must_use]
    pub fn is_permitted(&self, id: StreamId) -> bool {
        self.streams.is_permitted(id)
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
