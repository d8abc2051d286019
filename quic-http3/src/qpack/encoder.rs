//! The encoding end of QPACK: what goes into the dynamic table, and which sections refer to it
//! ([RFC 9204, section 2.1](https://www.rfc-editor.org/rfc/rfc9204#section-2.1)).
//!
//! A line is inserted when it comes for the second time, so that what comes once takes no room, and referred to once the
//! peer has said that it has arrived, so that no stream waits for another. One section at a time goes ahead, where the peer
//! permits: its acknowledgment tells sooner, or at all with a peer that acknowledges nothing else. Lines that sections
//! under way refer to stay.

use std::collections::VecDeque;

use super::dynamic_table::{DynamicTable, size_of};
use super::encode::{indexed, literal, string};
use super::instruction::{News, NewsReader};
use super::integer;
use super::prefix::Prefix;
use super::static_table::{Match, find};
use crate::error::{Code, Error};
use crate::field::Field;
use crate::limits::{MAX_ENCODER_CAPACITY, MAX_INSTRUCTIONS, MAX_SECTIONS_UNDER_WAY};

/// How many lines that came once are remembered, by their hashes.
const REMEMBERED: usize = 64;

/// Bytes that a line has at least, of which Huffman's code leaves two thirds, for the table to be worth its while: the
/// acknowledgment of a section that refers to it takes some in a packet, too, and work at both ends.
const WORTH_ACKNOWLEDGING: usize = 48;

/// The same, in a section that will be acknowledged anyway.
const WORTH_REFERRING: usize = 6;

/// Secrets shorter than this could be guessed one after the other by someone who makes us send guesses, and sees how
/// long the section becomes (RFC 9204, 7.1.3).
const GUESSABLE: usize = 20;

/// Encodes the field sections of a connection.
#[derive(Debug, Default)]
pub struct Encoder {
    table: DynamicTable,
    /// Of each line in the table, hashes of its name and of the whole.
    hashes: VecDeque<Hashes>,
    /// What the peer's settings allow.
    max_capacity: u64,
    may_go_ahead: bool,
    /// Instructions that were taken have not all left.
    is_held_up: bool,
    /// Lines that have arrived, of those inserted.
    known: u64,
    /// Sections that refer to the table, in the order in which they were sent.
    under_way: VecDeque<(u64, References)>,
    remembered: VecDeque<u32>,
    /// For the peer's decoder.
    instructions: Vec<u8>,
    news: NewsReader,
}

/// A section that was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Encoded {
    /// Names, values and 32 bytes for each line, as the peer's SETTINGS_MAX_FIELD_SECTION_SIZE counts.
    pub size: u64,
    /// What of the table it refers to.
    pub references: References,
}

/// Lines of the table that a section refers to: from the first to before the end, if there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    first: u64,
    end: u64,
}

impl References {
    const fn is_empty(self) -> bool {
        self.end == 0
    }

    fn add(&mut self, index: u64) {
        self.first = if self.is_empty() {
            index
        } else {
            self.first.min(index)
        };
        self.end = self.end.max(index.saturating_add(1));
    }
}

#[derive(Clone, Copy, Debug)]
struct Hashes {
    name: u32,
    line: u32,
}

/// What the table has of a line, by absolute index.
#[derive(Clone, Copy, Debug, Default)]
struct InTable {
    line: Option<u64>,
    name: Option<u64>,
}

impl Encoder {
    /// An encoder whose peer allows the table `max_capacity` bytes, and lets `max_blocked` streams wait for it.
    #[must_use]
    pub fn new(max_capacity: u64, max_blocked: u64) -> Self {
        Self {
            max_capacity,
            may_go_ahead: max_blocked > 0,
            ..Self::default()
        }
    }

