//! Frames from the peer ([RFC 9000, sections 19.4 to 19.14](https://www.rfc-editor.org/rfc/rfc9000#section-19.4)):
//! everything that it may not do is an error here, checked before anything changes.

use super::events::news;
use super::output::owed;
use super::send::ResetCause;
use super::streams::{Streams, place};
use super::table::Slot;
use crate::buffer::to_offset;
use crate::error::Error;
use crate::flow::Place;
use crate::wire::{Direction, Frame, MAX_STREAMS, StreamId, TransportErrorCode as Code};

impl Streams {
    /// STREAM.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR, STREAM_LIMIT_ERROR, FINAL_SIZE_ERROR, FLOW_CONTROL_ERROR, FRAME_ENCODING_ERROR, and
    /// PROTOCOL_VIOLATION for too many pieces.
    #[inline]
    pub(crate) fn on_stream(
        &mut self,
        id: StreamId,
        offset: u64,
        data: &[u8],
        fin: bool,
    ) -> Result<(), Error> {
        let frame = Frame::Stream {
            id,
            offset,
            data,
            fin,
        }
        .frame_type();
        let Some(slot) = self.named_by_sender(id, frame)? else {
            return Ok(());
        };
        let Some(end) = offset
            .checked_add(to_offset(data.len()))
            .filter(|end| *end <= quic_common::MAX_VARINT)
        else {
            let reason = "a stream beyond 2^62 - 1 bytes";
            return Err(Error::new(Code::FRAME_ENCODING_ERROR, frame, reason));
        };
        let Some(receive) = self
            .table
            .get_mut(slot)
            .and_then(|stream| stream.receive.as_mut())
        else {
            return Ok(());
        };
        let growth = receive.check(end, fin, frame)?;
        if growth > self.window.limit().saturating_sub(self.received) {
            let reason = "more than the connection's limit";
            return Err(Error::new(Code::FLOW_CONTROL_ERROR, frame, reason));
        }
        self.received = self.received.saturating_add(growth);
        let ready = (receive.buffer.contiguous(), receive.is_complete());
        let unused = receive.on_data(offset, data, fin, frame, &mut self.pool)?;
        let now_ready = (receive.buffer.contiguous(), receive.is_complete());
        let over = receive.is_over();
        self.on_used(unused);
        if now_ready != ready {
            self.tell(slot, news::READABLE);
        } else if over {
            self.end_if_over(slot);
        }
        Ok(())
    }

    /// RESET_STREAM.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR, STREAM_LIMIT_ERROR, FINAL_SIZE_ERROR, FLOW_CONTROL_ERROR.
    pub(crate) fn on_reset_stream(
        &mut self,
        id: StreamId,
        code: u64,
        final_size: u64,
    ) -> Result<(), Error> {
        let frame = Frame::ResetStream {
            id,
            code,
            final_size,
        }
        .frame_type();
        self.on_any_reset(id, code, (final_size, 0), frame)
    }

    /// RESET_STREAM_AT, whose reliable size the decoder has bounded by the final size.
    ///
    /// # Errors
    ///
    /// As [`Self::on_reset_stream`].
    pub(crate) fn on_reset_stream_at(
        &mut self,
        id: StreamId,
        code: u64,
        final_size: u64,
        reliable_size: u64,
    ) -> Result<(), Error> {
        let frame = Frame::ResetStreamAt {
            id,
            code,
            final_size,
            reliable_size,
        }
        .frame_type();
        self.on_any_reset(id, code, (final_size, reliable_size), frame)
    }

    fn on_any_reset(
        &mut self,
        id: StreamId,
        code: u64,
        (final_size, reliable_size): (u64, u64),
        frame: u64,
    ) -> Result<(), Error> {
        let Some(slot) = self.named_by_sender(id, frame)? else {
            return Ok(());
        };
        let Some(stream) = self.table.get_mut(slot) else {
            return Ok(());
        };
        let Some(receive) = stream.receive.as_mut() else {
            return Ok(());
        };
        let growth = receive.check(final_size, true, frame)?;
        receive.check_code(code, reliable_size > 0, frame)?;
        if growth > self.window.limit().saturating_sub(self.received) {
            let reason = "a final size beyond the connection's limit";
            return Err(Error::new(Code::FLOW_CONTROL_ERROR, frame, reason));
        }
        self.received = self.received.saturating_add(growth);
        let (unused, tell) = if reliable_size == 0 {
            receive.on_reset(code, final_size, &mut self.pool)
        } else {
            receive.on_reset_at(code, final_size, reliable_size, &mut self.pool)
        };
        if tell {
            stream.news.remove(news::READABLE);
        }
        self.on_used(unused);
        if tell {
            self.tell(slot, news::RESET);
        } else {
            self.end_if_over(slot);
        }
        Ok(())
    }

