//! What a decoder says about bytes that break a rule.

use quic_common::Truncated;

use super::code::TransportErrorCode;

/// The bytes break a rule of the wire format; the connection closes with the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// The code to close with.
    pub(crate) code: TransportErrorCode,
    /// The type of the frame at fault, or 0.
    pub(crate) frame: u64,
    /// Which rule.
    pub(crate) reason: &'static str,
}

impl Malformed {
    /// A frame that can't be decoded.
    pub(crate) const fn frame(frame: u64, reason: &'static str) -> Self {
        Self {
            code: TransportErrorCode::FRAME_ENCODING_ERROR,
            frame,
            reason,
        }
    }

    /// A rule without a code of its own.
    pub(crate) const fn protocol(frame: u64, reason: &'static str) -> Self {
        Self {
            code: TransportErrorCode::PROTOCOL_VIOLATION,
            frame,
            reason,
        }
    }

    /// Transport parameters at fault.
    pub(crate) const fn parameter(reason: &'static str) -> Self {
        Self {
            code: TransportErrorCode::TRANSPORT_PARAMETER_ERROR,
            frame: 0,
            reason,
        }
    }
}

/// Most inputs that end too early are frames.
impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self::frame(0, "the frame is cut short")
    }
}
