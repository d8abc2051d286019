//! Writes the frames of one packet: each whole and recorded, or not at all.
//!
//! Sizes are known before anything is written, so nothing is ever rolled back and no record can be forgotten.

use quic_common::Writer;

use super::{FrameLog, SentFrame};
use crate::wire::Encode;

/// The payload of a packet that is being written, and the log that its frames are recorded in.
#[derive(Debug)]
pub(crate) struct PacketWriter<'a> {
    writer: Writer<'a>,
    log: &'a mut FrameLog,
    start: u64,
    ack_eliciting: bool,
    padded: bool,
}

/// What became of a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes of payload.
    pub(crate) length: usize,
    /// The index of the packet's first record in the log.
    pub(crate) frames_start: u64,
    /// How many records it has.
    pub(crate) frames_count: u16,
    /// Whether the peer must acknowledge the packet.
    pub(crate) ack_eliciting: bool,
    /// Whether it counts against the congestion window: ack-eliciting or padded (RFC 9002, 2).
    pub(crate) in_flight: bool,
}

impl<'a> PacketWriter<'a> {
    /// Writes into `payload`, whose length is all that may be used.
    #[inline]
    pub(crate) fn new(payload: &'a mut [u8], log: &'a mut FrameLog) -> Self {
        let start = log.next_index();
        Self {
            writer: Writer::new(payload),
            log,
            start,
            ack_eliciting: false,
            padded: false,
        }
    }

    /// Bytes that still fit.
    #[inline]
    pub(crate) const fn remaining(&self) -> usize {
        self.writer.remaining()
    }

    /// Bytes written.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.writer.len()
    }

    /// Whether nothing has been written.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// Whether a frame that must be acknowledged has been written.
    #[inline]
    pub(crate) const fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }

    /// Writes `frame` and records it; `false`, and neither is done, when it doesn't fit.
    #[inline]
    pub(crate) fn frame(&mut self, frame: &impl Encode, record: SentFrame) -> bool {
        self.data_frame(frame, 0, record).is_some()
    }

    /// Writes `header`, reserves the `length` bytes behind it and records the frame.
    ///
    /// The caller fills the bytes that are returned. `None`, and nothing is done, when header and data don't fit.
    #[inline]
    pub(crate) fn data_frame(
        &mut self,
        header: &impl Encode,
        length: usize,
        record: SentFrame,
    ) -> Option<&mut [u8]> {
        if header.size().checked_add(length)? > self.writer.remaining() {
            return None;
        }
        self.fitted_frame(header, length, record)
    }

    /// [`Self::data_frame`] for a header that was made to fit into what remains, so that nobody asks for its size again.
    #[inline]
    pub(crate) fn fitted_frame(
        &mut self,
        header: &impl Encode,
        length: usize,
        record: SentFrame,
    ) -> Option<&mut [u8]> {
        header.encode(&mut self.writer);
        self.ack_eliciting |= record.is_ack_eliciting();
        self.log.push(record);
        self.writer.space(length)
    }

    /// Writes a frame whose fate interests nobody, and that elicits no acknowledgment: CONNECTION_CLOSE.
    pub(crate) fn unrecorded(&mut self, frame: &impl Encode) -> bool {
        let fits = frame.size() <= self.writer.remaining();
        if fits {
            frame.encode(&mut self.writer);
        }
        fits
    }

    /// Writes `count` bytes of PADDING, or as many as fit.
    pub(crate) fn padding(&mut self, count: usize) {
        let count = count.min(self.writer.remaining());
        if let Some(space) = self.writer.space(count).filter(|_| count > 0) {
            space.fill(0);
            self.padded = true;
        }
    }

    /// Ends the packet.
    ///
    /// A packet that isn't in flight is not kept in the ring of sent packets, so its records are taken back.
    #[inline]
    pub(crate) fn finish(self) -> Written {
        let in_flight = self.ack_eliciting || self.padded;
        if !in_flight {
            self.log.truncate_to(self.start);
        }
        let count = self.log.next_index().saturating_sub(self.start);
        debug_assert!(
            count <= u16::MAX.into(),
            "every frame takes a byte at least"
        );
        Written {
            length: self.writer.len(),
            frames_start: self.start,
            frames_count: u16::try_from(count).unwrap_or(u16::MAX),
            ack_eliciting: self.ack_eliciting,
            in_flight,
        }
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Writer;

    use super::{FrameLog, PacketWriter, SentFrame, Written};
    use crate::wire::Encode;

    struct Bytes(&'static [u8]);

    impl Encode for Bytes {
        fn size(&self) -> usize {
            self.0.len()
        }

        fn encode(&self, writer: &mut Writer<'_>) {
            assert!(writer.bytes(self.0));
        }
    }

    #[test]
    fn a_frame_that_does_not_fit_leaves_no_trace() {
        let (mut payload, mut log) = ([0xff; 4], FrameLog::new());
        let mut writer = PacketWriter::new(&mut payload, &mut log);
        assert!(writer.frame(&Bytes(&[1, 2]), SentFrame::Ping));
        assert!(!writer.frame(&Bytes(&[3, 4, 5]), SentFrame::MaxData));
        assert!(
            writer
                .data_frame(&Bytes(&[3]), 2, SentFrame::MaxData)
                .is_none()
        );
        assert!(
            writer
                .data_frame(&Bytes(&[3]), usize::MAX, SentFrame::MaxData)
                .is_none()
        );
        assert!(!writer.unrecorded(&Bytes(&[3, 4, 5])));
        assert_eq!(writer.remaining(), 2);
        let written = writer.finish();
        assert_eq!((written.length, written.frames_count), (2, 1));
        assert_eq!(payload, [1, 2, 0xff, 0xff]);
        assert_eq!(log.range(0..9).collect::<Vec<_>>(), [SentFrame::Ping]);
    }

    #[test]
    fn data_is_filled_in_behind_its_header() {
        let (mut payload, mut log) = ([0; 8], FrameLog::new());
        log.push(SentFrame::HandshakeDone);
        let mut writer = PacketWriter::new(&mut payload, &mut log);
        let record = SentFrame::Crypto {
            offset: 7,
            length: 3,
        };
        writer
            .data_frame(&Bytes(&[6]), 3, record)
            .unwrap()
            .copy_from_slice(b"abc");
        writer.padding(100);
        assert_eq!(
            writer.finish(),
            Written {
                length: 8,
                frames_start: 1,
                frames_count: 1,
                ack_eliciting: true,
                in_flight: true
            }
        );
        assert_eq!(payload, *b"\x06abc\0\0\0\0");
    }

    /// RFC 9002, 2: packets with only ACK or CONNECTION_CLOSE frames are not in flight; PADDING makes them so.
    #[test]
    fn only_padding_puts_an_ack_in_flight() {
        let (mut payload, mut log) = ([0; 8], FrameLog::new());
        let mut writer = PacketWriter::new(&mut payload, &mut log);
        assert!(writer.frame(&Bytes(&[2]), SentFrame::Ack { largest: 1 }));
        writer.padding(0);
        let written = writer.finish();
        assert!(!written.in_flight && !written.ack_eliciting);
        assert_eq!((written.frames_count, log.next_index()), (0, 0));

        let mut writer = PacketWriter::new(&mut payload, &mut log);
        assert!(writer.frame(&Bytes(&[2]), SentFrame::Ack { largest: 1 }));
        writer.padding(1);
        let written = writer.finish();
        assert!(written.in_flight && !written.ack_eliciting);
        assert_eq!((written.frames_count, log.next_index()), (1, 1));
    }
}
