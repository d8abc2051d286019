//! Transport parameters, [RFC 9000, section 18](https://www.rfc-editor.org/rfc/rfc9000#section-18).
//!
//! Whatever the parameters alone can tell about right and wrong is checked while they are parsed. How they compare with
//! the connection IDs of the handshake is checked by [`TransportParameters::authenticate`], once these are known.

mod ids;
mod preferred_address;
mod version_information;
mod parse;
mod encode;

use std::time::Duration;

use crate::wire::cid::ConnectionId;
use crate::wire::malformed::Malformed;
use crate::wire::reset_token::ResetToken;

pub(crate) use preferred_address::PreferredAddress;
pub(crate) use version_information::VersionInformation;

/// What one end tells the other in the handshake. Those that may be absent are `Option`, others have their default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransportParameters {
    /// The destination of the client's first Initial; server only, required.
    pub(crate) original_dcid: Option<ConnectionId>,
    /// How long a connection may be idle; zero for ever.
    pub(crate) max_idle_timeout: Duration,
    /// What a stateless reset for the handshake's connection ID ends with; server only.
    pub(crate) stateless_reset_token: Option<ResetToken>,
    /// The largest UDP payload that the sender takes, at least 1200.
    pub(crate) max_udp_payload_size: u16,
    /// Flow control credit of the connection, in bytes.
    pub(crate) initial_max_data: u64,
    /// Credit of each bidirectional stream that the sender of the parameters opens.
    pub(crate) initial_max_stream_data_bidi_local: u64,
    /// Credit of each bidirectional stream that their receiver opens.
    pub(crate) initial_max_stream_data_bidi_remote: u64,
    /// Credit of each unidirectional stream that their receiver opens.
    pub(crate) initial_max_stream_data_uni: u64,
    /// Bidirectional streams that the receiver may open, at most 2^60.
    pub(crate) initial_max_streams_bidi: u64,
    /// Unidirectional streams that the receiver may open, at most 2^60.
    pub(crate) initial_max_streams_uni: u64,
    /// The power of two that the delays in the sender's ACK frames are multiplied by, at most 20.
    pub(crate) ack_delay_exponent: u8,
    /// By how much the sender delays acknowledgments at most, less than 2^14 ms.
    pub(crate) max_ack_delay: Duration,
    /// Whether the sender wants no migration away from the handshake's addresses.
    pub(crate) disable_active_migration: bool,
    /// Where the server would rather be; server only.
    pub(crate) preferred_address: Option<PreferredAddress>,
    /// Connection IDs that the sender keeps, at least 2.
    pub(crate) active_connection_id_limit: u64,
    /// The source connection ID of the sender's first Initial; required.
    pub(crate) initial_scid: Option<ConnectionId>,
    /// The source connection ID of the Retry packet; server only.
    pub(crate) retry_scid: Option<ConnectionId>,
    /// The largest DATAGRAM frame that the sender takes, in bytes with type and length; 0 for none (RFC 9221, 3).
    pub(crate) max_datagram_frame_size: u64,
    /// Whether the sender takes RESET_STREAM_AT frames (draft-ietf-quic-reliable-stream-reset-10, 3).
    pub(crate) reset_stream_at: bool,
    /// The shortest delay of acknowledgments that the sender can be asked for; it takes ACK_FREQUENCY and IMMEDIATE_ACK
    /// frames if that is there (draft-ietf-quic-ack-frequency-14, 3). At most `max_ack_delay`.
    pub(crate) min_ack_delay: Option<Duration>,
    /// Whether the sender takes packets whose fixed bit is clear (RFC 9287, 3).
    pub(crate) grease_quic_bit: bool,
    /// The version chosen, and those that could have been (RFC 9368, 3).
    pub(crate) version_information: Option<VersionInformation>,
}

/// What an endpoint that sends nothing is taken to have said.
impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            original_dcid: None,
            max_idle_timeout: Duration::ZERO,
            stateless_reset_token: None,
            max_udp_payload_size: MAX_UDP_PAYLOAD_SIZE,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: DEFAULT_ACK_DELAY_EXPONENT,
            max_ack_delay: DEFAULT_MAX_ACK_DELAY,
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: DEFAULT_ACTIVE_CONNECTION_ID_LIMIT,
            initial_scid: None,
            retry_scid: None,
            max_datagram_frame_size: 0,
            reset_stream_at: false,
            min_ack_delay: None,
            grease_quic_bit: false,
            version_information: None,
        }
    }
}

/// The largest UDP payload that IP can carry, and the default.
const MAX_UDP_PAYLOAD_SIZE: u16 = 65527;
/// The smallest that a QUIC endpoint may refuse to go beyond.
const MIN_UDP_PAYLOAD_SIZE: u64 = 1200;
const DEFAULT_ACK_DELAY_EXPONENT: u8 = 3;
const MAX_ACK_DELAY_EXPONENT: u8 = 20;
const DEFAULT_MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// In milliseconds, and the first that is too large.
const MAX_ACK_DELAY_BOUND: u64 = 1 << 14;
const DEFAULT_ACTIVE_CONNECTION_ID_LIMIT: u64 = 2;

