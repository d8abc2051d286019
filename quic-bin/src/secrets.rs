//! Files of secret keys: 32 bytes each, the one in use first, then those that were in use before.

use std::{fs::File, io::Read as _, path::Path};

use crate::{failure::Failure, limits::MAX_SECRETS};

/// Bytes of a key.
const LENGTH: usize = 32;

/// Reads the keys of a file.
///
/// # Errors
///
/// A line that names the file and what is wrong with it.
pub fn load(path: &Path) -> Result<Vec<[u8; LENGTH]>, Failure> {
    let fail = |error: std::io::Error| Failure::with_file(path, &error);
    let most = u64::try_from(LENGTH * MAX_SECRETS).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(fail)?
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    let (keys, rest) = bytes.as_chunks();
    if keys.is_empty() || keys.len() > MAX_SECRETS || !rest.is_empty() {
        let expected = format!("expected 1 to {MAX_SECRETS} keys of {LENGTH} bytes");
        return Err(Failure::with_file(path, &expected));
    }
    Ok(keys.to_vec())
}
