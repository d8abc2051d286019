//! Whose turn it is among responses, as the client wishes, [RFC 9218](https://www.rfc-editor.org/rfc/rfc9218): by a field
//! of the request, or by a frame that may come before the request and at any time after, and which counts more.

use std::time::Instant;

use quic_transport::{Direction, Side, StreamId};

use super::Session;
use super::exchange::Slot;
use super::outgoing::push_frame;
use crate::error::{ApiError, Code, Error};
use crate::field::Fields;
use crate::frame::Kind;
use crate::limits::MAX_EARLY_PRIORITIES;
use crate::priority::Priority;
use crate::transport::Transport;

/// The priorities of requests that haven't come.
#[derive(Debug, Default)]
pub(super) struct Urgencies {
    early: Vec<(StreamId, Priority)>,
}

impl Urgencies {
    /// Gives back the room that isn't needed now.
    pub(super) fn rest(&mut self) {
        self.early.shrink_to_fit();
    }
}

impl Session {
    /// PRIORITY_UPDATE for a request (RFC 9218, 7.2).
    pub(super) fn on_priority_update<T: Transport>(
        &mut self,
        stream: u64,
        priority: Priority,
        transport: &mut T,
        now: Instant,
    ) -> Result<(), Error> {
        let id = StreamId::new(Side::Client, Direction::Bidirectional, stream >> 2);
        if id.value() != stream || !transport.is_permitted(id) {
            let reason = "PRIORITY_UPDATE for a stream that can't be a request";
            return Err(Error::new(Code::ID_ERROR, reason));
        }
        self.glitches.count(now)?;
        if let Some((_, exchange)) = self.exchanges.get(id) {
            exchange.is_prioritized = true;
            transport.set_priority(id, priority.urgency, priority.incremental);
            return Ok(());
        }
        let early = &mut self.urgencies.early;
        early.retain(|(request, _)| *request != id);
        // Of a request that is over nothing is kept, and of too many the first ones are.
        if stream >= self.next_request && early.len() < MAX_EARLY_PRIORITIES {
            early.push((id, priority));
        }
        Ok(())
    }

    /// A request has begun: its priority may be known.
    pub(super) fn recall_priority<T: Transport>(&mut self, slot: Slot, transport: &mut T) {
        if self.urgencies.early.is_empty() {
            return;
        }
        let Some(exchange) = self.exchanges.at(slot) else {
            return;
        };
        let early = &mut self.urgencies.early;
        if let Some(place) = early.iter().position(|(id, _)| *id == exchange.id) {
            let (id, priority) = early.swap_remove(place);
            exchange.is_prioritized = true;
            transport.set_priority(id, priority.urgency, priority.incremental);
        }
    }

    /// The `priority` field of a request (RFC 9218, 5), which counts if no frame has said otherwise. Without one, responses
    /// share, as nothing is known of them.
    pub(super) fn on_priority_field<T: Transport>(
        &mut self,
        slot: Slot,
        fields: &Fields,
        transport: &mut T,
    ) {
        let mut priority = None;
        for field in fields.iter().filter(|field| field.name == b"priority") {
            let before: Priority = priority.unwrap_or_default();
            priority = Some(before.with(field.value));
        }
        if let Some(priority) = priority
            && let Some(exchange) = self.exchanges.at(slot)
            && !exchange.is_prioritized
        {
            transport.set_priority(exchange.id, priority.urgency, priority.incremental);
        }
    }

    /// Tells the server how urgent a response is.
    pub(crate) fn prioritize<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        priority: Priority,
    ) -> Result<(), ApiError> {
        self.exchanges.find(id).ok_or(ApiError::UnknownStream)?;
        self.start(transport);
        let control = self.critical.first_mut().ok_or(ApiError::StreamLimit)?;
        let mut payload = [0; 16];
        let mut writer = quic_common::Writer::new(&mut payload);
        writer.varint(id.value());
        writer.bytes(priority.value());
        let mut bytes = Vec::new();
        push_frame(Kind::PRIORITY_UPDATE, writer.written(), &mut bytes);
        control.send.frames(control.id, transport, &bytes)?;
        Ok(())
    }
}
