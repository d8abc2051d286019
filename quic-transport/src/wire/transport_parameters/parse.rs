//! Reading the peer's parameters. Each may come once, unknown ones are skipped, and every value must be in its range.

use std::time::Duration;

use quic_common::Reader;

use super::{
    DEFAULT_ACTIVE_CONNECTION_ID_LIMIT, MAX_ACK_DELAY_BOUND, MAX_ACK_DELAY_EXPONENT,
    MAX_UDP_PAYLOAD_SIZE, MIN_UDP_PAYLOAD_SIZE, PreferredAddress, TransportParameters,
    VersionInformation, ids,
};
use crate::limits::REMEMBERED_UNKNOWN_PARAMETERS;
use crate::wire::cid::ConnectionId;
use crate::wire::malformed::Malformed;
use crate::wire::reset_token::ResetToken;
use crate::wire::stream_id::{MAX_STREAMS, Side};

const CUT_SHORT: Malformed = Malformed::parameter("the transport parameters are cut short");
const TWICE: Malformed = Malformed::parameter("a transport parameter comes twice");

impl TransportParameters {
    /// Reads the parameters that `sender` sent.
    ///
    /// # Errors
    ///
    /// When one is malformed, out of range, there twice, not the sender's to send, or missing.
    pub(crate) fn parse(bytes: &[u8], sender: Side) -> Result<Self, Malformed> {
        let mut parameters = Self::default();
        let mut seen = Seen::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let id = reader.varint().map_err(|_truncated| CUT_SHORT)?;
            let value = reader.length_prefixed().map_err(|_truncated| CUT_SHORT)?;
            if !seen.insert(id) {
                return Err(TWICE);
            }
            parameters.set(id, value, sender)?;
        }
        parameters.check(sender)?;
        Ok(parameters)
    }

    fn set(&mut self, id: u64, value: &[u8], sender: Side) -> Result<(), Malformed> {
        match id {
            ids::ORIGINAL_DCID => self.original_dcid = Some(cid(value)?),
            ids::MAX_IDLE_TIMEOUT => self.max_idle_timeout = Duration::from_millis(integer(value)?),
            ids::STATELESS_RESET_TOKEN => {
                let token = value.try_into().map_err(|_wrong_length| {
                    Malformed::parameter("stateless_reset_token isn't 16 bytes")
                })?;
                self.stateless_reset_token = Some(ResetToken(token));
            }
            ids::MAX_UDP_PAYLOAD_SIZE => {
                let size = integer(value)?;
                if size < MIN_UDP_PAYLOAD_SIZE {
                    return Err(Malformed::parameter("max_udp_payload_size is below 1200"));
                }
                let size = u16::try_from(size).unwrap_or(MAX_UDP_PAYLOAD_SIZE);
                self.max_udp_payload_size = size.min(MAX_UDP_PAYLOAD_SIZE);
            }
            ids::INITIAL_MAX_DATA => self.initial_max_data = integer(value)?,
            ids::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => {
                self.initial_max_stream_data_bidi_local = integer(value)?;
            }
            ids::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => {
                self.initial_max_stream_data_bidi_remote = integer(value)?;
            }
            ids::INITIAL_MAX_STREAM_DATA_UNI => {
                self.initial_max_stream_data_uni = integer(value)?;
            }
            ids::INITIAL_MAX_STREAMS_BIDI => self.initial_max_streams_bidi = stream_count(value)?,
            ids::INITIAL_MAX_STREAMS_UNI => self.initial_max_streams_uni = stream_count(value)?,
            ids::ACK_DELAY_EXPONENT => {
                self.ack_delay_exponent = u8::try_from(integer(value)?)
                    .ok()
                    .filter(|exponent| *exponent <= MAX_ACK_DELAY_EXPONENT)
                    .ok_or(Malformed::parameter("ack_delay_exponent is over 20"))?;
            }
            ids::MAX_ACK_DELAY => {
                let delay = integer(value)?;
                if delay >= MAX_ACK_DELAY_BOUND {
                    return Err(Malformed::parameter("max_ack_delay is 2^14 or more"));
                }
                self.max_ack_delay = Duration::from_millis(delay);
            }
            ids::DISABLE_ACTIVE_MIGRATION => {
                self.disable_active_migration =
                    flag(value, "disable_active_migration has a value")?;
            }
            ids::PREFERRED_ADDRESS => {
                self.preferred_address = Some(PreferredAddress::parse(value)?);
            }
            ids::ACTIVE_CONNECTION_ID_LIMIT => {
                let limit = integer(value)?;
                if limit < DEFAULT_ACTIVE_CONNECTION_ID_LIMIT {
                    return Err(Malformed::parameter(
                        "active_connection_id_limit is below 2",
                    ));
                }
                self.active_connection_id_limit = limit;
            }
            ids::INITIAL_SCID => self.initial_scid = Some(cid(value)?),
            ids::RETRY_SCID => self.retry_scid = Some(cid(value)?),
            ids::VERSION_INFORMATION => {
                self.version_information = Some(VersionInformation::parse(value, sender)?);
            }
            ids::RESET_STREAM_AT | ids::RESET_STREAM_AT_BEFORE => {
                self.reset_stream_at = flag(value, "reset_stream_at has a value")?;
            }
            ids::MAX_DATAGRAM_FRAME_SIZE => self.max_datagram_frame_size = integer(value)?,
            ids::GREASE_QUIC_BIT => {
                self.grease_quic_bit = flag(value, "grease_quic_bit has a value")?;
            }
            ids::MIN_ACK_DELAY => {
                self.min_ack_delay = Some(Duration::from_micros(integer(value)?));
            }
            _ => {}
        }
        Ok(())
    }

    /// What only the whole shows (RFC 9000, 7.3 and 18.2).
    fn check(&self, sender: Side) -> Result<(), Malformed> {
        let Some(initial_scid) = &self.initial_scid else {
            return Err(Malformed::parameter(
                "initial_source_connection_id is missing",
            ));
        };
        if self
            .min_ack_delay
            .is_some_and(|delay| delay > self.max_ack_delay)
        {
            return Err(Malformed::parameter("min_ack_delay is over max_ack_delay"));
        }
        match sender {
            Side::Client => {
                if self.original_dcid.is_some()
                    || self.preferred_address.is_some()
                    || self.retry_scid.is_some()
                    || self.stateless_reset_token.is_some()
                {
                    return Err(Malformed::parameter("a client sent a server's parameter"));
                }
            }
            Side::Server => {
                if self.original_dcid.is_none() {
                    return Err(Malformed::parameter(
                        "original_destination_connection_id is missing",
                    ));
                }
                if self.preferred_address.is_some() && initial_scid.is_empty() {
                    return Err(Malformed::parameter(
                        "preferred_address with a zero-length connection ID",
                    ));
                }
            }
        }
        Ok(())
    }
}

