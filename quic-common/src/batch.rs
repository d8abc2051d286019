//! Datagrams on their way out: packets are built in one long-lived buffer and sent from it with one system call.
//!
//! A batch is what one segmented (GSO) send takes: datagrams of equal size, of which only the last may be shorter,
//! all to one address with one ECN mark. When the socket is full, the batch's head is parked in the buffer and the
//! batch is rebuilt from it once the socket is writable: nothing is copied, lost or reordered.

use std::net::SocketAddr;

use crate::datagram::Ecn;

/// The most segments that one segmented send takes on Linux.
pub const MAX_BATCH_SEGMENTS: usize = 64;

/// The most bytes that one UDP send over IPv4 takes: 65535 less the IPv4 and UDP headers.
pub const MAX_BATCH_BYTES: usize = 65507;

/// Everything about a batch but its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHead {
    /// Where to.
    pub remote: SocketAddr,
    /// Where from, when it matters: it tells apart the sockets of one who has several. An unspecified IP address leaves
    /// the choice among the socket's to the system.
    pub local: Option<SocketAddr>,
    /// The ECN mark of every datagram.
    pub ecn: Ecn,
    /// Bytes of all datagrams together.
    pub length: usize,
    /// Bytes of each datagram but the last, which has what is left.
    pub segment: usize,
}

impl BatchHead {
    /// How many datagrams the batch has.
    #[must_use]
    pub const fn datagrams(&self) -> usize {
        if self.segment == 0 {
            return 0;
        }
        self.length.div_ceil(self.segment)
    }
}

/// A batch to be sent, borrowed from a [`BatchBuffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramBatch<'b> {
    head: BatchHead,
    bytes: &'b [u8],
}

impl<'b> DatagramBatch<'b> {
    /// Describes the first `head.length` bytes of `bytes`; the length is cut to what is there.
    #[must_use]
    pub fn new(mut head: BatchHead, bytes: &'b [u8]) -> Self {
        head.length = head.length.min(bytes.len());
        let bytes = bytes.get(..head.length).unwrap_or_default();
        Self { head, bytes }
    }

    /// Addresses, mark and sizes.
    #[must_use]
    pub const fn head(&self) -> BatchHead {
        self.head
    }

    /// All datagrams, end to end.
    #[must_use]
    pub const fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// The single datagrams.
    #[must_use]
    pub fn segments(&self) -> impl ExactSizeIterator<Item = &'b [u8]> + use<'b> {
        self.bytes.chunks(self.head.segment.max(1))
    }
}

/// The long-lived buffer that batches are built in and sent from.
#[derive(Debug)]
pub struct BatchBuffer {
    bytes: Box<[u8]>,
    parked: Option<Parked>,
}

/// What is left of a batch: `head.length` bytes from `offset` on.
#[derive(Clone, Copy, Debug)]
struct Parked {
    head: BatchHead,
    offset: usize,
}

impl Default for BatchBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuffer {
    /// A buffer for the largest batch, [`MAX_BATCH_BYTES`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: vec![0; MAX_BATCH_BYTES].into_boxed_slice(),
            parked: None,
        }
    }

    /// The memory to build in. A parked batch must be sent or dropped first, or it is overwritten.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        debug_assert!(self.parked.is_none(), "building over a parked batch");
        &mut self.bytes
    }

    /// The batch that `head` describes, from the start of the buffer.
    #[must_use]
    pub fn batch(&self, head: BatchHead) -> DatagramBatch<'_> {
        DatagramBatch::new(head, &self.bytes)
    }

    /// Remembers a batch that the socket could not take yet.
    pub const fn park(&mut self, head: BatchHead) {
        self.parked = Some(Parked { head, offset: 0 });
    }

    /// The first `sent` bytes of the parked batch are gone, as happens when its datagrams have to be sent singly.
    pub const fn advance_parked(&mut self, sent: usize) {
        if let Some(parked) = self.parked.as_mut() {
            parked.offset = parked.offset.saturating_add(sent);
            parked.head.length = parked.head.length.saturating_sub(sent);
        }
    }

    /// What is left of the parked batch, if there is one.
    #[must_use]
    pub fn parked(&self) -> Option<DatagramBatch<'_>> {
        let parked = self.parked?;
        let bytes = self.bytes.get(parked.offset..).unwrap_or_default();
        Some(DatagramBatch::new(parked.head, bytes))
    }

    /// Forgets the parked batch, once it has been sent.
    pub const fn unpark(&mut self) {
        self.parked = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{BatchBuffer, BatchHead};
    use crate::datagram::Ecn;

    fn head(length: usize, segment: usize) -> BatchHead {
        BatchHead {
            remote: ([127, 0, 0, 1], 1).into(),
            local: None,
            ecn: Ecn::Ect0,
            length,
            segment,
        }
    }

    #[test]
    fn only_the_last_segment_is_shorter() {
        let buffer = BatchBuffer::new();
        let batch = buffer.batch(head(2500, 1200));
        let sizes: Vec<_> = batch.segments().map(<[u8]>::len).collect();
        assert_eq!(sizes, [1200, 1200, 100]);
        assert_eq!(batch.head().datagrams(), 3);
    }

    #[test]
    fn a_parked_batch_is_rebuilt_as_it_was() {
        let mut buffer = BatchBuffer::new();
        buffer.bytes_mut()[..3].copy_from_slice(b"abc");
        buffer.park(head(3, 2));
        let parked = buffer
            .parked()
            .map(|batch| (batch.head(), batch.bytes().to_vec()));
        assert_eq!(parked, Some((head(3, 2), b"abc".to_vec())));
        buffer.unpark();
        assert_eq!(buffer.parked(), None);
    }

    #[test]
    fn a_parked_batch_goes_on_where_it_stopped() {
        let mut buffer = BatchBuffer::new();
        buffer.bytes_mut()[..5].copy_from_slice(b"abcde");
        buffer.park(head(5, 2));
        buffer.advance_parked(2);
        buffer.advance_parked(2);
        let rest = buffer.parked().map(|batch| batch.bytes().to_vec());
        assert_eq!(rest, Some(b"e".to_vec()));
        buffer.advance_parked(usize::MAX);
        assert_eq!(buffer.parked().map(|batch| batch.bytes().len()), Some(0));
    }

    #[test]
    fn a_head_beyond_the_buffer_is_cut() {
        let buffer = BatchBuffer::new();
        assert_eq!(
            buffer.batch(head(usize::MAX, 1200)).bytes().len(),
            super::MAX_BATCH_BYTES
        );
        assert_eq!(head(5, 0).datagrams(), 0);
    }
}
