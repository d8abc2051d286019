//! Packet headers and the two packets that have no frames,
//! [RFC 9000, section 17](https://www.rfc-editor.org/rfc/rfc9000#section-17).

mod kind;
mod header;
mod parse;
mod write;
mod retry;
mod negotiation;

pub(crate) use header::{FIXED, PacketHeader, SPIN, has_reserved_bits, key_phase_bit};
pub(crate) use kind::PacketKind;
pub(crate) use negotiation::{VersionNegotiation, supported_versions};
pub(crate) use parse::{is_short_with, parse_header, parse_short_cid};
pub(crate) use retry::{Retry, RetryHeader};
pub(crate) use write::{LongHeader, MOST_SHORT_OVERHEAD, ShortHeader, write_length};
