//! Transport parameters as bytes, right or wrong ([RFC 9000, section 18]).
//!
//! [RFC 9000, section 18]: https://www.rfc-editor.org/rfc/rfc9000#section-18

use super::frames::varint;

/// original_destination_connection_id
pub const ORIGINAL_DESTINATION_CID: u64 = 0x00;
/// max_idle_timeout
pub const MAX_IDLE_TIMEOUT: u64 = 0x01;
/// stateless_reset_token
pub const STATELESS_RESET_TOKEN: u64 = 0x02;
/// max_udp_payload_size
pub const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
/// initial_max_data
pub const INITIAL_MAX_DATA: u64 = 0x04;
/// initial_max_stream_data_bidi_local
pub const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
/// initial_max_stream_data_bidi_remote
pub const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
/// initial_max_stream_data_uni
pub const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
/// initial_max_streams_bidi
pub const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
/// initial_max_streams_uni
pub const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
/// ack_delay_exponent
pub const ACK_DELAY_EXPONENT: u64 = 0x0a;
/// max_ack_delay
pub const MAX_ACK_DELAY: u64 = 0x0b;
/// disable_active_migration
pub const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
/// preferred_address
pub const PREFERRED_ADDRESS: u64 = 0x0d;
/// active_connection_id_limit
pub const ACTIVE_CID_LIMIT: u64 = 0x0e;
/// initial_source_connection_id
pub const INITIAL_SOURCE_CID: u64 = 0x0f;
/// retry_source_connection_id
pub const RETRY_SOURCE_CID: u64 = 0x10;
/// version_information
pub const VERSION_INFORMATION: u64 = 0x11;
/// reset_stream_at
pub const RESET_STREAM_AT: u64 = 0x1d;
/// max_datagram_frame_size
pub const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
/// grease_quic_bit
pub const GREASE_QUIC_BIT: u64 = 0x2ab2;
/// min_ack_delay
pub const MIN_ACK_DELAY: u64 = 0xff04_de1b;

/// A list of parameters in the order in which they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    entries: Vec<(u64, Vec<u8>)>,
    left_out: Vec<u64>,
}

impl Parameters {
    /// Large windows, many streams, 30 seconds.
    #[must_use]
    pub fn generous() -> Self {
        let mut parameters = Self::default();
        parameters.set(MAX_IDLE_TIMEOUT, 30_000);
        for id in INITIAL_MAX_DATA..=INITIAL_MAX_STREAM_DATA_UNI {
            parameters.set(id, 1 << 30);
        }
        parameters.set(INITIAL_MAX_STREAMS_BIDI, 1000);
        parameters.set(INITIAL_MAX_STREAMS_UNI, 1000);
        parameters
    }

    /// Sets a parameter whose value is an integer.
    pub fn set(&mut self, id: u64, value: u64) -> &mut Self {
        self.set_bytes(id, &varint(value))
    }

    /// Sets a parameter, or adds it.
    pub fn set_bytes(&mut self, id: u64, value: &[u8]) -> &mut Self {
        if let Some(entry) = self.entries.iter_mut().find(|(known, _)| *known == id) {
            entry.1 = value.to_vec();
            return self;
        }
        self.add(id, value)
    }

    /// Sets version_information: the version chosen, then those available.
    pub fn set_versions(&mut self, versions: &[u32]) -> &mut Self {
        let value: Vec<_> = versions
            .iter()
            .flat_map(|version| version.to_be_bytes())
            .collect();
        self.set_bytes(VERSION_INFORMATION, &value)
    }

    /// Adds a parameter, even if it is there already.
    pub fn add(&mut self, id: u64, value: &[u8]) -> &mut Self {
        self.entries.push((id, value.to_vec()));
        self
    }

    /// Leaves a parameter out, also if the scripted peer would add it by itself.
    pub fn leave_out(&mut self, id: u64) -> &mut Self {
        self.entries.retain(|(known, _)| *known != id);
        self.left_out.push(id);
        self
    }

    /// Adds what the handshake fills in, unless the script has said otherwise.
    pub(super) fn fill_in(&mut self, id: u64, value: &[u8]) {
        let is_known = self.entries.iter().any(|(known, _)| *known == id);
        if !is_known && !self.left_out.contains(&id) {
            self.add(id, value);
        }
    }

    /// The bytes of the TLS extension.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (id, value) in &self.entries {
            bytes.extend(varint(*id));
            bytes.extend(varint(u64::try_from(value.len()).unwrap()));
            bytes.extend(value);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{INITIAL_SOURCE_CID, MAX_ACK_DELAY, Parameters};

    #[test]
    fn the_script_has_the_last_word() {
        let mut parameters = Parameters::default();
        parameters.set(MAX_ACK_DELAY, 1).set(MAX_ACK_DELAY, 2);
        parameters.add(MAX_ACK_DELAY, &[3]);
        parameters.leave_out(INITIAL_SOURCE_CID);
        parameters.fill_in(INITIAL_SOURCE_CID, b"cid");
        parameters.fill_in(MAX_ACK_DELAY, &[4]);
        assert_eq!(parameters.encode(), [0x0b, 1, 2, 0x0b, 1, 3]);
    }
}
