//! Transport error codes, [RFC 9000, section 20.1](https://www.rfc-editor.org/rfc/rfc9000#section-20.1).

/// Why one end closed the connection, as CONNECTION_CLOSE carries it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransportErrorCode(u64);

impl TransportErrorCode {
    /// The connection is closed without an error.
    pub const NO_ERROR: Self = Self(0x00);
    /// Something failed inside the endpoint.
    pub const INTERNAL_ERROR: Self = Self(0x01);
    /// The server takes no new connection.
    pub const CONNECTION_REFUSED: Self = Self(0x02);
    /// More data than the advertised limits allow.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x03);
    /// A stream beyond the advertised limit.
    pub const STREAM_LIMIT_ERROR: Self = Self(0x04);
    /// A frame that the stream's state forbids.
    pub const STREAM_STATE_ERROR: Self = Self(0x05);
    /// The final size changed, or data lies beyond it.
    pub const FINAL_SIZE_ERROR: Self = Self(0x06);
    /// A frame that can't be decoded.
    pub const FRAME_ENCODING_ERROR: Self = Self(0x07);
    /// Transport parameters that are malformed, invalid or incomplete.
    pub const TRANSPORT_PARAMETER_ERROR: Self = Self(0x08);
    /// More connection IDs than the advertised limit.
    pub const CONNECTION_ID_LIMIT_ERROR: Self = Self(0x09);
    /// A rule broken that has no code of its own.
    pub const PROTOCOL_VIOLATION: Self = Self(0x0a);
    /// The server got an invalid token in a client's Initial.
    pub const INVALID_TOKEN: Self = Self(0x0b);
    /// The application closed the connection where its own code can't be told.
    pub const APPLICATION_ERROR: Self = Self(0x0c);
    /// More CRYPTO data than can be buffered.
    pub const CRYPTO_BUFFER_EXCEEDED: Self = Self(0x0d);
    /// A faulty key update.
    pub const KEY_UPDATE_ERROR: Self = Self(0x0e);
    /// The keys have protected, or failed to open, as many packets as they may.
    pub const AEAD_LIMIT_REACHED: Self = Self(0x0f);
    /// The network can't carry QUIC: no path for datagrams of 1200 bytes.
    pub const NO_VIABLE_PATH: Self = Self(0x10);
    /// The version negotiated isn't the one that the peer says it chose (RFC 9368).
    pub const VERSION_NEGOTIATION_ERROR: Self = Self(0x11);

    /// A code from the wire, known or not.
    #[must_use]
    pub const fn new(code: u64) -> Self {
        Self(code)
    }

    /// The code for a TLS alert, 0x100 + alert (RFC 9001, 4.8).
    #[must_use]
    pub const fn crypto(alert: u8) -> Self {
        #[expect(clippy::as_conversions, reason = "`From` is not const")]
        Self(0x100 | alert as u64)
    }

    /// The value on the wire.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The TLS alert, when the code is for one.
    #[must_use]
    pub fn alert(self) -> Option<u8> {
        u8::try_from(self.0.checked_sub(0x100)?).ok()
    }

    /// The name in the RFC, for the codes that have one.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x00 => "NO_ERROR",
            0x01 => "INTERNAL_ERROR",
            0x02 => "CONNECTION_REFUSED",
            0x03 => "FLOW_CONTROL_ERROR",
            0x04 => "STREAM_LIMIT_ERROR",
            0x05 => "STREAM_STATE_ERROR",
            0x06 => "FINAL_SIZE_ERROR",
            0x07 => "FRAME_ENCODING_ERROR",
            0x08 => "TRANSPORT_PARAMETER_ERROR",
            0x09 => "CONNECTION_ID_LIMIT_ERROR",
            0x0a => "PROTOCOL_VIOLATION",
            0x0b => "INVALID_TOKEN",
            0x0c => "APPLICATION_ERROR",
            0x0d => "CRYPTO_BUFFER_EXCEEDED",
            0x0e => "KEY_UPDATE_ERROR",
            0x0f => "AEAD_LIMIT_REACHED",
            0x10 => "NO_VIABLE_PATH",
            0x11 => "VERSION_NEGOTIATION_ERROR",
            0x100..=0x1ff => "CRYPTO_ERROR",
            _ => return None,
        })
    }
}

