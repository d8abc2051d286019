//! How many streams of one direction each end lets the other open
//! ([RFC 9000, section 4.6](https://www.rfc-editor.org/rfc/rfc9000#section-4.6)).
//!
//! A stream of the peer counts until both ends and the application are done with it; only then is a new one allowed.
//! Streams that the peer has skipped over are open, but nothing is kept for them until a frame names them.

use crate::buffer::RangeSet;
use crate::flow::SendCredit;
use crate::wire::MAX_STREAMS;

/// The streams that we open, by the peer's limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LocalStreams {
    credit: SendCredit,
    opened: u64,
}

impl LocalStreams {
    /// The index for a new stream; without one, STREAMS_BLOCKED is owed once for this limit.
    pub(crate) fn open(&mut self) -> Option<u64> {
        if self.credit.available() == 0 {
            self.credit.on_blocked();
            return None;
        }
        let index = self.opened;
        self.credit.take(1);
        self.opened += 1;
        Some(index)
    }

    /// Begins anew with another limit; returns whether more streams are open than it permits.
    pub(crate) const fn restart(&mut self, limit: u64) -> bool {
        self.credit = SendCredit::restarted(limit, self.opened);
        self.is_over()
    }

    /// Whether more streams are open than the peer permits, after a [restart](Self::restart).
    pub(crate) const fn is_over(&self) -> bool {
        self.opened > self.credit.limit()
    }

    /// Whether the peer permits the stream `index`.
    pub(crate) const fn is_permitted(&self, index: u64) -> bool {
        index < self.credit.limit()
    }

    /// Whether the stream `index` has been opened.
    #[inline]
    pub(crate) const fn is_opened(&self, index: u64) -> bool {
        index < self.opened
    }

    /// How many more may be opened now.
    #[cfg(test)]
    pub(crate) const fn available(&self) -> u64 {
        self.credit.available()
    }

    /// The peer's limit and whether we are stopped by it.
    pub(crate) const fn credit(&mut self) -> &mut SendCredit {
        &mut self.credit
    }

    /// See [`SendCredit::blocked_owed`].
    pub(crate) fn blocked_owed(&self) -> Option<u64> {
        self.credit.blocked_owed()
    }
}

/// Where a stream of the peer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Open, and this is the first frame that names it.
    New,
    /// Named before: in the table, or ended and forgotten.
    Known,
    /// Beyond what we allow.
    BeyondLimit,
}

/// The streams that the peer opens, by our limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerStreams {
    /// What the peer has been told.
    limit: u64,
    /// How many may be open at once.
    window: u64,
    /// How many are over and done.
    ended: u64,
    /// One more than the highest index that a frame has named.
    opened: u64,
    /// Indexes below `opened` that no frame has named.
    skipped: RangeSet,
    owed: bool,
}

impl PeerStreams {
    /// Allows `window` streams at once, as the transport parameters say.
    pub(crate) fn new(window: u64) -> Self {
        let window = window.min(MAX_STREAMS);
        Self {
            limit: window,
            window,
            ..Self::default()
        }
    }

    /// Whether the peer may have opened the stream `index`.
    pub(crate) const fn permits(&self, index: u64) -> bool {
        index < self.limit
    }

    /// A frame names the stream `index`.
    #[inline]
    pub(crate) fn on_named(&mut self, index: u64) -> Place {
        if !self.permits(index) {
            return Place::BeyondLimit;
        }
        if index >= self.opened {
            self.skipped.insert(self.opened..index);
            self.opened = index + 1;
            return Place::New;
        }
        if self.skipped.is_empty() || !self.skipped.contains(index) {
            return Place::Known;
        }
        self.skipped.remove(index..index + 1);
        Place::New
    }

    /// A stream is over, for the application too.
    pub(crate) const fn on_ended(&mut self) {
        self.ended = self.ended.saturating_add(1);
        if self.next_limit().saturating_sub(self.limit) >= self.window.div_ceil(4) {
            self.owed = true;
        }
    }

    /// Whether MAX_STREAMS is owed.
    #[inline]
    pub(crate) const fn is_owed(&self) -> bool {
        self.owed
    }

    /// The limit that MAX_STREAMS would carry now.
    pub(crate) const fn next_limit(&self) -> u64 {
        let limit = self.ended.saturating_add(self.window);
        if limit < MAX_STREAMS {
            limit
        } else {
            MAX_STREAMS
        }
    }

    /// MAX_STREAMS with [`Self::next_limit`] has been sent.
    pub(crate) const fn on_sent(&mut self) {
        self.limit = self.next_limit();
        self.owed = false;
    }

    /// MAX_STREAMS was lost: the limit as it is now is owed.
    pub(crate) const fn on_lost(&mut self) {
        self.owed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{LocalStreams, PeerStreams, Place};

    #[test]
    fn the_limit_stops_opening_and_is_said_once() {
        let mut streams = LocalStreams::default();
        assert!(streams.credit().on_limit(2));
        assert_eq!([streams.open(), streams.open()], [Some(0), Some(1)]);
        assert_eq!(streams.blocked_owed(), None);
        assert_eq!(streams.open(), None);
        assert_eq!(streams.blocked_owed(), Some(2));
        assert!(streams.is_opened(1) && !streams.is_opened(2));
    }

    #[test]
    fn the_last_allowed_stream_opens_and_the_next_does_not() {
        let mut streams = PeerStreams::new(100);
        assert_eq!(streams.on_named(100), Place::BeyondLimit);
        assert_eq!(streams.on_named(99), Place::New);
        assert_eq!(streams.on_named(99), Place::Known);
    }

    /// RFC 9000, 3.2: streams of the same type with lower numbers are open too.
    #[test]
    fn skipped_streams_are_new_once() {
        let mut streams = PeerStreams::new(10);
        assert_eq!(streams.on_named(5), Place::New);
        for index in [3, 0, 4, 1, 2] {
            assert_eq!(streams.on_named(index), Place::New);
            assert_eq!(streams.on_named(index), Place::Known);
        }
        assert_eq!(streams.on_named(6), Place::New);
    }

    #[test]
    fn credit_comes_back_by_the_quarter_of_ended_streams() {
        let mut streams = PeerStreams::new(8);
        streams.on_ended();
        assert!(!streams.is_owed());
        streams.on_ended();
        assert!(streams.is_owed());
        assert_eq!(streams.on_named(8), Place::BeyondLimit);
        assert_eq!(streams.next_limit(), 10);
        streams.on_sent();
        assert!(!streams.is_owed());
        assert_eq!(streams.on_named(9), Place::New);
        streams.on_lost();
        assert!(streams.is_owed());
    }

    #[test]
    fn no_streams_allowed_means_none() {
        let mut streams = PeerStreams::new(0);
        assert_eq!(streams.on_named(0), Place::BeyondLimit);
        streams.on_ended();
        assert_eq!(PeerStreams::new(u64::MAX).next_limit(), super::MAX_STREAMS);
    }
}