impl TransportParameters {
    /// A limit that is smaller than in `remembered`, the server's parameters of an earlier connection: 0-RTT data may
    /// rely on that one ([RFC 9000, section 7.4.1](https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1)).
    pub(crate) fn shrunk_since(&self, remembered: &Self) -> Option<&'static str> {
        let limits = |of: &Self| {
            [
                of.active_connection_id_limit,
                of.initial_max_data,
                of.initial_max_stream_data_bidi_local,
                of.initial_max_stream_data_bidi_remote,
                of.initial_max_stream_data_uni,
                of.initial_max_streams_bidi,
                of.initial_max_streams_uni,
                // RFC 9221, 3.
                of.max_datagram_frame_size,
            ]
        };
        let names = [
            "active_connection_id_limit is smaller than for 0-RTT",
            "initial_max_data is smaller than for 0-RTT",
            "initial_max_stream_data_bidi_local is smaller than for 0-RTT",
            "initial_max_stream_data_bidi_remote is smaller than for 0-RTT",
            "initial_max_stream_data_uni is smaller than for 0-RTT",
            "initial_max_streams_bidi is smaller than for 0-RTT",
            "initial_max_streams_uni is smaller than for 0-RTT",
            "max_datagram_frame_size is smaller than for 0-RTT",
        ];
        names
            .into_iter()
            .zip(limits(self).into_iter().zip(limits(remembered)))
            .find_map(|(name, (now, then))| (now < then).then_some(name))
    }

    /// Compares the connection IDs that the peer says were used with those that were
    /// ([RFC 9000, section 7.3](https://www.rfc-editor.org/rfc/rfc9000#section-7.3)).
    ///
    /// `initial` is the source of the peer's first Initial. A client gives, for a server's parameters, the destination
    /// of its own first Initial as `original` and the source of the Retry, if there was one, as `retry`; a server gives
    /// `None` for both, since a client sends neither.
    ///
    /// # Errors
    ///
    /// When one is absent, differs, or is there without a Retry.
    pub(crate) fn authenticate(
        &self,
        initial: ConnectionId,
        original: Option<ConnectionId>,
        retry: Option<ConnectionId>,
    ) -> Result<(), Malformed> {
        if self.initial_scid != Some(initial) {
            return Err(Malformed::parameter(
                "initial_source_connection_id isn't the one used",
            ));
        }
        if self.original_dcid != original {
            return Err(Malformed::parameter(
                "original_destination_connection_id isn't the one used",
            ));
        }
        if self.retry_scid != retry {
            return Err(Malformed::parameter(
                "retry_source_connection_id isn't the one used",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::TransportParameters;
    use crate::wire::cid::ConnectionId;
    use crate::wire::code::TransportErrorCode;

    /// RFC 9000, 7.4.1 and RFC 9221, 3 (C10): each of the limits that 0-RTT data may rely on.
    #[test]
    fn limits_that_have_shrunk_are_named() {
        type Field = fn(&mut TransportParameters) -> &mut u64;
        let then = TransportParameters {
            initial_max_data: 10,
            initial_max_stream_data_bidi_local: 10,
            initial_max_stream_data_bidi_remote: 10,
            initial_max_stream_data_uni: 10,
            initial_max_streams_bidi: 10,
            initial_max_streams_uni: 10,
            active_connection_id_limit: 10,
            max_datagram_frame_size: 10,
            ..TransportParameters::default()
        };
        assert_eq!(then.shrunk_since(&then), None);
        let fields: [(&str, Field); 8] = [
            ("initial_max_data ", |p| &mut p.initial_max_data),
            ("initial_max_stream_data_bidi_local ", |p| {
                &mut p.initial_max_stream_data_bidi_local
            }),
            ("initial_max_stream_data_bidi_remote ", |p| {
                &mut p.initial_max_stream_data_bidi_remote
            }),
            ("initial_max_stream_data_uni ", |p| {
                &mut p.initial_max_stream_data_uni
            }),
            ("initial_max_streams_bidi ", |p| {
                &mut p.initial_max_streams_bidi
            }),
            ("initial_max_streams_uni ", |p| {
                &mut p.initial_max_streams_uni
            }),
            ("active_connection_id_limit ", |p| {
                &mut p.active_connection_id_limit
            }),
            ("max_datagram_frame_size ", |p| {
                &mut p.max_datagram_frame_size
            }),
        ];
        for (name, field) in fields {
            let mut now = then.clone();
            *field(&mut now) = 9;
            assert!(now.shrunk_since(&then).unwrap().starts_with(name));
            *field(&mut now) = 11;
            assert_eq!(now.shrunk_since(&then), None);
        }
    }

    /// RFC 9000, 7.3: absent, different and unexpected connection IDs MUST be a TRANSPORT_PARAMETER_ERROR.
    #[test]
    fn connection_ids_are_compared() {
        let [a, b, c] = [1, 2, 3].map(|byte| ConnectionId::new(&[byte; 8]).unwrap());
        let server = TransportParameters {
            initial_scid: Some(a),
            original_dcid: Some(b),
            retry_scid: Some(c),
            ..TransportParameters::default()
        };
        assert_eq!(server.authenticate(a, Some(b), Some(c)), Ok(()));
        let wrong = [
            server.authenticate(b, Some(b), Some(c)),
            server.authenticate(a, Some(a), Some(c)),
            server.authenticate(a, Some(b), Some(b)),
            server.authenticate(a, Some(b), None),
            server.authenticate(a, None, Some(c)),
            TransportParameters::default().authenticate(ConnectionId::EMPTY, None, None),
        ];
        for result in wrong {
            let code = result.unwrap_err().code;
            assert_eq!(code, TransportErrorCode::TRANSPORT_PARAMETER_ERROR);
        }
    }
}
