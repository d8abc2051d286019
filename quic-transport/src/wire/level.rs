//! Encryption levels, [RFC 9001, section 4](https://www.rfc-editor.org/rfc/rfc9001#section-4).

/// Which keys protect a packet, in the order in which they become available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Level {
    /// Keys that anyone on the path can derive.
    Initial,
    /// Keys of an earlier session, from the client only.
    ZeroRtt,
    /// Keys of a handshake that isn't authenticated yet.
    Handshake,
    /// The keys of the connection.
    OneRtt,
}

impl Level {
    /// All levels, in order.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 4] = [Self::Initial, Self::ZeroRtt, Self::Handshake, Self::OneRtt];

    /// The place in [`Level::ALL`].
    #[cfg(test)]
    #[inline]
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Initial => 0,
            Self::ZeroRtt => 1,
            Self::Handshake => 2,
            Self::OneRtt => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn the_index_is_the_order() {
        assert!(Level::ALL.is_sorted());
        assert!(Level::ALL.into_iter().map(Level::index).eq(0..4));
    }
}
