//! The transport as a session sees it.
//!
//! Streams are named by their IDs, bytes are borrowed both ways, and nothing waits: a call does what is possible now,
//! and a [`StreamEvent`] tells when more is.

use quic_transport::{Direction, StreamError, StreamId};

/// What can be read from a stream without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled<'a> {
    /// The next bytes of the stream, all or some of those that have arrived; empty when there are none.
    pub data: &'a [u8],
    /// Whether the stream ends behind `data`.
    pub end: bool,
}

/// The streams of a connection.
pub trait Transport {
    /// Opens a stream; `None` when the peer's limit is reached, and [`StreamEvent::Available`] follows.
    fn open(&mut self, direction: Direction) -> Option<StreamId>;

    /// Appends bytes to a stream and returns how many were taken; fewer than all of them mean that
    /// [`StreamEvent::Writable`] follows.
    ///
    /// # Errors
    ///
    /// When the stream takes nothing more.
    fn send(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError>;

    /// Ends the sending part of a stream.
    ///
    /// # Errors
    ///
    /// When it is already over.
    fn finish(&mut self, id: StreamId) -> Result<(), StreamError>;

    /// Abandons the sending part of a stream, unless it is already over.
    fn reset(&mut self, id: StreamId, code: u64);

    /// Asks the peer to send no more on a stream, and drops what has arrived, unless the receiving part is already over.
    fn stop(&mut self, id: StreamId, code: u64);

    /// Lends the next bytes of a stream.
    ///
    /// # Errors
    ///
    /// When the receiving part is over.
    fn fill(&mut self, id: StreamId) -> Result<Filled<'_>, StreamError>;

    /// Takes `count` bytes, lent by [`Self::fill`], off the stream. Taking the last one (none, if the stream ends without
    /// any more) ends the receiving part.
    fn consume(&mut self, id: StreamId, count: usize);

    /// Sets how urgent a stream is among others (0 first, 7 last), and whether it shares with those as urgent
    /// ([RFC 9218](https://www.rfc-editor.org/rfc/rfc9218)).
    fn set_priority(&mut self, id: StreamId, urgency: u8, incremental: bool);

    /// Closes the connection.
    fn close(&mut self, code: u64, reason: &'static str);
}

/// What happened to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The peer opened it.
    Opened(StreamId),
    /// Bytes, or the end, have arrived since it was last read.
    Readable(StreamId),
    /// It takes bytes again.
    Writable(StreamId),
    /// All that was sent has been acknowledged.
    Finished(StreamId),
    /// The peer abandoned its sending part.
    Reset {
        /// Which stream.
        id: StreamId,
        /// The peer's code.
        code: u64,
    },
    /// The peer wants no more of what we send.
    Stopped {
        /// Which stream.
        id: StreamId,
        /// The peer's code.
        code: u64,
    },
    /// More streams may be opened.
    Available(Direction),
}
