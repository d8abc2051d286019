//! Seeds from the operating system.

use quic_transport::tls::random_seed;

use crate::failure::Failure;

/// 32 unpredictable bytes.
///
/// # Errors
///
/// When the system has none to give.
pub fn seed() -> Result<[u8; 32], Failure> {
    random_seed().map_err(|error| Failure::new(error.to_string()))
}
