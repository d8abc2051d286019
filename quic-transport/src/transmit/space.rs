//! Where a packet belongs: its packet number space ([RFC 9000, section 12.3](https://www.rfc-editor.org/rfc/rfc9000#section-12.3))
//! and its path.

/// How many packet number spaces there are.
pub(crate) const SPACES: usize = 3;

/// A packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Space {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Application,
}

impl Space {
    /// All spaces, in order.
    pub(crate) const ALL: [Self; SPACES] = [Self::Initial, Self::Handshake, Self::Application];

    /// The place in [`Space::ALL`].
    #[cfg(test)]
    #[inline]
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Initial => 0,
            Self::Handshake => 1,
            Self::Application => 2,
        }
    }
}

/// Names a path of a connection: each pair of addresses that it has used gets another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub(crate) u16);

impl PathId {
    /// The next one; they begin again after 65536 paths, when packets of the first are long settled.
    pub(crate) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::Space;

    #[test]
    fn the_index_is_the_order() {
        assert!(Space::ALL.is_sorted());
        assert!(Space::ALL.into_iter().map(Space::index).eq(0..3));
    }
}
