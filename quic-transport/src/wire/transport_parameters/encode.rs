//! Writing our parameters. What has its default value is left out, and one that means nothing is added, so that
//! peers keep ignoring what they don't know.

use quic_common::Writer;

use super::{TransportParameters, ids};
use crate::wire::encode::wide;

/// Room for all of them, but for a preferred address.
const USUAL_LENGTH: usize = 256;

impl TransportParameters {
    /// Appends the encoding to `out`; the reserved parameter is made from `grease`, a random number.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, grease: u64) {
        out.reserve(USUAL_LENGTH);
        let default = Self::default();
        if let Some(cid) = &self.original_dcid {
            put(out, ids::ORIGINAL_DCID, cid.as_slice());
        }
        if let Some(token) = &self.stateless_reset_token {
            put(out, ids::STATELESS_RESET_TOKEN, &token.0);
        }
        for ((id, value), (_, absent)) in self.integers().into_iter().zip(default.integers()) {
            if value != absent {
                put_integer(out, id, value);
            }
        }
        if self.disable_active_migration {
            put(out, ids::DISABLE_ACTIVE_MIGRATION, &[]);
        }
        if let Some(address) = &self.preferred_address {
            let mut value = Vec::new();
            address.encode(&mut value);
            put(out, ids::PREFERRED_ADDRESS, &value);
        }
        if let Some(cid) = &self.initial_scid {
            put(out, ids::INITIAL_SCID, cid.as_slice());
        }
        if let Some(cid) = &self.retry_scid {
            put(out, ids::RETRY_SCID, cid.as_slice());
        }
        if let Some(information) = &self.version_information {
            put(out, ids::VERSION_INFORMATION, &information.encode());
        }
        if self.reset_stream_at {
            put(out, ids::RESET_STREAM_AT, &[]);
            put(out, ids::RESET_STREAM_AT_BEFORE, &[]);
        }
        if let Some(delay) = self.min_ack_delay {
            let micros = u64::try_from(delay.as_micros());
            put_integer(out, ids::MIN_ACK_DELAY, micros.unwrap_or(0));
        }
        if self.grease_quic_bit {
            put(out, ids::GREASE_QUIC_BIT, &[]);
        }
        let bytes = grease.to_be_bytes();
        let length = usize::from(bytes[0] % 8);
        put(
            out,
            ids::reserved(grease),
            bytes.get(..length).unwrap_or_default(),
        );
    }

    /// The parameters that are integers, as they stand on the wire.
    fn integers(&self) -> [(u64, u64); 12] {
        let milliseconds = |d: std::time::Duration| u64::try_from(d.as_millis());
        let most = quic_common::MAX_VARINT;
        [
            (
                ids::MAX_IDLE_TIMEOUT,
                milliseconds(self.max_idle_timeout).map_or(most, |ms| ms.min(most)),
            ),
            (
                ids::MAX_UDP_PAYLOAD_SIZE,
                u64::from(self.max_udp_payload_size),
            ),
            (ids::INITIAL_MAX_DATA, self.initial_max_data),
            (
                ids::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL,
                self.initial_max_stream_data_bidi_local,
            ),
            (
                ids::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE,
                self.initial_max_stream_data_bidi_remote,
            ),
            (
                ids::INITIAL_MAX_STREAM_DATA_UNI,
                self.initial_max_stream_data_uni,
            ),
            (ids::INITIAL_MAX_STREAMS_BIDI, self.initial_max_streams_bidi),
            (ids::INITIAL_MAX_STREAMS_UNI, self.initial_max_streams_uni),
            (ids::ACK_DELAY_EXPONENT, u64::from(self.ack_delay_exponent)),
            (
                ids::MAX_ACK_DELAY,
                milliseconds(self.max_ack_delay).unwrap_or(most),
            ),
            (
                ids::ACTIVE_CONNECTION_ID_LIMIT,
                self.active_connection_id_limit,
            ),
            (ids::MAX_DATAGRAM_FRAME_SIZE, self.max_datagram_frame_size),
        ]
    }
}

fn put(out: &mut Vec<u8>, id: u64, value: &[u8]) {
    put_varint(out, id);
    put_varint(out, wide(value.len()));
    out.extend(value);
}

fn put_integer(out: &mut Vec<u8>, id: u64, value: u64) {
    put_varint(out, id);
    put_varint(out, wide(quic_common::varint_size(value)));
    put_varint(out, value);
}

