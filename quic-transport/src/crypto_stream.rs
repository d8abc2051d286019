//! The byte streams of the TLS handshake, one for each encryption level
//! ([RFC 9000, section 7.5](https://www.rfc-editor.org/rfc/rfc9000#section-7.5)).
//!
//! They have no flow control; what the peer may send ahead of what TLS has read is a constant.

use crate::buffer::{ChunkPool, ReceiveBuffer, SendBuffer, TooManyPieces, to_length, to_offset};
use crate::error::Error;
use crate::limits::{CRYPTO_BUFFER, LEAST_FRAGMENT};
use crate::transmit::{PacketWriter, SentFrame};
use crate::wire::{CryptoHeader, Frame, TransportErrorCode as Code};

/// Both directions of one level.
#[derive(Debug, Default)]
pub(crate) struct CryptoStream {
    send: SendBuffer,
    receive: ReceiveBuffer,
    /// What is sent last, at the beginning of the stream.
    last: Last,
    /// Handshakes are short: spare buffers are not shared with the streams.
    pool: ChunkPool,
}

/// The beginning of the stream, if the rest goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Last {
    /// Its length; 0 when the stream is sent in order.
    length: u64,
    is_held_back: bool,
}

impl CryptoStream {
    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.pool.trim();
    }

    /// CRYPTO.
    ///
    /// # Errors
    ///
    /// CRYPTO_BUFFER_EXCEEDED when data lies too far ahead of what has been read, or in too many pieces.
    pub(crate) fn on_crypto(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let frame = Frame::Crypto { offset, data }.frame_type();
        let error = |reason| Error::new(Code::CRYPTO_BUFFER_EXCEEDED, frame, reason);
        let end = offset.saturating_add(to_offset(data.len()));
        if end.saturating_sub(self.receive.read_offset()) > CRYPTO_BUFFER {
            return Err(error("handshake data too far ahead"));
        }
        self.receive
            .insert(offset, data, &mut self.pool)
            .map_err(|TooManyPieces| error("too many separate pieces of the handshake"))
    }

    /// The next bytes for TLS that lie together; [`Self::consume`] forgets them.
    pub(crate) fn fill(&self) -> &[u8] {
        self.receive.fill()
    }

    /// Forgets the next `length` bytes.
    pub(crate) fn consume(&mut self, length: usize) {
        self.receive.consume(length, &mut self.pool);
    }

    /// Whether bytes have arrived that TLS has not been given, or that wait for others.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn has_unread(&self) -> bool {
        self.receive.readable() > 0 || self.receive.has_pieces()
    }

    /// Takes bytes from TLS.
    pub(crate) fn send(&mut self, data: &[u8]) {
        self.send.write(data, &mut self.pool);
    }

    /// What TLS has given, if nothing of it has been sent.
    pub(crate) fn unsent(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; to_length(self.send.unsent())];
        self.send.copy_to(self.send.sent(), &mut bytes);
        bytes
    }

    /// Sends the first `length` bytes after all others; nothing has been sent yet.
    pub(crate) fn send_last(&mut self, length: usize) {
        let chunk = self.send.take_new(length);
        self.last = Last {
            length: chunk.map_or(0, |chunk| to_offset(chunk.length)),
            is_held_back: chunk.is_some(),
        };
    }

    /// Whether [`Self::write`] would write anything.
    #[inline]
    pub(crate) fn has_pending_frames(&self) -> bool {
        self.send.has_lost() || self.send.unsent() > 0 || self.last.is_held_back
    }

    /// Whether everything sent has arrived.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) const fn is_acked(&self) -> bool {
        self.send.is_acked()
    }

    /// Writes what fits, lost data first.
    pub(crate) fn write(&mut self, packet: &mut PacketWriter<'_>) {
        while self.has_pending_frames() {
            if !self.send.has_lost() && self.send.unsent() == 0 {
                self.last.is_held_back = false;
                self.send.on_lost(0..self.last.length);
            }
            let (offset, available, lost) = self.send.first_lost().map_or_else(
                || (self.send.sent(), self.send.unsent(), false),
                |lost| (lost.start, lost.end - lost.start, true),
            );
            let available = to_length(available);
            let Some(header) = CryptoHeader::fit(offset, packet.remaining(), available) else {
                return;
            };
            if header.length < available && header.length < to_length(LEAST_FRAGMENT) {
                return;
            }
            let record = SentFrame::Crypto {
                offset,
                length: u32::try_from(header.length).unwrap_or(u32::MAX),
            };
            let Some(space) = packet.data_frame(&header, header.length, record) else {
                return;
            };
            self.send.copy_to(offset, space);
            let taken = if lost {
                self.send.take_lost(header.length)
            } else {
                self.send.take_new(header.length)
            };
            debug_assert!(taken.is_some_and(|chunk| chunk.length == header.length));
        }
    }

    /// A CRYPTO frame arrived.
    pub(crate) fn on_acked(&mut self, offset: u64, length: u32) {
        let range = offset..offset.saturating_add(u64::from(length));
        self.send.on_acked(range, &mut self.pool);
    }

    /// A CRYPTO frame was lost.
    pub(crate) fn on_lost(&mut self, offset: u64, length: u32) {
        self.send
            .on_lost(offset..offset.saturating_add(u64::from(length)));
    }

    /// Sends everything that has not been acknowledged once more, as after a Retry or to probe.
    pub(crate) fn resend(&mut self) {
        self.last.is_held_back = self.last.length > 0;
        self.send.on_lost(self.last.length..self.send.sent());
    }
}

