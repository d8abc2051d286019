//! Error codes and errors, [RFC 9114, section 8](https://www.rfc-editor.org/rfc/rfc9114#section-8) and
//! [RFC 9204, section 6](https://www.rfc-editor.org/rfc/rfc9204#section-6).
//!
//! The peer broke a rule: an [`Error`], for the connection or for one stream. The caller asked for what can't be: an [`ApiError`].

use quic_transport::StreamError;

/// An HTTP/3 or QPACK error code, as it stands in RESET_STREAM, STOP_SENDING and CONNECTION_CLOSE.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(u64);

macro_rules! codes {
    ($($name:ident = $value:literal, $text:literal, $doc:literal;)*) => {
        impl Code {
            $(#[doc = $doc] pub const $name: Self = Self($value);)*

            /// The name that the RFC gives the code, if it is a known one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    NO_ERROR = 0x100, "H3_NO_ERROR", "Nothing went wrong.";
    GENERAL_PROTOCOL_ERROR = 0x101, "H3_GENERAL_PROTOCOL_ERROR", "A rule was broken that has no code of its own.";
    INTERNAL_ERROR = 0x102, "H3_INTERNAL_ERROR", "The HTTP stack failed.";
    STREAM_CREATION_ERROR = 0x103, "H3_STREAM_CREATION_ERROR", "A stream that must not exist was opened.";
    CLOSED_CRITICAL_STREAM = 0x104, "H3_CLOSED_CRITICAL_STREAM", "A stream that the connection needs was closed.";
    FRAME_UNEXPECTED = 0x105, "H3_FRAME_UNEXPECTED", "A frame came where it is not allowed.";
    FRAME_ERROR = 0x106, "H3_FRAME_ERROR", "A frame has a wrong size or layout.";
    EXCESSIVE_LOAD = 0x107, "H3_EXCESSIVE_LOAD", "The peer causes too much work.";
    ID_ERROR = 0x108, "H3_ID_ERROR", "A stream ID or push ID is used wrongly.";
    SETTINGS_ERROR = 0x109, "H3_SETTINGS_ERROR", "A SETTINGS frame is wrong.";
    MISSING_SETTINGS = 0x10a, "H3_MISSING_SETTINGS", "The control stream doesn't begin with SETTINGS.";
    REQUEST_REJECTED = 0x10b, "H3_REQUEST_REJECTED", "The request was not processed at all.";
    REQUEST_CANCELLED = 0x10c, "H3_REQUEST_CANCELLED", "The request or its response is no longer wanted.";
    REQUEST_INCOMPLETE = 0x10d, "H3_REQUEST_INCOMPLETE", "The stream ended before the request did.";
    MESSAGE_ERROR = 0x10e, "H3_MESSAGE_ERROR", "A message is malformed.";
    CONNECT_ERROR = 0x10f, "H3_CONNECT_ERROR", "The connection behind a CONNECT failed.";
    VERSION_FALLBACK = 0x110, "H3_VERSION_FALLBACK", "The request wants HTTP/1.1.";
    QPACK_DECOMPRESSION_FAILED = 0x200, "QPACK_DECOMPRESSION_FAILED", "A field section can't be decoded.";
    QPACK_ENCODER_STREAM_ERROR = 0x201, "QPACK_ENCODER_STREAM_ERROR", "The encoder stream can't be understood.";
    QPACK_DECODER_STREAM_ERROR = 0x202, "QPACK_DECODER_STREAM_ERROR", "The decoder stream can't be understood.";
}

impl Code {
    /// A code as the peer sent it.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The value on the wire.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The peer broke a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The code that the stream is reset or the connection closed with.
    pub code: Code,
    /// Which rule.
    pub reason: &'static str,
}

impl Error {
    /// An error of this kind.
    #[must_use]
    pub const fn new(code: Code, reason: &'static str) -> Self {
        Self { code, reason }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Error {}

/// How far an error reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Only the stream ends.
    Stream(Error),
    /// The connection ends.
    Connection(Error),
}

impl Fault {
    pub(crate) const fn stream(code: Code, reason: &'static str) -> Self {
        Self::Stream(Error::new(code, reason))
    }

    pub(crate) const fn connection(code: Code, reason: &'static str) -> Self {
        Self::Connection(Error::new(code, reason))
    }
}

/// What the caller asked for and can't have; nothing closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiError {
    /// The peer's stream limit is reached; an `Available` event follows.
    StreamLimit,
    /// The session has failed or the connection is closed.
    Closed,
    /// The peer takes no new requests (GOAWAY), or we said that we send none.
    GoingAway,
    /// No such request: never made, or over and forgotten.
    UnknownStream,
    /// Not at this point of the message; the text says why.
    Order(&'static str),
    /// The message would be malformed; the text says why.
    Malformed(&'static str),
    /// The peer accepts no field section of that size.
    FieldsTooLarge,
    /// More or fewer bytes of body than the content-length, or than an earlier partial write promised.
    Length,
    /// Early data may be replayed, which a request with this method must not be: make it when the handshake is complete.
    Early,
    /// The transport refuses.
    Transport(StreamError),
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StreamLimit => f.write_str("the peer's stream limit is reached"),
            Self::Closed => f.write_str("the connection is closed"),
            Self::GoingAway => f.write_str("no new requests on this connection"),
            Self::UnknownStream => f.write_str("no such request"),
            Self::Order(why) | Self::Malformed(why) => f.write_str(why),
            Self::FieldsTooLarge => f.write_str("the peer accepts no field section of that size"),
            Self::Length => f.write_str("the body doesn't have the length that was promised"),
            Self::Early => f.write_str("a request that changes something waits for the handshake"),
            Self::Transport(error) => std::fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for ApiError {}

impl From<StreamError> for ApiError {
    fn from(error: StreamError) -> Self {
        Self::Transport(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Error};

    #[test]
    fn known_codes_print_their_names() {
        assert_eq!(Code::MESSAGE_ERROR.to_string(), "H3_MESSAGE_ERROR");
        assert_eq!(Code::new(0x21).to_string(), "0x21");
        let error = Error::new(Code::ID_ERROR, "push IDs are not in use");
        assert_eq!(error.to_string(), "H3_ID_ERROR: push IDs are not in use");
    }
}
