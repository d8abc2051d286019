//! How long a request may take to come to the end of a field section: a client that sends it drop by drop keeps a stream,
//! and what a server holds for it, from others.
//!
//! Only requests whose section doesn't come in one piece are looked after at all.

use std::collections::VecDeque;
use std::time::Instant;

use quic_transport::StreamId;

use super::exchange::{Exchanges, Slot};
use super::{Session, Signal};
use crate::error::{Code, Error};
use crate::limits::SECTION_TIMEOUT;
use crate::transport::Transport;

/// Entries that need no sweep, whether they are of use or not.
const SPARE_ENTRIES: usize = 64;

/// The requests that are waited for, in the order in which that began; some may be complete by now, or gone.
#[derive(Debug, Default)]
pub(super) struct Patience {
    waiting: VecDeque<(Instant, StreamId)>,
    /// When the transport has been asked to wake us.
    alarm: Option<Instant>,
}

impl Patience {
    /// Gives back the room that isn't needed now.
    pub(super) fn rest(&mut self) {
        self.waiting.shrink_to_fit();
    }
}

impl Session {
    /// A field section has begun, or is to be the first thing, and there is more to come of it.
    #[cold]
    pub(super) fn await_section(&mut self, slot: Slot, now: Instant) {
        let Some(exchange) = self.exchanges.at(slot).filter(|e| e.deadline.is_none()) else {
            return;
        };
        let id = exchange.id;
        let Some(end) = now.checked_add(SECTION_TIMEOUT) else {
            return;
        };
        exchange.deadline = Some(end);
        let waiting = &mut self.patience.waiting;
        waiting.push_back((end, id));
        if waiting.len() > 2 * self.exchanges.len() + SPARE_ENTRIES {
            let exchanges = &mut self.exchanges;
            waiting.retain(|(end, id)| awaited(exchanges, *end, *id).is_some());
        }
    }

    /// Gives up requests that have taken too long, and sees to it that the next one isn't forgotten. The application is told
    /// of one that it knows of; then there may be more.
    pub(super) fn mind_patience<T: Transport>(
        &mut self,
        transport: &mut T,
        now: Instant,
    ) -> Result<Option<Signal>, Error> {
        if self.patience.waiting.is_empty() && self.patience.alarm.is_none() {
            return Ok(None);
        }
        let mut told = None;
        while let Some((end, id)) = self.patience.waiting.front().copied()
            && told.is_none()
        {
            if let Some(slot) = awaited(&mut self.exchanges, end, id) {
                if now < end {
                    break;
                }
                told = self.lose_patience(slot, id, transport);
                self.glitches.count(now)?;
            }
            self.patience.waiting.pop_front();
        }
        let next = self.patience.waiting.front().map(|(end, _)| *end);
        if next != self.patience.alarm {
            self.patience.alarm = next;
            transport.wake_at(next);
        }
        Ok(told)
    }

    /// A request of which only the beginning has come wasn't processed, so the client may make it again.
    fn lose_patience<T: Transport>(
        &mut self,
        slot: Slot,
        id: StreamId,
        transport: &mut T,
    ) -> Option<Signal> {
        let is_fresh = self.exchanges.at(slot)?.receive.is_fresh();
        if is_fresh {
            self.give_up(slot, transport, Code::REQUEST_REJECTED);
            return None;
        }
        self.give_up(slot, transport, LATE.code);
        Some(Signal::Failed(id, LATE))
    }
}

/// The request, if a field section is still to come by `end`.
fn awaited(exchanges: &mut Exchanges, end: Instant, id: StreamId) -> Option<Slot> {
    let (slot, exchange) = exchanges.get(id)?;
    (exchange.deadline == Some(end)).then_some(slot)
}

const LATE: Error = Error::new(
    Code::REQUEST_INCOMPLETE,
    "the trailer section didn't come in time",
);
