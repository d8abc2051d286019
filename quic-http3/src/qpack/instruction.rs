//! What goes over the two QPACK streams, [RFC 9204, sections 4.3 and 4.4](https://www.rfc-editor.org/rfc/rfc9204#section-4.3).
//!
//! Instructions of the encoder are read whole: strings lie where they arrived, and one that no table could take is refused by
//! its length. Those of the decoder are a single integer each, read byte by byte.

use quic_common::{Reader, Truncated};

use super::huffman;
use super::integer::{self, Invalid, Partial};
use super::static_table::entry;
use crate::error::{Code, Error};

/// What an encoder does to the dynamic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction<'a> {
    SetCapacity(u64),
    /// With the name of a line in the static table.
    InsertStatic {
        name: &'static [u8],
        value: Text<'a>,
    },
    /// With the name of another line in the dynamic table, counted back from the newest.
    InsertDynamic {
        index: u64,
        value: Text<'a>,
    },
    Insert {
        name: Text<'a>,
        value: Text<'a>,
    },
    /// A line again, counted back from the newest.
    Duplicate(u64),
}

/// A string literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text<'a> {
    is_huffman: bool,
    bytes: &'a [u8],
}

impl Text<'_> {
    /// Appends what it says to `out`.
    pub(super) fn decode(self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.is_huffman {
            huffman::decode(self.bytes, out)
                .map_err(|_malformed| encoder_error("a string is not a Huffman code"))
        } else {
            out.extend_from_slice(self.bytes);
            Ok(())
        }
    }
}

/// Bytes of a Huffman code stand for at least this part of a byte each: its longest codes have 30 bits.
const LONGEST_CODE: u64 = 4;

/// Reads an instruction off the front of `bytes`: how many bytes it has, and what it says; `None` when there is more to come.
///
/// # Errors
///
/// QPACK_ENCODER_STREAM_ERROR when an integer has more than 62 bits, a string is too long for a table of `capacity`, or the
/// static table has no such line.
pub(super) fn read(bytes: &[u8], capacity: u64) -> Result<Option<(usize, Instruction<'_>)>, Error> {
    let mut reader = Reader::new(bytes);
    match instruction(&mut reader, capacity) {
        Ok(instruction) => Ok(Some((bytes.len() - reader.remaining(), instruction))),
        Err(Unreadable::Short) => Ok(None),
        Err(Unreadable::Broken(reason)) => Err(encoder_error(reason)),
    }
}

/// Why there is no instruction.
#[derive(Clone, Copy, Debug)]
enum Unreadable {
    /// There is more to come.
    Short,
    Broken(&'static str),
}

impl From<Invalid> for Unreadable {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Truncated => Self::Short,
            Invalid::TooLarge => Self::Broken("an integer of more than 62 bits"),
        }
    }
}

impl From<Truncated> for Unreadable {
    fn from(_: Truncated) -> Self {
        Self::Short
    }
}

fn instruction<'a>(reader: &mut Reader<'a>, capacity: u64) -> Result<Instruction<'a>, Unreadable> {
    let first = reader.u8()?;
    Ok(match first >> 5 {
        0b100 | 0b101 => InsertDynamic {
            index: integer::decode(first, 6, reader)?,
            value: value(reader, capacity)?,
        },
        0b110 | 0b111 => InsertStatic {
            name: static_name(integer::decode(first, 6, reader)?)?,
            value: value(reader, capacity)?,
        },
        0b010 | 0b011 => Insert {
            name: text(first, 5, reader, capacity)?,
            value: value(reader, capacity)?,
        },
        0b001 => SetCapacity(integer::decode(first, 5, reader)?),
        _ => Duplicate(integer::decode(first, 5, reader)?),
    })
}

fn static_name(index: u64) -> Result<&'static [u8], Unreadable> {
    entry(index)
        .map(|(name, _)| name)
        .ok_or(Unreadable::Broken("no such entry in the static table"))
}

fn value<'a>(reader: &mut Reader<'a>, capacity: u64) -> Result<Text<'a>, Unreadable> {
    let first = reader.u8()?;
    text(first, 7, reader, capacity)
}

fn text<'a>(
    first: u8,
    prefix: u32,
    reader: &mut Reader<'a>,
    capacity: u64,
) -> Result<Text<'a>, Unreadable> {
    let length = integer::decode(first, prefix, reader)?;
    let is_huffman = first >> prefix & 1 == 1;
    let most = if is_huffman {
        capacity.saturating_mul(LONGEST_CODE)
    } else {
        capacity
    };
    let length = usize::try_from(length)
        .ok()
        .filter(|_| length <= most)
        .ok_or(Unreadable::Broken("a string that fits into no table"))?;
    let bytes = reader.bytes(length)?;
    Ok(Text { is_huffman, bytes })
}

use Instruction::{Duplicate, Insert, InsertDynamic, InsertStatic, SetCapacity};

pub(super) const fn encoder_error(reason: &'static str) -> Error {
    Error::new(Code::QPACK_ENCODER_STREAM_ERROR, reason)
}

/// What a decoder has to say to the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The oldest section of a stream, of those that refer to the dynamic table, was decoded.
    SectionAcknowledged(u64),
    /// Nobody reads a stream any more.
    StreamCancelled(u64),
    /// So many more lines have arrived.
    Increment(u64),
}

