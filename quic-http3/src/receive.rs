//! The receiving half of a request stream, [RFC 9114, section 4.1](https://www.rfc-editor.org/rfc/rfc9114#section-4.1).
//!
//! [`Receive::advance`] goes as far as one thing worth telling, or until the stream has no more bytes. A field section
//! that has arrived whole is decoded where it lies; body bytes are never touched, only counted.

use std::time::Instant;

use quic_transport::{Fill, Side, StreamId};

use crate::error::{Code, Error, Fault};
use crate::field::Fields;
use crate::frame::{FrameHeader, HeaderReader, Kind};
use crate::glitches::Glitches;
use crate::limits::{MAX_FIELD_SECTION, MAX_INTERIM_RESPONSES, MAX_SPARE_CAPACITY};
use crate::message::{Check, Method};
use crate::qpack::{DecodeError, Decoded, Decoder};
use crate::transport::Transport;

/// What the connection lends to a stream for a step.
pub(crate) struct Lent<'a> {
    pub(crate) side: Side,
    pub(crate) now: Instant,
    pub(crate) glitches: &'a mut Glitches,
    pub(crate) decoder: &'a mut Decoder,
    /// Room for parts of field sections, on all streams together.
    pub(crate) section_room: usize,
    /// Empty field lists to fill.
    pub(crate) spare: &'a mut Vec<Fields>,
}

/// How far a step came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All that has arrived is used up, or is body that the application knows of.
    Blocked,
    /// An interim response.
    Interim(Fields),
    /// The header section of the message.
    Head(Fields),
    /// Body bytes wait to be read.
    Data,
    /// The trailer section.
    Trailers(Fields),
    /// The message is complete.
    End,
}

/// Which part of the message comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The header section.
    #[default]
    Head,
    /// The body, or trailers.
    Body,
    /// Nothing but the end.
    Trailed,
    /// The message is complete, or nobody wants the rest.
    Done,
}

/// Where in a frame the stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Frame {
    #[default]
    Header,
    Section {
        left: u64,
    },
    /// A field section is whole, but needs lines of the dynamic table that haven't come.
    Waiting,
    Data {
        left: u64,
    },
    Skip {
        left: u64,
    },
}

/// The state of the receiving half.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Receive {
    phase: Phase,
    frame: Frame,
    header: HeaderReader,
    /// A field section that has arrived in part, or waits.
    section: Vec<u8>,
    /// How many body bytes the message says it has.
    expected: Option<u64>,
    /// Body bytes in the DATA frames so far.
    announced: u64,
    interims: u8,
    /// A DATA frame was empty.
    has_empty_frame: bool,
    /// The application has been told of body bytes and has not yet found their end.
    told: bool,
    /// Where the stream ends, counted from what is next, once that has been lent out.
    end_after: Option<usize>,
    is_end_taken: bool,
    /// What was asked for: what the response may hold depends on it.
    pub(crate) method: Method,
    /// A CONNECT that was accepted: only DATA follows.
    is_tunnel: bool,
}

impl Receive {
    /// Back to the start, with the buffer kept unless it has grown large.
    pub(crate) fn recycle(&mut self) {
        let mut section = std::mem::take(&mut self.section);
        section.clear();
        section.shrink_to(MAX_SPARE_CAPACITY);
        *self = Self {
            section,
            ..Self::default()
        };
    }

