//! What the peer sends on its two QPACK streams, [RFC 9204, section 4](https://www.rfc-editor.org/rfc/rfc9204#section-4).
//!
//! While both dynamic tables have capacity 0, little is allowed: the encoder may say so once more, and the decoder
//! may cancel streams. Both are read byte by byte, so nothing is held and no length is believed.

use super::integer::Partial;
use crate::error::{Code, Error};

/// The peer's encoder stream: changes to a dynamic table that can hold nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EncoderStream {
    /// A capacity that goes on in the next byte.
    capacity: Option<Partial>,
}

impl EncoderStream {
    /// Reads more of the stream.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for byte in bytes {
            let capacity = match self.capacity.as_mut() {
                Some(partial) => partial.push(*byte).map_err(|_long| TABLE_TOO_LARGE)?,
                None if byte >> 5 == 0b001 => match Partial::new(*byte, 5) {
                    Ok(capacity) => Some(capacity),
                    Err(partial) => {
                        self.capacity = Some(partial);
                        None
                    }
                },
                // Insert with name reference, insert with literal name, duplicate.
                None => {
                    return Err(Error::new(
                        Code::QPACK_ENCODER_STREAM_ERROR,
                        "an entry for a dynamic table of capacity 0",
                    ));
                }
            };
            match capacity {
                Some(0) => self.capacity = None,
                Some(_) => return Err(TABLE_TOO_LARGE),
                None => {}
            }
        }
        Ok(())
    }
}

const TABLE_TOO_LARGE: Error = Error::new(
    Code::QPACK_ENCODER_STREAM_ERROR,
    "a dynamic table capacity over the advertised 0",
);

/// The peer's decoder stream: news about sections and entries, of which we have sent none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DecoderStream {
    /// A stream cancellation that goes on in the next byte.
    cancelled: Option<Partial>,
}

impl DecoderStream {
    /// Reads more of the stream.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for byte in bytes {
            if let Some(partial) = self.cancelled.as_mut() {
                let done = partial.push(*byte).map_err(|_long| {
                    Error::new(Code::QPACK_DECODER_STREAM_ERROR, "a stream ID over 62 bits")
                })?;
                if done.is_some() {
                    self.cancelled = None;
                }
            } else if byte >> 6 == 0b01 {
                // A cancelled stream: it held no reference, so there is nothing to release.
                self.cancelled = Partial::new(*byte, 6).err();
            } else {
                return Err(Error::new(
                    Code::QPACK_DECODER_STREAM_ERROR,
                    "an acknowledgment of what was never sent",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{DecoderStream, EncoderStream};
    use crate::error::Code;

    fn encoder(bytes: &[u8]) -> Result<(), Code> {
        let mut stream = EncoderStream::default();
        // One byte at a time: a cut anywhere makes no difference.
        bytes
            .iter()
            .try_for_each(|byte| stream.read(&[*byte]))
            .map_err(|e| e.code)
    }

    fn decoder(bytes: &[u8]) -> Result<(), Code> {
        let mut stream = DecoderStream::default();
        bytes
            .iter()
            .try_for_each(|byte| stream.read(&[*byte]))
            .map_err(|e| e.code)
    }

    #[test]
    fn capacity_zero_may_be_repeated() {
        assert_eq!(encoder(&[0x20, 0x20]), Ok(()));
    }

    /// RFC 9204, 4.3.1: a capacity over the limit is an error of the encoder stream. B.2 sets 220.
    #[test]
    fn any_other_capacity_is_an_error() {
        for bytes in [
            &[0x3f, 0xbd, 0x01][..],
            &[0x21],
            &[0x3f, 0x00],
            &[0x3f; 1],
            &[0x3f, 0xff],
        ] {
            let open_ended = bytes == [0x3f] || bytes == [0x3f, 0xff];
            let expected = if open_ended {
                Ok(())
            } else {
                Err(Code::QPACK_ENCODER_STREAM_ERROR)
            };
            assert_eq!(encoder(bytes), expected, "{bytes:?}");
        }
        let endless = [&[0x3f][..], &[0xff; 12]].concat();
        assert_eq!(encoder(&endless), Err(Code::QPACK_ENCODER_STREAM_ERROR));
    }

    /// RFC 9204, 4.3.2 to 4.3.4, with the bytes of B.2, B.3, B.4 and B.5: refused at the first byte, whatever length follows.
    #[test]
    fn any_entry_is_an_error() {
        for first in [0xc0, 0xc1, 0x4a, 0x02, 0x81, 0x00, 0x1f, 0x7f, 0xff] {
            assert_eq!(encoder(&[first]), Err(Code::QPACK_ENCODER_STREAM_ERROR));
        }
    }

    #[test]
    fn cancellations_are_accepted() {
        assert_eq!(decoder(&[0x48]), Ok(()));
        assert_eq!(decoder(&[0x7f, 0x80, 0x01, 0x40]), Ok(()));
    }

    /// RFC 9204, 4.4.1 and 4.4.3: acknowledgments of unknown sections, increments of 0 or beyond what was sent.
    #[test]
    fn acknowledgments_of_nothing_are_errors() {
        for bytes in [&[0x84][..], &[0x00], &[0x01], &[0x3f], &[0x48, 0x80]] {
            assert_eq!(decoder(bytes), Err(Code::QPACK_DECODER_STREAM_ERROR));
        }
        let endless = [&[0x7f][..], &[0xff; 12]].concat();
        assert_eq!(decoder(&endless), Err(Code::QPACK_DECODER_STREAM_ERROR));
    }
}
