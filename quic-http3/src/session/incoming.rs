//! The peer's unidirectional streams: types, critical streams, and what the control stream says.

use std::time::Instant;

use quic_transport::{Fill, Side, StreamId};

use super::Session;
use crate::control::{Control, Incoming, Progress, StreamType, Told, TypeReader};
use crate::error::{Code, Error};
use crate::limits::MAX_UNIDIRECTIONAL_STREAMS;
use crate::settings::Settings;
use crate::transport::Transport;

/// A unidirectional stream of the peer.
#[derive(Debug)]
pub(super) struct Unidirectional {
    pub(super) id: StreamId,
    incoming: Incoming,
    is_queued: bool,
}

impl Unidirectional {
    /// Gives back the room that isn't needed now.
    pub(super) fn rest(&mut self) {
        if let Incoming::Control(control) = &mut self.incoming {
            control.rest();
        }
    }

    pub(super) const fn is_critical(&self) -> bool {
        !matches!(self.incoming, Incoming::Untyped(_))
    }
}

/// What the peer has said, and which of its streams exist.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peer {
    pub(super) settings: Option<Settings>,
    /// What they were on the connection whose session a client resumes with early data.
    pub(super) recalled: Option<Settings>,
    /// The last GOAWAY.
    pub(super) goaway: Option<u64>,
    max_push_id: Option<u64>,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
}

/// What became of a stream in a step.
enum Outcome {
    /// There may be more to read.
    Again,
    /// Nothing more for now.
    Idle,
    /// The stream is of no more interest.
    Gone,
}

pub(super) const CLOSED_CRITICAL: Error = Error::new(
    Code::CLOSED_CRITICAL_STREAM,
    "a control or QPACK stream was closed",
);

impl Session {
    /// The peer opened a unidirectional stream.
    pub(super) fn on_unidirectional(&mut self, id: StreamId) -> Result<(), Error> {
        if self.incoming.len() >= MAX_UNIDIRECTIONAL_STREAMS {
            return Err(Error::new(
                Code::EXCESSIVE_LOAD,
                "too many unidirectional streams without a type",
            ));
        }
        self.incoming.push(Unidirectional {
            id,
            incoming: Incoming::Untyped(TypeReader::default()),
            is_queued: true,
        });
        self.is_incoming_ready = true;
        Ok(())
    }

    /// There is something to read on a unidirectional stream.
    pub(super) fn wake_incoming(&mut self, id: StreamId) {
        if let Some(stream) = self.incoming.iter_mut().find(|stream| stream.id == id) {
            stream.is_queued = true;
            self.is_incoming_ready = true;
        }
    }

    /// Reads all that has arrived on unidirectional streams.
    pub(super) fn read_incoming<T: Transport>(
        &mut self,
        transport: &mut T,
        now: Instant,
    ) -> Result<(), Error> {
        let mut index = 0;
        while index < self.incoming.len() {
            // Each step uses bytes, or the stream is left.
            match self.step_incoming(index, transport, now)? {
                Outcome::Again => {}
                Outcome::Idle => index += 1,
                Outcome::Gone => {
                    self.incoming.swap_remove(index);
                }
            }
        }
        self.is_incoming_ready = false;
        Ok(())
    }

    fn step_incoming<T: Transport>(
        &mut self,
        index: usize,
        transport: &mut T,
        now: Instant,
    ) -> Result<Outcome, Error> {
        let side = self.side;
        let Some(stream) = self.incoming.get_mut(index).filter(|s| s.is_queued) else {
            return Ok(Outcome::Idle);
        };
        let id = stream.id;
        // A stream that can't be read has been reset, which an event tells.
        let Fill { data, fin: end } = transport.fill(id).unwrap_or(Fill {
            data: &[],
            fin: false,
        });
        if data.is_empty() && !end {
            stream.is_queued = false;
            return Ok(Outcome::Idle);
        }
        let mut told = None;
        let mut kind = None;
        let mut unknown = false;
        let all = data.len();
        let used = match &mut stream.incoming {
            Incoming::Untyped(reader) => {
                let (used, read) = reader.read(data);
                kind = read;
                used
            }
            Incoming::Control(control) => match control.read(side, data)? {
                Progress::Used => all,
                Progress::Told(used, one) => {
                    told = Some(one);
                    used
                }
                Progress::Unknown(used) => {
                    unknown = true;
                    used
                }
            },
            Incoming::Encoder => {
                self.decoder.read(data)?;
                all
            }
            Incoming::Decoder => {
                self.encoder.read(data)?;
                all
            }
        };
        transport.consume(id, used);
        self.unblock();
        self.count_copies(now)?;
        if unknown {
            self.glitches.count(now)?;
        }
        if let Some(told) = told {
            self.on_told(told, transport, now)?;
        }
        if let Some(kind) = kind {
            return self.on_type(index, kind, transport, now, end && used == all);
        }
        if end && used == all {
            return self.on_closed(index, now);
        }
        Ok(Outcome::Again)
    }