impl std::fmt::Display for TransportErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.name(), self.alert()) {
            (Some(name), Some(alert)) => write!(f, "{name} ({:#x}, TLS alert {alert})", self.0),
            (Some(name), None) => write!(f, "{name} ({:#x})", self.0),
            (None, _) => write!(f, "unknown transport error {:#x}", self.0),
        }
    }
}

impl std::fmt::Debug for TransportErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::TransportErrorCode as Code;

    #[test]
    fn every_alert_has_a_code() {
        for alert in 0..=u8::MAX {
            let code = Code::crypto(alert);
            assert_eq!(code.value(), 0x100 + u64::from(alert));
            assert_eq!(code.alert(), Some(alert));
            assert_eq!(code.name(), Some("CRYPTO_ERROR"));
        }
        for code in [0, 0x11, 0xff, 0x200, u64::MAX] {
            assert_eq!(Code::new(code).alert(), None);
        }
    }

    /// RFC 9000, 20.1, and RFC 9368, 10.2.
    #[test]
    fn every_code_has_its_name() {
        let names = [
            (Code::NO_ERROR, "NO_ERROR"),
            (Code::INTERNAL_ERROR, "INTERNAL_ERROR"),
            (Code::CONNECTION_REFUSED, "CONNECTION_REFUSED"),
            (Code::FLOW_CONTROL_ERROR, "FLOW_CONTROL_ERROR"),
            (Code::STREAM_LIMIT_ERROR, "STREAM_LIMIT_ERROR"),
            (Code::STREAM_STATE_ERROR, "STREAM_STATE_ERROR"),
            (Code::FINAL_SIZE_ERROR, "FINAL_SIZE_ERROR"),
            (Code::FRAME_ENCODING_ERROR, "FRAME_ENCODING_ERROR"),
            (Code::TRANSPORT_PARAMETER_ERROR, "TRANSPORT_PARAMETER_ERROR"),
            (Code::CONNECTION_ID_LIMIT_ERROR, "CONNECTION_ID_LIMIT_ERROR"),
            (Code::PROTOCOL_VIOLATION, "PROTOCOL_VIOLATION"),
            (Code::INVALID_TOKEN, "INVALID_TOKEN"),
            (Code::APPLICATION_ERROR, "APPLICATION_ERROR"),
            (Code::CRYPTO_BUFFER_EXCEEDED, "CRYPTO_BUFFER_EXCEEDED"),
            (Code::KEY_UPDATE_ERROR, "KEY_UPDATE_ERROR"),
            (Code::AEAD_LIMIT_REACHED, "AEAD_LIMIT_REACHED"),
            (Code::NO_VIABLE_PATH, "NO_VIABLE_PATH"),
            (Code::VERSION_NEGOTIATION_ERROR, "VERSION_NEGOTIATION_ERROR"),
        ];
        for (value, (code, name)) in (0..).zip(names) {
            assert_eq!((code.value(), code.name()), (value, Some(name)));
        }
        assert_eq!(Code::new(0x12).name(), None);
    }

    #[test]
    fn shown_by_name_and_number() {
        assert_eq!(
            Code::PROTOCOL_VIOLATION.to_string(),
            "PROTOCOL_VIOLATION (0xa)"
        );
        assert_eq!(
            Code::crypto(120).to_string(),
            "CRYPTO_ERROR (0x178, TLS alert 120)"
        );
        assert_eq!(
            format!("{:?}", Code::new(0x4000)),
            "unknown transport error 0x4000"
        );
    }
}
