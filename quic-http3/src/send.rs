//! The sending half of a request stream, [RFC 9114, section 4.1](https://www.rfc-editor.org/rfc/rfc9114#section-4.1).
//!
//! A body of known length goes into one DATA frame, whatever pieces it is written in; one of unknown length gets a frame
//! for each write. Frame headers and field sections that the transport doesn't take wait here, body bytes never do.

use quic_transport::{Bytes, StreamError, StreamId};

use crate::error::{ApiError, Code};
use crate::frame::{FrameHeader, Kind, MAX_HEADER};
use crate::limits::{MAX_DATA_FRAME, MAX_SPARE_CAPACITY};
use crate::transport::Transport;

/// What may be sent next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The header section.
    #[default]
    Head,
    /// The body, trailers or the end.
    Body,
    /// The end has been asked for.
    Finishing,
    /// The stream takes nothing more.
    Done,
}

/// The state of the sending half.
#[derive(Debug, Default)]
pub(crate) struct Send {
    phase: Phase,
    /// Bytes for the transport, taken from `sent` on.
    pending: Vec<u8>,
    sent: usize,
    /// What the DATA frame that was begun still needs.
    frame_left: u64,
    /// What the body still needs, when its length is known.
    declared: Option<u64>,
    /// The application was refused and waits to be told.
    waiting: bool,
}

/// Body bytes that share a call to the transport with the header of their frame.
const SMALL: usize = 1024;

/// Body bytes on their way to the transport, which takes them off the front.
pub(crate) trait Body {
    /// What is left of them.
    fn left(&self) -> &[u8];

    /// Takes `count` bytes off the front.
    fn skip(&mut self, count: usize);

    /// Gives up to `most` bytes to the transport; returns how many it took.
    fn send<T: Transport>(
        &mut self,
        id: StreamId,
        transport: &mut T,
        most: usize,
    ) -> Result<usize, StreamError>;
}

/// The transport copies them.
impl Body for &[u8] {
    #[inline]
    fn left(&self) -> &[u8] {
        self
    }

    #[inline]
    fn skip(&mut self, count: usize) {
        *self = self.get(count..).unwrap_or_default();
    }

    #[inline]
    fn send<T: Transport>(
        &mut self,
        id: StreamId,
        transport: &mut T,
        most: usize,
    ) -> Result<usize, StreamError> {
        let taken = transport.send(id, self.get(..most).unwrap_or(self))?;
        self.skip(taken);
        Ok(taken)
    }
}

/// The transport keeps them where they are.
impl Body for Bytes {
    fn left(&self) -> &[u8] {
        self
    }

    fn skip(&mut self, count: usize) {
        drop(self.split_to(count.min(self.len())));
    }

    fn send<T: Transport>(
        &mut self,
        id: StreamId,
        transport: &mut T,
        most: usize,
    ) -> Result<usize, StreamError> {
        if most >= self.len() {
            return transport.send_bytes(id, self);
        }
        let mut front = self.slice(..most);
        let taken = transport.send_bytes(id, &mut front)?;
        self.skip(taken);
        Ok(taken)
    }
}

impl Send {
    /// Back to the start, with the buffer kept unless it has grown large.
    pub(crate) fn recycle(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.clear();
        pending.shrink_to(MAX_SPARE_CAPACITY);
        *self = Self {
            pending,
            ..Self::default()
        };
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.pending.shrink_to_fit();
    }

    /// Whether everything has left.
    pub(crate) const fn is_clear(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether nothing more can be sent.
    pub(crate) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Whether the header section may be sent.
    pub(crate) fn is_fresh(&self) -> bool {
        self.phase == Phase::Head
    }

    /// Whether a body may be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Body
    }

    /// Whether a DATA frame lacks bytes, or the body does.
    pub(crate) fn is_short(&self) -> bool {
        self.frame_left > 0 || self.declared.is_some_and(|left| left > 0)
    }

    /// The stream was reset, by us or by the peer's wish.
    pub(crate) fn abandon(&mut self) {
        self.phase = Phase::Done;
        self.pending.clear();
        self.waiting = false;
    }

    /// The header section is out; the body, if its length is known, has `length` bytes.
    pub(crate) const fn begin_body(&mut self, length: Option<u64>) {
        self.phase = Phase::Body;
        self.declared = length;
    }

