//! The decoding end of QPACK: the dynamic table that the peer's encoder fills, and the sections that need it
//! ([RFC 9204, section 2.2](https://www.rfc-editor.org/rfc/rfc9204#section-2.2)).
//!
//! A section that needs lines which have not come yet is left where it is; its stream is named again once they have.

use std::mem;

use quic_common::Reader;

use super::decode::{DecodeError, lines};
use super::dynamic_table::{DynamicTable, Refused};
use super::instruction::{Instruction, News, encoder_error, read};
use super::prefix::Prefix;
use crate::error::{Code, Error};
use crate::field::Fields;
use crate::limits::{COPIES_PER_GLITCH, MAX_DECODER_NEWS};

/// What became of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decoded {
    /// All its lines are there.
    Whole,
    /// It needs lines of the dynamic table that have not come yet. The stream is [named](Decoder::take_unblocked) when
    /// they have.
    Blocked,
}

/// Decodes the field sections of a connection.
#[derive(Debug, Default)]
pub struct Decoder {
    table: DynamicTable,
    /// The capacity that the encoder may give the table at most.
    max_capacity: u64,
    /// Streams that may wait at a time.
    max_blocked: usize,
    /// The streams that wait, and for how many lines.
    blocked: Vec<(u64, u64)>,
    /// An instruction that has come in part.
    partial: Vec<u8>,
    /// How many lines the encoder knows to have arrived.
    told: u64,
    /// Bytes copied out of the table that haven't been counted.
    copied: usize,
    /// Instructions for the encoder.
    news: Vec<u8>,
}

impl Decoder {
    /// A decoder whose table may get a capacity of `max_capacity` bytes, and that lets up to `max_blocked` streams wait: what
    /// the settings say.
    #[must_use]
    pub fn new(max_capacity: u64, max_blocked: u64) -> Self {
        Self {
            max_capacity,
            max_blocked: usize::try_from(max_blocked).unwrap_or(usize::MAX),
            ..Self::default()
        }
    }

