//! Frame headers, [RFC 9114, section 7](https://www.rfc-editor.org/rfc/rfc9114#section-7).
//!
//! Only the header of a frame is ever read here: what follows it is decoded, passed on or skipped where it lies.

use quic_common::{Reader, Writer};

/// A frame type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) u64);

impl Kind {
    pub(crate) const DATA: Self = Self(0x00);
    pub(crate) const HEADERS: Self = Self(0x01);
    pub(crate) const CANCEL_PUSH: Self = Self(0x03);
    pub(crate) const SETTINGS: Self = Self(0x04);
    pub(crate) const PUSH_PROMISE: Self = Self(0x05);
    pub(crate) const GOAWAY: Self = Self(0x07);
    pub(crate) const MAX_PUSH_ID: Self = Self(0x0d);
    /// For a request (RFC 9218, 7.2).
    pub(crate) const PRIORITY_UPDATE: Self = Self(0xf0700);
    /// For a push.
    pub(crate) const PUSH_PRIORITY_UPDATE: Self = Self(0xf0701);

    /// A type of HTTP/2 that has no place in HTTP/3 (RFC 9114, 7.2.8): PRIORITY, PING, WINDOW_UPDATE, CONTINUATION.
    pub(crate) const fn is_reserved(self) -> bool {
        matches!(self.0, 0x02 | 0x06 | 0x08 | 0x09)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: Kind,
    /// Bytes of payload that follow.
    pub(crate) length: u64,
}

/// The most bytes that a header takes: two variable-length integers.
pub(crate) const MAX_HEADER: usize = 16;

impl FrameHeader {
    fn parse(bytes: &[u8]) -> Option<(usize, Self)> {
        let mut reader = Reader::new(bytes);
        let kind = Kind(reader.varint().ok()?);
        let length = reader.varint().ok()?;
        Some((bytes.len() - reader.remaining(), Self { kind, length }))
    }

    /// Writes the header at the end of `space`, so that the payload can follow it, and returns where it begins.
    pub(crate) fn write_before(self, space: &mut [u8; MAX_HEADER]) -> usize {
        let size = quic_common::varint_size(self.kind.0) + quic_common::varint_size(self.length);
        let start = MAX_HEADER.saturating_sub(size);
        let mut writer = Writer::new(space.get_mut(start..).unwrap_or_default());
        let written = writer.varint(self.kind.0) && writer.varint(self.length);
        debug_assert!(written, "two integers of at most 62 bits fit");
        start
    }
}

/// Reads frame headers from a stream that may be cut anywhere.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeaderReader {
    held: [u8; MAX_HEADER],
    count: u8,
}

impl HeaderReader {
    /// Reads a header from the front of `input`: how many bytes were used, and the header if it is complete.
    #[inline]
    pub(crate) fn read(&mut self, input: &[u8]) -> (usize, Option<FrameHeader>) {
        if self.count == 0
            && let Some((used, header)) = FrameHeader::parse(input)
        {
            return (used, Some(header));
        }
        self.read_held(input)
    }

    fn read_held(&mut self, input: &[u8]) -> (usize, Option<FrameHeader>) {
        let before = usize::from(self.count);
        let mut copied = 0;
        if let Some(space) = self.held.get_mut(before..) {
            for (to, from) in space.iter_mut().zip(input) {
                *to = *from;
                copied += 1;
            }
        }
        let filled = before + copied;
        let parsed = self.held.get(..filled).and_then(FrameHeader::parse);
        if let Some((size, header)) = parsed {
            self.count = 0;
            return (size.saturating_sub(before), Some(header));
        }
        self.count = u8::try_from(filled).unwrap_or_default();
        (copied, None)
    }

    /// Whether a part of a header has been read.
    pub(crate) const fn is_partial(&self) -> bool {
        self.count != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{FrameHeader, HeaderReader, Kind, MAX_HEADER};

    #[test]
    fn a_header_comes_back_from_any_cut() {
        for length in [0, 63, 64, 16_384, 1 << 30, (1 << 62) - 1] {
            let header = FrameHeader {
                kind: Kind(0x0d),
                length,
            };
            let mut space = [0; MAX_HEADER];
            let start = header.write_before(&mut space);
            let bytes = [&space[start..], b"payload"].concat();
            for cut in 0..bytes.len() {
                let mut reader = HeaderReader::default();
                let (used, first) = reader.read(&bytes[..cut]);
                if let Some(first) = first {
                    assert_eq!((first, used), (header, MAX_HEADER - start));
                    continue;
                }
                assert_eq!(used, cut);
                assert_eq!(reader.is_partial(), cut != 0);
                let (more, second) = reader.read(&bytes[cut..]);
                assert_eq!((second, used + more), (Some(header), MAX_HEADER - start));
                assert!(!reader.is_partial());
            }
        }
    }

    #[test]
    fn long_forms_of_small_numbers_are_read() {
        let bytes = [0xc0, 0, 0, 0, 0, 0, 0, 1, 0xc0, 0, 0, 0, 0, 0, 0, 5];
        let (used, header) = HeaderReader::default().read(&bytes);
        let expected = FrameHeader {
            kind: Kind::HEADERS,
            length: 5,
        };
        assert_eq!((used, header), (16, Some(expected)));
    }
}
