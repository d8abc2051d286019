//! The transport as a session sees it.
//!
//! Streams are named by their IDs, bytes are borrowed both ways, and nothing waits: a call does what is possible now,
//! and a [`StreamEvent`](quic_transport::StreamEvent) tells when more is.

use std::time::Instant;

use quic_transport::{Bytes, Connection, Direction, Fill, Side, StreamError, StreamId};

/// The streams of a connection.
pub trait Transport {
    /// Opens a stream; `None` when the peer's limit is reached, and [`StreamEvent::Available`](quic_transport::StreamEvent::Available) follows.
    fn open(&mut self, direction: Direction) -> Option<StreamId>;

    /// Appends bytes to a stream and returns how many were taken; fewer than all of them mean that
    /// [`StreamEvent::Writable`](quic_transport::StreamEvent::Writable) follows.
    ///
    /// # Errors
    ///
    /// When the stream takes nothing more.
    fn send(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError>;

    /// As [`Self::send`], but takes the bytes off the front of `data`. A transport that can keep them where they are does
    /// not copy them.
    ///
    /// # Errors
    ///
    /// As [`Self::send`].
    fn send_bytes(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, StreamError> {
        let taken = self.send(id, data)?;
        drop(data.split_to(taken.min(data.len())));
        Ok(taken)
    }

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
    fn fill(&mut self, id: StreamId) -> Result<Fill<'_>, StreamError>;

    /// Takes `count` bytes, lent by [`Self::fill`], off the stream. Taking the last one (none, if the stream ends without
    /// any more) ends the receiving part; after that, nothing happens.
    fn consume(&mut self, id: StreamId, count: usize);

    /// Sets how urgent a stream is among others (0 first, 7 last), and whether it shares with those as urgent
    /// ([RFC 9218](https://www.rfc-editor.org/rfc/rfc9218)).
    fn set_priority(&mut self, id: StreamId, urgency: u8, incremental: bool);

    /// Whether the peer may have opened this stream of its own by now, as far as our limit goes. A transport that doesn't
    /// know permits all.
    fn is_permitted(&self, _id: StreamId) -> bool {
        true
    }

    /// Has the session asked for its next event at a time, whatever else happens; `None` for no time. A transport
    /// without it leaves requests that never become whole to other timeouts.
    fn wake_at(&mut self, at: Option<Instant>) {
        let _ = at;
    }

    /// Whether what is sent now, or at a server what is read now, is early data that someone may send again
    /// ([RFC 8470](https://www.rfc-editor.org/rfc/rfc8470)).
    fn is_early(&self) -> bool {
        false
    }

    /// Whether early data was sent and accepted.
    fn is_early_data_accepted(&self) -> bool {
        false
    }

    /// What was [remembered](Self::remember) on the connection whose session a client resumes with early data.
    fn recalled(&self) -> Option<&[u8]> {
        None
    }

    /// Keeps the server's settings for the client's next connection.
    fn remember(&mut self, _settings: &[u8]) {}

    /// Closes the connection.
    fn close(&mut self, code: u64, reason: &'static str);
}

impl Transport for Connection {
    #[inline]
    fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.open(direction)
    }

    #[inline]
    fn send(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError> {
        self.stream_send(id, data)
    }

    fn send_bytes(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, StreamError> {
        self.stream_send_bytes(id, data)
    }

    #[inline]
    fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        self.finish(id)
    }

    fn reset(&mut self, id: StreamId, code: u64) {
        over(self.reset(id, code));
    }

    fn stop(&mut self, id: StreamId, code: u64) {
        over(self.stop(id, code));
    }

    #[inline]
    fn fill(&mut self, id: StreamId) -> Result<Fill<'_>, StreamError> {
        self.fill(id)
    }

    #[inline]
    fn consume(&mut self, id: StreamId, count: usize) {
        over(self.consume(id, count));
    }

    fn set_priority(&mut self, id: StreamId, urgency: u8, incremental: bool) {
        over(self.set_priority(id, urgency, incremental));
    }

    fn is_permitted(&self, id: StreamId) -> bool {
        self.is_permitted(id)
    }

    fn wake_at(&mut self, at: Option<Instant>) {
        self.set_alarm(at);
    }

    fn is_early(&self) -> bool {
        match self.side() {
            Side::Client => self.is_sending_early_data(),
            Side::Server => self.is_handshaking(),
        }
    }

    fn is_early_data_accepted(&self) -> bool {
        self.is_early_data_accepted()
    }

    fn recalled(&self) -> Option<&[u8]> {
        self.recalled()
    }

    fn remember(&mut self, settings: &[u8]) {
        let outcome = (*self).remember(settings);
        debug_assert!(outcome.is_ok(), "settings are short");
    }

    fn close(&mut self, code: u64, reason: &'static str) {
        self.close(code, reason.as_bytes());
    }
}

/// A stream that is over already needs no end.
const fn over(_: Result<(), StreamError>) {}
