//! The receiving part of one stream: its bytes, the credit that we give, and how it ends.
//!
//! Every byte up to the final size counts against the connection's window when it, or a byte behind it, arrives, and
//! is given back when the application has read it or will never want it.

use super::receive_state::{ReceiveEvent, ReceiveState};
use crate::buffer::{ChunkPool, ReceiveBuffer, TooManyPieces, to_length, to_offset};
use crate::error::{Error, StreamError};
use crate::flow::ReceiveWindow;
use crate::wire::TransportErrorCode as Code;

/// See the module.
#[derive(Debug)]
pub(super) struct ReceiveStream {
    pub(super) buffer: ReceiveBuffer,
    pub(super) window: ReceiveWindow,
    /// The end of what has arrived, gaps included.
    highest: u64,
    /// The final size, once known.
    size: Option<u64>,
    /// After so many bytes comes the peer's reset (RESET_STREAM_AT).
    reliable: Option<u64>,
    /// The code of the peer's reset, or of our STOP_SENDING.
    code: u64,
    state: ReceiveState,
    /// The application wants nothing more of the stream.
    stopped: bool,
}

impl ReceiveStream {
    pub(super) fn new(window: u64) -> Self {
        Self {
            buffer: ReceiveBuffer::default(),
            window: ReceiveWindow::new(window),
            highest: 0,
            size: None,
            reliable: None,
            code: 0,
            state: ReceiveState::default(),
            stopped: false,
        }
    }

    /// Checks what a frame of type `frame` says of the stream: data up to `end`, which is the final size if `last`.
    /// Returns by how much the stream grows.
    ///
    /// # Errors
    ///
    /// FINAL_SIZE_ERROR and FLOW_CONTROL_ERROR.
    #[inline]
    pub(super) fn check(&self, end: u64, last: bool, frame: u64) -> Result<u64, Error> {
        let size_error = |reason| Err(Error::new(Code::FINAL_SIZE_ERROR, frame, reason));
        match self.size {
            Some(size) if end > size => return size_error("data beyond the final size"),
            Some(size) if last && end != size => return size_error("the final size changed"),
            None if last && end < self.highest => {
                return size_error("a final size below what was received");
            }
            Some(_) | None => {}
        }
        if end > self.window.limit() {
            let reason = "more than the stream's limit";
            return Err(Error::new(Code::FLOW_CONTROL_ERROR, frame, reason));
        }
        Ok(end.saturating_sub(self.highest))
    }

    /// Takes in a STREAM frame that has been checked. Returns how many bytes nobody will read; they are used at once.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when there are too many pieces.
    #[inline]
    pub(super) fn on_data(
        &mut self,
        offset: u64,
        data: &[u8],
        fin: bool,
        frame: u64,
        pool: &mut ChunkPool,
    ) -> Result<u64, Error> {
        if !self.state.is_receiving() {
            return Ok(0);
        }
        let end = offset.saturating_add(to_offset(data.len()));
        let growth = end.saturating_sub(self.highest);
        self.highest = self.highest.max(end);
        if fin && self.size.is_none() {
            self.size = Some(end);
            self.step(ReceiveEvent::Fin);
        }
        if self.stopped {
            self.window.on_used(growth);
            if self.size.is_some() {
                self.end_unread();
            }
            return Ok(growth);
        }
        let data = self.reliable.map_or(data, |reliable| {
            let wanted = to_length(reliable.saturating_sub(offset));
            data.get(..wanted).unwrap_or(data)
        });
        self.buffer
            .insert(offset, data, pool)
            .map_err(|TooManyPieces| {
                Error::protocol(frame, "too many separate pieces of a stream")
            })?;
        if self.size == Some(self.buffer.contiguous()) && self.reliable.is_none() {
            self.step(ReceiveEvent::AllData);
        }
        Ok(0)
    }

    /// The buffer, for frames of the next bytes in order: while nothing but them can arrive without more to be decided.
    #[inline]
    pub(super) fn in_order(&mut self) -> Option<&mut ReceiveBuffer> {
        let is_plain = self.state == ReceiveState::Receive
            && !self.stopped
            && self.reliable.is_none()
            && self.buffer.is_in_order()
            && self.highest == self.buffer.contiguous();
        is_plain.then_some(&mut self.buffer)
    }

    /// Bytes were put at the end of what is [in order](Self::in_order); returns how many.
    #[inline]
    pub(super) const fn on_appended(&mut self) -> u64 {
        let growth = self.buffer.contiguous().saturating_sub(self.highest);
        self.highest = self.highest.saturating_add(growth);
        growth
    }

    /// Takes in a RESET_STREAM that has been checked. Returns how many bytes nobody will read, and whether the
    /// application is to be told.
    pub(super) fn on_reset(&mut self, code: u64, size: u64, pool: &mut ChunkPool) -> (u64, bool) {
        if !self.state.is_receiving() {
            return (0, false);
        }
        let unused = size.saturating_sub(self.used());
        self.highest = size;
        self.size = Some(size);
        self.code = code;
        self.step(ReceiveEvent::Reset);
        self.buffer.discard(pool);
        if self.stopped {
            self.step(ReceiveEvent::Read);
        }
        (unused, !self.stopped)
    }

