//! What a client's and a server's session have in common.
//!
//! Transport events only mark streams as ready; [`Session::next`] does the work, up to the first thing worth telling.
//! So nothing is queued but streams, and a caller that is slow slows the peer down, not the memory up.

use std::time::Instant;

use quic_transport::{Direction, Side, StreamEvent, StreamId};

use crate::error::{ApiError, Code, Error, Fault};
use crate::field::Fields;
use crate::glitches::Glitches;
use crate::limits::{
    MAX_BLOCKED_STREAMS, MAX_DECODER_CAPACITY, MAX_HELD_SECTIONS, MAX_SPARE_FIELDS,
};
use crate::qpack::{Decoder, Encoder};
use crate::receive::{Lent, Step};
use crate::settings::Settings;
use crate::transport::Transport;

mod compression;
mod early;
mod exchange;
mod incoming;
mod outgoing;
mod patience;
mod urgency;

use exchange::{Exchanges, Slot};
use incoming::{CLOSED_CRITICAL, Peer, Unidirectional};
use outgoing::Critical;
use patience::Patience;
use urgency::Urgencies;

/// What there is to tell, in words for both sides.
#[derive(Debug)]
pub(crate) enum Signal {
    Interim(StreamId, Fields),
    Head(StreamId, Fields),
    Data(StreamId),
    Trailers(StreamId, Fields),
    Finished(StreamId),
    Reset(StreamId, Code),
    Stopped(StreamId, Code),
    Failed(StreamId, Error),
    Writable(StreamId),
    GoAway(u64),
    Available,
    Closed(Error),
}

/// Whether the session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The peer broke a rule, which is to be told.
    Failed(Error),
    Closed,
}

/// One connection's HTTP/3.
#[derive(Debug)]
pub(crate) struct Session {
    side: Side,
    exchanges: Exchanges,
    /// Our control, encoder and decoder streams.
    critical: Vec<Critical>,
    /// The peer's unidirectional streams.
    incoming: Vec<Unidirectional>,
    is_incoming_ready: bool,
    peer: Peer,
    is_goaway_untold: bool,
    /// The stream limit was raised, which the application doesn't know yet.
    is_available: bool,
    goaway_sent: Option<u64>,
    /// The ID after the last request that a server took.
    next_request: u64,
    state: State,
    glitches: Glitches,
    patience: Patience,
    urgencies: Urgencies,
    encoder: Encoder,
    decoder: Decoder,
    spare: Vec<Fields>,
    scratch: Vec<u8>,
}

