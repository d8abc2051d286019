//! What the application is told of its streams: each thing at most once until it is fetched, so that there are never
//! more events than a few for each stream.

use super::streams::Streams;
use super::table::Stream;
use crate::wire::{Direction, StreamId};

/// Something about a stream that the application may want to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The peer has opened the stream.
    Opened(StreamId),
    /// There is something to read: data, or the end.
    Readable(StreamId),
    /// There is room again, after less was accepted than was offered.
    Writable(StreamId),
    /// The peer has everything that was sent, the end included.
    Finished(StreamId),
    /// The peer has reset its sending part; what was not read is lost. Bytes that it has promised nevertheless
    /// (RESET_STREAM_AT) have been read before.
    Reset {
        /// The stream.
        id: StreamId,
        /// The peer's application code.
        code: u64,
    },
    /// The peer wants nothing more; our sending part has been reset with the same code.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's application code.
        code: u64,
    },
    /// The peer knows of our reset, whether we wanted it or the peer, so that the sending part has ended.
    ResetAcknowledged {
        /// The stream.
        id: StreamId,
        /// Bytes from its start on without a gap that are known to have arrived before the reset was acknowledged. The peer's
        /// application may have been given more, or fewer, unless RESET_STREAM_AT promised them.
        delivered: u64,
    },
    /// The peer allows more streams to be opened.
    Available(Direction),
}

/// One of the flags below.
pub(super) type News = u8;

/// What a stream has to tell; the lowest is told first.
pub(super) mod news {
    pub(in super::super) const OPENED: u8 = 1;
    pub(in super::super) const READABLE: u8 = 2;
    pub(in super::super) const RESET: u8 = 4;
    pub(in super::super) const STOPPED: u8 = 8;
    pub(in super::super) const WRITABLE: u8 = 16;
    /// The sending part has ended, in whichever way.
    pub(in super::super) const SENT: u8 = 32;
}

impl Streams {
    /// The next thing to tell the application.
    pub(crate) fn next_event(&mut self) -> Option<StreamEvent> {
        self.end_told();
        for (available, direction) in self
            .available
            .iter_mut()
            .zip([Direction::Bidirectional, Direction::Unidirectional])
        {
            if std::mem::take(available) {
                return Some(StreamEvent::Available(direction));
            }
        }
        loop {
            let slot = self.told.first(0)?;
            let Some(stream) = self.table.get_mut(slot) else {
                self.told.remove(slot);
                continue;
            };
            let Some(next) = stream.news.lowest() else {
                self.told.remove(slot);
                continue;
            };
            stream.news.remove(next);
            let id = stream.id;
            let event = match next {
                news::OPENED => StreamEvent::Opened(id),
                news::READABLE => StreamEvent::Readable(id),
                news::RESET => {
                    let code = stream.receive.as_mut().map_or(0, |receive| {
                        receive.on_reset_told();
                        receive.code()
                    });
                    StreamEvent::Reset { id, code }
                }
                news::STOPPED => {
                    let code = stream
                        .send
                        .as_ref()
                        .map_or(0, super::send::SendStream::code);
                    StreamEvent::Stopped { id, code }
                }
                news::WRITABLE => StreamEvent::Writable(id),
                _ => stream.sent_event(),
            };
            if stream.news.is_empty() {
                self.told.remove(slot);
                self.ending = Some(slot);
            }
            return Some(event);
        }
    }

    /// Forgets the stream of the last event if that was its end; until now its figures could be asked for.
    #[inline]
    pub(super) fn end_told(&mut self) {
        if let Some(slot) = self.ending.take() {
            self.end_if_over(slot);
        }
    }

    /// Whether [`Self::next_event`] has something.
    #[inline]
    pub(crate) fn has_event(&self) -> bool {
        !self.told.is_empty() || self.available.contains(&true)
    }
}

impl Stream {
    /// What has become of the sending part.
    fn sent_event(&self) -> StreamEvent {
        let id = self.id;
        match &self.send {
            Some(send) if !send.is_finished() => StreamEvent::ResetAcknowledged {
                id,
                delivered: send.delivered(),
            },
            Some(_) | None => StreamEvent::Finished(id),
        }
    }
}