impl News {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::SectionAcknowledged(stream) => integer::encode(out, 0x80, 7, stream),
            Self::StreamCancelled(stream) => integer::encode(out, 0x40, 6, stream),
            Self::Increment(count) => integer::encode(out, 0x00, 6, count),
        }
    }
}

/// Reads a decoder's stream, cut anywhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewsReader {
    /// What goes on in the next byte, behind the bits that say what it is.
    partial: Option<(u8, Partial)>,
}

impl NewsReader {
    /// Reads a byte, and what it completes.
    pub(super) fn read(&mut self, byte: u8) -> Result<Option<News>, Error> {
        let (first, value) = match self.partial.as_mut() {
            Some((first, partial)) => (*first, partial.push(byte).map_err(|_long| TOO_LONG)?),
            None => match Partial::new(byte, if byte & 0x80 == 0 { 6 } else { 7 }) {
                Ok(value) => (byte, Some(value)),
                Err(partial) => {
                    self.partial = Some((byte, partial));
                    (byte, None)
                }
            },
        };
        let Some(value) = value else {
            return Ok(None);
        };
        self.partial = None;
        Ok(Some(match first >> 6 {
            0b00 => News::Increment(value),
            0b01 => News::StreamCancelled(value),
            _ => News::SectionAcknowledged(value),
        }))
    }
}

const TOO_LONG: Error = Error::new(
    Code::QPACK_DECODER_STREAM_ERROR,
    "an integer of more than 62 bits",
);

#[cfg(test)]
mod tests {
    use super::{Instruction, News, NewsReader, Text, read};
    use crate::error::{Code, Error};

    const CAPACITY: u64 = 220;

    const fn plain(bytes: &[u8]) -> Text<'_> {
        Text {
            is_huffman: false,
            bytes,
        }
    }

    /// The instructions of RFC 9204, B.2 to B.5, each from every cut.
    #[test]
    fn instructions_of_the_rfc() {
        let stream = [
            &[0x3f, 0xbd, 0x01, 0xc0, 0x0f][..],
            b"www.example.com\xc1\x0c/sample/path\x4acustom-key\x0ccustom-value\x02\x81\x0dcustom-value2",
        ]
        .concat();
        let expected = [
            Instruction::SetCapacity(220),
            Instruction::InsertStatic {
                name: b":authority",
                value: plain(b"www.example.com"),
            },
            Instruction::InsertStatic {
                name: b":path",
                value: plain(b"/sample/path"),
            },
            Instruction::Insert {
                name: plain(b"custom-key"),
                value: plain(b"custom-value"),
            },
            Instruction::Duplicate(2),
            Instruction::InsertDynamic {
                index: 1,
                value: plain(b"custom-value2"),
            },
        ];
        let mut rest = &stream[..];
        for expected in expected {
            let (used, instruction) = read(rest, CAPACITY).unwrap().unwrap();
            assert_eq!(instruction, expected);
            for cut in 0..used {
                assert_eq!(read(&rest[..cut], CAPACITY), Ok(None));
            }
            rest = &rest[used..];
        }
        assert_eq!(rest, b"");
    }

    /// A string is refused by its length, before any of it has come.
    #[test]
    fn a_string_that_no_table_could_take_is_refused_at_once() {
        let code = |bytes| read(bytes, CAPACITY).map_err(|error| error.code);
        let refused = Err(Code::QPACK_ENCODER_STREAM_ERROR);
        // Plain: 220 is 127 + 93.
        assert_eq!(code(&[0xc0, 0x7f, 93]), Ok(None));
        assert_eq!(code(&[0xc0, 0x7f, 94]), refused);
        // Huffman: 880 is 127 + 753.
        assert_eq!(code(&[0xc0, 0xff, 0xf1, 0x05]), Ok(None));
        assert_eq!(code(&[0xc0, 0xff, 0xf2, 0x05]), refused);
        let endless = [&[0x3f][..], &[0xff; 12]].concat();
        assert_eq!(code(&endless), refused);
        // So is a line that the static table doesn't have: entries 98 and 99.
        assert_eq!(code(&[0xff, 0x23]), Ok(None));
        assert_eq!(code(&[0xff, 0x24]), refused);
    }

    fn news(bytes: &[u8]) -> Result<Vec<News>, Error> {
        let mut reader = NewsReader::default();
        let mut all = Vec::new();
        for byte in bytes {
            all.extend(reader.read(*byte)?);
        }
        Ok(all)
    }

    /// The bytes of RFC 9204, B.2 to B.4, and integers of several bytes.
    #[test]
    fn news_of_the_rfc_and_longer_ones_come_back() {
        let all = [
            News::SectionAcknowledged(4),
            News::Increment(1),
            News::StreamCancelled(8),
            News::SectionAcknowledged(127),
            News::StreamCancelled(1 << 40),
            News::Increment((1 << 62) - 1),
        ];
        let mut bytes = Vec::new();
        for one in all {
            one.write(&mut bytes);
        }
        assert_eq!(bytes[..3], [0x84, 0x01, 0x48]);
        assert_eq!(news(&bytes), Ok(all.to_vec()));
        for first in [0x3f, 0x7f, 0xff] {
            let endless = [&[first][..], &[0xff; 12]].concat();
            let code = news(&endless).unwrap_err().code;
            assert_eq!(code, Code::QPACK_DECODER_STREAM_ERROR);
        }
    }
}
