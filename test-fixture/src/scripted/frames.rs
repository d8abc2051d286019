//! Frames as bytes, right or wrong, to be put into packets by a scripted peer.
//!
//! Nothing is checked, and nothing is shared with the code under test.

use std::ops::RangeInclusive;

/// A variable-length integer in as few bytes as it takes ([RFC 9000, section 16]).
///
/// [RFC 9000, section 16]: https://www.rfc-editor.org/rfc/rfc9000#section-16
#[must_use]
pub fn varint(value: u64) -> Vec<u8> {
    let length = match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    };
    long_varint(value, length)
}

/// A variable-length integer in 1, 2, 4 or 8 bytes, even if fewer would do.
#[must_use]
pub fn long_varint(value: u64, length: usize) -> Vec<u8> {
    let mut bytes = value.to_be_bytes()[8 - length..].to_vec();
    bytes[0] |= u8::try_from(length.trailing_zeros()).unwrap() << 6;
    bytes
}

/// PADDING.
#[must_use]
pub fn padding(length: usize) -> Vec<u8> {
    vec![0; length]
}

/// PING.
#[must_use]
pub fn ping() -> Vec<u8> {
    vec![1]
}

/// ACK of these ranges, the highest first, without ECN counts.
#[must_use]
pub fn ack(ranges: &[RangeInclusive<u64>]) -> Vec<u8> {
    let (first, rest) = ranges.split_first().unwrap();
    let mut pairs = Vec::new();
    let mut lowest = *first.start();
    for range in rest {
        pairs.push((lowest - range.end() - 2, range.end() - range.start()));
        lowest = *range.start();
    }
    raw_ack(*first.end(), 0, first.end() - first.start(), &pairs)
}

/// ACK with its fields as they are: largest, delay, first range, then each gap and range.
#[must_use]
pub fn raw_ack(largest: u64, delay: u64, first: u64, pairs: &[(u64, u64)]) -> Vec<u8> {
    let count = u64::try_from(pairs.len()).unwrap();
    let mut bytes = numbers(2, &[largest, delay, count, first]);
    for (gap, range) in pairs {
        bytes.extend(varint(*gap));
        bytes.extend(varint(*range));
    }
    bytes
}

/// An ACK frame with the counts of ECT(0), ECT(1) and CE added.
#[must_use]
pub fn with_ecn(mut ack: Vec<u8>, counts: [u64; 3]) -> Vec<u8> {
    ack[0] = 3;
    ack.extend(counts.into_iter().flat_map(varint));
    ack
}

/// RESET_STREAM.
#[must_use]
pub fn reset_stream(id: u64, code: u64, final_size: u64) -> Vec<u8> {
    numbers(4, &[id, code, final_size])
}

/// STOP_SENDING.
#[must_use]
pub fn stop_sending(id: u64, code: u64) -> Vec<u8> {
    numbers(5, &[id, code])
}

/// CRYPTO.
#[must_use]
pub fn crypto(offset: u64, data: &[u8]) -> Vec<u8> {
    with_bytes(numbers(6, &[offset]), data)
}

/// NEW_TOKEN.
#[must_use]
pub fn new_token(token: &[u8]) -> Vec<u8> {
    with_bytes(numbers(7, &[]), token)
}

/// STREAM with offset and length.
#[must_use]
pub fn stream(id: u64, offset: u64, data: &[u8], fin: bool) -> Vec<u8> {
    with_bytes(numbers(0x0e | u64::from(fin), &[id, offset]), data)
}

/// MAX_DATA.
#[must_use]
pub fn max_data(limit: u64) -> Vec<u8> {
    numbers(0x10, &[limit])
}

/// MAX_STREAM_DATA.
#[must_use]
pub fn max_stream_data(id: u64, limit: u64) -> Vec<u8> {
    numbers(0x11, &[id, limit])
}

/// MAX_STREAMS for bidirectional streams (0x12); add 1 to the first byte for unidirectional ones.
#[must_use]
pub fn max_streams(limit: u64) -> Vec<u8> {
    numbers(0x12, &[limit])
}

/// DATA_BLOCKED.
#[must_use]
pub fn data_blocked(limit: u64) -> Vec<u8> {
    numbers(0x14, &[limit])
}

