//! Which frame may come in which packet, [RFC 9000, sections 12.4 and 12.5](https://www.rfc-editor.org/rfc/rfc9000#section-12.4).
//!
//! Every frame type but one is below 64, so that the table of a packet is one word.

use super::types;
use crate::wire::level::Level;
use crate::wire::stream_id::Side;

/// The frame types that a packet may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllowedFrames(u64);

impl AllowedFrames {
    /// Those of a packet that `sender` protected with the keys of `level`. Any other in it is a PROTOCOL_VIOLATION.
    #[inline]
    pub(crate) const fn new(level: Level, sender: Side) -> Self {
        let by_level = match level {
            Level::Initial | Level::Handshake => HANDSHAKE,
            Level::ZeroRtt => EARLY,
            Level::OneRtt => ALL,
        };
        Self(match sender {
            Side::Client => by_level & !SERVER_ONLY,
            Side::Server => by_level,
        })
    }

    /// Whether STREAM frames may be there.
    #[inline]
    pub(crate) const fn has_streams(self) -> bool {
        self.contains(types::STREAM)
    }

    /// Whether a frame of this type may be there.
    #[inline]
    pub(crate) const fn contains(self, frame_type: u64) -> bool {
        if frame_type < 64 {
            self.0 & bit(frame_type) != 0
        } else {
            // Where one of the two frames may be, the other may.
            frame_type == types::ACK_FREQUENCY && self.0 & bit(types::IMMEDIATE_ACK) != 0
        }
    }
}

const fn bit(frame_type: u64) -> u64 {
    1 << (frame_type & 63)
}

const ALL: u64 = ((bit(types::HANDSHAKE_DONE) << 1) - 1)
    | bit(types::IMMEDIATE_ACK)
    | bit(types::RESET_STREAM_AT)
    | bit(types::DATAGRAM)
    | bit(types::DATAGRAM_LENGTH);

/// Of Initial and Handshake packets.
const HANDSHAKE: u64 = bit(types::PADDING)
    | bit(types::PING)
    | bit(types::ACK)
    | bit(types::ACK_ECN)
    | bit(types::CRYPTO)
    | bit(types::CONNECTION_CLOSE);

/// Of 0-RTT packets: what answers the peer, which nothing has come from yet, is missing.
const EARLY: u64 = ALL
    & !(bit(types::ACK)
        | bit(types::ACK_ECN)
        | bit(types::CRYPTO)
        | bit(types::NEW_TOKEN)
        | bit(types::RETIRE_CONNECTION_ID)
        | bit(types::PATH_RESPONSE)
        | bit(types::HANDSHAKE_DONE)
        | bit(types::IMMEDIATE_ACK));

/// What only a server may send (RFC 9000, 19.7 and 19.20).
const SERVER_ONLY: u64 = bit(types::NEW_TOKEN) | bit(types::HANDSHAKE_DONE);

#[cfg(test)]
mod tests {
    use super::AllowedFrames;
    use crate::wire::level::Level;
    use crate::wire::stream_id::Side;

    /// RFC 9000, table 3, row by row, with 12.5: RETIRE_CONNECTION_ID can't be in 0-RTT packets, and NEW_TOKEN and
    /// HANDSHAKE_DONE come from servers only. Anything else MUST be treated as a PROTOCOL_VIOLATION.
    ///
    /// Of the extensions, RFC 9221, 4 lets DATAGRAM be in 0-RTT and 1-RTT packets, draft-ietf-quic-ack-frequency-14, 3
    /// keeps its frames out of 0-RTT packets, and draft-ietf-quic-reliable-stream-reset-10, 4 has RESET_STREAM_AT in the
    /// application's packets.
    #[test]
    fn every_cell_of_the_table() {
        let rows: [(std::ops::RangeInclusive<u64>, &str); 23] = [
            (0x00..=0x00, "IH01"),
            (0x01..=0x01, "IH01"),
            (0x02..=0x03, "IH_1"),
            (0x04..=0x04, "__01"),
            (0x05..=0x05, "__01"),
            (0x06..=0x06, "IH_1"),
            (0x07..=0x07, "___s"),
            (0x08..=0x0f, "__01"),
            (0x10..=0x10, "__01"),
            (0x11..=0x11, "__01"),
            (0x12..=0x13, "__01"),
            (0x14..=0x17, "__01"),
            (0x18..=0x18, "__01"),
            (0x19..=0x19, "___1"),
            (0x1a..=0x1a, "__01"),
            (0x1b..=0x1b, "___1"),
            (0x1c..=0x1c, "IH01"),
            (0x1d..=0x1d, "__01"),
            (0x1e..=0x1e, "___s"),
            (0x1f..=0x1f, "___1"),
            (0x24..=0x24, "__01"),
            (0x30..=0x31, "__01"),
            (0xaf..=0xaf, "___1"),
        ];
        let levels = [
            Level::Initial,
            Level::Handshake,
            Level::ZeroRtt,
            Level::OneRtt,
        ];
        let mut seen = 0;
        for (types, row) in rows {
            for frame_type in types {
                seen += 1;
                for (level, cell) in levels.into_iter().zip(row.chars()) {
                    let by = |side| AllowedFrames::new(level, side).contains(frame_type);
                    let at = format!("{frame_type:#x} {level:?}");
                    assert_eq!(by(Side::Server), cell != '_', "{at}");
                    assert_eq!(by(Side::Client), cell != '_' && cell != 's', "{at}");
                }
            }
        }
        assert_eq!(seen, 0x1f + 5);
    }

    #[test]
    fn unknown_types_are_nowhere() {
        for frame_type in [
            0x20,
            0x23,
            0x25,
            0x2f,
            0x32,
            0x3f,
            0x40,
            0xae,
            0xb0,
            u64::MAX,
        ] {
            assert!(!AllowedFrames::new(Level::OneRtt, Side::Server).contains(frame_type));
        }
    }
}
