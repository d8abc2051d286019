//! A received UDP datagram, borrowed from the buffer that it was received in.

use std::net::SocketAddr;

/// The ECN field of an IP packet, [RFC 3168, section 5](https://www.rfc-editor.org/rfc/rfc3168#section-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender doesn't take part.
    #[default]
    NotEct,
    /// ECN-capable transport, codepoint 01.
    Ect1,
    /// ECN-capable transport, codepoint 10.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// The two bits of the IP header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }

    /// Reads the low two bits of `bits`.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// One received datagram.
///
/// The payload is mutable because packets are decrypted where they lie.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The address that it came from. IPv4-mapped IPv6 addresses are given as IPv4.
    pub remote: SocketAddr,
    /// The address that it was sent to: that of the socket, with the IP address that the system tells.
    pub local: Option<SocketAddr>,
    /// The ECN mark that it arrived with.
    pub ecn: Ecn,
    /// The UDP payload.
    pub payload: &'a mut [u8],
}

impl<'a> Datagram<'a> {
    /// A datagram of which no more is known: what a plain socket tells.
    pub const fn new(remote: SocketAddr, payload: &'a mut [u8]) -> Self {
        Self {
            remote,
            local: None,
            ecn: Ecn::NotEct,
            payload,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ecn;

    #[test]
    fn ecn_bits_round_trip() {
        for bits in 0..4 {
            assert_eq!(Ecn::from_bits(bits).bits(), bits);
        }
    }
}
