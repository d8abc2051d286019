//! Messages and streams of our own.

use quic_transport::{Direction, Side, StreamId};

use super::{Session, State};
use crate::control::StreamType;
use crate::error::{ApiError, Code};
use crate::field::Field;
use crate::frame::{FrameHeader, Kind, MAX_HEADER};
use crate::message::Check;
use crate::qpack::References;
use crate::send::{Body, Send};
use crate::settings::Settings;
use crate::transport::Transport;

/// A field section in the scratch buffer.
struct Section<'a> {
    /// Where it begins there.
    start: usize,
    /// What its lines say.
    check: Check<'a>,
    /// What of the dynamic table it refers to.
    references: References,
}

/// A unidirectional stream of ours.
#[derive(Debug)]
pub(super) struct Critical {
    pub(super) id: StreamId,
    pub(super) send: Send,
}

impl Critical {
    /// Whether everything has left.
    pub(super) const fn is_clear(&self) -> bool {
        self.send.is_clear()
    }
}

/// The order in which they are opened.
const TYPES: [StreamType; 3] = [
    StreamType::CONTROL,
    StreamType::ENCODER,
    StreamType::DECODER,
];

/// Room for what the control stream begins with.
const OPENING: usize = 64;

/// The response's body that shares a call to the transport with its header section.
const SMALL: usize = 1024;

impl Session {
    /// Opens the control and QPACK streams, as far as the peer's stream limit allows.
    pub(super) fn start<T: Transport>(&mut self, transport: &mut T) {
        let mut bytes = Vec::with_capacity(OPENING);
        while let Some(kind) = TYPES.get(self.critical.len()) {
            let Some(id) = transport.open(Direction::Unidirectional) else {
                return;
            };
            // Everything else may wait, the control stream never.
            transport.set_priority(id, 0, false);
            bytes.clear();
            bytes.push(u8::try_from(kind.0).unwrap_or_default());
            if *kind == StreamType::CONTROL {
                let mut payload = Vec::with_capacity(OPENING);
                Settings::local().encode(&mut payload);
                push_frame(Kind::SETTINGS, &payload, &mut bytes);
            }
            let mut send = Send::default();
            let is_open = send.frames(id, transport, &bytes).is_ok();
            debug_assert!(
                is_open,
                "a stream just opened takes bytes, or holds them back"
            );
            self.critical.push(Critical { id, send });
        }
    }

    /// Announces that no requests (of the client, to a server) or pushes are taken any more from `id` on.
    pub(super) fn go_away<T: Transport>(
        &mut self,
        transport: &mut T,
        id: u64,
    ) -> Result<(), ApiError> {
        self.start(transport);
        let control = self.critical.first_mut().ok_or(ApiError::StreamLimit)?;
        let mut payload = [0; 8];
        let mut writer = quic_common::Writer::new(&mut payload);
        writer.varint(id);
        let mut bytes = Vec::new();
        push_frame(Kind::GOAWAY, writer.written(), &mut bytes);
        control.send.frames(control.id, transport, &bytes)?;
        self.goaway_sent = Some(id);
        Ok(())
    }