    /// A stream of the peer has ended.
    fn on_closed(&mut self, index: usize, now: Instant) -> Result<Outcome, Error> {
        if self
            .incoming
            .get(index)
            .is_some_and(Unidirectional::is_critical)
        {
            return Err(CLOSED_CRITICAL);
        }
        self.glitches.count(now)?;
        Ok(Outcome::Gone)
    }

    /// The type of a stream is known (RFC 9114, 6.2).
    fn on_type<T: Transport>(
        &mut self,
        index: usize,
        kind: StreamType,
        transport: &mut T,
        now: Instant,
        is_over: bool,
    ) -> Result<Outcome, Error> {
        let Some(stream) = self.incoming.get_mut(index) else {
            return Ok(Outcome::Idle);
        };
        let peer = &mut self.peer;
        let (incoming, seen) = match kind {
            StreamType::CONTROL => (
                Incoming::Control(Box::<Control>::default()),
                &mut peer.has_control,
            ),
            StreamType::ENCODER => (Incoming::Encoder, &mut peer.has_encoder),
            StreamType::DECODER => (Incoming::Decoder, &mut peer.has_decoder),
            StreamType::PUSH if self.side.is_server() => {
                return Err(Error::new(
                    Code::STREAM_CREATION_ERROR,
                    "a push stream from a client",
                ));
            }
            StreamType::PUSH => {
                return Err(Error::new(Code::ID_ERROR, "server push is not allowed"));
            }
            _ => {
                self.glitches.count(now)?;
                transport.stop(stream.id, Code::STREAM_CREATION_ERROR.value());
                return Ok(Outcome::Gone);
            }
        };
        if std::mem::replace(seen, true) {
            return Err(Error::new(
                Code::STREAM_CREATION_ERROR,
                "a second control or QPACK stream",
            ));
        }
        stream.incoming = incoming;
        if is_over {
            return Err(CLOSED_CRITICAL);
        }
        Ok(Outcome::Again)
    }

    /// The control stream says something.
    fn on_told<T: Transport>(
        &mut self,
        told: Told,
        transport: &mut T,
        now: Instant,
    ) -> Result<(), Error> {
        match told {
            Told::Settings(settings) => self.on_settings(settings, transport)?,
            Told::GoAway(id) => self.on_goaway(id)?,
            Told::MaxPushId(id) => {
                if self
                    .peer
                    .max_push_id
                    .replace(id)
                    .is_some_and(|old| old > id)
                {
                    return Err(Error::new(Code::ID_ERROR, "MAX_PUSH_ID went down"));
                }
            }
            Told::Priority(stream, priority) => {
                self.on_priority_update(stream, priority, transport, now)?;
            }
            Told::PushPriority(_) => {
                return Err(Error::new(Code::ID_ERROR, "a priority for an unknown push"));
            }
            // Nothing was ever promised, nor allowed to be (RFC 9114, 7.2.3).
            Told::CancelPush(_) => {
                return Err(Error::new(Code::ID_ERROR, "CANCEL_PUSH of an unknown push"));
            }
        }
        Ok(())
    }

    /// RFC 9114, 5.2.
    fn on_goaway(&mut self, id: u64) -> Result<(), Error> {
        if self.side == Side::Client && id & 0b11 != 0 {
            let reason = "GOAWAY with the ID of no request";
            return Err(Error::new(Code::ID_ERROR, reason));
        }
        if self.peer.goaway.is_some_and(|old| old < id) {
            return Err(Error::new(Code::ID_ERROR, "the ID of GOAWAY went up"));
        }
        self.peer.goaway = Some(id);
        self.is_goaway_untold = true;
        if self.side == Side::Client {
            self.exchanges.reject_from(id, Code::REQUEST_REJECTED);
        }
        Ok(())
    }
}
