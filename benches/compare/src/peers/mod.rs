//! The other stacks, each with a `serve` and a `run`.

pub(crate) mod quiche;
pub(crate) mod quinn;
pub(crate) mod quinn_h3;
pub(crate) mod s2n;
pub(crate) mod tcp;
pub(crate) mod programs;
pub(crate) mod nginx;

/// Bytes of a socket's buffers each way, for all that let us choose.
pub(crate) const SOCKET_BUFFER: usize = 4 << 20;

/// Bytes of a datagram, for those that have to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Datagrams {
    /// As the stack does it: for Ethernet.
    Usual,
    /// For loopback.
    Large,
}