#[cfg(test)]
mod tests {
    use super::CryptoStream;
    use crate::buffer::to_offset;
    use crate::limits::CRYPTO_BUFFER;
    use crate::transmit::{FrameLog, PacketWriter, SentFrame};
    use crate::wire::{Frame, Frames, TransportErrorCode as Code};

    /// RFC 9000, 7.5: what can't be buffered closes the connection with CRYPTO_BUFFER_EXCEEDED.
    #[test]
    fn the_last_byte_of_the_buffer_fits_and_the_next_does_not() {
        let mut stream = CryptoStream::default();
        assert_eq!(stream.on_crypto(CRYPTO_BUFFER - 1, &[1]), Ok(()));
        let error = stream.on_crypto(CRYPTO_BUFFER, &[1]).unwrap_err();
        assert_eq!(error.code, Code::CRYPTO_BUFFER_EXCEEDED);
        assert_eq!(error.frame, 6);
        assert!(stream.on_crypto((1 << 62) - 1, &[1]).is_err());
        assert!(stream.has_unread() && stream.fill().is_empty());
        stream.on_crypto(0, &[2; 100]).unwrap();
        stream.consume(100);
        assert_eq!(stream.on_crypto(CRYPTO_BUFFER + 99, &[1]), Ok(()));
    }

    #[test]
    fn lost_frames_are_sent_again() {
        let (mut client, mut server) = (CryptoStream::default(), CryptoStream::default());
        let hello: Vec<u8> = (0..3000_u32).map(|n| n.to_le_bytes()[0]).collect();
        client.send(&hello);
        let mut log = FrameLog::new();
        let mut round = 0;
        while !client.is_acked() {
            round += 1;
            assert!(round < 20);
            let start = log.next_index();
            let mut payload = [0; 1000];
            let mut packet = PacketWriter::new(&mut payload, &mut log);
            client.write(&mut packet);
            let written = packet.finish();
            let records: Vec<_> = log
                .range(start..start + u64::from(written.frames_count))
                .collect();
            for record in records {
                let SentFrame::Crypto { offset, length } = record else {
                    panic!("{record:?}")
                };
                if round % 3 == 1 {
                    client.on_lost(offset, length);
                } else {
                    client.on_acked(offset, length);
                }
            }
            if round % 3 != 1 && written.length > 0 {
                for frame in Frames::new(&payload[..written.length]).unwrap() {
                    let Ok(Frame::Crypto { offset, data }) = frame else {
                        panic!("{frame:?}")
                    };
                    server.on_crypto(offset, data).unwrap();
                }
            }
        }
        let mut got: Vec<u8> = Vec::new();
        while !server.fill().is_empty() {
            let length = server.fill().len();
            got.extend(server.fill());
            server.consume(length);
        }
        assert_eq!(got, hello);
        assert_eq!(to_offset(got.len()), 3000);
    }
}
