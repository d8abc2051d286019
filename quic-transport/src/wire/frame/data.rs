//! The headers of the frames that carry bytes: STREAM ([RFC 9000, section 19.8](https://www.rfc-editor.org/rfc/rfc9000#section-19.8)),
//! CRYPTO (19.6) and DATAGRAM ([RFC 9221, section 4](https://www.rfc-editor.org/rfc/rfc9221#section-4)).
//!
//! Only the header is encoded here: the bytes are copied behind it straight from where they are kept.

use quic_common::{MAX_VARINT, Reader, Writer, varint_size};

use super::Frame;
use super::types::{
    CRYPTO, DATAGRAM, DATAGRAM_LENGTH, STREAM, STREAM_FIN, STREAM_LENGTH, STREAM_OFFSET,
};
use crate::wire::code::TransportErrorCode;
use crate::wire::encode::{Encode, wide};
use crate::wire::malformed::Malformed;
use crate::wire::stream_id::StreamId;

/// A STREAM frame, borrowed from its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamFrame<'a> {
    /// The stream.
    pub(crate) id: StreamId,
    /// Where in the stream the bytes belong; offset and length together are at most 2^62 - 1.
    pub(crate) offset: u64,
    /// The bytes.
    pub(crate) data: &'a [u8],
    /// Whether the stream ends behind them.
    pub(crate) fin: bool,
}

impl<'a> From<StreamFrame<'a>> for Frame<'a> {
    #[inline]
    fn from(frame: StreamFrame<'a>) -> Self {
        let StreamFrame {
            id,
            offset,
            data,
            fin,
        } = frame;
        Self::Stream {
            id,
            offset,
            data,
            fin,
        }
    }
}

/// A STREAM frame without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamHeader {
    /// The stream.
    pub(crate) id: StreamId,
    /// Where in the stream the data belongs.
    pub(crate) offset: u64,
    /// Bytes of data; `None` when it goes on to the end of the packet, and nothing may follow.
    pub(crate) length: Option<usize>,
    /// Whether the stream ends behind the data.
    pub(crate) fin: bool,
}

impl StreamHeader {
    /// The frame for the `available` bytes from `offset` in `room` bytes, and how many of them it takes.
    ///
    /// The length is left out when the frame then fills the room to the last byte. The FIN that ends the available
    /// bytes is only there when all are taken. `None` when not one byte fits, or, with no bytes available, the FIN.
    #[inline]
    pub(crate) fn fit(
        id: StreamId,
        offset: u64,
        room: usize,
        available: usize,
        fin: bool,
    ) -> Option<(Self, usize)> {
        let fixed = 1 + varint_size(id.value()) + offset_size(offset);
        let space = room.checked_sub(fixed)?;
        if available >= space && space > 0 {
            let header = Self {
                id,
                offset,
                length: None,
                fin: fin && available == space,
            };
            return Some((header, space));
        }
        // The field is sized for what could be taken without it: a byte may stay free, none is used twice.
        let space = space.checked_sub(varint_size(wide(available.min(space))))?;
        let taken = available.min(space);
        if taken == 0 && !(fin && available == 0) {
            return None;
        }
        let header = Self {
            id,
            offset,
            length: Some(taken),
            fin: fin && taken == available,
        };
        Some((header, taken))
    }
}

impl Encode for StreamHeader {
    #[inline]
    fn size(&self) -> usize {
        1 + varint_size(self.id.value())
            + offset_size(self.offset)
            + self.length.map_or(0, |length| varint_size(wide(length)))
    }

    #[expect(
        clippy::inline_always,
        reason = "where packets are written in a row, most of it is the same for all"
    )]
    #[inline(always)]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(stream_type(self.offset, self.length.is_some(), self.fin));
        writer.varint(self.id.value());
        if self.offset != 0 {
            writer.varint(self.offset);
        }
        if let Some(length) = self.length {
            writer.varint(wide(length));
        }
    }
}

#[inline]
const fn offset_size(offset: u64) -> usize {
    if offset == 0 { 0 } else { varint_size(offset) }
}

/// The type of a STREAM frame: an offset of 0 is left out.
#[inline]
pub(super) const fn stream_type(offset: u64, has_length: bool, fin: bool) -> u64 {
    let offset = if offset == 0 { 0 } else { STREAM_OFFSET };
    let length = if has_length { STREAM_LENGTH } else { 0 };
    let fin = if fin { STREAM_FIN } else { 0 };
    STREAM | offset | length | fin
}