    /// Appends the encoded field section of `fields` to `out`. If it is sent, that is to be [told](Self::on_sent).
    #[inline]
    pub fn encode<'a>(
        &mut self,
        fields: impl IntoIterator<Item = Field<'a>>,
        out: &mut Vec<u8>,
    ) -> Encoded {
        let start = out.len();
        // Required Insert Count 0, Base 0.
        out.extend_from_slice(&[0, 0]);
        let has_table = self.max_capacity > 0 && self.under_way.len() < MAX_SECTIONS_UNDER_WAY;
        let base = self.base();
        let mut encoded = Encoded {
            size: 0,
            references: References::default(),
        };
        for field in fields {
            encoded.size = encoded.size.saturating_add(field.size());
            let found = find(field.name, field.value);
            if indexed(field, found, out) {
                continue;
            }
            if has_table && is_worth_it(field, found, encoded.references) {
                self.line(field, found, base, &mut encoded.references, out);
            } else {
                literal(field, found, out);
            }
        }
        if !encoded.references.is_empty() {
            let required = encoded.references.end;
            let prefix = Prefix { required, base };
            prefix.write_over(start..start + 2, self.max_capacity, out);
        }
        encoded
    }

    /// A section was sent on `stream`: the lines that it refers to stay until it is acknowledged.
    #[inline]
    pub fn on_sent(&mut self, stream: u64, references: References) {
        if !references.is_empty() {
            self.under_way.push_back((stream, references));
        }
    }

    /// Reads more of the decoder's stream.
    ///
    /// # Errors
    ///
    /// QPACK_DECODER_STREAM_ERROR when it says what it must not.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for byte in bytes {
            if let Some(news) = self.news.read(*byte)? {
                self.on_news(news)?;
            }
        }
        Ok(())
    }

    /// Takes the instructions for the decoder, off to the encoder stream.
    pub fn take_instructions(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.instructions);
    }

    /// Whether instructions that were [taken](Self::take_instructions) wait for credit: no section goes ahead of those, which
    /// could take the credit that they need (RFC 9204, 2.1.3).
    #[inline]
    pub const fn hold_up(&mut self, is_held_up: bool) {
        self.is_held_up = is_held_up;
    }

    /// Whether there are instructions for the decoder.
    #[inline]
    pub(crate) const fn has_instructions(&self) -> bool {
        !self.instructions.is_empty()
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.table.rest();
        self.hashes.shrink_to_fit();
        self.under_way.shrink_to_fit();
        self.remembered = VecDeque::new();
        self.instructions.shrink_to_fit();
    }

    /// RFC 9204, 4.4.
    fn on_news(&mut self, news: News) -> Result<(), Error> {
        match news {
            News::SectionAcknowledged(stream) => {
                let place = self.under_way.iter().position(|(on, _)| *on == stream);
                let section = place.and_then(|place| self.under_way.remove(place));
                let (_, references) = section.ok_or(NOT_SENT)?;
                self.known = self.known.max(references.end);
            }
            News::StreamCancelled(stream) => self.under_way.retain(|(on, _)| *on != stream),
            News::Increment(count) => {
                let known = self.known.checked_add(count).filter(|_| count > 0);
                let known = known.filter(|known| *known <= self.table.inserted());
                self.known = known.ok_or(NOT_INSERTED)?;
            }
        }
        Ok(())
    }

    /// Lines from this one on may not be referred to.
    fn base(&self) -> u64 {
        let known = self.known;
        let is_ahead = |(_, references): &(u64, References)| references.end > known;
        // Instructions that wait here come later than the section.
        let goes_ahead = self.may_go_ahead
            && !self.is_held_up
            && known < self.table.inserted()
            && !self.has_instructions()
            && !self.under_way.iter().any(is_ahead);
        if goes_ahead {
            self.table.inserted()
        } else {
            known
        }
    }

    /// A line that isn't in the static table.
    fn line(
        &mut self,
        field: Field<'_>,
        found: Option<Match>,
        base: u64,
        references: &mut References,
        out: &mut Vec<u8>,
    ) {
        let hashes = Hashes::of(field);
        let in_table = self.find(field, hashes);
        if let Some(index) = in_table.line
            && index < base
            && may_be_inserted(field)
        {
            references.add(index);
            integer::encode(out, 0b1000_0000, 6, base - index - 1);
            return;
        }
        if in_table.line.is_none() && may_be_inserted(field) {
            self.consider(field, found, in_table.name, hashes, *references);
        }
        let name = in_table.name.filter(|index| {
            let is_there = *index < base && *index >= self.table.oldest();
            found.is_none() && is_there
        });
        if let Some(index) = name {
            references.add(index);
            let never = u8::from(field.sensitive);
            integer::encode(out, 0b0100_0000 | never << 5, 4, base - index - 1);
            string(field.value, 0, 7, out);
        } else {
            literal(field, found, out);
        }
    }

    /// Looks for a line in the table, the newest first.
    fn find(&self, field: Field<'_>, hashes: Hashes) -> InTable {
        let mut in_table = InTable::default();
        let indexes = (self.table.oldest()..self.table.inserted()).rev();
        for (index, there) in indexes.zip(self.hashes.iter().rev()) {
            if there.name != hashes.name {
                continue;
            }
            let Some((name, value)) = self.table.get(index) else {
                break;
            };
            if name != field.name {
                continue;
            }
            in_table.name = in_table.name.or(Some(index));
            if there.line == hashes.line && value == field.value {
                in_table.line = Some(index);
                break;
            }
        }
        in_table
    }

    /// Inserts a line that has come before; remembers one that hasn't.
    fn consider(
        &mut self,
        field: Field<'_>,
        found: Option<Match>,
        name: Option<u64>,
        hashes: Hashes,
        references: References,
    ) {
        let has_come = self.remembered.iter().position(|one| *one == hashes.line);
        if let Some(place) = has_come {
            if self.insert(field, found, name, references) {
                self.remembered.remove(place);
                self.hashes.push_back(hashes);
                let lines = self.table.inserted() - self.table.oldest();
                let gone = self.hashes.len().saturating_sub(narrow(lines));
                self.hashes.drain(..gone);
            }
            return;
        }
        if self.remembered.len() >= REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back(hashes.line);
    }

    /// Inserts a line, unless one would have to leave that must not.
    fn insert(
        &mut self,
        field: Field<'_>,
        found: Option<Match>,
        name: Option<u64>,
        references: References,
    ) -> bool {
        let length = field.name.len().saturating_add(field.value.len());
        if self.instructions.len().saturating_add(length) > MAX_INSTRUCTIONS {
            return false;
        }
        let capacity = self.max_capacity.min(MAX_ENCODER_CAPACITY);
        if self.table.capacity() != capacity {
            self.table.set_capacity(capacity);
            integer::encode(&mut self.instructions, 0b0010_0000, 5, capacity);
        }
        // A line that takes more than half of the table would leave little room for others.
        let size = size_of(length);
        let Some(kept) = self.table.first_kept(size).filter(|_| size <= capacity / 2) else {
            return false;
        };
        if kept > self.table.oldest() && kept > self.pinned(references) {
            return false;
        }
        let newest = self.table.inserted();
        let out = &mut self.instructions;
        match (found, name.filter(|index| *index >= kept)) {
            (Some(Match::Line(index) | Match::Name(index)), _) => {
                integer::encode(out, 0b1100_0000, 6, u64::from(index));
            }
            (None, Some(index)) => integer::encode(out, 0b1000_0000, 6, newest - index - 1),
            (None, None) => string(field.name, 0b0100_0000, 5, out),
        }
        string(field.value, 0, 7, out);
        let inserted = self.table.insert(field.name, field.value);
        debug_assert!(inserted.is_ok(), "there is room for it");
        inserted.is_ok()
    }

    /// The first line that must stay: it is referred to, or may not have arrived (RFC 9204, 2.1.1).
    fn pinned(&self, references: References) -> u64 {
        let current = (!references.is_empty()).then_some(references.first);
        let under_way = self.under_way.iter().map(|(_, under_way)| under_way.first);
        under_way.chain(current).fold(self.known, u64::min)
    }
}