    /// STOP_SENDING: answered with RESET_STREAM and the same code (RFC 9000, 3.5).
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR, STREAM_LIMIT_ERROR.
    pub(crate) fn on_stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), Error> {
        let frame = Frame::StopSending { id, code }.frame_type();
        if let Some(slot) = self.named_by_receiver(id, frame)?
            && self.reset_slot(slot, code, ResetCause::Stopped)
        {
            if let Some(stream) = self.table.get_mut(slot) {
                stream.news.remove(news::WRITABLE);
            }
            self.tell(slot, news::STOPPED);
        }
        Ok(())
    }

    /// MAX_DATA.
    pub(crate) const fn on_max_data(&mut self, limit: u64) {
        self.credit.on_limit(limit);
    }

    /// MAX_STREAM_DATA.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR, STREAM_LIMIT_ERROR.
    pub(crate) fn on_max_stream_data(&mut self, id: StreamId, limit: u64) -> Result<(), Error> {
        let frame = Frame::MaxStreamData { id, limit }.frame_type();
        if let Some(slot) = self.named_by_receiver(id, frame)?
            && let Some(stream) = self.table.get_mut(slot)
            && let Some(send) = stream.send.as_mut()
            && send.credit.on_limit(limit)
        {
            self.on_credit(slot);
        }
        Ok(())
    }

    /// MAX_STREAMS, whose limit the decoder has bounded.
    pub(crate) fn on_max_streams(&mut self, direction: Direction, limit: u64) {
        let index = place(direction);
        if let Some(local) = self.local.get_mut(index)
            && local.credit().on_limit(limit.min(MAX_STREAMS))
            && let Some(available) = self.available.get_mut(index)
        {
            *available = true;
            if self.has_barred {
                self.admit_barred();
            }
        }
    }

    /// STREAM_DATA_BLOCKED: credit follows what the application reads, so nothing is to be done, but the stream may be
    /// new, or not the peer's to send on.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR, STREAM_LIMIT_ERROR.
    pub(crate) fn on_stream_data_blocked(&mut self, id: StreamId, limit: u64) -> Result<(), Error> {
        let frame = Frame::StreamDataBlocked { id, limit }.frame_type();
        self.named_by_sender(id, frame).map(drop)
    }

    /// Gives the stream up, if it has not ended; returns whether it did.
    pub(super) fn reset_slot(&mut self, slot: Slot, code: u64, cause: ResetCause) -> bool {
        let Some(send) = self.table.get_mut(slot).and_then(|s| s.send.as_mut()) else {
            return false;
        };
        let Some((held, in_flight)) = send.reset(code, cause, &mut self.pool) else {
            return false;
        };
        self.scheduled.remove(slot);
        self.waiting.remove(slot);
        self.on_released(held, in_flight);
        self.owe(slot, owed::RESET_STREAM);
        true
    }

    /// The stream that a frame of its sender names; `None` when it has ended.
    #[inline]
    fn named_by_sender(&mut self, id: StreamId, frame: u64) -> Result<Option<Slot>, Error> {
        if let Some(slot) = self.table.find(id)
            && (id.direction().is_bidirectional() || id.initiator() != self.side)
        {
            return Ok(Some(slot));
        }
        if id.direction() == Direction::Unidirectional && id.initiator() == self.side {
            let reason = "a frame of the sender, for a stream that only we send on";
            return Err(Error::new(Code::STREAM_STATE_ERROR, frame, reason));
        }
        self.named(id, frame)
    }

    /// The stream that a frame of its receiver names; `None` when it has ended.
    fn named_by_receiver(&mut self, id: StreamId, frame: u64) -> Result<Option<Slot>, Error> {
        if id.direction() == Direction::Unidirectional && id.initiator() != self.side {
            let reason = "a frame of the receiver, for a stream that only the peer sends on";
            return Err(Error::new(Code::STREAM_STATE_ERROR, frame, reason));
        }
        if let Some(slot) = self.table.find(id) {
            return Ok(Some(slot));
        }
        self.named(id, frame)
    }

    fn named(&mut self, id: StreamId, frame: u64) -> Result<Option<Slot>, Error> {
        let index = place(id.direction());
        if id.initiator() == self.side {
            let opened = self
                .local
                .get(index)
                .is_some_and(|local| local.is_opened(id.index()));
            if opened {
                return Ok(None);
            }
            let reason = "a stream of ours that is not open yet";
            return Err(Error::new(Code::STREAM_STATE_ERROR, frame, reason));
        }
        let place = self
            .remote
            .get_mut(index)
            .map_or(Place::Known, |remote| remote.on_named(id.index()));
        match place {
            Place::New => Ok(self.create(id)),
            Place::Known => Ok(None),
            Place::BeyondLimit => {
                let reason = "more streams than the limit";
                Err(Error::new(Code::STREAM_LIMIT_ERROR, frame, reason))
            }
        }
    }
}
