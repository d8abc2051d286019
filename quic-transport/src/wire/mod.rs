//! Bytes to types and back: no state, no time.
//!
//! Decoders borrow from their input and never panic, loop or allocate on what a peer sent. Encoders know their size
//! first, so that a thing is written whole or not at all.

mod malformed;
mod version;
mod versions;
mod cid;
mod packet_number;
mod stream_id;
mod code;
mod level;
mod encode;
mod ecn_counts;
mod span;
mod reset_token;
mod packet;
mod frame;
mod transport_parameters;

pub use cid::{ConnectionId, MAX_CID_LENGTH};
pub use code::TransportErrorCode;
pub use stream_id::{Direction, Side, StreamId};
pub use version::Version;
pub use versions::Versions;

pub(crate) use cid::CidPattern;
pub(crate) use ecn_counts::EcnCounts;
pub(crate) use encode::{Encode, wide};
pub(crate) use frame::{
    AckFrame, AllowedFrames, Close, CloseCode, CryptoHeader, DatagramHeader, Frame, Frames,
    OutgoingAck, StreamFrame, StreamHeader,
};
pub(crate) use level::Level;
pub(crate) use malformed::Malformed;
pub(crate) use packet::{
    FIXED, LongHeader, MOST_SHORT_OVERHEAD, PacketHeader, PacketKind, Retry, RetryHeader, SPIN,
    ShortHeader, VersionNegotiation, has_reserved_bits, is_short_with, key_phase_bit, parse_header,
    parse_short_cid, supported_versions, write_length,
};
pub(crate) use packet_number::PacketNumber;
pub(crate) use reset_token::ResetToken;
pub(crate) use stream_id::MAX_STREAMS;
pub(crate) use transport_parameters::{PreferredAddress, TransportParameters, VersionInformation};
