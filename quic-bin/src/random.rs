//! Seeds from the operating system.

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::failure::Failure;

/// 32 unpredictable bytes.
///
/// # Errors
///
/// When the system has none to give.
pub fn seed() -> Result<[u8; 32], Failure> {
    let mut seed = [0; 32];
    SystemRandom::new()
        .fill(&mut seed)
        .map_err(|_unspecified| Failure::new("the system gives no random numbers"))?;
    Ok(seed)
}
