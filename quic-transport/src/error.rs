//! Why a connection ends, and what the API refuses.
//!
//! Three kinds that are never mixed: [`Error`] when the peer broke a rule, [`StreamError`] and [`ApiError`] when the
//! caller asked for what can't be done, and [`CloseReason`] for how a connection came to its end.

use crate::wire::{Malformed, TransportErrorCode};

/// The peer broke a rule, or we failed: the connection closes with this code
/// ([RFC 9000, section 11](https://www.rfc-editor.org/rfc/rfc9000#section-11)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The code that the peer is told.
    pub code: TransportErrorCode,
    /// The type of the frame that triggered it; 0 when it was none.
    pub frame: u64,
    /// Which rule.
    pub reason: &'static str,
}

impl Error {
    /// An error that the frame of type `frame` triggered; 0 when it was none.
    #[must_use]
    pub const fn new(code: TransportErrorCode, frame: u64, reason: &'static str) -> Self {
        Self {
            code,
            frame,
            reason,
        }
    }

    /// PROTOCOL_VIOLATION.
    #[must_use]
    pub const fn protocol(frame: u64, reason: &'static str) -> Self {
        Self::new(TransportErrorCode::PROTOCOL_VIOLATION, frame, reason)
    }

    /// INTERNAL_ERROR, for a state that our own code must not reach.
    #[must_use]
    pub const fn internal(reason: &'static str) -> Self {
        Self::new(TransportErrorCode::INTERNAL_ERROR, 0, reason)
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::new(malformed.code, malformed.frame, malformed.reason)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)?;
        if self.frame != 0 {
            write!(f, " (frame type {:#x})", self.frame)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// How a connection came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// We closed it, because the peer broke a rule or we failed.
    Local(Error),
    /// Our application closed it.
    Application {
        /// The application's code.
        code: u64,
    },
    /// The peer's transport closed it.
    Peer {
        /// The transport error code.
        code: TransportErrorCode,
        /// The type of the frame that the peer blames; 0 when none.
        frame: u64,
        /// The peer's words; UTF-8 if it keeps to the rules.
        reason: Box<[u8]>,
    },
    /// The peer's application closed it.
    PeerApplication {
        /// The application's code.
        code: u64,
        /// The peer's words; UTF-8 if it keeps to the rules.
        reason: Box<[u8]>,
    },
    /// Nothing was received for the idle timeout.
    IdleTimeout,
    /// The handshake wasn't complete in time.
    HandshakeTimeout,
    /// The peer has lost the connection's state.
    StatelessReset,
    /// The server speaks none of our versions.
    VersionMismatch,
    /// The embedder said that the peer can't be reached.
    Unreachable,
    /// The peer answers on no path any more (RFC 9000, 9.3.2).
    NoPath,
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Local(error) => write!(f, "closed by us: {error}"),
            Self::Application { code } => {
                write!(f, "closed by the application with code {code:#x}")
            }
            Self::Peer {
                code,
                frame,
                reason,
            } => {
                write!(f, "closed by the peer: {code}")?;
                if *frame != 0 {
                    write!(f, " (frame type {frame:#x})")?;
                }
                write_words(f, reason)
            }
            Self::PeerApplication { code, reason } => {
                write!(f, "closed by the peer's application with code {code:#x}")?;
                write_words(f, reason)
            }
            Self::IdleTimeout => f.write_str("idle for too long"),
            Self::HandshakeTimeout => f.write_str("the handshake took too long"),
            Self::StatelessReset => f.write_str("reset: the peer has lost the connection's state"),
            Self::VersionMismatch => f.write_str("no version in common with the server"),
            Self::Unreachable => f.write_str("the peer can't be reached"),
            Self::NoPath => f.write_str("the peer answers on no path"),
        }
    }
}

impl std::error::Error for CloseReason {}

/// The peer's words, on one line whatever they hold.
fn write_words(f: &mut std::fmt::Formatter<'_>, reason: &[u8]) -> std::fmt::Result {
    if reason.is_empty() {
        return Ok(());
    }
    write!(f, ": {}", String::from_utf8_lossy(reason).escape_debug())
}

/// What a stream can't do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// There is no such stream: never opened, or ended and forgotten.
    UnknownStream,
    /// The stream goes the other way only.
    WrongDirection,
    /// The sending part has been finished or reset by us.
    Finished,
    /// The peer has reset its sending part.
    Reset {
        /// The peer's application code.
        code: u64,
    },
    /// The peer asked us to stop sending.
    Stopped {
        /// The peer's application code.
        code: u64,
    },
    /// The peer doesn't know an extension that this takes.
    Unsupported,
}