impl Session {
    pub(crate) fn new(side: Side) -> Self {
        Self {
            side,
            exchanges: Exchanges::default(),
            critical: Vec::new(),
            incoming: Vec::new(),
            is_incoming_ready: false,
            peer: Peer::default(),
            is_goaway_untold: false,
            is_available: false,
            goaway_sent: None,
            next_request: 0,
            state: State::Open,
            glitches: Glitches::new(),
            patience: Patience::default(),
            urgencies: Urgencies::default(),
            encoder: Encoder::default(),
            decoder: Decoder::new(MAX_DECODER_CAPACITY, MAX_BLOCKED_STREAMS),
            spare: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// What the peer's SETTINGS say, once they have arrived.
    pub(crate) const fn peer_settings(&self) -> Option<Settings> {
        self.peer.settings
    }

    /// How many requests are not over.
    pub(crate) fn active(&self) -> usize {
        self.exchanges.len()
    }

    /// Takes a field list back for reuse.
    pub(crate) fn recycle(&mut self, mut fields: Fields) {
        if self.spare.len() < MAX_SPARE_FIELDS {
            fields.clear();
            self.spare.push(fields);
        }
    }

    /// Gives back what is kept for requests to come.
    pub(crate) fn rest(&mut self) {
        self.exchanges.rest();
        for critical in &mut self.critical {
            critical.send.rest();
        }
        self.critical.shrink_to_fit();
        for stream in &mut self.incoming {
            stream.rest();
        }
        self.incoming.shrink_to_fit();
        self.patience.rest();
        self.urgencies.rest();
        self.encoder.rest();
        self.decoder.rest();
        self.spare = Vec::new();
        self.scratch = Vec::new();
    }

    /// Takes note of what happened to a stream.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what else may happen to streams is of no concern here"
    )]
    pub(crate) fn on_event<T: Transport>(&mut self, transport: &mut T, event: StreamEvent) {
        if self.state != State::Open {
            return;
        }
        let result = match event {
            StreamEvent::Opened(id) => self.on_opened(transport, id),
            StreamEvent::Readable(id) => {
                self.on_readable(id);
                Ok(())
            }
            StreamEvent::Writable(id) => {
                self.on_writable(transport, id);
                Ok(())
            }
            StreamEvent::Reset { id, code } => self.on_reset(id, Code::new(code)),
            StreamEvent::Stopped { id, code } => self.on_stopped(id, Code::new(code)),
            StreamEvent::Available(Direction::Bidirectional) => {
                self.is_available = true;
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.state = State::Failed(error);
        }
    }

    fn on_opened<T: Transport>(&mut self, transport: &mut T, id: StreamId) -> Result<(), Error> {
        if id.direction() == Direction::Unidirectional {
            return self.on_unidirectional(id);
        }
        if self.side.is_client() {
            return Err(Error::new(
                Code::STREAM_CREATION_ERROR,
                "a bidirectional stream from a server",
            ));
        }
        if self.goaway_sent.is_some_and(|first| id.value() >= first) {
            let code = Code::REQUEST_REJECTED.value();
            transport.stop(id, code);
            transport.reset(id, code);
            self.decoder.cancel(id.value());
            return Ok(());
        }
        self.next_request = self.next_request.max(id.value().saturating_add(4));
        let slot = self.exchanges.insert(id);
        self.recall_priority(slot, transport);
        self.exchanges.queue(slot);
        Ok(())
    }

    fn on_readable(&mut self, id: StreamId) {
        if id.direction() == Direction::Unidirectional {
            self.wake_incoming(id);
        } else if let Some(slot) = self.exchanges.find(id) {
            self.exchanges.queue(slot);
        }
    }

    fn on_writable<T: Transport>(&mut self, transport: &mut T, id: StreamId) {
        if let Some((slot, exchange)) = self.exchanges.get(id) {
            exchange.is_writable = true;
            self.exchanges.queue(slot);
        } else if let Some(critical) = self.critical.iter_mut().find(|c| c.id == id) {
            critical.send.on_writable(id, transport);
        }
    }

    fn on_reset(&mut self, id: StreamId, code: Code) -> Result<(), Error> {
        if let Some((slot, exchange)) = self.exchanges.get(id) {
            exchange.reset = Some(code);
            self.exchanges.queue(slot);
        }
        let index = self.incoming.iter().position(|stream| stream.id == id);
        if let Some(index) = index {
            let stream = self.incoming.swap_remove(index);
            if stream.is_critical() {
                return Err(CLOSED_CRITICAL);
            }
        }
        Ok(())
    }

    fn on_stopped(&mut self, id: StreamId, code: Code) -> Result<(), Error> {
        if let Some((slot, exchange)) = self.exchanges.get(id) {
            exchange.stopped = Some(code);
            self.exchanges.queue(slot);
        }
        if self.critical.iter().any(|critical| critical.id == id) {
            return Err(CLOSED_CRITICAL);
        }
        Ok(())
    }

    /// Works until there is something to tell, or nothing to do.
    pub(crate) fn next<T: Transport>(&mut self, transport: &mut T, now: Instant) -> Option<Signal> {
        if self.state == State::Open {
            if self.critical.len() < 3 {
                self.start(transport);
            }
            self.release_held(transport);
            if self.is_incoming_ready
                && let Err(error) = self.read_incoming(transport, now)
            {
                self.state = State::Failed(error);
            }
        }
        match self.state {
            State::Open => {}
            State::Failed(error) => return Some(self.fail(transport, error)),
            State::Closed => return None,
        }
        if let Some(id) = self.peer.goaway
            && std::mem::take(&mut self.is_goaway_untold)
        {
            return Some(Signal::GoAway(id));
        }
        if std::mem::take(&mut self.is_available) {
            return Some(Signal::Available);
        }
        while let Some(slot) = self.exchanges.take_ready() {
            match self.visit(slot, transport, now) {
                Ok(Some(signal)) => return Some(signal),
                Ok(None) => {}
                Err(error) => return Some(self.fail(transport, error)),
            }
        }
        let late = match self.mind_patience(transport, now) {
            Ok(late) => late,
            Err(error) => return Some(self.fail(transport, error)),
        };
        match self.tell_compression(transport) {
            Ok(()) => late,
            Err(error) => Some(self.fail(transport, error)),
        }
    }

    /// Closes the connection for what the peer did.
    fn fail<T: Transport>(&mut self, transport: &mut T, error: Error) -> Signal {
        self.state = State::Closed;
        transport.close(error.code.value(), error.reason);
        Signal::Closed(error)
    }

    /// Looks at a request that something has happened to.
    fn visit<T: Transport>(
        &mut self,
        slot: Slot,
        transport: &mut T,
        now: Instant,
    ) -> Result<Option<Signal>, Error> {
        let partial = self.exchanges.partial();
        let Some(exchange) = self.exchanges.at(slot) else {
            return Ok(None);
        };
        let id = exchange.id;
        if let Some(code) = exchange.reset.take() {
            return self.visit_reset(slot, transport, now, code);
        }
        if let Some(fields) = exchange.held.take() {
            let signal = self.on_head(slot, id, fields, transport);
            if signal.is_some() {
                self.exchanges.queue(slot);
            }
            return Ok(signal);
        }
        if let Some(code) = exchange.stopped.take() {
            exchange.send.reset(id, transport, code);
            self.exchanges.queue(slot);
            self.exchanges.settle(slot);
            // A server may do without the rest of a request; a client asked for the response.
            if code != Code::NO_ERROR || self.side.is_server() {
                self.glitches.count(now)?;
            }
            return Ok(Some(Signal::Stopped(id, code)));
        }
        if std::mem::take(&mut exchange.is_writable) {
            let told = exchange.send.on_writable(id, transport);
            self.exchanges.queue(slot);
            self.exchanges.settle(slot);
            return Ok(told.then_some(Signal::Writable(id)));
        }
        let held = exchange.receive.held();
        let step = exchange.receive.advance(
            id,
            transport,
            &mut Lent {
                section_room: MAX_HELD_SECTIONS.saturating_sub(partial),
                side: self.side,
                now,
                glitches: &mut self.glitches,
                decoder: &mut self.decoder,
                spare: &mut self.spare,
            },
        );
        let is_open = exchange.receive.is_section_open();
        if !is_open {
            exchange.deadline = None;
        }
        let after = exchange.receive.held();
        self.exchanges.on_held(held, after);
        self.count_copies(now)?;
        let signal = match step {
            Ok(Step::Blocked) => {
                if self.side.is_server() && is_open {
                    self.await_section(slot, now);
                }
                return Ok(None);
            }
            Ok(Step::Data) => return Ok(Some(Signal::Data(id))),
            Ok(Step::End) => {
                self.exchanges.settle(slot);
                return Ok(Some(Signal::Finished(id)));
            }
            Ok(Step::Interim(fields)) => Signal::Interim(id, fields),
            Ok(Step::Head(fields)) => match self.on_head(slot, id, fields, transport) {
                Some(signal) => signal,
                None => return Ok(None),
            },
            Ok(Step::Trailers(fields)) => Signal::Trailers(id, fields),
            Err(Fault::Connection(error)) => return Err(error),
            Err(Fault::Stream(error)) => {
                self.glitches.count(now)?;
                self.give_up(slot, transport, error.code);
                return Ok(Some(Signal::Failed(id, error)));
            }
        };
        // There may be more behind the field section.
        self.exchanges.queue(slot);
        Ok(Some(signal))
    }

    /// Ends a request in both directions, for what has come of it, or hasn't.
    fn give_up<T: Transport>(&mut self, slot: Slot, transport: &mut T, code: Code) {
        if let Some(exchange) = self.exchanges.at(slot) {
            let id = exchange.id;
            transport.stop(id, code.value());
            exchange.send.reset(id, transport, code);
            self.decoder.cancel(id.value());
            self.exchanges.remove(slot);
        }
    }

    /// The peer abandoned its message, and with it the exchange.
    fn visit_reset<T: Transport>(
        &mut self,
        slot: Slot,
        transport: &mut T,
        now: Instant,
        code: Code,
    ) -> Result<Option<Signal>, Error> {
        self.glitches.count(now)?;
        let Some(exchange) = self.exchanges.at(slot) else {
            return Ok(None);
        };
        let id = exchange.id;
        if !exchange.receive.is_done() {
            self.decoder.cancel(id.value());
        }
        let is_known = !exchange.receive.is_fresh() && exchange.held.is_none();
        let told = self.side.is_client() || is_known;
        // It is over already, unless a GOAWAY stands for the reset.
        transport.stop(id, Code::REQUEST_CANCELLED.value());
        exchange.send.reset(id, transport, Code::REQUEST_CANCELLED);
        self.exchanges.remove(slot);
        Ok(told.then_some(Signal::Reset(id, code)))
    }

    /// Lends the next body bytes of a message.
    pub(crate) fn fill<'t, T: Transport>(
        &mut self,
        transport: &'t mut T,
        id: StreamId,
    ) -> Result<&'t [u8], ApiError> {
        let (slot, exchange) = self.exchanges.get(id).ok_or(ApiError::UnknownStream)?;
        let data = exchange.receive.body(id, transport);
        if data.is_empty() {
            // What comes next, if it is here, is for `next` to find.
            self.exchanges.queue(slot);
        }
        Ok(data)
    }

    /// Takes body bytes that were lent off the stream.
    pub(crate) fn consume<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        count: usize,
    ) -> Result<(), ApiError> {
        let (slot, exchange) = self.exchanges.get(id).ok_or(ApiError::UnknownStream)?;
        if exchange.receive.consume(id, transport, count) {
            self.exchanges.queue(slot);
        }
        Ok(())
    }
}