fn put_varint(out: &mut Vec<u8>, value: u64) {
    let mut buffer = [0; 8];
    let mut writer = Writer::new(&mut buffer);
    let written = writer.varint(value);
    debug_assert!(written, "the value is over 2^62 - 1");
    out.extend(writer.written());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quic_common::{MAX_VARINT, Random};

    use super::TransportParameters;
    use crate::wire::cid::ConnectionId;
    use crate::wire::reset_token::ResetToken;
    use crate::wire::stream_id::{MAX_STREAMS, Side};
    use crate::wire::transport_parameters::{PreferredAddress, VersionInformation};
    use crate::wire::version::Version;
    use crate::wire::versions::Versions;

    fn random_parameters(random: &mut Random, sender: Side) -> TransportParameters {
        let mut value = |max: u64| {
            let shift = random.below(62);
            random.below((max >> shift).saturating_add(1))
        };
        let cid = ConnectionId::new(&[5; 8]).unwrap();
        let is_server = sender.is_server();
        TransportParameters {
            original_dcid: is_server.then_some(cid),
            max_idle_timeout: Duration::from_millis(value(MAX_VARINT)),
            stateless_reset_token: is_server.then_some(ResetToken([6; 16])),
            max_udp_payload_size: u16::try_from(1200 + value(64_327)).unwrap(),
            initial_max_data: value(MAX_VARINT),
            initial_max_stream_data_bidi_local: value(MAX_VARINT),
            initial_max_stream_data_bidi_remote: value(MAX_VARINT),
            initial_max_stream_data_uni: value(MAX_VARINT),
            initial_max_streams_bidi: value(MAX_STREAMS),
            initial_max_streams_uni: value(MAX_STREAMS),
            ack_delay_exponent: u8::try_from(value(20)).unwrap(),
            max_ack_delay: Duration::from_millis(value((1 << 14) - 1).max(1)),
            disable_active_migration: value(1) == 1,
            preferred_address: is_server.then_some(PreferredAddress {
                v4: None,
                v6: None,
                cid,
                reset_token: ResetToken([7; 16]),
            }),
            active_connection_id_limit: 2 + value(MAX_VARINT - 2),
            initial_scid: Some(cid),
            retry_scid: is_server.then_some(ConnectionId::EMPTY),
            max_datagram_frame_size: value(MAX_VARINT),
            reset_stream_at: value(1) == 1,
            min_ack_delay: (value(1) == 1).then_some(Duration::from_micros(value(1000))),
            grease_quic_bit: value(1) == 1,
            version_information: Some(VersionInformation::new(
                Version::V2,
                &Versions::DEFAULT,
                &mut Random::from_seed([2; 32]),
            )),
        }
    }

    #[test]
    fn round_trip() {
        let mut random = Random::from_seed([41; 32]);
        for _ in 0..5000 {
            for sender in [Side::Client, Side::Server] {
                let parameters = random_parameters(&mut random, sender);
                let mut bytes = Vec::new();
                parameters.encode(&mut bytes, random.u64());
                assert_eq!(TransportParameters::parse(&bytes, sender), Ok(parameters));
            }
        }
    }

    #[test]
    fn defaults_are_left_out() {
        let mut bytes = Vec::new();
        TransportParameters::default().encode(&mut bytes, 0);
        assert_eq!(bytes, [27, 0], "only the reserved parameter");
    }

    /// RFC 9000, 18.1: 31 * N + 27.
    #[test]
    fn the_reserved_parameter_is_one() {
        for grease in [0, 1, 99, MAX_VARINT, u64::MAX] {
            let id = super::ids::reserved(grease);
            assert!(id <= MAX_VARINT && id % 31 == 27);
        }
        let last = MAX_VARINT / 31 - 2;
        let ids = [last, last + 1, last + 2].map(super::ids::reserved);
        assert_eq!(ids, [MAX_VARINT - 38, 27, 27 + 31], "they are all in use");
    }

    #[test]
    fn the_reserved_parameter_holds_up_to_seven_bytes() {
        for length in 0..8_u8 {
            let value = [8 + length, 2, 3, 4, 5, 6, 7, 8];
            let grease = u64::from_be_bytes(value);
            let mut bytes = Vec::new();
            TransportParameters::default().encode(&mut bytes, grease);
            // The number takes eight bytes, and the length one.
            let expected = [&[length], &value[..length.into()]].concat();
            assert_eq!(bytes[8..], expected);
        }
    }
}
