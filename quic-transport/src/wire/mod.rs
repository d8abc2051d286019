//! Bytes to types and back: no state, no time.
//!
//! Decoders borrow from their input and never panic, loop or allocate on what a peer sent. Encoders know their size
//! first, so that a thing is written whole or not at all.

mod malformed;
mod version;
mod cid;
mod packet_number;
mod stream_id;
mod code;
mod level;
mod encode;

pub use cid::{ConnectionId, MAX_CID_LENGTH};
pub use code::TransportErrorCode;
pub use stream_id::{Direction, Side, StreamId};
pub use version::Version;

pub(crate) use encode::Encode;
pub(crate) use level::Level;
pub(crate) use malformed::Malformed;
pub(crate) use packet_number::PacketNumber;
pub(crate) use stream_id::MAX_STREAMS;