    /// Encodes a field section as a HEADERS frame into the scratch buffer.
    fn encode<'a>(
        &mut self,
        fields: impl IntoIterator<Item = Field<'a>>,
    ) -> Result<Section<'a>, ApiError> {
        let mut check = Check::default();
        let fields = fields.into_iter().inspect(|field| check.line(*field));
        self.scratch.clear();
        self.scratch.extend_from_slice(&[0; MAX_HEADER]);
        self.encoder.hold_up(self.are_instructions_held_up());
        let encoded = self.encoder.encode(fields, &mut self.scratch);
        let settings = self.peer.settings.or(self.peer.recalled);
        let most = settings.and_then(|s| s.max_field_section);
        if most.is_some_and(|most| encoded.size > most) {
            return Err(ApiError::FieldsTooLarge);
        }
        let length = self.scratch.len() - MAX_HEADER;
        let header = FrameHeader {
            kind: Kind::HEADERS,
            length: u64::try_from(length).unwrap_or(u64::MAX >> 2),
        };
        let start = self
            .scratch
            .first_chunk_mut()
            .map_or(0, |space| header.write_before(space));
        Ok(Section {
            start,
            check,
            references: encoded.references,
        })
    }

    /// Makes a request.
    pub(crate) fn request<'a, T: Transport>(
        &mut self,
        transport: &mut T,
        fields: impl IntoIterator<Item = Field<'a>>,
        end: bool,
    ) -> Result<StreamId, ApiError> {
        if self.state != State::Open {
            return Err(ApiError::Closed);
        }
        if self.peer.goaway.is_some() || self.goaway_sent.is_some() {
            return Err(ApiError::GoingAway);
        }
        self.recall(transport);
        let section = self.encode(fields)?;
        let settings = self.peer.settings.or(self.peer.recalled);
        let extended = settings.is_some_and(|s| s.extended_connect);
        let request = section
            .check
            .request(extended)
            .map_err(ApiError::Malformed)?;
        if !request.is_safe && transport.is_early() {
            return Err(ApiError::Early);
        }
        if end && request.body.is_some_and(|length| length > 0) {
            return Err(ApiError::Length);
        }
        let id = transport
            .open(Direction::Bidirectional)
            .ok_or(ApiError::StreamLimit)?;
        let slot = self.exchanges.insert(id);
        let exchange = self.exchanges.at(slot).ok_or(ApiError::UnknownStream)?;
        exchange.receive.method = request.method;
        exchange.send.begin_body(request.body);
        let bytes = self.scratch.get(section.start..).unwrap_or_default();
        exchange.send.frames(id, transport, bytes)?;
        if end {
            exchange.send.finish(id, transport)?;
        }
        self.on_section_sent(transport, id, section.references);
        Ok(id)
    }

    /// Answers a request: an interim response, or the header section of the final one with the whole of a small body.
    pub(crate) fn respond<'a, T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        fields: impl IntoIterator<Item = Field<'a>>,
        body: Option<&[u8]>,
    ) -> Result<(), ApiError> {
        let section = self.encode(fields)?;
        let response = section.check.response().map_err(ApiError::Malformed)?;
        let (slot, exchange) = self.exchanges.get(id).ok_or(ApiError::UnknownStream)?;
        if !exchange.send.is_fresh() || exchange.receive.is_fresh() {
            return Err(ApiError::Order("a response answers a request, once"));
        }
        if response.is_interim() {
            let bytes = self.scratch.get(section.start..).unwrap_or_default();
            exchange.send.frames(id, transport, bytes)?;
            self.on_section_sent(transport, id, section.references);
            return Ok(());
        }
        let length = response.body(exchange.receive.method);
        if let Some(body) = body {
            let size = u64::try_from(body.len()).unwrap_or(u64::MAX);
            if length.is_some_and(|length| length != size) {
                return Err(ApiError::Length);
            }
            if !body.is_empty() {
                push_frame(Kind::DATA, body, &mut self.scratch);
            }
            exchange.send.begin_body(None);
        } else {
            exchange.send.begin_body(length);
        }
        let bytes = self.scratch.get(section.start..).unwrap_or_default();
        exchange.send.frames(id, transport, bytes)?;
        if body.is_some() {
            exchange.send.finish(id, transport)?;
            self.exchanges.settle(slot);
        }
        self.on_section_sent(transport, id, section.references);
        Ok(())
    }

    /// Answers a request with a whole body; returns how many of its bytes were taken, all of them having ended the response.
    pub(crate) fn respond_with<'a, T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        fields: impl IntoIterator<Item = Field<'a>>,
        body: &[u8],
    ) -> Result<usize, ApiError> {
        if body.len() <= SMALL {
            self.respond(transport, id, fields, Some(body))?;
            return Ok(body.len());
        }
        self.respond(transport, id, fields, None)?;
        let taken = self.send_body(transport, id, &mut &*body)?;
        if taken == body.len() {
            self.finish(transport, id)?;
        }
        Ok(taken)
    }

    /// Sends body bytes and takes them off the front of `data`; returns how many they were.
    pub(crate) fn send_body<T: Transport, B: Body>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        data: &mut B,
    ) -> Result<usize, ApiError> {
        let (_, exchange) = self.exchanges.get(id).ok_or(ApiError::UnknownStream)?;
        exchange.send.body(id, transport, data, &mut self.scratch)
    }

    /// Sends a trailer section and ends the message.
    pub(crate) fn trailers<'a, T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        fields: impl IntoIterator<Item = Field<'a>>,
    ) -> Result<(), ApiError> {
        let section = self.encode(fields)?;
        section.check.trailers().map_err(ApiError::Malformed)?;
        let (_, exchange) = self.exchanges.get(id).ok_or(ApiError::UnknownStream)?;
        if !exchange.send.is_open() {
            return Err(ApiError::Order("trailers go between body and end"));
        }
        if exchange.send.is_short() {
            return Err(ApiError::Length);
        }
        let bytes = self.scratch.get(section.start..).unwrap_or_default();
        exchange.send.frames(id, transport, bytes)?;
        self.on_section_sent(transport, id, section.references);
        self.finish(transport, id)
    }

    /// Ends the message.
    pub(crate) fn finish<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
    ) -> Result<(), ApiError> {
        let (slot, exchange) = self.exchanges.get(id).ok_or(ApiError::UnknownStream)?;
        if !exchange.send.is_open() {
            return Err(ApiError::Order("the end follows a header section, once"));
        }
        if exchange.send.is_short() {
            return Err(ApiError::Length);
        }
        exchange.send.finish(id, transport)?;
        self.exchanges.settle(slot);
        Ok(())
    }

    /// Wants no more of the peer's message.
    pub(crate) fn stop<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        code: Code,
    ) -> Result<(), ApiError> {
        let (slot, exchange) = self.exchanges.get(id).ok_or(ApiError::UnknownStream)?;
        if !exchange.receive.is_done() {
            let held = exchange.receive.held();
            exchange.receive.abandon();
            exchange.deadline = None;
            transport.stop(id, code.value());
            self.exchanges.on_held(held, 0);
            self.decoder.cancel(id.value());
        }
        self.exchanges.settle(slot);
        Ok(())
    }

    /// Abandons a request in both directions.
    pub(crate) fn cancel<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        code: Code,
    ) -> Result<(), ApiError> {
        let (slot, exchange) = self.exchanges.get(id).ok_or(ApiError::UnknownStream)?;
        if !exchange.receive.is_done() {
            transport.stop(id, code.value());
            self.decoder.cancel(id.value());
        }
        exchange.send.reset(id, transport, code);
        self.exchanges.remove(slot);
        Ok(())
    }

    /// Takes no new requests, or makes none, while those that exist go on.
    pub(crate) fn shutdown<T: Transport>(&mut self, transport: &mut T) -> Result<(), ApiError> {
        if self.goaway_sent.is_some() {
            return Ok(());
        }
        let id = match self.side {
            // Of pushes there are none at all.
            Side::Client => 0,
            Side::Server => self.next_request,
        };
        self.go_away(transport, id)
    }
}

/// Appends a whole frame.
pub(super) fn push_frame(kind: Kind, payload: &[u8], out: &mut Vec<u8>) {
    let length = u64::try_from(payload.len()).unwrap_or(u64::MAX >> 2);
    let mut space = [0; MAX_HEADER];
    let start = FrameHeader { kind, length }.write_before(&mut space);
    out.extend_from_slice(space.get(start..).unwrap_or_default());
    out.extend_from_slice(payload);
}