    /// Reads more of the encoder's stream.
    ///
    /// # Errors
    ///
    /// QPACK_ENCODER_STREAM_ERROR when it says what it must not.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.partial.is_empty() {
            let used = self.apply_all(bytes)?;
            let rest = bytes.get(used..).unwrap_or_default();
            self.partial.extend_from_slice(rest);
            return Ok(());
        }
        let mut partial = mem::take(&mut self.partial);
        partial.extend_from_slice(bytes);
        let used = self.apply_all(&partial)?;
        partial.drain(..used);
        self.partial = partial;
        Ok(())
    }

    /// Appends the lines of a section on `stream` to `fields`, of at most `limit` bytes in all (names, values and 32 bytes for
    /// each line).
    ///
    /// # Errors
    ///
    /// When the section is malformed, more streams than allowed would wait, or it goes over the limit; `fields` holds the lines
    /// before that.
    #[inline]
    pub fn decode(
        &mut self,
        stream: u64,
        section: &[u8],
        limit: u64,
        fields: &mut Fields,
    ) -> Result<Decoded, DecodeError> {
        let mut reader = Reader::new(section);
        let prefix = Prefix::read(&mut reader, self.max_capacity, self.table.inserted())
            .map_err(DecodeError::Failed)?;
        if prefix.required > self.table.inserted() {
            return self.block(stream, prefix.required);
        }
        let before = fields.buffer().len();
        let result = lines(&mut reader, prefix, &self.table, limit, fields);
        if prefix.required > 0 {
            self.copied += fields.buffer().len() - before;
        }
        result?;
        if prefix.required > 0 {
            News::SectionAcknowledged(stream).write(&mut self.news);
            self.told = self.told.max(prefix.required);
        }
        Ok(Decoded::Whole)
    }

    /// Nobody reads `stream` any more, though not all of it has come.
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.retain(|(blocked, _)| *blocked != stream);
        if self.max_capacity > 0 {
            News::StreamCancelled(stream).write(&mut self.news);
        }
    }

    /// A stream whose section can be decoded now.
    pub fn take_unblocked(&mut self) -> Option<u64> {
        let inserted = self.table.inserted();
        let is_free = |(_, required): &(u64, u64)| *required <= inserted;
        let place = self.blocked.iter().position(is_free)?;
        Some(self.blocked.swap_remove(place).0)
    }

    /// Whether so much was copied out of the table that it is to be counted as one more glitch.
    pub(crate) fn take_glitch(&mut self) -> bool {
        let rest = self.copied.checked_sub(COPIES_PER_GLITCH);
        self.copied = rest.unwrap_or(self.copied);
        rest.is_some()
    }

    /// Whether the encoder is to be told anything.
    #[inline]
    pub(crate) const fn has_news(&self) -> bool {
        !self.news.is_empty() || self.told < self.table.inserted()
    }

    /// Takes what the encoder is to be told, off to the decoder stream.
    ///
    /// # Errors
    ///
    /// H3_EXCESSIVE_LOAD when `is_clear` says that what was taken before has not left, and there is too much.
    pub fn take_news(&mut self, is_clear: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        if !is_clear {
            return if self.news.len() > MAX_DECODER_NEWS {
                let reason = "no room to acknowledge field sections";
                Err(Error::new(Code::EXCESSIVE_LOAD, reason))
            } else {
                Ok(())
            };
        }
        if let Some(count) = self.table.inserted().checked_sub(self.told)
            && count > 0
        {
            News::Increment(count).write(&mut self.news);
            self.told = self.table.inserted();
        }
        out.append(&mut self.news);
        Ok(())
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.table.rest();
        self.blocked.shrink_to_fit();
        self.partial.shrink_to_fit();
        self.news.shrink_to_fit();
    }

    fn block(&mut self, stream: u64, required: u64) -> Result<Decoded, DecodeError> {
        if !self.blocked.iter().any(|(blocked, _)| *blocked == stream) {
            if self.blocked.len() >= self.max_blocked {
                let reason = "more streams wait for the dynamic table than may";
                return Err(DecodeError::Failed(reason));
            }
            self.blocked.push((stream, required));
        }
        Ok(Decoded::Blocked)
    }

    /// Does what the instructions say that have come whole; returns how many bytes they were.
    fn apply_all(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut used = 0;
        while let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty())
            && let Some((length, instruction)) = read(rest, self.table.capacity())?
        {
            self.apply(instruction)?;
            used += length;
        }
        Ok(used)
    }

    fn apply(&mut self, instruction: Instruction<'_>) -> Result<(), Error> {
        let newest = self.table.inserted();
        let from_newest = |index: u64| newest.checked_sub(index)?.checked_sub(1);
        let table = &mut self.table;
        let result = match instruction {
            Instruction::SetCapacity(capacity) => {
                if capacity > self.max_capacity {
                    let reason = "a dynamic table capacity over the advertised one";
                    return Err(encoder_error(reason));
                }
                table.set_capacity(capacity);
                return Ok(());
            }
            Instruction::InsertStatic { name, value } => {
                table.append().extend_from_slice(name);
                value.decode(table.append())?;
                table.commit(name.len())
            }
            Instruction::InsertDynamic { index, value } => {
                let index = from_newest(index).ok_or(NO_LINE)?;
                let name = table.append_from(index, false).map_err(no_line)?;
                self.copied += name;
                value.decode(table.append())?;
                table.commit(name)
            }
            Instruction::Insert { name, value } => {
                let before = table.append().len();
                name.decode(table.append())?;
                let name = table.append().len() - before;
                value.decode(table.append())?;
                table.commit(name)
            }
            Instruction::Duplicate(index) => {
                let index = from_newest(index).ok_or(NO_LINE)?;
                let before = table.append().len();
                let name = table.append_from(index, true).map_err(no_line)?;
                self.copied += table.append().len() - before;
                table.commit(name)
            }
        };
        result.map_err(|_large| encoder_error("a line that is larger than the dynamic table"))
    }
}

const NO_LINE: Error = encoder_error("a reference to a line that is not in the dynamic table");

const fn no_line(_: Refused) -> Error {
    NO_LINE
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
