//! Our values in the words of qlog.

use std::net::{IpAddr, SocketAddr};

use qlog::{
    HexSlice,
    events::{
        ApplicationError, ConnectionClosedEventError, CryptoError, RawInfo, TupleEndpointInfo,
        quic::{
            ConnectionClosed, ConnectionClosedTrigger, KeyType, PacketDroppedTrigger, PacketHeader,
            PacketType as Kind, TransportError, TransportInitiator,
        },
    },
};

use crate::{
    error::CloseReason,
    observe::{DropReason, ObservedPacket, PacketType},
    wire::{ConnectionId, Side, TransportErrorCode, Version},
};

/// Bytes as digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    HexSlice::new(bytes).to_string()
}

/// A version as digits.
pub(super) fn version(version: Version) -> String {
    format!("{:08x}", version.0)
}

/// Bytes of something that isn't shown.
pub(super) fn raw(size: usize) -> RawInfo {
    RawInfo {
        length: u64::try_from(size).ok(),
        ..RawInfo::default()
    }
}

/// One end, as far as it is known.
pub(super) fn endpoint(
    address: Option<SocketAddr>,
    cid: Option<ConnectionId>,
) -> TupleEndpointInfo {
    let mut info = TupleEndpointInfo {
        ip_v4: None,
        port_v4: None,
        ip_v6: None,
        port_v6: None,
        connection_ids: cid.map(|cid| vec![hex(cid.as_slice())]),
    };
    if let Some(address) = address {
        let port = Some(address.port());
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => (info.ip_v4, info.port_v4) = (Some(ip.to_string()), port),
            IpAddr::V6(ip) => (info.ip_v6, info.port_v6) = (Some(ip.to_string()), port),
        }
    }
    info
}

const fn kind(kind: PacketType) -> Kind {
    match kind {
        PacketType::Initial => Kind::Initial,
        PacketType::ZeroRtt => Kind::ZeroRtt,
        PacketType::Handshake => Kind::Handshake,
        PacketType::OneRtt => Kind::OneRtt,
        PacketType::Retry => Kind::Retry,
        PacketType::VersionNegotiation => Kind::VersionNegotiation,
    }
}

/// A packet's header: what a short one doesn't say goes without saying.
pub(super) fn header(packet: &ObservedPacket<'_>) -> PacketHeader {
    let mut header = bare_header(packet.kind, packet.number);
    if let Some(scid) = packet.scid {
        header.version = Some(version(packet.version));
        header.scid = Some(hex(scid.as_slice()));
        header.scil = u8::try_from(scid.len()).ok();
        header.dcid = Some(hex(packet.dcid.as_slice()));
        header.dcil = u8::try_from(packet.dcid.len()).ok();
    }
    header
}

/// What names a packet.
pub(super) fn bare_header(packet_type: PacketType, packet_number: Option<u64>) -> PacketHeader {
    PacketHeader {
        packet_type: kind(packet_type),
        packet_number,
        ..PacketHeader::default()
    }
}

pub(super) const fn drop_trigger(why: DropReason) -> PacketDroppedTrigger {
    match why {
        DropReason::UnknownConnection => PacketDroppedTrigger::ConnectionUnknown,
        DropReason::Invalid => PacketDroppedTrigger::Invalid,
        DropReason::Undecryptable => PacketDroppedTrigger::DecryptionFailure,
        DropReason::Duplicate | DropReason::Full => PacketDroppedTrigger::General,
    }
}

/// What the trigger doesn't say.
pub(super) const fn details(why: DropReason) -> Option<&'static str> {
    match why {
        DropReason::Duplicate => Some("duplicate"),
        DropReason::Full => Some("too many packets wait for keys"),
        DropReason::UnknownConnection | DropReason::Invalid | DropReason::Undecryptable => None,
    }
}

pub(super) const fn one_rtt_key(of: Side) -> KeyType {
    match of {
        Side::Client => KeyType::Client1RttSecret,
        Side::Server => KeyType::Server1RttSecret,
    }
}

/// The end of a connection.
pub(super) fn closed(reason: &CloseReason) -> ConnectionClosed {
    let mut closed = ConnectionClosed {
        initiator: Some(TransportInitiator::Local),
        connection_error: None,
        application_error: None,
        error_code: None,
        internal_code: None,
        reason: None,
        trigger: None,
    };
    let trigger = match reason {
        CloseReason::Local(error) => {
            closed.connection_error = Some(transport_error(error.code));
            closed.error_code = Some(error.code.value());
            closed.reason = Some(error.reason.to_owned());
            ConnectionClosedTrigger::Error
        }
        CloseReason::Application { code } => {
            closed.application_error = Some(ApplicationError::Unknown);
            closed.error_code = Some(*code);
            ConnectionClosedTrigger::Application
        }
        CloseReason::Peer { code, reason, .. } => {
            closed.initiator = Some(TransportInitiator::Remote);
            closed.connection_error = Some(transport_error(*code));
            closed.error_code = Some(code.value());
            closed.reason = Some(String::from_utf8_lossy(reason).into_owned());
            if *code == TransportErrorCode::NO_ERROR {
                ConnectionClosedTrigger::Clean
            } else {
                ConnectionClosedTrigger::Error
            }
        }
        CloseReason::PeerApplication { code, reason } => {
            closed.initiator = Some(TransportInitiator::Remote);
            closed.application_error = Some(ApplicationError::Unknown);
            closed.error_code = Some(*code);
            closed.reason = Some(String::from_utf8_lossy(reason).into_owned());
            ConnectionClosedTrigger::Application
        }
        CloseReason::IdleTimeout => ConnectionClosedTrigger::IdleTimeout,
        CloseReason::HandshakeTimeout => ConnectionClosedTrigger::HandshakeTimeout,
        CloseReason::StatelessReset => ConnectionClosedTrigger::StatelessReset,
        CloseReason::VersionMismatch => ConnectionClosedTrigger::VersionMismatch,
        CloseReason::Unreachable | CloseReason::NoPath => {
            closed.reason = Some(reason.to_string());
            ConnectionClosedTrigger::Error
        }
    };
    closed.trigger = Some(trigger);
    closed
}

/// A transport's code by its name in qlog.
pub(super) fn transport_error(code: TransportErrorCode) -> ConnectionClosedEventError {
    if code.alert().is_some() {
        return ConnectionClosedEventError::CryptoError(CryptoError::Prefix);
    }
    ConnectionClosedEventError::TransportError(transport_error_name(code))
}

const fn transport_error_name(code: TransportErrorCode) -> TransportError {
    match code.value() {
        0x0 => TransportError::NoError,
        0x1 => TransportError::InternalError,
        0x2 => TransportError::ConnectionRefused,
        0x3 => TransportError::FlowControlError,
        0x4 => TransportError::StreamLimitError,
        0x5 => TransportError::StreamStateError,
        0x6 => TransportError::FinalSizeError,
        0x7 => TransportError::FrameEncodingError,
        0x8 => TransportError::TransportParameterError,
        0x9 => TransportError::ConnectionIdLimitError,
        0xa => TransportError::ProtocolViolation,
        0xb => TransportError::InvalidToken,
        0xc => TransportError::ApplicationError,
        0xd => TransportError::CryptoBufferExceeded,
        0xe => TransportError::KeyUpdateError,
        0xf => TransportError::AeadLimitReached,
        0x10 => TransportError::NoViablePath,
        _ => TransportError::Unknown,
    }
}
