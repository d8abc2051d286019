//! The sending part of one stream: its bytes, the peer's credit, and how it ends.

use std::num::NonZeroU32;

use super::partial::{Partial, ResetAt};
use super::priority::{Demand, Priority};
use super::send_state::{SendEvent, SendState};
use crate::buffer::{ChunkPool, SendBuffer, to_length, to_offset};
use crate::error::StreamError;
use crate::flow::SendCredit;
use crate::limits::{LEAST_BACKLOG, LEAST_FRAGMENT};

/// Where the FIN stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fin {
    /// The application may write more.
    #[default]
    Open,
    /// To be sent, for the first time or again.
    Owed,
    /// In flight.
    Sent,
    /// The peer has it.
    Acked,
}

/// Why the stream was reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ResetCause {
    /// The application wanted it.
    #[default]
    Application,
    /// The peer asked for it with STOP_SENDING.
    Stopped,
}

/// The part of the stream that is to be sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) offset: u64,
    pub(super) length: usize,
    /// Whether it was never sent before, and so uses credit.
    pub(super) new: bool,
    /// Whether the FIN follows it.
    pub(super) fin: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SendStream {
    pub(super) buffer: SendBuffer,
    pub(super) credit: SendCredit,
    /// The application's code, once reset.
    code: u64,
    pub(super) priority: Priority,
    state: SendState,
    fin: Fin,
    cause: ResetCause,
    /// The stream was given up, but for its beginning.
    partial: Option<Box<Partial>>,
    /// The application was refused bytes and waits to be told that there is room.
    pub(super) waiting: bool,
    /// For how many bytes, unless for half of what there may be.
    pub(super) low_water: Option<NonZeroU32>,
}