impl std::fmt::Display for StreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownStream => f.write_str("no such stream"),
            Self::WrongDirection => f.write_str("the stream goes the other way only"),
            Self::Finished => f.write_str("the stream has been finished"),
            Self::Reset { code } => write!(f, "the peer reset the stream with code {code:#x}"),
            Self::Unsupported => f.write_str("the peer doesn't know how"),
            Self::Stopped { code } => write!(f, "the peer stopped the stream with code {code:#x}"),
        }
    }
}

impl std::error::Error for StreamError {}

/// Why a datagram isn't sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatagramError {
    /// The peer takes none, or the handshake hasn't told yet.
    Unsupported,
    /// It doesn't fit into a packet, or is larger than the peer takes.
    TooLarge {
        /// The largest that can be sent now, in bytes.
        most: usize,
    },
    /// Too many wait; an event says when there is room.
    Full,
    /// The connection is closed or closing.
    Closed,
}

impl std::fmt::Display for DatagramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unsupported => f.write_str("the peer takes no datagrams"),
            Self::TooLarge { most } => write!(f, "a datagram may have {most} bytes now"),
            Self::Full => f.write_str("too many datagrams wait to be sent"),
            Self::Closed => f.write_str("the connection is closed"),
        }
    }
}

impl std::error::Error for DatagramError {}

/// What the caller asked for and can't have; nothing closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiError {
    /// The connection is closed or closing.
    Closed,
    /// It belongs to another connection.
    OtherConnection,
    /// Not before the handshake is complete.
    HandshakeIncomplete,
    /// A key update isn't possible now: the handshake isn't confirmed, or the last update isn't over.
    KeyUpdate,
    /// The connection can't use another path: why.
    Migration(&'static str),
    /// A value over 2^62 - 1, or more bytes than the field can hold.
    TooLarge,
    /// A configuration that can't work.
    Config(&'static str),
    /// The server name is neither a DNS name nor an IP address.
    ServerName,
    /// TLS refused to start.
    Tls(&'static str),
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection is closed"),
            Self::KeyUpdate => f.write_str("no key update is possible now"),
            Self::Migration(why) => write!(f, "no other path can be used: {why}"),
            Self::OtherConnection => f.write_str("it belongs to another connection"),
            Self::HandshakeIncomplete => f.write_str("the handshake is not complete"),
            Self::TooLarge => f.write_str("the value is too large"),
            Self::Config(reason) => write!(f, "invalid configuration: {reason}"),
            Self::ServerName => f.write_str("neither a DNS name nor an IP address"),
            Self::Tls(reason) => write!(f, "TLS: {reason}"),
        }
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::{ApiError, CloseReason, Error, StreamError};
    use crate::wire::TransportErrorCode;

    #[test]
    fn an_error_is_one_clear_line() {
        let error = Error::protocol(0x1e, "sent by a client");
        assert_eq!(
            error.to_string(),
            "PROTOCOL_VIOLATION (0xa): sent by a client (frame type 0x1e)"
        );
    }

    #[test]
    fn the_peers_words_stay_on_one_line() {
        let reason = CloseReason::Peer {
            code: TransportErrorCode::NO_ERROR,
            frame: 0,
            reason: Box::from(&b"bye\nnow \xff"[..]),
        };
        assert_eq!(
            reason.to_string(),
            "closed by the peer: NO_ERROR (0x0): bye\\nnow \u{fffd}"
        );
    }

    /// No two ends of a connection, and no two refusals, read the same.
    #[test]
    fn each_reason_has_words_of_its_own() {
        let reasons = [
            CloseReason::Local(Error::internal("a")).to_string(),
            CloseReason::Application { code: 7 }.to_string(),
            CloseReason::PeerApplication {
                code: 7,
                reason: Box::default(),
            }
            .to_string(),
            CloseReason::IdleTimeout.to_string(),
            CloseReason::HandshakeTimeout.to_string(),
            CloseReason::StatelessReset.to_string(),
            CloseReason::VersionMismatch.to_string(),
            CloseReason::Unreachable.to_string(),
            StreamError::UnknownStream.to_string(),
            StreamError::WrongDirection.to_string(),
            StreamError::Finished.to_string(),
            StreamError::Reset { code: 7 }.to_string(),
            StreamError::Stopped { code: 7 }.to_string(),
            ApiError::Closed.to_string(),
            ApiError::KeyUpdate.to_string(),
            ApiError::HandshakeIncomplete.to_string(),
            ApiError::TooLarge.to_string(),
            ApiError::Config("a").to_string(),
            ApiError::ServerName.to_string(),
        ];
        for (place, reason) in reasons.iter().enumerate() {
            assert!(reason.len() > 10 && !reason.contains('\n'), "{reason}");
            assert!(!reasons[place + 1..].contains(reason), "{reason}");
        }
    }
}
