//! Frames in a row that hold the next bytes of one stream: what bulk transfer consists of.
//!
//! What is the same for all of them is worked out when the row begins, and what counts only as a sum when it ends.

use super::events::news;
use super::streams::Streams;
use super::table::Slot;
use crate::buffer::{ChunkPool, ReceiveBuffer, to_offset};
use crate::wire::{StreamFrame, StreamId};

/// See the module. It is the same to take a frame here and in [`Streams::on_stream`], but for
/// [`Streams::on_row`], which must follow.
#[derive(Debug)]
pub(crate) struct Row<'s> {
    id: StreamId,
    slot: Slot,
    buffer: &'s mut ReceiveBuffer,
    pool: &'s mut ChunkPool,
    /// The offset that the limits of the stream and of the connection let the peer send up to.
    limit: u64,
}

/// What a row has left to be counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowEnd(Slot);

impl Row<'_> {
    /// Takes a frame, if it is one of the row.
    #[inline]
    pub(crate) fn take(&mut self, frame: &StreamFrame<'_>) -> bool {
        let start = self.buffer.contiguous();
        let is_next = frame.id == self.id
            && frame.offset == start
            && !frame.fin
            && !frame.data.is_empty()
            && to_offset(frame.data.len()) <= self.limit.saturating_sub(start);
        if is_next {
            self.buffer.append(frame.data, self.pool);
        }
        is_next
    }

    /// Ends the row.
    pub(crate) const fn end(self) -> RowEnd {
        RowEnd(self.slot)
    }
}

impl Streams {
    /// Begins a row of the stream that was last named, if nothing stands against one.
    #[inline]
    pub(crate) fn row(&mut self) -> Option<Row<'_>> {
        let slot = self.table.last()?;
        let allowance = self.window.limit().saturating_sub(self.received);
        let stream = self.table.get_mut(slot)?;
        let receive = stream.receive.as_mut()?;
        let limit = receive.window.limit();
        let buffer = receive.in_order()?;
        Some(Row {
            id: stream.id,
            slot,
            limit: limit.min(buffer.contiguous().saturating_add(allowance)),
            buffer,
            pool: &mut self.pool,
        })
    }

    /// Counts what a row has taken, and tells of it.
    #[inline]
    pub(crate) fn on_row(&mut self, RowEnd(slot): RowEnd) {
        let stream = self.table.get_mut(slot);
        let Some(receive) = stream.and_then(|stream| stream.receive.as_mut()) else {
            return;
        };
        let growth = receive.on_appended();
        if growth > 0 {
            self.received = self.received.saturating_add(growth);
            self.tell(slot, news::READABLE);
        }
    }
}
