//! Field lines: borrowed ones, and an owned list of them in one allocation.
//!
//! A list keeps names and values end to end in one byte buffer, each line behind its two lengths; reading it is a
//! walk, and a recycled list costs nothing ([RFC 9114, section 4.2](https://www.rfc-editor.org/rfc/rfc9114#section-4.2)).

use crate::limits::{FIELD_OVERHEAD, MAX_SPARE_CAPACITY};

/// One field line, pseudo-header fields included: a lower-case name and a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name, in lower case.
    pub name: &'a [u8],
    /// The value, without surrounding white space.
    pub value: &'a [u8],
    /// Whether the value must never enter a compression table, here or behind an intermediary.
    pub sensitive: bool,
}

impl<'a> Field<'a> {
    /// A line that may be compressed in any way.
    #[must_use]
    pub fn new<N, V>(name: &'a N, value: &'a V) -> Self
    where
        N: AsRef<[u8]> + ?Sized,
        V: AsRef<[u8]> + ?Sized,
    {
        Self {
            name: name.as_ref(),
            value: value.as_ref(),
            sensitive: false,
        }
    }

    /// The same line, kept out of compression tables.
    #[must_use]
    pub const fn sensitive(self) -> Self {
        Self {
            sensitive: true,
            ..self
        }
    }

    /// What the line counts for in the size of a field section (RFC 9114, 4.2.2).
    #[must_use]
    pub fn size(&self) -> u64 {
        length(self.name) + length(self.value) + FIELD_OVERHEAD
    }
}

impl std::fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value: &[u8] = if self.sensitive { b"..." } else { self.value };
        write!(f, "{}: {}", self.name.escape_ascii(), value.escape_ascii())
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX >> 2)
}

/// Bytes that precede a line in the buffer: its two lengths.
const LENGTHS: usize = 8;
/// Marks a sensitive line, in the length of its value.
const SENSITIVE: u32 = 1 << 31;

/// An owned list of field lines, in order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields {
    bytes: Vec<u8>,
    count: usize,
}

impl Fields {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            count: 0,
        }
    }

    /// Appends a line.
    pub fn push(&mut self, field: Field<'_>) {
        let mark = self.begin();
        self.bytes.extend_from_slice(field.name);
        self.bytes.extend_from_slice(field.value);
        self.end(mark, field.name.len(), field.sensitive);
    }

    /// How many lines there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The size of the list as a field section: names, values and 32 bytes for each line.
    #[must_use]
    pub fn size(&self) -> u64 {
        let lines = u64::try_from(self.count).unwrap_or(u64::MAX >> 8);
        length(&self.bytes) + lines * (FIELD_OVERHEAD - 8)
    }

    /// The lines in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Self::lines_of(&self.bytes)
    }

    /// The value of the first line called `name`, which is in lower case.
    #[must_use]
    pub fn value<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Option<&[u8]> {
        self.iter()
            .find(|field| field.name == name.as_ref())
            .map(|field| field.value)
    }

    /// The `:method` of a request.
    #[must_use]
    pub fn method(&self) -> Option<&[u8]> {
        self.value(":method")
    }

    /// The `:path` of a request.
    #[must_use]
    pub fn path(&self) -> Option<&[u8]> {
        self.value(":path")
    }

    /// The `:authority` of a request, or its `host`.
    #[must_use]
    pub fn authority(&self) -> Option<&[u8]> {
        self.value(":authority").or_else(|| self.value("host"))
    }

    /// The `:status` of a response.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        let digits: [u8; 3] = self.value(":status")?.try_into().ok()?;
        digits.iter().try_fold(0_u16, |sum, digit| {
            let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
            Some(sum * 10 + u16::from(digit))
        })
    }

    /// Forgets the lines and keeps the buffer, unless it has grown large.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_SPARE_CAPACITY);
        self.count = 0;
    }

    /// The buffer, for the decoder to append to between [`Self::begin`] and [`Self::end`].
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Begins a line and returns a mark for its end.
    pub(crate) fn begin(&mut self) -> usize {
        let mark = self.bytes.len();
        self.bytes.extend_from_slice(&[0; LENGTHS]);
        mark
    }

    /// Ends the line begun at `mark`: `name` bytes of name, the rest is its value.
    pub(crate) fn end(&mut self, mark: usize, name: usize, sensitive: bool) {
        let value = self.bytes.len().saturating_sub(mark + LENGTHS + name);
        let lengths = [name, value].map(|length| u32::try_from(length).unwrap_or(u32::MAX >> 1));
        let [name, value] = lengths;
        let value = value | if sensitive { SENSITIVE } else { 0 };
        if let Some(space) = self.bytes.get_mut(mark..mark + LENGTHS) {
            let (first, second) = space.split_at_mut(LENGTHS / 2);
            first.copy_from_slice(&name.to_ne_bytes());
            second.copy_from_slice(&value.to_ne_bytes());
        }
        self.count += 1;
    }

    /// Takes the buffer, which [`Self::lines_of`] reads.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The lines in a buffer taken from a list.
    pub(crate) const fn lines_of(bytes: &[u8]) -> Iter<'_> {
        Iter { rest: bytes }
    }
}

impl std::fmt::Debug for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<'a> IntoIterator for &'a Fields {
    type Item = Field<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> FromIterator<Field<'a>> for Fields {
    fn from_iter<I: IntoIterator<Item = Field<'a>>>(lines: I) -> Self {
        let mut fields = Self::new();
        for field in lines {
            fields.push(field);
        }
        fields
    }
}

/// Walks over the lines of [`Fields`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        let (name, rest) = self.rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_first_chunk::<4>()?;
        let value = u32::from_ne_bytes(*value);
        let name_length = usize::try_from(u32::from_ne_bytes(*name)).ok()?;
        let value_length = usize::try_from(value & !SENSITIVE).ok()?;
        let (name, rest) = rest.split_at_checked(name_length)?;
        let (field_value, rest) = rest.split_at_checked(value_length)?;
        self.rest = rest;
        Some(Field {
            name,
            value: field_value,
            sensitive: value & SENSITIVE != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, Fields};

    #[test]
    fn lines_come_back_in_order() {
        let lines = [
            Field::new(":status", "200"),
            Field::new("empty", ""),
            Field::new("cookie", "secret").sensitive(),
        ];
        let fields: Fields = lines.into_iter().collect();
        assert_eq!(fields.len(), 3);
        assert!(fields.iter().eq(lines));
        assert_eq!(fields.size(), lines.iter().map(Field::size).sum::<u64>());
        assert_eq!(fields.status(), Some(200));
        assert_eq!(fields.value("cookie"), Some(&b"secret"[..]));
        assert_eq!(fields.value("none"), None);
    }

    #[test]
    fn a_cleared_list_keeps_its_buffer_only_when_small() {
        let mut fields = Fields::new();
        fields.push(Field::new("a", "b"));
        let capacity = fields.bytes.capacity();
        fields.clear();
        assert!(fields.is_empty() && fields.bytes.capacity() == capacity);
        fields.push(Field::new("a", &vec![b'x'; 100_000]));
        fields.clear();
        assert!(fields.bytes.capacity() <= super::MAX_SPARE_CAPACITY);
    }

    #[test]
    fn sensitive_values_are_not_printed() {
        let field = Field::new("cookie", "secret").sensitive();
        assert_eq!(format!("{field:?}"), "cookie: ...");
    }
}