/// A value that is exactly one variable-length integer.
fn integer(value: &[u8]) -> Result<u64, Malformed> {
    let mut reader = Reader::new(value);
    reader
        .varint()
        .ok()
        .filter(|_| reader.is_empty())
        .ok_or(Malformed::parameter(
            "an integer parameter has a wrong length",
        ))
}

/// A parameter that says all by being there.
const fn flag(value: &[u8], reason: &'static str) -> Result<bool, Malformed> {
    if value.is_empty() {
        Ok(true)
    } else {
        Err(Malformed::parameter(reason))
    }
}

fn stream_count(value: &[u8]) -> Result<u64, Malformed> {
    let count = integer(value)?;
    if count > MAX_STREAMS {
        return Err(Malformed::parameter("more than 2^60 streams"));
    }
    Ok(count)
}

fn cid(value: &[u8]) -> Result<ConnectionId, Malformed> {
    ConnectionId::new(value).ok_or(Malformed::parameter("a connection ID of over 20 bytes"))
}

/// The parameters that have been there: all that we know, and as many others as the limit allows.
#[derive(Default)]
struct Seen {
    known: u32,
    unknown: [u64; REMEMBERED_UNKNOWN_PARAMETERS],
    unknown_count: usize,
}

impl Seen {
    /// Notes a parameter; `false` when it has been there before.
    fn insert(&mut self, id: u64) -> bool {
        if let Some(bit) = known_bit(id) {
            let new = self.known & bit == 0;
            self.known |= bit;
            return new;
        }
        let seen = self.unknown.get(..self.unknown_count).unwrap_or_default();
        if seen.contains(&id) {
            return false;
        }
        if let Some(slot) = self.unknown.get_mut(self.unknown_count) {
            *slot = id;
            self.unknown_count += 1;
        }
        true
    }
}

