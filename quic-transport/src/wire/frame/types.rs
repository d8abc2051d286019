//! Frame types, [RFC 9000, section 12.4](https://www.rfc-editor.org/rfc/rfc9000#section-12.4), table 3, and those of the
//! extensions.

pub(super) const PADDING: u64 = 0x00;
pub(super) const PING: u64 = 0x01;
pub(super) const ACK: u64 = 0x02;
pub(super) const ACK_ECN: u64 = 0x03;
pub(super) const RESET_STREAM: u64 = 0x04;
pub(super) const STOP_SENDING: u64 = 0x05;
pub(super) const CRYPTO: u64 = 0x06;
pub(super) const NEW_TOKEN: u64 = 0x07;
/// The first of eight, told apart by the three flags below.
pub(super) const STREAM: u64 = 0x08;
/// The last of eight.
pub(super) const STREAM_LAST: u64 = 0x0f;
/// STREAM: the data is the last of the stream.
pub(super) const STREAM_FIN: u64 = 0x01;
/// STREAM: a length field is there.
pub(super) const STREAM_LENGTH: u64 = 0x02;
/// STREAM: an offset field is there.
pub(super) const STREAM_OFFSET: u64 = 0x04;
pub(super) const MAX_DATA: u64 = 0x10;
pub(super) const MAX_STREAM_DATA: u64 = 0x11;
pub(super) const MAX_STREAMS_BIDI: u64 = 0x12;
pub(super) const MAX_STREAMS_UNI: u64 = 0x13;
pub(super) const DATA_BLOCKED: u64 = 0x14;
pub(super) const STREAM_DATA_BLOCKED: u64 = 0x15;
pub(super) const STREAMS_BLOCKED_BIDI: u64 = 0x16;
pub(super) const STREAMS_BLOCKED_UNI: u64 = 0x17;
pub(super) const NEW_CONNECTION_ID: u64 = 0x18;
pub(super) const RETIRE_CONNECTION_ID: u64 = 0x19;
pub(super) const PATH_CHALLENGE: u64 = 0x1a;
pub(super) const PATH_RESPONSE: u64 = 0x1b;
pub(super) const CONNECTION_CLOSE: u64 = 0x1c;
pub(super) const APPLICATION_CLOSE: u64 = 0x1d;
pub(super) const HANDSHAKE_DONE: u64 = 0x1e;
pub(super) const IMMEDIATE_ACK: u64 = 0x1f;
pub(super) const RESET_STREAM_AT: u64 = 0x24;
/// Without a length field.
pub(super) const DATAGRAM: u64 = 0x30;
/// With one.
pub(super) const DATAGRAM_LENGTH: u64 = 0x31;
/// The only one of two bytes.
pub(super) const ACK_FREQUENCY: u64 = 0xaf;
