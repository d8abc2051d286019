//! Types that cross the crates of the stack: datagrams and batches of them, byte cursors, variable-length
//! integers, hash maps that an attacker can't slow down, and seedable randomness.
#![forbid(unsafe_code)]

mod varint;
mod bytes;
mod random;
mod maps;
mod datagram;
mod batch;
mod share;

pub use batch::{BatchBuffer, BatchHead, DatagramBatch, MAX_BATCH_BYTES, MAX_BATCH_SEGMENTS};
pub use bytes::{Reader, Truncated, Writer};
pub use datagram::{Datagram, Ecn};
pub use maps::{IdHasher, IdMap, KeyedHasher, KeyedMap};
pub use random::Random;
pub use share::{SHARE_BYTES, Share};
pub use varint::{MAX_VARINT, TooLarge, VarInt, varint_size};