/// The bit of a parameter that we know: its number, or its place among the extensions.
fn known_bit(id: u64) -> Option<u32> {
    if id <= ids::VERSION_INFORMATION {
        return Some(1 << id);
    }
    let place = ids::EXTENSIONS.iter().position(|known| *known == id)?;
    1_u32.checked_shl(18 + u32::try_from(place).ok()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quic_common::{MAX_VARINT, Random, Writer};

    use super::TransportParameters;
    use crate::limits::REMEMBERED_UNKNOWN_PARAMETERS;
    use crate::wire::code::TransportErrorCode;
    use crate::wire::stream_id::Side;

    /// A parameter with these bytes as its value.
    fn raw(id: u64, value: &[u8]) -> Vec<u8> {
        let mut buffer = vec![0; value.len() + 16];
        let mut writer = Writer::new(&mut buffer);
        assert!(writer.varint(id));
        assert!(writer.varint(value.len().try_into().unwrap()));
        assert!(writer.bytes(value));
        writer.into_written().to_vec()
    }

    /// A parameter with an integer as its value.
    fn integer(id: u64, value: u64) -> Vec<u8> {
        let mut buffer = [0; 8];
        let mut writer = Writer::new(&mut buffer);
        assert!(writer.varint(value));
        raw(id, writer.written())
    }

    /// What the sender has to send, and then these.
    fn parse(sender: Side, more: &[Vec<u8>]) -> Result<TransportParameters, &'static str> {
        let mut bytes = raw(0x0f, &[1; 8]);
        if sender == Side::Server {
            bytes.extend(raw(0x00, &[2; 8]));
        }
        bytes.extend(more.concat());
        TransportParameters::parse(&bytes, sender).map_err(|malformed| {
            let code = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
            assert_eq!(malformed.code, code);
            malformed.reason
        })
    }

    fn preferred_address(cid: &[u8]) -> Vec<u8> {
        let mut value = vec![9; 24];
        value.push(cid.len().try_into().unwrap());
        value.extend(cid);
        value.extend([7; 16]);
        raw(0x0d, &value)
    }

    /// RFC 9000, 18.2: the defaults.
    #[test]
    fn absent_parameters_have_their_defaults() {
        let parameters = parse(Side::Client, &[]).unwrap();
        assert_eq!(parameters.max_udp_payload_size, 65527);
        assert_eq!(parameters.ack_delay_exponent, 3);
        assert_eq!(parameters.max_ack_delay, Duration::from_millis(25));
        assert_eq!(parameters.active_connection_id_limit, 2);
        assert_eq!(parameters.max_idle_timeout, Duration::ZERO);
        assert_eq!(parameters.initial_max_data, 0);
        assert!(!parameters.disable_active_migration);
    }

    /// RFC 9000, 18.2: values out of range are invalid.
    #[test]
    fn values_at_the_bound_pass_and_beyond_it_do_not() {
        let bounds = [
            // Parameter, the last good value, the first bad one.
            (0x03, 1200, 1199),
            (0x08, 1 << 60, (1 << 60) + 1),
            (0x09, 1 << 60, (1 << 60) + 1),
            (0x0a, 20, 21),
            (0x0b, (1 << 14) - 1, 1 << 14),
            (0x0e, 2, 1),
        ];
        for (id, good, bad) in bounds {
            assert!(parse(Side::Server, &[integer(id, good)]).is_ok(), "{id:#x}");
            assert!(parse(Side::Server, &[integer(id, bad)]).is_err(), "{id:#x}");
        }
        for id in [0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0e] {
            assert!(parse(Side::Client, &[integer(id, MAX_VARINT)]).is_ok());
        }
        for id in [0x08, 0x09, 0x0a, 0x0b] {
            assert!(parse(Side::Client, &[integer(id, MAX_VARINT)]).is_err());
        }
    }

    /// draft-ietf-quic-ack-frequency-14, 3: a min_ack_delay over max_ack_delay MUST be a TRANSPORT_PARAMETER_ERROR,
    /// whichever of them comes first. One is in microseconds, the other in milliseconds.
    #[test]
    fn the_least_ack_delay_is_within_the_most() {
        const LEAST: u64 = 0xff04_de1b;
        let both = |most, least| [integer(0x0b, most), integer(LEAST, least)];
        let parsed = parse(Side::Client, &both(3, 3000)).unwrap();
        assert_eq!(parsed.min_ack_delay, Some(Duration::from_millis(3)));
        let [most, least] = both(3, 3001);
        assert!(parse(Side::Client, &[most.clone(), least.clone()]).is_err());
        assert!(parse(Side::Client, &[least, most]).is_err());
        assert!(parse(Side::Client, &[integer(LEAST, 25_000)]).is_ok());
        assert!(parse(Side::Client, &[integer(LEAST, 25_001)]).is_err());
        assert!(parse(Side::Client, &[integer(LEAST, MAX_VARINT)]).is_err());
    }

    /// Both numbers of reset_stream_at say the same.
    #[test]
    fn earlier_drafts_number_of_reset_stream_at_counts_too() {
        for id in [0x1d, 0x17_f758_6d2c_b571] {
            let parsed = parse(Side::Server, &[raw(id, &[])]).unwrap();
            assert!(parsed.reset_stream_at);
        }
        assert!(!parse(Side::Server, &[]).unwrap().reset_stream_at);
    }

    #[test]
    fn values_have_their_exact_length() {
        for id in (0x03..=0x0b).chain([0x01, 0x0e, 0x20, 0xff04_de1b]) {
            // A good value in the longest form, which is allowed, and the same one byte longer and shorter.
            let value = [0xc0, 0, 0, 0, 0, 0, 0, 20, 0];
            let good = &value[..8];
            let good_size = [0xc0, 0, 0, 0, 0, 0, 5, 20];
            let good = if id == 0x03 { &good_size } else { good };
            assert!(parse(Side::Server, &[raw(id, good)]).is_ok(), "{id:#x}");
            assert!(parse(Side::Server, &[raw(id, &value)]).is_err());
            assert!(parse(Side::Server, &[raw(id, &value[..7])]).is_err());
            assert!(parse(Side::Server, &[raw(id, &[])]).is_err());
        }
        for length in 0..40 {
            let value = vec![3; length];
            let token = parse(Side::Server, &[raw(0x02, &value)]);
            assert_eq!(token.is_ok(), length == 16);
            let flag = parse(Side::Server, &[raw(0x0c, &value)]);
            assert_eq!(flag.is_ok(), length == 0);
            for id in [0x1d, 0x17_f758_6d2c_b571, 0x2ab2] {
                let flag = parse(Side::Server, &[raw(id, &value)]);
                assert_eq!(flag.is_ok(), length == 0, "{id:#x}");
            }
            let cid = parse(Side::Server, &[raw(0x10, &value)]);
            assert_eq!(cid.is_ok(), length <= 20);
        }
    }

    /// RFC 9000, 7.4: a parameter that comes twice should be a TRANSPORT_PARAMETER_ERROR.
    #[test]
    fn no_parameter_comes_twice() {
        for id in [0x01, 0x04, 0x0a, 0x20, 0xff04_de1b, 31 * 5 + 27, MAX_VARINT] {
            let once = integer(id, 5);
            assert!(parse(Side::Client, std::slice::from_ref(&once)).is_ok());
            assert!(parse(Side::Client, &[once.clone(), once]).is_err());
        }
        assert!(parse(Side::Client, &[raw(0x0f, &[1; 8])]).is_err());
        for id in [0x1d, 0x17_f758_6d2c_b571, 0x2ab2] {
            assert!(parse(Side::Client, &[raw(id, &[])]).is_ok());
            assert!(parse(Side::Client, &[raw(id, &[]), raw(id, &[])]).is_err());
        }
    }

    /// The limit is on what is remembered, not on what may be sent.
    #[test]
    fn more_unknown_parameters_than_are_remembered_pass() {
        let count = u64::try_from(REMEMBERED_UNKNOWN_PARAMETERS).unwrap();
        let many = |count: u64| -> Vec<_> { (0..count).map(|n| raw(0x100 + n, &[])).collect() };
        let mut at_cap = many(count);
        assert!(parse(Side::Client, &at_cap).is_ok());
        at_cap.push(raw(0x100 + count - 1, &[]));
        assert!(parse(Side::Client, &at_cap).is_err());
        let mut beyond = many(count + 1);
        beyond.push(raw(0x100 + count, &[]));
        assert!(parse(Side::Client, &beyond).is_ok());
    }

    /// RFC 9000, 18.2: a server MUST treat a server-only parameter from a client as an error.
    #[test]
    fn clients_do_not_send_what_servers_do() {
        for parameter in [
            raw(0x00, &[1; 8]),
            raw(0x02, &[1; 16]),
            preferred_address(&[1; 8]),
            raw(0x10, &[1; 8]),
        ] {
            assert!(parse(Side::Client, std::slice::from_ref(&parameter)).is_err());
            let mut from_server = vec![raw(0x0f, &[1]), parameter];
            if from_server[1][0] != 0x00 {
                from_server.push(raw(0x00, &[2]));
            }
            let bytes = from_server.concat();
            assert!(TransportParameters::parse(&bytes, Side::Server).is_ok());
        }
    }

    /// RFC 9000, 7.3: the absence of these parameters MUST be an error.
    #[test]
    fn required_parameters_are_missed() {
        for sender in [Side::Client, Side::Server] {
            assert!(TransportParameters::parse(&raw(0x00, &[1; 8]), sender).is_err());
        }
        let initial = raw(0x0f, &[1; 8]);
        assert!(TransportParameters::parse(&initial, Side::Client).is_ok());
        assert!(TransportParameters::parse(&initial, Side::Server).is_err());
        assert!(TransportParameters::parse(&[], Side::Client).is_err());
    }

    /// RFC 9000, 18.2: a preferred address without a connection ID MUST be an error.
    #[test]
    fn a_preferred_address_has_a_connection_id() {
        assert!(parse(Side::Server, &[preferred_address(&[5; 20])]).is_ok());
        assert!(parse(Side::Server, &[preferred_address(&[])]).is_err());
        assert!(parse(Side::Server, &[preferred_address(&[5; 21])]).is_err());
        let without = [raw(0x0f, &[]), raw(0x00, &[1; 8]), preferred_address(&[5])].concat();
        assert!(TransportParameters::parse(&without, Side::Server).is_err());
    }

    #[test]
    fn every_cut_is_malformed() {
        let whole = [
            raw(0x00, &[2; 8]),
            raw(0x0f, &[1; 8]),
            integer(0x04, MAX_VARINT),
            raw(31 * 9999 + 27, &[0; 70]),
        ];
        let ends: Vec<_> = (0..=whole.len())
            .map(|n| whole[..n].concat().len())
            .collect();
        let bytes = whole.concat();
        for length in 0..=bytes.len() {
            let parsed = TransportParameters::parse(&bytes[..length], Side::Server);
            let expected = ends[2..].contains(&length);
            assert_eq!(parsed.is_ok(), expected, "{length}");
        }
    }

    #[test]
    fn random_bytes_end() {
        let mut random = Random::from_seed([31; 32]);
        let mut good = 0;
        for _ in 0..50_000 {
            let mut bytes = raw(0x0f, &[1; 4]);
            let start = bytes.len();
            bytes.resize(start + usize::try_from(random.below(12)).unwrap(), 0);
            random.fill(&mut bytes[start..]);
            if random.below(2) == 0 {
                for byte in &mut bytes[start..] {
                    *byte &= 0x0f;
                }
            }
            good += usize::from(TransportParameters::parse(&bytes, Side::Client).is_ok());
        }
        assert!(good > 1000, "{good}");
    }
}
