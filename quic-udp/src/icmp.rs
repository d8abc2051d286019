//! ICMP errors, as values.
//!
//! They are hints and no more: anyone who can guess a port can forge one. [RFC 9000, section
//! 14.2.1](https://www.rfc-editor.org/rfc/rfc9000#section-14.2.1) wants a quoted packet to be checked against what was
//! sent, and the kernel doesn't hand us enough of it. So a client may use them until its handshake completes, and
//! neither end sets an MTU by them.

use std::net::SocketAddr;

use crate::address::normal_address;

/// An error message that a host or router sent about one of our datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IcmpError {
    /// Who sent the message, if known: the peer's host or a router on the way. Its port means nothing.
    pub from: Option<SocketAddr>,
    /// What it says.
    pub kind: IcmpKind,
    /// The system's code for it.
    pub code: i32,
}

impl IcmpError {
    /// An error as the kernel would report it.
    #[must_use]
    pub const fn new(from: Option<SocketAddr>, kind: IcmpKind, code: i32) -> Self {
        Self { from, kind, code }
    }
}

/// What an ICMP message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IcmpKind {
    /// The host, network or port can't be reached.
    Unreachable,
    /// A packet was larger than the next link takes.
    TooBig {
        /// The link's MTU as the message claims it, IP header included.
        mtu: u32,
    },
    /// Anything else.
    Other,
}

impl From<quinn_udp::TransportError> for IcmpError {
    fn from(error: quinn_udp::TransportError) -> Self {
        use quinn_udp::TransportErrorPayload as Payload;
        let kind = match error.payload {
            Payload::Unreachable => IcmpKind::Unreachable,
            Payload::TooBig { mtu } => IcmpKind::TooBig { mtu },
            Payload::Other | _ => IcmpKind::Other,
        };
        Self::new(error.addr.map(normal_address), kind, error.raw_errno)
    }
}
