//! The numbers of the transport parameters, [RFC 9000, section 18.2](https://www.rfc-editor.org/rfc/rfc9000#section-18.2).

pub(super) const ORIGINAL_DCID: u64 = 0x00;
pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
pub(super) const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
pub(super) const INITIAL_SCID: u64 = 0x0f;
pub(super) const RETRY_SCID: u64 = 0x10;
pub(super) const VERSION_INFORMATION: u64 = 0x11;
/// draft-ietf-quic-reliable-stream-reset-10.
pub(super) const RESET_STREAM_AT: u64 = 0x1d;
/// The same in earlier drafts, which some peers still speak.
pub(super) const RESET_STREAM_AT_BEFORE: u64 = 0x17_f758_6d2c_b571;
/// RFC 9221.
pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
/// RFC 9287.
pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;
/// draft-ietf-quic-ack-frequency-14.
pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;

/// Those of the extensions, which aren't the numbers from 0 on.
pub(super) const EXTENSIONS: [u64; 5] = [
    RESET_STREAM_AT,
    RESET_STREAM_AT_BEFORE,
    MAX_DATAGRAM_FRAME_SIZE,
    GREASE_QUIC_BIT,
    MIN_ACK_DELAY,
];

/// A number that is reserved to be ignored: 31 * N + 27.
pub(super) const fn reserved(random: u64) -> u64 {
    const MAX_N: u64 = (quic_common::MAX_VARINT - 27) / 31;
    random % MAX_N * 31 + 27
}
