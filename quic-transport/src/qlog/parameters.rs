//! Transport parameters in the words of qlog.

use std::time::Duration;

use qlog::events::quic::{ParametersSet, TransportInitiator};

use super::values;
use crate::wire::{ConnectionId, Side, TransportParameters};

/// What `of` says, in the log of `side`; `None` when it can't be read, which ends the connection anyway.
pub(super) fn set(side: Side, of: Side, bytes: &[u8]) -> Option<ParametersSet> {
    let parameters = TransportParameters::parse(bytes, of).ok()?;
    let cid = |cid: Option<ConnectionId>| cid.map(|cid| values::hex(cid.as_slice()));
    Some(ParametersSet {
        initiator: Some(if side == of {
            TransportInitiator::Local
        } else {
            TransportInitiator::Remote
        }),
        original_destination_connection_id: cid(parameters.original_dcid),
        initial_source_connection_id: cid(parameters.initial_scid),
        retry_source_connection_id: cid(parameters.retry_scid),
        disable_active_migration: Some(parameters.disable_active_migration),
        max_idle_timeout: milliseconds(parameters.max_idle_timeout),
        max_udp_payload_size: Some(parameters.max_udp_payload_size.into()),
        ack_delay_exponent: Some(parameters.ack_delay_exponent.into()),
        max_ack_delay: milliseconds(parameters.max_ack_delay),
        active_connection_id_limit: Some(parameters.active_connection_id_limit),
        initial_max_data: Some(parameters.initial_max_data),
        initial_max_stream_data_bidi_local: Some(parameters.initial_max_stream_data_bidi_local),
        initial_max_stream_data_bidi_remote: Some(parameters.initial_max_stream_data_bidi_remote),
        initial_max_stream_data_uni: Some(parameters.initial_max_stream_data_uni),
        initial_max_streams_bidi: Some(parameters.initial_max_streams_bidi),
        initial_max_streams_uni: Some(parameters.initial_max_streams_uni),
        max_datagram_frame_size: Some(parameters.max_datagram_frame_size),
        ..ParametersSet::default()
    })
}

fn milliseconds(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}