/// Decodes what follows the type of a STREAM frame.
#[expect(
    clippy::inline_always,
    reason = "what is returned is moved through memory otherwise, and read before it has settled there"
)]
#[inline(always)]
pub(super) fn decode_stream<'a>(
    reader: &mut Reader<'a>,
    frame_type: u64,
) -> Result<StreamFrame<'a>, Malformed> {
    let id = StreamId::from_varint(reader.varint()?);
    let offset = if frame_type & STREAM_OFFSET == 0 {
        0
    } else {
        reader.varint()?
    };
    let data = if frame_type & STREAM_LENGTH == 0 {
        reader.bytes(reader.remaining())?
    } else {
        reader.length_prefixed()?
    };
    if offset > MAX_VARINT - wide(data.len()) {
        return Err(Malformed::frame(
            frame_type,
            "the stream goes beyond 2^62 - 1 bytes",
        ));
    }
    Ok(StreamFrame {
        id,
        offset,
        data,
        fin: frame_type & STREAM_FIN != 0,
    })
}

/// A CRYPTO frame without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CryptoHeader {
    /// Where in the level's stream the data belongs.
    pub(crate) offset: u64,
    /// Bytes of data.
    pub(crate) length: usize,
}

impl CryptoHeader {
    /// The frame for up to `available` bytes from `offset` in `room` bytes; `None` when not one byte fits.
    #[inline]
    pub(crate) fn fit(offset: u64, room: usize, available: usize) -> Option<Self> {
        let space = room.checked_sub(1 + varint_size(offset))?;
        let space = space.checked_sub(varint_size(wide(available.min(space))))?;
        let length = available.min(space);
        (length > 0).then_some(Self { offset, length })
    }
}

impl Encode for CryptoHeader {
    #[inline]
    fn size(&self) -> usize {
        1 + varint_size(self.offset) + varint_size(wide(self.length))
    }

    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(CRYPTO);
        writer.varint(self.offset);
        writer.varint(wide(self.length));
    }
}

/// A DATAGRAM frame without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramHeader {
    /// Bytes of data; `None` when it goes on to the end of the packet, and nothing may follow.
    length: Option<usize>,
}

impl DatagramHeader {
    /// The header with a length field, behind which other frames may follow.
    pub(crate) const fn with_length(length: usize) -> Self {
        Self {
            length: Some(length),
        }
    }

    /// The frame for `length` bytes of data in `room` bytes, and how many bytes of padding have to precede it.
    ///
    /// The length field is left out when there is no room for it: the frame then ends the packet. `None` when the data
    /// doesn't fit.
    pub(crate) fn fit(room: usize, length: usize) -> Option<(Self, usize)> {
        let header = Self::with_length(length);
        if header.size().checked_add(length)? <= room {
            return Some((header, 0));
        }
        let spare = room.checked_sub(length.checked_add(1)?)?;
        Some((Self { length: None }, spare))
    }
}

impl Encode for DatagramHeader {
    fn size(&self) -> usize {
        1 + self.length.map_or(0, |length| varint_size(wide(length)))
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        match self.length {
            Some(length) => {
                writer.varint(DATAGRAM_LENGTH);
                writer.varint(wide(length));
            }
            None => {
                writer.varint(DATAGRAM);
            }
        }
    }
}

/// Decodes what follows the type of a CRYPTO frame.
pub(super) fn decode_crypto<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let offset = reader.varint()?;
    let data = reader.length_prefixed()?;
    if offset > MAX_VARINT - wide(data.len()) {
        return Err(Malformed {
            code: TransportErrorCode::CRYPTO_BUFFER_EXCEEDED,
            frame: CRYPTO,
            reason: "the handshake goes beyond 2^62 - 1 bytes",
        });
    }
    Ok(Frame::Crypto { offset, data })
}

#[cfg(test)]
mod tests {
    use quic_common::{MAX_VARINT, Random, Reader, Writer};

    use super::{
        CryptoHeader, DatagramHeader, StreamFrame, StreamHeader, decode_crypto, decode_stream,
    };
    use crate::wire::code::TransportErrorCode;
    use crate::wire::encode::Encode;
    use crate::wire::frame::{Frame, Frames};
    use crate::wire::stream_id::StreamId;

    fn id(value: u64) -> StreamId {
        StreamId::try_from(value).unwrap()
    }

    /// A value of any number of bits up to `bits`.
    fn spread(random: &mut Random, bits: u64) -> u64 {
        let bits = random.below(bits + 1);
        random.below(1 << bits)
    }

    fn write(header: &impl Encode, packet: &mut [u8]) -> usize {
        let mut writer = Writer::new(packet);
        header.encode(&mut writer);
        assert_eq!(writer.len(), header.size());
        writer.len()
    }

