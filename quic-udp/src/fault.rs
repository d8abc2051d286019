//! What an error of a system call means for a socket that is to live on.

use std::io::{Error, ErrorKind};

/// Why a datagram was not sent. To QUIC each of these is the loss of the datagram.
///
/// A server passes over all of them. A client may give up on [`Fault::Unreachable`] and [`Fault::NotPermitted`] while
/// its handshake hasn't completed; after that anyone could have caused them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Larger than the interface's or the path's MTU allows. A probe that meets this has failed, nothing else.
    TooLarge,
    /// The kernel is short of memory or a queue is full (ENOBUFS). Unlike a full socket, this gives no sign when it ends.
    NoBuffers,
    /// No way to the destination: no route, the network is down, the family is wrong, or a host refused.
    Unreachable,
    /// A firewall or another policy of this machine forbids it.
    NotPermitted,
    /// Another error, with the system's code (0 if it had none).
    Other(i32),
}

impl Fault {
    /// What `error`, not of kind `WouldBlock`, means.
    pub(crate) fn of(error: &Error) -> Self {
        let kind = error.kind();
        let code = error.raw_os_error();
        if quinn_udp::is_msg_size_err(error) {
            Self::TooLarge
        } else if kind == ErrorKind::OutOfMemory
            || code.is_some_and(|c| codes::NO_BUFFERS.contains(&c))
        {
            Self::NoBuffers
        } else if is_unreachable(kind) || code.is_some_and(|c| codes::UNREACHABLE.contains(&c)) {
            Self::Unreachable
        } else if kind == ErrorKind::PermissionDenied {
            Self::NotPermitted
        } else {
            Self::Other(code.unwrap_or(0))
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge => f.write_str("the datagram is larger than the MTU"),
            Self::NoBuffers => f.write_str("the system has no buffer space"),
            Self::Unreachable => f.write_str("the destination is unreachable"),
            Self::NotPermitted => f.write_str("a policy of this machine forbids sending"),
            Self::Other(code) => write!(f, "system error {code}"),
        }
    }
}

impl std::error::Error for Fault {}

const fn is_unreachable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::AddrNotAvailable
    )
}

/// Whether this is how a system says that it can't segment: EIO for a device without checksum offload, else EINVAL.
pub(crate) fn is_refused_argument(error: &Error) -> bool {
    error
        .raw_os_error()
        .is_some_and(|code| codes::REFUSED_ARGUMENT.contains(&code))
}

/// Whether the system doesn't have the call, or a sandbox keeps it from us.
pub(crate) fn is_missing_call(error: &Error) -> bool {
    error
        .raw_os_error()
        .is_some_and(|code| codes::MISSING_CALL.contains(&code))
}

/// Whether it was a datagram that couldn't be understood, not the call that failed: macOS 10.15 hands out some that are
/// neither of IPv4 nor of IPv6. The layer below says so without a code of the system's.
pub(crate) fn is_of_a_datagram(error: &Error) -> bool {
    error.raw_os_error().is_none()
}

/// Whether no later call on the socket can succeed.
pub(crate) fn is_fatal(error: &Error) -> bool {
    error
        .raw_os_error()
        .is_some_and(|code| codes::FATAL.contains(&code))
}

#[cfg(unix)]
mod codes {
    use libc::{EAFNOSUPPORT, EBADF, EHOSTDOWN, EINVAL, EIO, ENOBUFS, ENOSYS, ENOTSOCK};

    pub(super) const NO_BUFFERS: [i32; 1] = [ENOBUFS];
    pub(super) const UNREACHABLE: [i32; 2] = [EHOSTDOWN, EAFNOSUPPORT];
    pub(super) const REFUSED_ARGUMENT: [i32; 2] = [EIO, EINVAL];
    pub(super) const MISSING_CALL: [i32; 1] = [ENOSYS];
    pub(super) const FATAL: [i32; 2] = [EBADF, ENOTSOCK];
}

#[cfg(not(unix))]
mod codes {
    //! Winsock's numbers.

    pub(super) const NO_BUFFERS: [i32; 1] = [10055];
    pub(super) const UNREACHABLE: [i32; 2] = [10064, 10047];
    pub(super) const REFUSED_ARGUMENT: [i32; 1] = [10022];
    pub(super) const MISSING_CALL: [i32; 1] = [10045];
    pub(super) const FATAL: [i32; 2] = [10009, 10038];
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Error;

    use super::{Fault, is_fatal, is_refused_argument};

    /// The whole policy for errors, so that a changed row shows up as one.
    #[test]
    fn every_row() {
        let rows = [
            (libc::EMSGSIZE, Fault::TooLarge),
            (libc::ENOBUFS, Fault::NoBuffers),
            (libc::ENOMEM, Fault::NoBuffers),
            (libc::ECONNREFUSED, Fault::Unreachable),
            (libc::ECONNRESET, Fault::Unreachable),
            (libc::EHOSTUNREACH, Fault::Unreachable),
            (libc::ENETUNREACH, Fault::Unreachable),
            (libc::ENETDOWN, Fault::Unreachable),
            (libc::EHOSTDOWN, Fault::Unreachable),
            (libc::EADDRNOTAVAIL, Fault::Unreachable),
            (libc::EAFNOSUPPORT, Fault::Unreachable),
            (libc::EPERM, Fault::NotPermitted),
            (libc::EACCES, Fault::NotPermitted),
            (libc::EIO, Fault::Other(libc::EIO)),
            (libc::EINVAL, Fault::Other(libc::EINVAL)),
            (libc::EPROTO, Fault::Other(libc::EPROTO)),
        ];
        for (code, fault) in rows {
            assert_eq!(Fault::of(&Error::from_raw_os_error(code)), fault, "{code}");
        }
        assert_eq!(Fault::of(&Error::other("no code")), Fault::Other(0));
    }

    #[test]
    fn only_a_lost_descriptor_is_fatal() {
        for code in [libc::EBADF, libc::ENOTSOCK] {
            assert!(is_fatal(&Error::from_raw_os_error(code)));
        }
        for code in [libc::ECONNREFUSED, libc::EPERM, libc::EIO, libc::ENETDOWN] {
            assert!(!is_fatal(&Error::from_raw_os_error(code)));
        }
        assert!(is_refused_argument(&Error::from_raw_os_error(libc::EIO)));
        assert!(is_refused_argument(&Error::from_raw_os_error(libc::EINVAL)));
        assert!(!is_refused_argument(&Error::from_raw_os_error(libc::EPERM)));
    }
}