/// STREAM_DATA_BLOCKED.
#[must_use]
pub fn stream_data_blocked(id: u64, limit: u64) -> Vec<u8> {
    numbers(0x15, &[id, limit])
}

/// STREAMS_BLOCKED for bidirectional streams (0x16); add 1 to the first byte for unidirectional ones.
#[must_use]
pub fn streams_blocked(limit: u64) -> Vec<u8> {
    numbers(0x16, &[limit])
}

/// NEW_CONNECTION_ID.
#[must_use]
pub fn new_connection_id(sequence: u64, retire: u64, cid: &[u8], token: [u8; 16]) -> Vec<u8> {
    let mut bytes = numbers(0x18, &[sequence, retire]);
    bytes.push(u8::try_from(cid.len()).unwrap());
    bytes.extend(cid);
    bytes.extend(token);
    bytes
}

/// RETIRE_CONNECTION_ID.
#[must_use]
pub fn retire_connection_id(sequence: u64) -> Vec<u8> {
    numbers(0x19, &[sequence])
}

/// PATH_CHALLENGE.
#[must_use]
pub fn path_challenge(data: [u8; 8]) -> Vec<u8> {
    [&[0x1a], data.as_slice()].concat()
}

/// PATH_RESPONSE.
#[must_use]
pub fn path_response(data: [u8; 8]) -> Vec<u8> {
    [&[0x1b], data.as_slice()].concat()
}

/// CONNECTION_CLOSE by the transport.
#[must_use]
pub fn connection_close(code: u64, frame: u64, reason: &[u8]) -> Vec<u8> {
    with_bytes(numbers(0x1c, &[code, frame]), reason)
}

/// CONNECTION_CLOSE by the application.
#[must_use]
pub fn application_close(code: u64, reason: &[u8]) -> Vec<u8> {
    with_bytes(numbers(0x1d, &[code]), reason)
}

/// HANDSHAKE_DONE.
#[must_use]
pub fn handshake_done() -> Vec<u8> {
    vec![0x1e]
}

/// IMMEDIATE_ACK.
#[must_use]
pub fn immediate_ack() -> Vec<u8> {
    vec![0x1f]
}

/// ACK_FREQUENCY, with its delay in microseconds.
#[must_use]
pub fn ack_frequency(sequence: u64, threshold: u64, max_delay: u64, reordering: u64) -> Vec<u8> {
    numbers(0xaf, &[sequence, threshold, max_delay, reordering])
}

/// RESET_STREAM_AT.
#[must_use]
pub fn reset_stream_at(id: u64, code: u64, final_size: u64, reliable_size: u64) -> Vec<u8> {
    numbers(0x24, &[id, code, final_size, reliable_size])
}

/// DATAGRAM with a length.
#[must_use]
pub fn datagram(data: &[u8]) -> Vec<u8> {
    with_bytes(numbers(0x31, &[]), data)
}

/// A frame type and the integers after it.
#[must_use]
pub fn numbers(kind: u64, values: &[u64]) -> Vec<u8> {
    let mut bytes = varint(kind);
    for value in values {
        bytes.extend(varint(*value));
    }
    bytes
}

fn with_bytes(mut frame: Vec<u8>, data: &[u8]) -> Vec<u8> {
    frame.extend(varint(u64::try_from(data.len()).unwrap()));
    frame.extend(data);
    frame
}

#[cfg(test)]
mod tests {
    use super::{ack, long_varint, varint};

    /// RFC 9000, A.1.
    #[test]
    fn integers_are_those_of_the_rfc() {
        assert_eq!(
            varint(151_288_809_941_952_652),
            [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]
        );
        assert_eq!(varint(494_878_333), [0x9d, 0x7f, 0x3e, 0x7d]);
        assert_eq!(varint(15_293), [0x7b, 0xbd]);
        assert_eq!(varint(37), [0x25]);
        assert_eq!(long_varint(37, 2), [0x40, 0x25]);
    }

    #[test]
    fn gaps_count_from_the_packet_after_next() {
        assert_eq!(ack(&[9..=10, 4..=6, 2..=2]), [2, 10, 0, 2, 1, 1, 2, 0, 0]);
    }
}
