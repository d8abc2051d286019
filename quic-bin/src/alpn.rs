//! Which protocol runs above QUIC, by the name that TLS agrees on
//! ([RFC 7301](https://www.rfc-editor.org/rfc/rfc7301)).

use clap::ValueEnum;

/// A protocol that the programs speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Alpn {
    /// HTTP/3.
    #[value(name = "h3")]
    Http3,
    /// HTTP/0.9, as interoperability tests of QUIC use it.
    #[value(name = "hq-interop")]
    HqInterop,
}

impl Alpn {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static [u8] {
        match self {
            Self::Http3 => b"h3",
            Self::HqInterop => b"hq-interop",
        }
    }

    /// The names of several, in their order.
    #[must_use]
    pub fn names(all: &[Self]) -> Vec<&'static [u8]> {
        all.iter().map(|alpn| alpn.name()).collect()
    }

    /// The first of `ours` that the client offers, which is what TLS agrees on too. `None` ends the handshake.
    #[must_use]
    pub fn choose<'o, I>(ours: &[Self], offered: impl Fn() -> I) -> Option<Self>
    where
        I: Iterator<Item = &'o [u8]>,
    {
        let is_offered = |alpn: &&Self| offered().any(|name| name == alpn.name());
        ours.iter().find(is_offered).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Alpn;

    #[test]
    fn the_servers_order_decides() {
        let both = [Alpn::Http3, Alpn::HqInterop];
        let choose =
            |ours: &[Alpn], offered: &[&[u8]]| Alpn::choose(ours, || offered.iter().copied());
        assert_eq!(choose(&both, &[b"hq-interop", b"h3"]), Some(Alpn::Http3));
        assert_eq!(choose(&both, &[b"hq-interop"]), Some(Alpn::HqInterop));
        assert_eq!(choose(&both[..1], &[b"hq-interop"]), None);
        assert_eq!(choose(&both, &[]), None);
    }
}
