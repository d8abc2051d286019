//! CONNECTION_CLOSE, [RFC 9000, section 19.19](https://www.rfc-editor.org/rfc/rfc9000#section-19.19).

use quic_common::{Reader, Writer, varint_size};

use super::types::{APPLICATION_CLOSE, CONNECTION_CLOSE};
use crate::wire::code::TransportErrorCode;
use crate::wire::encode::{Encode, wide};
use crate::wire::level::Level;
use crate::wire::malformed::Malformed;

/// Who closes, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseCode {
    /// The transport (0x1c).
    Transport {
        /// The error.
        code: TransportErrorCode,
        /// The frame type at fault, 0 when none.
        frame_type: u64,
    },
    /// The application (0x1d), with its own code.
    Application(u64),
}

/// A CONNECTION_CLOSE frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Close<'a> {
    /// Who and why.
    pub(crate) code: CloseCode,
    /// Words for a human, which should be UTF-8.
    pub(crate) reason: &'a [u8],
}

impl<'a> Close<'a> {
    /// The type on the wire.
    pub(crate) const fn frame_type(&self) -> u64 {
        match self.code {
            CloseCode::Transport { .. } => CONNECTION_CLOSE,
            CloseCode::Application(_) => APPLICATION_CLOSE,
        }
    }

    /// The frame as it may be sent at `level`: before the handshake is done, what the application says isn't for
    /// everyone's eyes, and becomes a bare APPLICATION_ERROR (RFC 9000, 10.2.3).
    pub(crate) const fn at(self, level: Level) -> Self {
        match (self.code, level) {
            (CloseCode::Application(_), Level::Initial | Level::Handshake) => Self {
                code: CloseCode::Transport {
                    code: TransportErrorCode::APPLICATION_ERROR,
                    frame_type: 0,
                },
                reason: &[],
            },
            _ => self,
        }
    }

    /// The frame with its words cut so that it fits in `room` bytes; `None` when it doesn't even without them.
    pub(crate) fn fit(self, room: usize) -> Option<Self> {
        let space = room.checked_sub(self.fixed_size())?;
        let space = space.checked_sub(varint_size(wide(self.reason.len().min(space))))?;
        // A character that would be cut in two is left out.
        let begins = |at: &usize| self.reason.get(*at).is_none_or(|b| b & 0xc0 != 0x80);
        let length = (0..=self.reason.len().min(space)).rev().find(begins);
        let length = length.unwrap_or_default();
        Some(Self {
            reason: self.reason.get(..length)?,
            ..self
        })
    }

    /// Decodes what follows the type.
    pub(super) fn decode(reader: &mut Reader<'a>, frame_type: u64) -> Result<Self, Malformed> {
        let code = reader.varint()?;
        let code = if frame_type == APPLICATION_CLOSE {
            CloseCode::Application(code)
        } else {
            CloseCode::Transport {
                code: TransportErrorCode::new(code),
                frame_type: reader.varint()?,
            }
        };
        Ok(Self {
            code,
            reason: reader.length_prefixed()?,
        })
    }

    /// Bytes before the length of the words.
    const fn fixed_size(&self) -> usize {
        1 + match self.code {
            CloseCode::Transport { code, frame_type } => {
                varint_size(code.value()) + varint_size(frame_type)
            }
            CloseCode::Application(code) => varint_size(code),
        }
    }
}

impl Encode for Close<'_> {
    fn size(&self) -> usize {
        self.fixed_size() + varint_size(wide(self.reason.len())) + self.reason.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(self.frame_type());
        match self.code {
            CloseCode::Transport { code, frame_type } => {
                writer.varint(code.value());
                writer.varint(frame_type);
            }
            CloseCode::Application(code) => {
                writer.varint(code);
            }
        }
        writer.varint(wide(self.reason.len()));
        writer.bytes(self.reason);
    }
}

#[cfg(test)]
mod tests {
    use super::{Close, CloseCode};
    use crate::wire::code::TransportErrorCode;
    use crate::wire::encode::Encode as _;
    use crate::wire::level::Level;

    const APPLICATION: Close<'_> = Close {
        code: CloseCode::Application(0x100),
        reason: b"bye",
    };

    /// RFC 9000, 10.2.3: the application's code MUST be replaced in Initial and Handshake packets, and its words
    /// cleared.
    #[test]
    fn the_applications_words_wait_for_the_handshake() {
        for level in [Level::Initial, Level::Handshake] {
            let close = APPLICATION.at(level);
            assert_eq!(close.frame_type(), 0x1c);
            assert_eq!(close.reason, b"");
            let CloseCode::Transport { code, .. } = close.code else {
                panic!("still the application's");
            };
            assert_eq!(code, TransportErrorCode::APPLICATION_ERROR);
            assert_eq!(close.at(level), close);
        }
        assert_eq!(APPLICATION.at(Level::OneRtt), APPLICATION);
        assert_eq!(APPLICATION.at(Level::ZeroRtt), APPLICATION);
    }

    #[test]
    fn words_are_cut_to_the_room_between_characters() {
        let reason = "aé".repeat(40);
        let close = Close {
            reason: reason.as_bytes(),
            ..APPLICATION
        };
        for room in 0..200 {
            let Some(cut) = close.fit(room) else {
                assert!(room < 4);
                continue;
            };
            assert!(cut.size() <= room);
            assert!(cut.reason.len() == reason.len() || cut.size() + 3 > room);
            assert!(reason.starts_with(std::str::from_utf8(cut.reason).unwrap()));
        }
    }

    #[test]
    fn words_that_are_no_text_may_be_cut_to_nothing() {
        let close = Close {
            reason: &[0x80; 40],
            ..APPLICATION
        };
        assert_eq!(close.fit(20).unwrap().reason, b"");
        assert_eq!(close.fit(44), Some(close));
    }
}
