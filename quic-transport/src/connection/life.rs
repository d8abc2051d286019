//! Where a connection stands: open, closing, draining or closed,
//! [RFC 9000, section 10](https://www.rfc-editor.org/rfc/rfc9000#section-10).

use std::time::Instant;

use crate::{
    error::Error,
    wire::{Close, CloseCode},
};

/// What CONNECTION_CLOSE will say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Farewell {
    /// A transport error of ours.
    Transport(Error),
    /// The application is done.
    Application { code: u64, reason: Box<[u8]> },
}

impl Farewell {
    /// The frame, as it is sent where the peer is known to be who it should be.
    pub(super) fn frame(&self) -> Close<'_> {
        match self {
            Self::Transport(error) => Close {
                code: CloseCode::Transport {
                    code: error.code,
                    frame_type: error.frame,
                },
                reason: error.reason.as_bytes(),
            },
            Self::Application { code, reason } => Close {
                code: CloseCode::Application(*code),
                reason,
            },
        }
    }
}

/// We have closed; the peer may not know yet (RFC 9000, 10.2.1).
#[derive(Debug)]
pub(super) struct Closing {
    pub(super) farewell: Farewell,
    /// Set when the state is first looked at.
    pub(super) until: Option<Instant>,
    /// A CONNECTION_CLOSE is to be sent.
    pub(super) is_owed: bool,
    received: u32,
    answer_at: u32,
}

impl Closing {
    pub(super) const fn new(farewell: Farewell) -> Self {
        Self {
            farewell,
            until: None,
            is_owed: true,
            received: 0,
            answer_at: 1,
        }
    }

    /// The peer still talks: it is told again, each time after twice as many datagrams.
    pub(super) const fn on_datagram(&mut self) {
        self.received = self.received.saturating_add(1);
        if self.received >= self.answer_at {
            self.answer_at = self.answer_at.saturating_mul(2);
            self.is_owed = true;
        }
    }
}

/// The life of a connection.
#[derive(Debug)]
pub(super) enum Life {
    /// Everything works.
    Open,
    /// CONNECTION_CLOSE has been, or is to be, sent.
    Closing(Closing),
    /// The peer has closed: nothing is sent any more (RFC 9000, 10.2.2).
    Draining { until: Instant },
    /// Nothing is left to do.
    Closed,
}

impl Life {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// When the state ends by itself.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Closing(closing) => closing.until,
            Self::Draining { until } => Some(*until),
            Self::Open | Self::Closed => None,
        }
    }
}

/// How far the handshake is, RFC 9001, 4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// TLS isn't done.
    Handshaking,
    /// TLS is done here.
    Complete,
    /// TLS is known to be done at both ends.
    Confirmed,
}

#[cfg(test)]
mod tests {
    use super::{Closing, Farewell};
    use crate::error::Error;

    /// RFC 9000, 10.2.1: an endpoint SHOULD limit the rate at which it answers in the closing state.
    #[test]
    fn answers_become_rare() {
        let mut closing = Closing::new(Farewell::Transport(Error::internal("test")));
        let mut answers = 0;
        for _ in 0..100_000 {
            closing.is_owed = false;
            closing.on_datagram();
            answers += u32::from(closing.is_owed);
        }
        assert_eq!(answers, 17);
    }
}
