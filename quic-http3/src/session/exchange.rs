//! One request and its response, and the table of them.
//!
//! A slot is used again with its buffers, so that a request costs no allocation once the connection is warm.

use std::collections::VecDeque;
use std::time::Instant;

use quic_common::IdMap;
use quic_transport::StreamId;

use crate::error::Code;
use crate::field::Fields;
use crate::receive::Receive;
use crate::send::Send;

/// One request and its response.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Exchange {
    pub(super) id: StreamId,
    pub(super) receive: Receive,
    pub(super) send: Send,
    /// What the transport said and the application has not been told.
    pub(super) reset: Option<Code>,
    pub(super) stopped: Option<Code>,
    pub(super) is_writable: bool,
    /// A frame has said how urgent it is.
    pub(super) is_prioritized: bool,
    /// When the field section that has begun must have come.
    pub(super) deadline: Option<Instant>,
    /// A request's header section, of which the application is told when the handshake is complete.
    pub(super) held: Option<Fields>,
    is_live: bool,
    is_queued: bool,
}

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

/// The requests of a connection, and which of them have something to do.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    slots: Vec<Exchange>,
    free: Vec<Slot>,
    by_id: IdMap<StreamId, Slot>,
    ready: VecDeque<Slot>,
    has_held: bool,
    /// Bytes of field sections that have come in part.
    partial: usize,
}

impl Exchanges {
    /// Adds a request.
    pub(super) fn insert(&mut self, id: StreamId) -> Slot {
        let slot = self.free.pop().unwrap_or(Slot(self.slots.len()));
        self.by_id.insert(id, slot);
        if let Some(exchange) = self.slots.get_mut(slot.0) {
            exchange.id = id;
            exchange.is_live = true;
        } else {
            self.slots.push(Exchange {
                id,
                receive: Receive::default(),
                send: Send::default(),
                reset: None,
                stopped: None,
                is_writable: false,
                is_prioritized: false,
                deadline: None,
                held: None,
                is_live: true,
                is_queued: false,
            });
        }
        slot
    }

    /// Forgets a request.
    pub(super) fn remove(&mut self, slot: Slot) {
        let Some(exchange) = self.slots.get_mut(slot.0).filter(|e| e.is_live) else {
            return;
        };
        self.by_id.remove(&exchange.id);
        self.partial = self.partial.saturating_sub(exchange.receive.held());
        exchange.receive.recycle();
        exchange.send.recycle();
        exchange.reset = None;
        exchange.stopped = None;
        exchange.is_writable = false;
        exchange.is_prioritized = false;
        exchange.deadline = None;
        exchange.held = None;
        exchange.is_live = false;
        // A slot that is still queued is found dead, or serving another request; both do no harm.
        self.free.push(slot);
    }

    /// Forgets a request if both halves are done.
    pub(super) fn settle(&mut self, slot: Slot) {
        let done = |e: &Exchange| e.receive.is_done() && e.send.is_done();
        if self.at(slot).is_some_and(|exchange| done(exchange)) {
            self.remove(slot);
        }
    }

    /// Where a request is.
    #[inline]
    pub(super) fn find(&self, id: StreamId) -> Option<Slot> {
        self.by_id.get(&id).copied()
    }

    /// The request in a slot.
    #[inline]
    pub(super) fn at(&mut self, slot: Slot) -> Option<&mut Exchange> {
        self.slots
            .get_mut(slot.0)
            .filter(|exchange| exchange.is_live)
    }

    /// The request of a stream.
    #[inline]
    pub(super) fn get(&mut self, id: StreamId) -> Option<(Slot, &mut Exchange)> {
        let slot = self.find(id)?;
        Some((slot, self.at(slot)?))
    }

    /// Gives back the room of requests that are over.
    pub(super) fn rest(&mut self) {
        while self.slots.pop_if(|last| !last.is_live).is_some() {}
        let length = self.slots.len();
        self.free.retain(|slot| slot.0 < length);
        self.slots.shrink_to_fit();
        self.free.shrink_to_fit();
        self.by_id.shrink_to_fit();
        self.ready.shrink_to_fit();
    }

    /// Has a request looked at.
    #[inline]
    pub(super) fn queue(&mut self, slot: Slot) {
        if let Some(exchange) = self.slots.get_mut(slot.0)
            && !exchange.is_queued
        {
            exchange.is_queued = true;
            self.ready.push_back(slot);
        }
    }

    /// Has the request of a stream looked at, by its ID.
    pub(super) fn queue_stream(&mut self, stream: u64) {
        let is_meant = |exchange: &Exchange| exchange.is_live && exchange.id.value() == stream;
        if let Some(place) = self.slots.iter().position(is_meant) {
            self.queue(Slot(place));
        }
    }

    /// The next request to look at.
    #[inline]
    pub(super) fn take_ready(&mut self) -> Option<Slot> {
        let slot = self.ready.pop_front()?;
        if let Some(exchange) = self.slots.get_mut(slot.0) {
            exchange.is_queued = false;
        }
        Some(slot)
    }

    /// How many requests there are.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Bytes of field sections that have come in part, on all streams together.
    #[inline]
    pub(super) const fn partial(&self) -> usize {
        self.partial
    }

    /// What a stream holds has changed from `before` to `after`.
    #[inline]
    pub(super) const fn on_held(&mut self, before: usize, after: usize) {
        self.partial = self.partial.saturating_sub(before).saturating_add(after);
    }

    /// Keeps a request's header section until the handshake is complete.
    pub(super) fn hold(&mut self, slot: Slot, fields: Fields) {
        if let Some(exchange) = self.at(slot) {
            exchange.held = Some(fields);
            self.has_held = true;
        }
    }

    /// Whether there may be requests whose header section is held.
    #[inline]
    pub(super) const fn has_held(&self) -> bool {
        self.has_held
    }

    /// Has all requests looked at whose header section is held.
    pub(super) fn queue_held(&mut self) {
        self.has_held = false;
        for index in 0..self.slots.len() {
            let slot = Slot(index);
            if self
                .at(slot)
                .is_some_and(|exchange| exchange.held.is_some())
            {
                self.queue(slot);
            }
        }
    }

    /// Marks all requests from `first` on as reset with `code`.
    pub(super) fn reject_from(&mut self, first: u64, code: Code) {
        for index in 0..self.slots.len() {
            let slot = Slot(index);
            if let Some(exchange) = self.at(slot)
                && exchange.id.value() >= first
            {
                exchange.reset = Some(code);
                self.queue(slot);
            }
        }
    }
}