    /// Sends whole frames: what the transport doesn't take now waits here.
    pub(crate) fn frames<T: Transport>(
        &mut self,
        id: StreamId,
        transport: &mut T,
        bytes: &[u8],
    ) -> Result<(), StreamError> {
        let taken = if self.pending.is_empty() {
            transport.send(id, bytes)?
        } else {
            0
        };
        let rest = bytes.get(taken..).unwrap_or_default();
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    /// Sends what waits; returns whether nothing waits any more.
    fn flush<T: Transport>(
        &mut self,
        id: StreamId,
        transport: &mut T,
    ) -> Result<bool, StreamError> {
        while let Some(rest) = self.pending.get(self.sent..)
            && !rest.is_empty()
        {
            let taken = transport.send(id, rest)?;
            self.sent += taken;
            if taken == 0 {
                return Ok(false);
            }
        }
        self.pending.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Sends body bytes, takes them off the front of `data`, and returns how many they were; `scratch` is any buffer.
    pub(crate) fn body<T: Transport, B: Body>(
        &mut self,
        id: StreamId,
        transport: &mut T,
        data: &mut B,
        scratch: &mut Vec<u8>,
    ) -> Result<usize, ApiError> {
        let offered = data.left().len();
        if self.phase != Phase::Body {
            return Err(ApiError::Order(
                "a body goes between header section and end",
            ));
        }
        if self.declared.is_some_and(|left| left < wide(offered)) {
            return Err(ApiError::Length);
        }
        // Each turn sends bytes or ends the loop.
        while !data.left().is_empty() && self.flush(id, transport)? {
            let taken = if self.frame_left == 0 {
                self.begin_frame(id, transport, data, scratch)?
            } else {
                let most = usize::try_from(self.frame_left).unwrap_or(usize::MAX);
                data.send(id, transport, most)?
            };
            if taken == 0 && self.frame_left > 0 && self.pending.is_empty() {
                break;
            }
            self.frame_left = self.frame_left.saturating_sub(wide(taken));
            self.declared = self.declared.map(|left| left.saturating_sub(wide(taken)));
        }
        let left = data.left().len();
        self.waiting |= left > 0;
        Ok(offered - left)
    }

    /// Sends the header of a DATA frame, and with it the body bytes if they are few; returns how many of those were taken.
    fn begin_frame<T: Transport, B: Body>(
        &mut self,
        id: StreamId,
        transport: &mut T,
        data: &mut B,
        scratch: &mut Vec<u8>,
    ) -> Result<usize, StreamError> {
        let left = data.left();
        let length = self
            .declared
            .unwrap_or_else(|| wide(left.len()).min(MAX_DATA_FRAME));
        let header = FrameHeader {
            kind: Kind::DATA,
            length,
        };
        let mut space = [0; MAX_HEADER];
        let start = header.write_before(&mut space);
        let header = space.get(start..).unwrap_or_default();
        self.frame_left = length;
        if left.len() > SMALL {
            self.frames(id, transport, header)?;
            if !self.pending.is_empty() {
                return Ok(0);
            }
            let most = usize::try_from(length).unwrap_or(usize::MAX);
            return data.send(id, transport, most);
        }
        scratch.clear();
        scratch.extend_from_slice(header);
        scratch.extend_from_slice(left);
        let taken = transport.send(id, scratch)?;
        let unsent = header.get(taken..).unwrap_or_default();
        self.pending.extend_from_slice(unsent);
        let taken = taken.saturating_sub(header.len());
        data.skip(taken);
        Ok(taken)
    }

    /// Ends the stream once everything is out.
    pub(crate) fn finish<T: Transport>(
        &mut self,
        id: StreamId,
        transport: &mut T,
    ) -> Result<(), StreamError> {
        self.phase = Phase::Finishing;
        self.end(id, transport)
    }

    /// Goes on after the transport has refused bytes; returns whether the application is to be told.
    ///
    /// A transport that refuses the stream altogether has been told so by the peer, and tells it in an event.
    pub(crate) fn on_writable<T: Transport>(&mut self, id: StreamId, transport: &mut T) -> bool {
        match self.phase {
            Phase::Done => false,
            Phase::Finishing => {
                if self.end(id, transport).is_err() {
                    self.abandon();
                }
                false
            }
            Phase::Head | Phase::Body => {
                self.flush(id, transport) == Ok(true) && std::mem::take(&mut self.waiting)
            }
        }
    }

    /// Ends the stream if nothing waits any more.
    fn end<T: Transport>(&mut self, id: StreamId, transport: &mut T) -> Result<(), StreamError> {
        if self.flush(id, transport)? {
            transport.finish(id)?;
            self.phase = Phase::Done;
        }
        Ok(())
    }

    /// Abandons the stream.
    pub(crate) fn reset<T: Transport>(&mut self, id: StreamId, transport: &mut T, code: Code) {
        if self.phase != Phase::Done {
            transport.reset(id, code.value());
            self.abandon();
        }
    }
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
