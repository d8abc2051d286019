//! Bytes between the application and the packets: kept until acknowledged on one side, reassembled on the other.
//!
//! Both sides hold their bytes in a [`Store`], whose memory comes from a [`ChunkPool`] of the connection. What the
//! application lends for sending stays where it is.

mod pool;
mod ranges;
mod store;
mod mixed;
mod receive;
mod send;

pub(crate) use pool::ChunkPool;
pub(crate) use ranges::RangeSet;
pub(crate) use receive::{ReceiveBuffer, TooManyPieces};
pub(crate) use send::SendBuffer;
pub(crate) use store::Store;

/// A length as a stream offset.
#[inline]
pub(crate) fn to_offset(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// An offset or a difference of two as a length, cut to what memory can hold.
#[inline]
pub(crate) fn to_length(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