impl SendStream {
    /// A stream that may carry `limit` bytes for now.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            credit: SendCredit::new(limit),
            ..Self::default()
        }
    }

    /// Whether the application may write or finish.
    pub(super) const fn writable(&self) -> Result<(), StreamError> {
        if self.cause_stopped() {
            return Err(StreamError::Stopped { code: self.code });
        }
        if matches!(self.state, SendState::Ready | SendState::Send) && matches!(self.fin, Fin::Open)
        {
            return Ok(());
        }
        Err(StreamError::Finished)
    }

    /// How many bytes may be written now, so that no more than `backlog` wait to be sent.
    ///
    /// Less is taken while the peer gives little credit: what can't be sent is better kept by the application.
    #[inline]
    pub(super) fn room(&self, backlog: u64) -> u64 {
        self.allowance(backlog).saturating_sub(self.buffer.unsent())
    }

    /// If there is enough room again to wake the application: how much is enough.
    ///
    /// Nothing that waits to be sent is always enough: a mark that the peer's credit keeps out of reach stops nothing.
    #[inline]
    pub(super) fn enough_room(&self, backlog: u64) -> Option<u64> {
        let most = self.allowance(backlog);
        let mark = self
            .low_water
            .map_or(most / 2 + 1, |mark| u64::from(mark.get()).min(most));
        (self.room(backlog) >= mark).then_some(mark)
    }

    /// Whether lost data, a FIN or new data can go out now.
    #[inline]
    pub(super) fn demand(&self) -> Option<Demand> {
        if !self.state.is_sending() {
            return None;
        }
        if self.buffer.has_lost() {
            return Some(Demand::Again);
        }
        let unsent = self.buffer.unsent();
        if unsent == 0 {
            return (self.fin == Fin::Owed).then_some(Demand::Again);
        }
        let available = self.credit.available();
        let sliver = available < LEAST_FRAGMENT && available < unsent;
        if available == 0 || (sliver && !self.buffer.is_sent_acked()) {
            return None;
        }
        Some(Demand::New)
    }

    /// Whether the stream's credit is what keeps it from sending.
    #[inline]
    pub(super) const fn is_blocked(&self) -> bool {
        self.buffer.unsent() > 0 && self.credit.available() == 0 && self.state.is_sending()
    }

    /// What would be sent next: lost bytes, or new ones, of which there may be `credit`.
    #[inline]
    pub(super) fn offer(&self, credit: u64) -> Offer {
        let new = || {
            let credit = self.credit.available().min(credit);
            let start = self.buffer.sent();
            (start..start + self.buffer.unsent().min(credit), true)
        };
        let lost = self.buffer.first_lost();
        let (range, new) = lost.map_or_else(new, |lost| (lost, false));
        Offer {
            offset: range.start,
            length: to_length(range.end - range.start),
            new,
            fin: self.fin != Fin::Open && range.end == self.buffer.end(),
        }
    }

    /// Takes `length` bytes of an offer, and the FIN if `fin` says so, which only the whole offer may.
    #[inline]
    pub(super) fn take(&mut self, offer: Offer, length: usize, fin: bool) {
        debug_assert!(length == offer.length || !fin, "a FIN before the end");
        let chunk = if offer.new {
            self.credit.take(to_offset(length));
            self.buffer.take_new(length)
        } else {
            self.buffer.take_lost(length)
        };
        debug_assert!(
            chunk.is_none_or(|chunk| (chunk.offset, chunk.length) == (offer.offset, length)),
            "what was offered is taken"
        );
        if fin && self.fin != Fin::Acked {
            self.fin = Fin::Sent;
        }
        self.step(if fin { SendEvent::Fin } else { SendEvent::Data });
    }

    /// The application has written everything.
    pub(super) const fn finish(&mut self) {
        self.fin = Fin::Owed;
    }

    /// Gives up what has not arrived. Returns how many bytes were held, and how many of them in flight; `None` when
    /// the stream has ended already.
    pub(super) fn reset(
        &mut self,
        code: u64,
        cause: ResetCause,
        pool: &mut ChunkPool,
    ) -> Option<(u64, u64)> {
        self.state = self.state.after(SendEvent::Reset).ok()?;
        self.code = code;
        self.cause = cause;
        self.waiting = false;
        if let Some(partial) = &mut self.partial {
            partial.on_size(self.buffer.sent());
        }
        let in_flight = self.buffer.unacked();
        let held = in_flight.saturating_add(self.buffer.unsent());
        self.buffer.give_up(pool);
        Some((held, in_flight))
    }

    /// Gives up what lies behind the first `reliable` bytes; these are delivered. Later they may become fewer, never more.
    /// Returns how many bytes were held, and how many of them in flight, that no longer are.
    ///
    /// # Errors
    ///
    /// When the stream has ended, or was given up with fewer bytes.
    pub(super) fn reset_at(&mut self, code: u64, reliable: u64) -> Result<(u64, u64), StreamError> {
        if self.cause_stopped() {
            return Err(StreamError::Stopped { code: self.code });
        }
        let sent = self.buffer.sent();
        let Ok(state) = self.state.after(SendEvent::ResetAt) else {
            return Err(StreamError::Finished);
        };
        if let Some(partial) = &mut self.partial {
            partial
                .reduce(reliable, sent)
                .ok_or(StreamError::Finished)?;
        } else {
            let reliable = reliable.min(self.buffer.end());
            self.partial = Some(Box::new(Partial::new(code, reliable, sent)));
        }
        self.state = state;
        // A FIN would have all data waited for.
        self.fin = Fin::Open;
        self.waiting = false;
        let (unsent, in_flight) = (self.buffer.unsent(), self.buffer.unacked());
        self.buffer.truncate(reliable);
        let in_flight = in_flight.saturating_sub(self.buffer.unacked());
        let unsent = unsent.saturating_sub(self.buffer.unsent());
        Ok((in_flight.saturating_add(unsent), in_flight))
    }

    /// What RESET_STREAM_AT is to say, once everything that it leaves has been sent: the final size covers it, and so it
    /// is within the peer's credit.
    pub(super) fn reset_at_frame(&self) -> Option<ResetAt> {
        let partial = self.partial.as_ref()?;
        (self.state.is_sending() && self.buffer.unsent() == 0)
            .then(|| partial.owed(self.buffer.sent()))
            .flatten()
    }

    pub(super) fn on_reset_at_sent(&mut self) {
        if let Some(partial) = &mut self.partial {
            partial.on_sent();
        }
    }

    /// RESET_STREAM_AT arrived. Returns whether the part has ended with it.
    pub(super) fn on_reset_at_acked(&mut self, reliable: u64, pool: &mut ChunkPool) -> bool {
        if let Some(partial) = &mut self.partial {
            partial.on_acked(reliable);
        }
        self.end_if_acked(pool)
    }

    pub(super) fn on_reset_at_lost(&mut self, reliable: u64) {
        if let Some(partial) = &mut self.partial {
            partial.on_lost(reliable);
        }
    }

    /// What RESET_STREAM says: the code and the final size.
    pub(super) fn reset_frame(&self) -> Option<(u64, u64)> {
        match self.state {
            SendState::ResetSent => {
                let sent = self.buffer.sent();
                // Code and final size don't change once they may have been told.
                let told = self.partial.as_ref().map(|partial| partial.told(sent));
                Some(told.unwrap_or((self.code, sent)))
            }
            SendState::Ready
            | SendState::Send
            | SendState::DataSent
            | SendState::DataReceived
            | SendState::ResetReceived => None,
        }
    }

    /// The code that the peer stopped the stream with, or that we reset it with.
    pub(super) const fn code(&self) -> u64 {
        self.code
    }

    /// A STREAM frame arrived. Returns how many bytes the peer has that it was not known to have.
    #[inline]
    pub(super) fn on_acked(
        &mut self,
        offset: u64,
        length: u32,
        fin: bool,
        pool: &mut ChunkPool,
    ) -> u64 {
        let end = offset.saturating_add(u64::from(length));
        if !self.state.is_sending() {
            if self.state == SendState::ResetSent {
                // It is held no more, but its arrival counts.
                self.buffer.on_acked(offset..end, pool);
            }
            return 0;
        }
        let fresh = self.buffer.on_acked(offset..end, pool);
        if fin && self.partial.is_none() {
            self.fin = Fin::Acked;
        }
        self.end_if_acked(pool);
        fresh
    }

    /// Ends the part if the peer has everything that it is to have. Returns whether that is so.
    #[inline]
    fn end_if_acked(&mut self, pool: &mut ChunkPool) -> bool {
        let is_end_acked = match &self.partial {
            None => self.fin == Fin::Acked,
            Some(partial) => partial.is_acked(),
        };
        let ends = is_end_acked && self.buffer.is_acked() && self.state.is_sending();
        if ends {
            self.step(SendEvent::AllAcked);
            self.buffer.discard(pool);
        }
        ends
    }

    /// A STREAM frame was lost.
    pub(super) fn on_lost(&mut self, offset: u64, length: u32, fin: bool) {
        if !self.state.is_sending() {
            return;
        }
        self.buffer
            .on_lost(offset..offset.saturating_add(u64::from(length)));
        if fin && self.fin == Fin::Sent {
            self.fin = Fin::Owed;
        }
    }

    /// What was sent has been rejected: everything written is new again, under this limit.
    pub(super) fn restart(&mut self, limit: u64) {
        self.buffer.restart();
        if !self.state.is_sending() {
            self.buffer.truncate(0);
        }
        self.credit = SendCredit::new(limit);
        if self.fin == Fin::Sent {
            self.fin = Fin::Owed;
        }
        self.step(SendEvent::Rejected);
    }

    /// RESET_STREAM arrived.
    pub(super) fn on_reset_acked(&mut self) {
        self.step(SendEvent::ResetAcked);
    }

    /// Bytes from the start on without a gap that are known to have arrived.
    pub(super) const fn delivered(&self) -> u64 {
        self.buffer.acked_in_order()
    }

    /// Whether everything, FIN included, is known to have arrived.
    #[inline]
    pub(super) fn is_finished(&self) -> bool {
        self.state == SendState::DataReceived && self.partial.is_none()
    }

    /// Whether the part has ended for both sides.
    #[inline]
    pub(super) const fn is_over(&self) -> bool {
        self.state.is_terminal()
    }

    const fn cause_stopped(&self) -> bool {
        matches!(
            (self.state, self.cause),
            (
                SendState::ResetSent | SendState::ResetReceived,
                ResetCause::Stopped
            )
        )
    }

    #[inline]
    fn allowance(&self, backlog: u64) -> u64 {
        self.credit.available().max(LEAST_BACKLOG).min(backlog)
    }

    #[inline]
    fn step(&mut self, event: SendEvent) {
        match self.state.after(event) {
            Ok(state) => self.state = state,
            Err(_) => debug_assert!(false, "{event:?} in {:?}", self.state),
        }
    }
}
