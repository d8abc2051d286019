//! What the application does with streams ([RFC 9000, section 2.4](https://www.rfc-editor.org/rfc/rfc9000#section-2.4)).

use std::num::NonZeroU32;

use bytes::Bytes;

use super::events::news;
use super::output::owed;
use super::priority::Priority;
use super::receive::ReceiveStream;
use super::send::{ResetCause, SendStream};
use super::stats::StreamStats;
use super::streams::{Streams, place};
use super::table::{Slot, Stream};
use crate::buffer::{ChunkPool, SendBuffer, to_length, to_offset};
use crate::error::StreamError;
use crate::limits::LEAST_LENT;
use crate::wire::{Direction, StreamId};

/// What a read gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Bytes put into the buffer; 0 without the end means that nothing is there now.
    pub length: usize,
    /// Whether the stream ends behind them.
    pub fin: bool,
}

/// Bytes of a stream, where they lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill<'a> {
    /// The next bytes in order; empty without the end means that nothing is there now.
    pub data: &'a [u8],
    /// Whether the stream ends behind them.
    pub fin: bool,
}

impl Streams {
    /// Opens a stream; `None` when the peer allows no more now, and an event follows when it does.
    pub(crate) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let index = self.local.get_mut(place(direction))?.open()?;
        let id = StreamId::new(self.side, direction, index);
        self.create(id)?;
        Some(id)
    }

    /// How many streams could be opened now.
    #[cfg(test)]
    pub(crate) fn openable(&self, direction: Direction) -> u64 {
        self.local
            .get(place(direction))
            .map_or(0, crate::flow::LocalStreams::available)
    }

    /// Takes bytes to be sent; returns how many. When that is not all, an event follows once there is room.
    ///
    /// # Errors
    ///
    /// When the sending part is over, or there is none.
    pub(crate) fn send(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError> {
        self.accept(id, data.len(), |buffer, length, pool| {
            buffer.write(data.get(..length).unwrap_or_default(), pool);
        })
    }

    /// As [`Self::send`], but what is taken off the front of `data` isn't copied, unless it is little.
    ///
    /// # Errors
    ///
    /// As [`Self::send`].
    pub(crate) fn send_bytes(
        &mut self,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, StreamError> {
        self.accept(id, data.len(), |buffer, length, pool| {
            let taken = data.split_to(length);
            if length < LEAST_LENT {
                buffer.write(&taken, pool);
            } else {
                buffer.lend(taken);
            }
        })
    }

    /// Has `put` write as many of the `offered` bytes as there is room for.
    #[inline]
    fn accept(
        &mut self,
        id: StreamId,
        offered: usize,
        put: impl FnOnce(&mut SendBuffer, usize, &mut ChunkPool),
    ) -> Result<usize, StreamError> {
        let backlog = self.settings.backlog;
        let spare = self.settings.held.saturating_sub(self.held);
        let (slot, send, pool) = self.sending(id)?;
        send.writable()?;
        let room = send.room(backlog);
        let length = offered.min(to_length(room.min(spare)));
        put(&mut send.buffer, length, pool);
        if length < offered {
            send.waiting = true;
            if room > spare {
                self.waiting.push_back(slot, 0);
            }
        }
        self.held = self.held.saturating_add(to_offset(length));
        if length > 0 {
            self.schedule(slot);
        }
        Ok(length)
    }

    /// Ends the stream behind what was sent.
    ///
    /// # Errors
    ///
    /// When the sending part is over, or there is none.
    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        let (slot, send, _) = self.sending(id)?;
        send.writable()?;
        send.finish();
        self.schedule(slot);
        Ok(())
    }

    /// Gives up what has not arrived; nothing happens when everything has.
    ///
    /// # Errors
    ///
    /// When there is no such stream, or no sending part.
    pub(crate) fn reset(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let (slot, _, _) = self.sending(id)?;
        if self.reset_slot(slot, code, ResetCause::Application)
            && let Some(stream) = self.table.get_mut(slot)
        {
            stream.news.remove(news::WRITABLE);
        }
        Ok(())
    }

    /// Gives up what lies behind the first `reliable_size` bytes, of those that were taken to be sent. It may be done again
    /// with a smaller size.
    ///
    /// # Errors
    ///
    /// When there is no such stream, or no sending part, or it has ended, or the size was smaller before.
    pub(crate) fn reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), StreamError> {
        if reliable_size == 0 {
            return self.reset(id, code);
        }
        let (slot, send, _) = self.sending(id)?;
        let (held, in_flight) = send.reset_at(code, reliable_size)?;
        if let Some(stream) = self.table.get_mut(slot) {
            stream.news.remove(news::WRITABLE);
        }
        self.waiting.remove(slot);
        self.on_released(held, in_flight);
        self.schedule(slot);
        Ok(())
    }

    /// Wants nothing more of the stream, and asks the peer to stop.
    ///
    /// # Errors
    ///
    /// When there is nothing more, or no receiving part.
    pub(crate) fn stop(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let (slot, receive, pool) = self.receiving(id)?;
        let (unused, tell) = receive.stop(code, pool)?;
        receive.window.on_used(unused);
        if let Some(stream) = self.table.get_mut(slot) {
            stream.news.remove(news::READABLE);
            stream.news.remove(news::RESET);
        }
        self.on_used(unused);
        if tell {
            self.owe(slot, owed::STOP_SENDING);
        }
        self.end_if_over(slot);
        Ok(())
    }

    /// Moves bytes into `buffer`.
    ///
    /// # Errors
    ///
    /// When the peer has reset the stream, everything has been read, or there is no receiving part.
    pub(crate) fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<Read, StreamError> {
        let (slot, receive, pool) = self.receiving(id)?;
        if let Err(error) = receive.readable() {
            return Err(self.unreadable(slot, error));
        }
        let length = receive.buffer.read(buffer, pool);
        let fin = self.on_read(slot, to_offset(length));
        Ok(Read { length, fin })
    }

    /// The next bytes, where they lie; [`Self::consume`] forgets them. An end without bytes needs no more.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(crate) fn fill(&mut self, id: StreamId) -> Result<Fill<'_>, StreamError> {
        let (slot, receive, _) = self.receiving(id)?;
        if let Err(error) = receive.readable() {
            return Err(self.unreadable(slot, error));
        }
        if receive.buffer.readable() == 0 {
            let fin = self.on_read(slot, 0);
            return Ok(Fill { data: &[], fin });
        }
        let Some(receive) = self.table.get(slot).and_then(|s| s.receive.as_ref()) else {
            return Err(StreamError::UnknownStream);
        };
        let data = receive.buffer.fill();
        let fin = receive.is_complete() && to_offset(data.len()) == receive.buffer.readable();
        Ok(Fill { data, fin })
    }

    /// Forgets the next `length` bytes, or as many as there are in order.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(crate) fn consume(&mut self, id: StreamId, length: usize) -> Result<(), StreamError> {
        let (slot, receive, pool) = self.receiving(id)?;
        if let Err(error) = receive.readable() {
            return Err(self.unreadable(slot, error));
        }
        let used = receive.buffer.consume(length, pool);
        self.on_read(slot, used);
        Ok(())
    }

    /// Whether the peer may have opened this stream of its own.
    pub(crate) fn is_permitted(&self, id: StreamId) -> bool {
        let limits = self.remote.get(place(id.direction()));
        id.initiator() != self.side && limits.is_some_and(|limits| limits.permits(id.index()))
    }

    /// Sets when the stream gets its turn.
    ///
    /// # Errors
    ///
    /// When there is no such stream, or no sending part.
    pub(crate) fn set_priority(
        &mut self,
        id: StreamId,
        priority: Priority,
    ) -> Result<(), StreamError> {
        let (slot, send, _) = self.sending(id)?;
        send.priority = priority;
        self.schedule(slot);
        Ok(())
    }

    /// Sets for how much room the application is woken after it was refused bytes; `None` for half of what there may be.
    ///
    /// # Errors
    ///
    /// When there is no such stream, or no sending part.
    pub(crate) fn set_low_water_mark(
        &mut self,
        id: StreamId,
        mark: Option<NonZeroU32>,
    ) -> Result<(), StreamError> {
        let (slot, send, _) = self.sending(id)?;
        send.low_water = mark;
        self.tell_room(slot);
        Ok(())
    }

    /// What the stream has done so far.
    pub(crate) fn stats(&mut self, id: StreamId) -> Option<StreamStats> {
        let slot = self.table.find(id)?;
        self.table.get(slot).map(Stream::stats)
    }

    #[inline]
    fn sending(
        &mut self,
        id: StreamId,
    ) -> Result<(Slot, &mut SendStream, &mut ChunkPool), StreamError> {
        let slot = self.table.find(id).ok_or(StreamError::UnknownStream)?;
        let stream = self.table.get_mut(slot);
        let stream = stream.ok_or(StreamError::UnknownStream)?;
        let send = stream.send.as_mut().ok_or(StreamError::WrongDirection)?;
        Ok((slot, send, &mut self.pool))
    }

    #[inline]
    fn receiving(
        &mut self,
        id: StreamId,
    ) -> Result<(Slot, &mut ReceiveStream, &mut ChunkPool), StreamError> {
        let slot = self.table.find(id).ok_or(StreamError::UnknownStream)?;
        let stream = self.table.get_mut(slot);
        let stream = stream.ok_or(StreamError::UnknownStream)?;
        let receive = stream.receive.as_mut();
        let receive = receive.ok_or(StreamError::WrongDirection)?;
        Ok((slot, receive, &mut self.pool))
    }

    /// Passes `error` on; a reset is known to the application from then on.
    #[cold]
    fn unreadable(&mut self, slot: Slot, error: StreamError) -> StreamError {
        if let Some(stream) = self.table.get_mut(slot)
            && let Some(receive) = stream.receive.as_mut()
        {
            receive.on_reset_told();
            stream.news.remove(news::RESET);
            self.end_if_over(slot);
        }
        error
    }

    /// Gives credit back for `used` bytes; returns whether the end has been read with them.
    #[inline]
    fn on_read(&mut self, slot: Slot, used: u64) -> bool {
        let Some(stream) = self.table.get_mut(slot) else {
            return false;
        };
        let Some(receive) = stream.receive.as_mut() else {
            return false;
        };
        let due = receive.window.on_used(used) && receive.wants_credit();
        let fin = receive.end_if_read();
        let unread = receive.reset_if_read(&mut self.pool);
        if fin || unread.is_some() {
            stream.news.remove(news::READABLE);
        }
        self.window
            .on_used(used.saturating_add(unread.unwrap_or(0)));
        if unread.is_some() {
            self.tell(slot, news::RESET);
        }
        if due {
            self.tuning.push_back(slot, 0);
        }
        if fin {
            self.end_if_over(slot);
        }
        fin
    }
}
