//! The peer's transport parameters.

use crate::wire::{Side, TransportErrorCode, TransportParameters};

/// Parses transport parameters as either side's, writes them again, and compares.
pub fn transport_parameters(bytes: &[u8]) {
    for sender in [Side::Client, Side::Server] {
        match TransportParameters::parse(bytes, sender) {
            Ok(parameters) => {
                let mut encoded = Vec::new();
                parameters.encode(&mut encoded, bytes.len().try_into().unwrap());
                let again = TransportParameters::parse(&encoded, sender);
                assert_eq!(again, Ok(parameters));
            }
            Err(malformed) => {
                let code = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
                assert_eq!(malformed.code, code, "{}", malformed.reason);
            }
        }
    }
}