    #[test]
    fn a_fitted_stream_frame_is_within_its_room_and_takes_all_it_can() {
        let mut random = Random::from_seed([9; 32]);
        for _ in 0..20_000 {
            let id = id(spread(&mut random, 62));
            let offset = spread(&mut random, 62);
            let room = usize::try_from(spread(&mut random, 12)).unwrap();
            let available = usize::try_from(spread(&mut random, 12)).unwrap();
            let fin = random.below(2) == 0;
            let Some((header, taken)) = StreamHeader::fit(id, offset, room, available, fin) else {
                assert!(room < 20 || (available == 0 && !fin));
                continue;
            };
            assert!(header.size() + taken <= room && taken <= available);
            assert!(taken == available || header.size() + taken + 2 > room);
            assert_eq!(header.fin, fin && taken == available);
            if offset > MAX_VARINT - 10_000 {
                continue;
            }
            let mut packet = vec![0xff; room];
            let start = write(&header, &mut packet);
            let used = header.length.map_or(room, |_| start + taken);
            let frame = Frames::new(&packet[..used]).unwrap().next().unwrap();
            assert_eq!(
                frame,
                Ok(Frame::Stream {
                    id,
                    offset,
                    data: &packet[start..start + taken],
                    fin: header.fin
                })
            );
        }
    }

    #[test]
    fn a_frame_that_fills_the_packet_has_no_length() {
        let (header, taken) = StreamHeader::fit(id(0), 0, 100, 98, true).unwrap();
        assert_eq!((header.length, header.fin, taken), (None, true, 98));
        let (header, taken) = StreamHeader::fit(id(0), 0, 100, 97, true).unwrap();
        assert_eq!((header.length, taken), (Some(96), 96));
        assert!(!header.fin, "a byte is left");
        let (header, taken) = StreamHeader::fit(id(0), 0, 100, 96, true).unwrap();
        assert_eq!((header.length, header.fin, taken), (Some(96), true, 96));
    }

    #[test]
    fn a_lone_fin_needs_three_bytes() {
        assert_eq!(StreamHeader::fit(id(0), 0, 2, 0, true), None);
        let (header, taken) = StreamHeader::fit(id(0), 0, 3, 0, true).unwrap();
        assert_eq!((header.length, taken), (Some(0), 0));
        assert_eq!(StreamHeader::fit(id(0), 0, 3, 0, false), None);
        assert_eq!(StreamHeader::fit(id(0), 0, 2, 5, false), None);
    }

    #[test]
    fn a_fitted_crypto_frame_is_within_its_room() {
        for room in 0..200 {
            for available in 0..200 {
                let Some(header) = CryptoHeader::fit(70, room, available) else {
                    assert!(room < 5 || available == 0);
                    continue;
                };
                assert!(header.size() + header.length <= room && header.length <= available);
                assert!(header.length > 0);
                assert!(header.length == available || header.size() + header.length + 1 >= room);
                let mut packet = vec![7; room];
                write(&header, &mut packet);
                let frame = Frames::new(&packet).unwrap().next().unwrap();
                let data = &vec![7; header.length][..];
                assert_eq!(frame, Ok(Frame::Crypto { offset: 70, data }));
            }
        }
    }

    /// RFC 9221, 4: the frame that leaves out its length extends to the end of the packet.
    #[test]
    fn a_datagram_without_room_for_its_length_ends_the_packet() {
        for length in [0, 1, 62, 63, 64, 1000] {
            let data = vec![7; length];
            for room in 0..length + 5 {
                let Some((header, padding)) = DatagramHeader::fit(room, length) else {
                    assert!(room < 1 + length);
                    continue;
                };
                let mut packet = vec![0; padding];
                packet.resize(padding + header.size(), 0);
                let start = write(&header, &mut packet[padding..]);
                assert_eq!(start, header.size());
                packet.extend_from_slice(&data);
                assert!(packet.len() <= room);
                assert!(header.length.is_some() || packet.len() == room);
                let last = Frames::new(&packet).unwrap().last().unwrap();
                assert_eq!(last, Ok(Frame::Datagram { data: &data }));
            }
        }
    }

    /// RFC 9000, 19.8: a largest offset over 2^62 - 1 MUST be a FRAME_ENCODING_ERROR or FLOW_CONTROL_ERROR.
    #[test]
    fn a_stream_ends_at_2_to_the_62() {
        let at_end = [4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1];
        let frame = decode_stream(&mut Reader::new(&at_end), 0x0e).unwrap();
        assert!(matches!(
            frame,
            StreamFrame {
                offset: MAX_VARINT,
                data: [],
                ..
            }
        ));
        let error = decode_stream(&mut Reader::new(&at_end), 0x0c).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::FRAME_ENCODING_ERROR);
        assert_eq!(error.frame, 0x0c);
    }

    /// RFC 9000, 19.6: CRYPTO beyond 2^62 - 1 MUST be a FRAME_ENCODING_ERROR or CRYPTO_BUFFER_EXCEEDED.
    #[test]
    fn a_handshake_ends_at_2_to_the_62() {
        let mut bytes = vec![0xff; 8];
        bytes.extend([1, 1]);
        let error = decode_crypto(&mut Reader::new(&bytes)).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
        bytes[8] = 0;
        assert!(decode_crypto(&mut Reader::new(&bytes)).is_ok());
    }
}
