//! Headers as bytes, right or wrong, and where the packets of a datagram begin.

use quic_common::Reader;

use super::frames::varint;
use super::protection::VERSION_2;
use super::seen::Level;

/// A packet to be sealed. Start from [`Draft::new`] and change what the script needs.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// Which keys and which header.
    pub level: Level,
    /// The payload.
    pub frames: &'a [u8],
    /// The packet number; the next one if it is left out.
    pub number: Option<u64>,
    /// How many bytes of the number are sent, 1 to 4.
    pub number_length: usize,
    /// Bits of the first byte to turn over before the header is protected.
    pub flip: u8,
    /// The version of a long header, if another than the right one.
    pub version: Option<u32>,
    /// The destination connection ID, if another than the right one.
    pub destination: Option<&'a [u8]>,
    /// The source connection ID, if another than the right one.
    pub source: Option<&'a [u8]>,
    /// The size of the whole packet, reached with PADDING frames.
    pub size: usize,
}

impl<'a> Draft<'a> {
    /// A packet as it should be; an Initial packet is padded to 1200 bytes.
    #[must_use]
    pub const fn new(level: Level, frames: &'a [u8]) -> Self {
        Self {
            level,
            frames,
            number: None,
            number_length: 4,
            flip: 0,
            version: None,
            destination: None,
            source: None,
            size: if matches!(level, Level::Initial) {
                1200
            } else {
                0
            },
        }
    }
}

/// What a header needs besides the draft.
#[derive(Debug)]
pub(super) struct Addressing<'a> {
    pub(super) version: u32,
    pub(super) destination: &'a [u8],
    pub(super) source: &'a [u8],
    pub(super) token: &'a [u8],
    pub(super) key_phase: bool,
    pub(super) number: u64,
}

/// The header of a packet with `payload` bytes of payload, without the tag.
pub(super) fn header(draft: &Draft<'_>, to: &Addressing<'_>, payload: usize) -> Vec<u8> {
    let number_bits = u8::try_from(draft.number_length - 1).unwrap();
    let destination = draft.destination.unwrap_or(to.destination);
    let source = draft.source.unwrap_or(to.source);
    let mut bytes = Vec::new();
    if draft.level == Level::OneRtt {
        let phase = u8::from(to.key_phase) << 2;
        bytes.push((0x40 | phase | number_bits) ^ draft.flip);
        bytes.extend(destination);
    } else {
        let kind = if draft.level == Level::Initial { 0 } else { 2 };
        let kind = kind + rotation(to.version);
        bytes.push((0xc0 | kind << 4 | number_bits) ^ draft.flip);
        bytes.extend(draft.version.unwrap_or(to.version).to_be_bytes());
        for cid in [destination, source] {
            bytes.push(u8::try_from(cid.len()).unwrap());
            bytes.extend(cid);
        }
        if draft.level == Level::Initial {
            bytes.extend(varint(u64::try_from(to.token.len()).unwrap()));
            bytes.extend(to.token);
        }
        let length = u64::try_from(draft.number_length + payload + 16).unwrap();
        bytes.extend(super::frames::long_varint(length, 4));
    }
    bytes.extend(&to.number.to_be_bytes()[8 - draft.number_length..]);
    bytes
}

/// RFC 9369, 3.2: by how much the kinds of packet are turned.
const fn rotation(version: u32) -> u8 {
    if version == VERSION_2 { 1 } else { 0 }
}

/// What stands at the beginning of a datagram, or of what is left of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start<'d> {
    /// A packet with keys: its level, where its number begins, and its end.
    Sealed {
        level: Level,
        version: u32,
        destination: &'d [u8],
        source: &'d [u8],
        token: &'d [u8],
        number_at: usize,
        end: usize,
    },
    Retry {
        source: &'d [u8],
        token: &'d [u8],
    },
    VersionNegotiation {
        versions: Vec<u32>,
    },
    Unknown,
}

/// Reads a header; a short one has a connection ID of `cid_length` bytes.
pub(super) fn start(bytes: &[u8], cid_length: usize) -> Start<'_> {
    read_start(bytes, cid_length).unwrap_or(Start::Unknown)
}

fn read_start(bytes: &[u8], cid_length: usize) -> Option<Start<'_>> {
    let mut reader = Reader::new(bytes);
    let first = reader.u8().ok()?;
    if first & 0x80 == 0 {
        return Some(Start::Sealed {
            level: Level::OneRtt,
            version: 0,
            destination: reader.bytes(cid_length).ok()?,
            source: &[],
            token: &[],
            number_at: 1 + cid_length,
            end: bytes.len(),
        });
    }
    let version = reader.u32().ok()?;
    let length = reader.u8().ok()?;
    let destination = reader.bytes(length.into()).ok()?;
    let length = reader.u8().ok()?;
    let source = reader.bytes(length.into()).ok()?;
    if version == 0 {
        let mut versions = Vec::new();
        while let Ok(version) = reader.u32() {
            versions.push(version);
        }
        return Some(Start::VersionNegotiation { versions });
    }
    let level = match (first >> 4).wrapping_sub(rotation(version)) & 3 {
        0 => Level::Initial,
        2 => Level::Handshake,
        3 => {
            let token = reader.remaining().checked_sub(16)?;
            return Some(Start::Retry {
                source,
                token: reader.bytes(token).ok()?,
            });
        }
        _ => return None,
    };
    let token = if level == Level::Initial {
        reader.length_prefixed().ok()?
    } else {
        &[]
    };
    let length = usize::try_from(reader.varint().ok()?).ok()?;
    let number_at = bytes.len() - reader.remaining();
    let end = number_at.checked_add(length)?;
    (end <= bytes.len()).then_some(Start::Sealed {
        level,
        version,
        destination,
        source,
        token,
        number_at,
        end,
    })
}

#[cfg(test)]
mod tests {
    use super::{Addressing, Draft, Start, VERSION_2, header, start};
    use crate::scripted::Level;

    #[test]
    fn what_is_written_is_read() {
        for version in [1, VERSION_2] {
            what_is_written_is_read_in(version);
        }
    }

    fn what_is_written_is_read_in(version: u32) {
        let to = Addressing {
            version,
            destination: b"destination",
            source: b"source",
            token: b"token",
            key_phase: true,
            number: 0x0102_0304,
        };
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            let draft = Draft::new(level, &[]);
            let mut packet = header(&draft, &to, 10);
            let header_length = packet.len();
            packet.resize(header_length + 26, 0);
            let expected = Start::Sealed {
                level,
                version: if level == Level::OneRtt { 0 } else { version },
                destination: to.destination,
                source: if level == Level::OneRtt {
                    &[]
                } else {
                    to.source
                },
                token: if level == Level::Initial {
                    to.token
                } else {
                    &[]
                },
                number_at: header_length - 4,
                end: packet.len(),
            };
            assert_eq!(start(&packet, to.destination.len()), expected);
        }
    }
}
