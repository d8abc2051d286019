//! Bytes that nobody can guess, from the operating system.

use super::crypto::rand::{SecureRandom as _, SystemRandom};
use crate::error::ApiError;

/// What a [`quic_common::Random`] is to begin with, where nothing has to be repeated.
///
/// # Errors
///
/// When the system has no random bytes to give.
pub fn random_seed() -> Result<[u8; 32], ApiError> {
    unpredictable().ok_or(ApiError::Tls("the system gives no random numbers"))
}

/// That many bytes; `None` when the system has none to give.
pub(super) fn unpredictable<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::random_seed;

    #[test]
    fn no_two_seeds_are_the_same() {
        assert_ne!(random_seed().unwrap(), random_seed().unwrap());
    }
}
