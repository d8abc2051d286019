//! The sizes of a socket's kernel buffers: asked for, and then read back, since the kernel cuts what it doesn't allow
//! without saying so.

use std::io;

use crate::limits::MIN_SOCKET_BUFFER;

/// What was asked for and what the kernel granted, in bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferSize {
    /// What was asked for.
    pub wanted: usize,
    /// What the kernel says it is now.
    pub granted: usize,
}

impl BufferSize {
    /// Whether the kernel gave less than what was asked for.
    #[must_use]
    pub const fn is_clamped(&self) -> bool {
        self.granted < self.wanted
    }
}

/// Sets a size, halving it while the system refuses, and reads it back.
pub(crate) fn negotiate(
    wanted: usize,
    mut set: impl FnMut(usize) -> io::Result<()>,
    read: impl FnOnce() -> io::Result<usize>,
) -> io::Result<BufferSize> {
    let mut size = wanted;
    while set(size).is_err() && size / 2 >= MIN_SOCKET_BUFFER {
        size /= 2;
    }
    // Linux reports twice the size, for its own bookkeeping.
    let reported = read()?;
    let granted = if cfg!(any(target_os = "linux", target_os = "android")) {
        reported / 2
    } else {
        reported
    };
    Ok(BufferSize { wanted, granted })
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, io};

    use super::negotiate;
    use crate::limits::MIN_SOCKET_BUFFER;

    const FACTOR: usize = if cfg!(any(target_os = "linux", target_os = "android")) {
        2
    } else {
        1
    };

    #[test]
    fn a_system_that_refuses_is_asked_for_less() {
        let held = Cell::new(1);
        let size = negotiate(
            1 << 20,
            |bytes| {
                if bytes > 1 << 18 {
                    return Err(io::Error::other("too much"));
                }
                held.set(bytes);
                Ok(())
            },
            || Ok(held.get() * FACTOR),
        )
        .unwrap();
        assert_eq!(size.granted, 1 << 18);
        assert!(size.is_clamped());
    }

    #[test]
    fn a_system_that_always_refuses_ends_the_search() {
        let asked = Cell::new(0);
        let size = negotiate(
            4 * MIN_SOCKET_BUFFER,
            |_| {
                asked.set(asked.get() + 1);
                Err(io::Error::other("no"))
            },
            || Ok(7 * FACTOR),
        )
        .unwrap();
        assert_eq!((asked.get(), size.granted), (3, 7));
    }

    #[test]
    fn a_size_that_was_granted_is_not_clamped() {
        let size = negotiate(1000, |_| Ok(()), || Ok(1000 * FACTOR)).unwrap();
        assert!(!size.is_clamped());
    }
}