    /// Takes in a RESET_STREAM_AT that has been checked: the first `reliable` bytes come first. Returns as
    /// [`Self::on_reset`] does.
    pub(super) fn on_reset_at(
        &mut self,
        code: u64,
        size: u64,
        reliable: u64,
        pool: &mut ChunkPool,
    ) -> (u64, bool) {
        if self.stopped || reliable <= self.buffer.read_offset() {
            return self.on_reset(code, size, pool);
        }
        if !self.state.is_receiving() {
            return (0, false);
        }
        if self.state == ReceiveState::Receive {
            self.step(ReceiveEvent::Fin);
        }
        self.highest = size;
        self.size = Some(size);
        self.code = code;
        // A frame that was overtaken can't make it more.
        let reliable = self.reliable.map_or(reliable, |known| known.min(reliable));
        self.reliable = Some(reliable);
        self.buffer.truncate(reliable, pool);
        (0, false)
    }

    /// Checks that a reset has the code of one before it, when either said how much is delivered.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR.
    pub(super) const fn check_code(
        &self,
        code: u64,
        is_partial: bool,
        frame: u64,
    ) -> Result<(), Error> {
        let is_known = match self.state {
            ReceiveState::SizeKnown => self.reliable.is_some(),
            ReceiveState::ResetReceived | ReceiveState::ResetRead => {
                is_partial || self.reliable.is_some()
            }
            ReceiveState::Receive | ReceiveState::DataReceived | ReceiveState::DataRead => false,
        };
        if is_known && !self.stopped && code != self.code {
            let reason = "the code of a reset changed";
            return Err(Error::new(Code::STREAM_STATE_ERROR, frame, reason));
        }
        Ok(())
    }

    /// If everything has been read that comes before the peer's reset, the reset counts. Returns how many bytes nobody
    /// will read.
    pub(super) fn reset_if_read(&mut self, pool: &mut ChunkPool) -> Option<u64> {
        let (reliable, size) = (self.reliable?, self.size?);
        if self.state != ReceiveState::SizeKnown || self.buffer.read_offset() < reliable {
            return None;
        }
        Some(self.on_reset(self.code, size, pool).0)
    }

    /// The application wants nothing more. Returns how many bytes it will not read, and whether the peer is to be told.
    ///
    /// # Errors
    ///
    /// When it has read everything, or stopped before.
    pub(super) fn stop(
        &mut self,
        code: u64,
        pool: &mut ChunkPool,
    ) -> Result<(u64, bool), StreamError> {
        if self.stopped || self.state.is_terminal() {
            return Err(StreamError::Finished);
        }
        let unused = match self.state {
            // A reset has counted everything already.
            ReceiveState::ResetReceived | ReceiveState::ResetRead => 0,
            ReceiveState::Receive
            | ReceiveState::SizeKnown
            | ReceiveState::DataReceived
            | ReceiveState::DataRead => self.highest.saturating_sub(self.used()),
        };
        let tell = self.state == ReceiveState::Receive;
        if self.state != ReceiveState::ResetReceived {
            self.code = code;
        }
        self.stopped = true;
        self.buffer.discard(pool);
        if !tell {
            self.end_unread();
        }
        Ok((unused, tell))
    }

    /// What STOP_SENDING says, while it is of use.
    pub(super) fn stop_frame(&self) -> Option<u64> {
        (self.stopped && self.state == ReceiveState::Receive).then_some(self.code)
    }

    /// Whether the peer may want more credit.
    #[inline]
    pub(super) fn wants_credit(&self) -> bool {
        self.state == ReceiveState::Receive && !self.stopped
    }

    /// Whether the application may read.
    ///
    /// # Errors
    ///
    /// When the peer has reset the stream, or the application has had everything or wanted no more.
    #[inline]
    pub(super) const fn readable(&self) -> Result<(), StreamError> {
        match self.state {
            ReceiveState::ResetReceived => Err(StreamError::Reset { code: self.code }),
            ReceiveState::DataRead | ReceiveState::ResetRead => Err(StreamError::Finished),
            _ if self.stopped => Err(StreamError::Finished),
            ReceiveState::Receive | ReceiveState::SizeKnown | ReceiveState::DataReceived => Ok(()),
        }
    }

    /// Whether all that is left, perhaps nothing, has arrived and lies before the end.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.state == ReceiveState::DataReceived
    }

    /// If everything has been read, the end has been too.
    #[inline]
    pub(super) fn end_if_read(&mut self) -> bool {
        let ends = self.is_complete() && self.buffer.readable() == 0;
        if ends {
            self.step(ReceiveEvent::Read);
        }
        ends
    }

    /// The application knows of the reset.
    pub(super) fn on_reset_told(&mut self) {
        if self.state == ReceiveState::ResetReceived {
            self.step(ReceiveEvent::Read);
        }
    }

    /// The code of the peer's reset.
    pub(super) const fn code(&self) -> u64 {
        self.code
    }

    /// The end of what has arrived, gaps included; the final size once a reset has told it.
    pub(super) const fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether the part has ended for both sides.
    #[inline]
    pub(super) const fn is_over(&self) -> bool {
        self.state.is_terminal()
    }

    /// Bytes that have been given back to the connection's window.
    const fn used(&self) -> u64 {
        if self.stopped {
            self.highest
        } else {
            self.buffer.read_offset()
        }
    }

    /// Ends the part though not everything has been read, and perhaps not everything has arrived.
    fn end_unread(&mut self) {
        if self.state == ReceiveState::SizeKnown {
            self.step(ReceiveEvent::AllData);
        }
        self.step(ReceiveEvent::Read);
    }

    #[inline]
    fn step(&mut self, event: ReceiveEvent) {
        match self.state.after(event) {
            Ok(state) => self.state = state,
            Err(_) => debug_assert!(false, "{event:?} in {:?}", self.state),
        }
    }
}