    /// Whether nothing more comes, or nobody wants it.
    pub(crate) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Whether the header section has not been seen yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.phase == Phase::Head
    }

    /// Whether a field section is to come before anything else, or has come in part.
    pub(crate) fn is_section_open(&self) -> bool {
        match self.frame {
            Frame::Section { .. } | Frame::Waiting => !self.is_done(),
            Frame::Header | Frame::Data { .. } | Frame::Skip { .. } => self.is_fresh(),
        }
    }

    /// Bytes of a field section that are held.
    pub(crate) const fn held(&self) -> usize {
        self.section.len()
    }

    /// Nobody wants the rest.
    pub(crate) fn abandon(&mut self) {
        self.phase = Phase::Done;
        self.section = Vec::new();
    }

    /// Goes on until there is something to tell.
    pub(crate) fn advance<T: Transport>(
        &mut self,
        id: StreamId,
        transport: &mut T,
        lent: &mut Lent<'_>,
    ) -> Result<Step, Fault> {
        // Each turn takes bytes off the stream, ends a frame, or returns.
        loop {
            if self.phase == Phase::Done {
                return Ok(Step::Blocked);
            }
            if self.frame == Frame::Waiting {
                return match self.decode_held(id, lent)? {
                    Some(fields) => self.on_section(fields, lent.side),
                    None => Ok(Step::Blocked),
                };
            }
            let filled = self.lend(id, transport);
            match self.frame {
                Frame::Header if filled.data.is_empty() => {
                    return if filled.fin {
                        self.take_end(id, transport);
                        self.on_end(lent.side)
                    } else {
                        Ok(Step::Blocked)
                    };
                }
                Frame::Header => {
                    let (taken, fields) = self.frame(id, filled.data, lent)?;
                    self.take(id, transport, taken);
                    if let Some(fields) = fields {
                        return self.on_section(fields, lent.side);
                    }
                }
                Frame::Waiting => {}
                Frame::Data { left: 0 } | Frame::Skip { left: 0 } => self.frame = Frame::Header,
                Frame::Section { .. } | Frame::Data { .. } | Frame::Skip { .. }
                    if filled.data.is_empty() =>
                {
                    return if filled.fin {
                        Err(TRUNCATED)
                    } else {
                        Ok(Step::Blocked)
                    };
                }
                Frame::Data { .. } if self.told => return Ok(Step::Blocked),
                Frame::Data { .. } => {
                    self.told = true;
                    return Ok(Step::Data);
                }
                Frame::Skip { left } => {
                    let taken = at_most(filled.data, left).len();
                    self.frame = Frame::Skip {
                        left: left.saturating_sub(wide(taken)),
                    };
                    self.take(id, transport, taken);
                }
                Frame::Section { left } => {
                    let part = at_most(filled.data, left);
                    let taken = part.len();
                    hold(&mut self.section, part, lent)?;
                    let rest = left.saturating_sub(wide(taken));
                    self.frame = Frame::Section { left: rest };
                    self.take(id, transport, taken);
                    if rest == 0 {
                        self.frame = Frame::Waiting;
                    }
                }
            }
        }
    }

    /// Lends body bytes out; empty when the application has to wait for the next event.
    pub(crate) fn body<'t, T: Transport>(
        &mut self,
        id: StreamId,
        transport: &'t mut T,
    ) -> &'t [u8] {
        let data = match self.frame {
            Frame::Data { left } if left > 0 && self.phase != Phase::Done => {
                at_most(self.lend(id, transport).data, left)
            }
            Frame::Header
            | Frame::Section { .. }
            | Frame::Waiting
            | Frame::Data { .. }
            | Frame::Skip { .. } => &[],
        };
        self.told = !data.is_empty();
        data
    }

    /// Takes body bytes that were lent out off the stream; returns whether their frame is used up.
    pub(crate) fn consume<T: Transport>(
        &mut self,
        id: StreamId,
        transport: &mut T,
        count: usize,
    ) -> bool {
        let Frame::Data { left } = self.frame else {
            return false;
        };
        let left = left.saturating_sub(wide(count));
        self.frame = Frame::Data { left };
        self.take(id, transport, count);
        if left == 0 {
            self.told = false;
        }
        left == 0
    }

    /// What the transport has, remembering where the stream ends.
    fn lend<'t, T: Transport>(&mut self, id: StreamId, transport: &'t mut T) -> Fill<'t> {
        if self.end_after == Some(0) {
            return Fill {
                data: &[],
                fin: true,
            };
        }
        // A stream that can't be read any more has been reset, which an event tells.
        let filled = transport.fill(id).unwrap_or(Fill {
            data: &[],
            fin: false,
        });
        self.end_after = filled.fin.then_some(filled.data.len());
        filled
    }

    fn take<T: Transport>(&mut self, id: StreamId, transport: &mut T, count: usize) {
        if count > 0 {
            transport.consume(id, count);
            self.end_after = self.end_after.map(|after| after.saturating_sub(count));
            self.is_end_taken = self.end_after == Some(0);
        }
    }

    /// Takes an end behind which there are no bytes.
    fn take_end<T: Transport>(&mut self, id: StreamId, transport: &mut T) {
        if !std::mem::replace(&mut self.is_end_taken, true) {
            transport.consume(id, 0);
        }
    }

    /// Reads a frame header, and with it the whole section if it is there; returns how many bytes that took.
    #[inline]
    fn frame(
        &mut self,
        id: StreamId,
        data: &[u8],
        lent: &mut Lent<'_>,
    ) -> Result<(usize, Option<Fields>), Fault> {
        let (used, header) = self.header.read(data);
        let Some(header) = header else {
            return Ok((used, None));
        };
        self.on_frame(header, lent)?;
        if let Frame::Section { left } = self.frame
            && let Some(after) = data.get(used..)
            && let section = at_most(after, left)
            && wide(section.len()) == left
        {
            let fields = decode(id, section, lent)?;
            if fields.is_none() {
                hold(&mut self.section, section, lent)?;
                self.frame = Frame::Waiting;
            }
            return Ok((used + section.len(), fields));
        }
        Ok((used, None))
    }

    /// Decodes the section that is held, if what it needs is there.
    fn decode_held(&mut self, id: StreamId, lent: &mut Lent<'_>) -> Result<Option<Fields>, Fault> {
        let section = std::mem::take(&mut self.section);
        let fields = decode(id, &section, lent);
        self.section = section;
        if !matches!(fields, Ok(None)) {
            self.section.clear();
        }
        fields
    }

    /// Whether a frame may come now, and how to read it.
    fn on_frame(&mut self, header: FrameHeader, lent: &mut Lent<'_>) -> Result<(), Fault> {
        self.frame = match header.kind {
            Kind::HEADERS => {
                if self.phase == Phase::Trailed || self.is_tunnel {
                    return Err(UNEXPECTED);
                }
                if header.length > MAX_FIELD_SECTION {
                    return Err(TOO_LARGE);
                }
                Frame::Section {
                    left: header.length,
                }
            }
            Kind::DATA => {
                if self.phase != Phase::Body {
                    return Err(UNEXPECTED);
                }
                self.announced = self.announced.saturating_add(header.length);
                if self.expected.is_some_and(|most| self.announced > most) {
                    return Err(WRONG_LENGTH);
                }
                // One may be how a sender ends; more bring nothing.
                if header.length == 0 && std::mem::replace(&mut self.has_empty_frame, true) {
                    lent.glitches.count(lent.now).map_err(Fault::Connection)?;
                }
                Frame::Data {
                    left: header.length,
                }
            }
            Kind::PUSH_PROMISE if lent.side.is_client() => {
                // No MAX_PUSH_ID was sent, so that any push ID is over the limit (RFC 9114, 7.2.5).
                return Err(match header.length {
                    0 => Fault::connection(Code::FRAME_ERROR, "PUSH_PROMISE without a push ID"),
                    _ => Fault::connection(Code::ID_ERROR, "server push is not allowed"),
                });
            }
            Kind::PUSH_PROMISE
            | Kind::CANCEL_PUSH
            | Kind::SETTINGS
            | Kind::GOAWAY
            | Kind::MAX_PUSH_ID
            | Kind::PRIORITY_UPDATE
            | Kind::PUSH_PRIORITY_UPDATE => return Err(UNEXPECTED),
            kind if kind.is_reserved() => return Err(UNEXPECTED),
            _ => {
                lent.glitches.count(lent.now).map_err(Fault::Connection)?;
                Frame::Skip {
                    left: header.length,
                }
            }
        };
        Ok(())
    }

    /// A field section is complete.
    fn on_section(&mut self, fields: Fields, side: Side) -> Result<Step, Fault> {
        self.frame = Frame::Header;
        let mut check = Check::default();
        for field in &fields {
            check.line(field);
        }
        if self.phase == Phase::Body {
            check.trailers().map_err(malformed)?;
            self.phase = Phase::Trailed;
            return Ok(Step::Trailers(fields));
        }
        if side.is_server() {
            let request = check.request(false).map_err(malformed)?;
            self.method = request.method;
            self.is_tunnel = request.method == Method::Connect;
            self.expected = request.body;
        } else {
            let response = check.response().map_err(malformed)?;
            if response.is_interim() {
                self.interims += 1;
                if self.interims > MAX_INTERIM_RESPONSES {
                    return Err(Fault::stream(
                        Code::EXCESSIVE_LOAD,
                        "too many interim responses",
                    ));
                }
                return Ok(Step::Interim(fields));
            }
            self.is_tunnel = self.method == Method::Connect && response.is_success();
            self.expected = response.body(self.method);
        }
        self.phase = Phase::Body;
        Ok(Step::Head(fields))
    }

    /// The stream has ended.
    fn on_end(&mut self, side: Side) -> Result<Step, Fault> {
        if self.header.is_partial() {
            return Err(TRUNCATED);
        }
        match self.phase {
            Phase::Head if side.is_server() => Err(Fault::stream(
                Code::REQUEST_INCOMPLETE,
                "the stream ended before the request's header section",
            )),
            Phase::Head => Err(malformed("the stream ended before the final response")),
            Phase::Body | Phase::Trailed | Phase::Done
                if self.expected.is_some_and(|all| all != self.announced) =>
            {
                Err(WRONG_LENGTH)
            }
            Phase::Body | Phase::Trailed | Phase::Done => {
                self.phase = Phase::Done;
                Ok(Step::End)
            }
        }
    }
}

