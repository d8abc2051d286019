//! How long a request may take to come to the end of its header section: a client that sends it drop by drop keeps a
//! stream, and what a server holds for it, from others.
//!
//! Only requests whose header section doesn't come in one piece are looked after at all.

use std::collections::VecDeque;
use std::time::Instant;

use quic_transport::StreamId;

use super::Session;
use super::exchange::{Exchanges, Slot};
use crate::error::{Code, Error};
use crate::limits::HEADER_TIMEOUT;
use crate::transport::Transport;

/// Entries that need no sweep, whether they are of use or not.
const SPARE_ENTRIES: usize = 64;

/// The requests that are waited for, in the order in which they began; some may be complete by now, or gone.
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
    /// A request has begun, and there is more to come of its header section.
    #[cold]
    pub(super) fn await_head(&mut self, slot: Slot, now: Instant) {
        let Some(exchange) = self.exchanges.at(slot).filter(|e| !e.is_awaited) else {
            return;
        };
        exchange.is_awaited = true;
        let id = exchange.id;
        let Some(end) = now.checked_add(HEADER_TIMEOUT) else {
            return;
        };
        let waiting = &mut self.patience.waiting;
        waiting.push_back((end, id));
        if waiting.len() > 2 * self.exchanges.len() + SPARE_ENTRIES {
            let exchanges = &mut self.exchanges;
            waiting.retain(|(_, id)| awaited(exchanges, *id).is_some());
        }
    }

    /// Gives up requests that have taken too long, and sees to it that the next one isn't forgotten.
    pub(super) fn mind_patience<T: Transport>(
        &mut self,
        transport: &mut T,
        now: Instant,
    ) -> Result<(), Error> {
        if self.patience.waiting.is_empty() && self.patience.alarm.is_none() {
            return Ok(());
        }
        while let Some((end, id)) = self.patience.waiting.front().copied() {
            if let Some(slot) = awaited(&mut self.exchanges, id) {
                if now < end {
                    break;
                }
                self.give_up(slot, transport);
                self.glitches.count(now)?;
            }
            self.patience.waiting.pop_front();
        }
        let next = self.patience.waiting.front().map(|(end, _)| *end);
        if next != self.patience.alarm {
            self.patience.alarm = next;
            transport.wake_at(next);
        }
        Ok(())
    }

    /// Nothing was done for the request, so the client may make it again.
    fn give_up<T: Transport>(&mut self, slot: Slot, transport: &mut T) {
        if let Some(exchange) = self.exchanges.at(slot) {
            let id = exchange.id;
            transport.stop(id, Code::REQUEST_REJECTED.value());
            exchange.send.reset(id, transport, Code::REQUEST_REJECTED);
            self.decoder.cancel(id.value());
            self.exchanges.remove(slot);
        }
    }
}

/// The request, if its header section is still to come.
fn awaited(exchanges: &mut Exchanges, id: StreamId) -> Option<Slot> {
    let (slot, exchange) = exchanges.get(id)?;
    (exchange.is_awaited && exchange.receive.is_fresh()).then_some(slot)
}