/// Whether the table may help with a line.
const fn is_worth_it(field: Field<'_>, found: Option<Match>, references: References) -> bool {
    let name = if found.is_some() { 1 } else { field.name.len() };
    let least = if references.is_empty() {
        WORTH_ACKNOWLEDGING
    } else {
        WORTH_REFERRING
    };
    name.saturating_add(field.value.len()) >= least
}

/// Whether the value of a line may stand in the table.
fn may_be_inserted(field: Field<'_>) -> bool {
    let is_secret = match field.name {
        b"authorization" | b"proxy-authorization" => true,
        b"cookie" | b"set-cookie" => field.value.len() < GUESSABLE,
        _ => false,
    };
    !is_secret && !field.sensitive
}

impl Hashes {
    fn of(field: Field<'_>) -> Self {
        let name = hash(0, field.name);
        let line = hash(name, field.value);
        let low = |hash: u64| u32::try_from(hash & u64::from(u32::MAX)).unwrap_or_default();
        Self {
            name: low(name),
            line: low(line),
        }
    }
}

/// Tells lines apart that differ by chance; the ones that were made to be alike cost a comparison.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| {
        let mixed = (state ^ word).wrapping_mul(FACTOR);
        mixed ^ (mixed >> 32)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let state = words
        .iter()
        .fold(seed, |state, word| mix(state, u64::from_ne_bytes(*word)));
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let length = u64::try_from(bytes.len()).unwrap_or_default();
    mix(mix(state, u64::from_ne_bytes(last)), length)
}

fn narrow(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

const NOT_SENT: Error = Error::new(
    Code::QPACK_DECODER_STREAM_ERROR,
    "an acknowledgment of a section that was never sent",
);
const NOT_INSERTED: Error = Error::new(
    Code::QPACK_DECODER_STREAM_ERROR,
    "an increment of none, or beyond what was inserted",
);

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