/// Keeps a part of a section until the rest is there.
fn hold(section: &mut Vec<u8>, part: &[u8], lent: &mut Lent<'_>) -> Result<(), Fault> {
    let room = lent.section_room.checked_sub(part.len());
    lent.section_room = room.ok_or(TOO_MANY)?;
    section.extend_from_slice(part);
    Ok(())
}

/// The lines of a section; `None` while it has to wait.
fn decode(id: StreamId, section: &[u8], lent: &mut Lent<'_>) -> Result<Option<Fields>, Fault> {
    let mut fields = lent.spare.pop().unwrap_or_default();
    let decoded = lent
        .decoder
        .decode(id.value(), section, MAX_FIELD_SECTION, &mut fields);
    match decoded {
        Ok(Decoded::Whole) => Ok(Some(fields)),
        Ok(Decoded::Blocked) => {
            lent.spare.push(fields);
            Ok(None)
        }
        Err(DecodeError::TooLarge) => Err(TOO_LARGE),
        Err(DecodeError::Failed(reason)) => {
            Err(Fault::connection(Code::QPACK_DECOMPRESSION_FAILED, reason))
        }
    }
}

const UNEXPECTED: Fault = Fault::connection(
    Code::FRAME_UNEXPECTED,
    "a frame that is not allowed at this point of a request stream",
);
const TRUNCATED: Fault = Fault::connection(
    Code::FRAME_ERROR,
    "the stream ended in the middle of a frame",
);
const TOO_LARGE: Fault = Fault::stream(Code::EXCESSIVE_LOAD, "the field section is too large");
const TOO_MANY: Fault = Fault::stream(
    Code::EXCESSIVE_LOAD,
    "too many field sections that have come in part",
);
const WRONG_LENGTH: Fault = malformed("the body doesn't have the length that content-length says");

const fn malformed(rule: &'static str) -> Fault {
    Fault::Stream(Error::new(Code::MESSAGE_ERROR, rule))
}

fn at_most(data: &[u8], most: u64) -> &[u8] {
    let length = usize::try_from(most).map_or(data.len(), |most| data.len().min(most));
    data.get(..length).unwrap_or_default()
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
