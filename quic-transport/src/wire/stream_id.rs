//! Stream IDs, [RFC 9000, section 2.1](https://www.rfc-editor.org/rfc/rfc9000#section-2.1), and the words for who
//! and which way, which everything above uses.

use quic_common::{MAX_VARINT, TooLarge};

/// The most streams of one type that can ever exist, and so the largest stream limit (RFC 9000, 4.6).
pub(crate) const MAX_STREAMS: u64 = 1 << 60;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

impl Side {
    /// The other end.
    #[must_use]
    #[inline]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Whether this is the client.
    #[must_use]
    #[inline]
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }

    /// Whether this is the server.
    #[must_use]
    #[inline]
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// Which ends of a stream send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Both.
    Bidirectional,
    /// Only the initiator.
    Unidirectional,
}

impl Direction {
    /// Whether both ends send.
    #[must_use]
    #[inline]
    pub const fn is_bidirectional(self) -> bool {
        matches!(self, Self::Bidirectional)
    }
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bidirectional => "bidirectional",
            Self::Unidirectional => "unidirectional",
        })
    }
}

/// A stream's number: an index among the streams of its type, then the type in the two low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// The stream number `index`, from 0, of those that `initiator` opens in `direction`.
    ///
    /// An index that no stream can have, 2^60 or more, becomes the last one.
    #[must_use]
    #[inline]
    pub const fn new(initiator: Side, direction: Direction, index: u64) -> Self {
        let kind = match (initiator, direction) {
            (Side::Client, Direction::Bidirectional) => 0,
            (Side::Server, Direction::Bidirectional) => 1,
            (Side::Client, Direction::Unidirectional) => 2,
            (Side::Server, Direction::Unidirectional) => 3,
        };
        let index = if index < MAX_STREAMS {
            index
        } else {
            MAX_STREAMS - 1
        };
        Self((index << 2) | kind)
    }

    /// The value on the wire.
    #[must_use]
    #[inline]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The place among the streams of the same initiator and direction, from 0.
    #[must_use]
    #[inline]
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }

    /// Who opened, or opens, the stream.
    #[must_use]
    #[inline]
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Which ends send.
    #[must_use]
    #[inline]
    pub const fn direction(self) -> Direction {
        if self.0 & 2 == 0 {
            Direction::Bidirectional
        } else {
            Direction::Unidirectional
        }
    }

    /// Whether `side` may send on the stream.
    #[must_use]
    #[inline]
    pub fn can_send(self, side: Side) -> bool {
        self.direction().is_bidirectional() || self.initiator() == side
    }

    /// From a variable-length integer, which every value of is a stream ID.
    #[inline]
    pub(crate) const fn from_varint(value: u64) -> Self {
        Self(value & MAX_VARINT)
    }
}

impl TryFrom<u64> for StreamId {
    type Error = TooLarge;

    fn try_from(value: u64) -> Result<Self, TooLarge> {
        if value > MAX_VARINT {
            return Err(TooLarge);
        }
        Ok(Self(value))
    }
}

impl From<StreamId> for u64 {
    fn from(id: StreamId) -> Self {
        id.0
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use quic_common::MAX_VARINT;

    use super::{Direction, MAX_STREAMS, Side, StreamId};

    /// RFC 9000, table 1: the two low bits.
    #[test]
    fn the_low_bits_are_the_type() {
        let types = [
            (Side::Client, Direction::Bidirectional),
            (Side::Server, Direction::Bidirectional),
            (Side::Client, Direction::Unidirectional),
            (Side::Server, Direction::Unidirectional),
        ];
        for (bits, (initiator, direction)) in (0..).zip(types) {
            for index in [0, 1, 77, MAX_STREAMS - 1] {
                let id = StreamId::new(initiator, direction, index);
                assert_eq!(id.value(), index * 4 + bits);
                assert_eq!(
                    (id.initiator(), id.direction(), id.index()),
                    (initiator, direction, index)
                );
            }
        }
    }

    #[test]
    fn an_index_beyond_the_last_is_cut() {
        let id = StreamId::new(Side::Server, Direction::Unidirectional, MAX_STREAMS);
        assert_eq!(id.value(), MAX_VARINT);
        assert!(StreamId::try_from(MAX_VARINT + 1).is_err());
        assert_eq!(StreamId::try_from(MAX_VARINT), Ok(id));
    }

    #[test]
    fn each_side_is_the_others_peer() {
        for (side, is_client) in [(Side::Client, true), (Side::Server, false)] {
            assert_eq!(
                (side.is_client(), side.is_server()),
                (is_client, !is_client)
            );
            assert_eq!(side.peer().is_client(), !is_client);
        }
    }

    #[test]
    fn shown_in_words_and_numbers() {
        let id = StreamId::new(Side::Server, Direction::Unidirectional, 1);
        assert_eq!((id.to_string(), u64::from(id)), ("7".to_owned(), 7));
        assert_eq!(
            format!("{} {}", Side::Client, Side::Server),
            "client server"
        );
        assert_eq!(
            format!("{} {}", Direction::Bidirectional, id.direction()),
            "bidirectional unidirectional"
        );
    }

    #[test]
    fn only_the_initiator_sends_on_a_unidirectional_stream() {
        let id = StreamId::new(Side::Client, Direction::Unidirectional, 3);
        assert!(id.can_send(Side::Client) && !id.can_send(Side::Server));
        let id = StreamId::new(Side::Client, Direction::Bidirectional, 3);
        assert!(id.can_send(Side::Client) && id.can_send(Side::Server));
    }
}
