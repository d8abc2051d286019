//! Ending a connection: by us, by the peer, by silence,
//! [RFC 9000, section 10](https://www.rfc-editor.org/rfc/rfc9000#section-10).

use std::time::Instant;

use super::{
    Connection,
    life::{Closing, Farewell, Life},
};
use crate::{
    error::{CloseReason, Error},
    limits::CLOSE_REASON,
    wire::{Close, CloseCode, ResetToken},
};

impl Connection {
    /// Closes the connection with an application's code and reason; the reason is cut after 1 KiB.
    ///
    /// The peer is told in the next [`Connection::process_output`]. Data not yet acknowledged may be lost.
    pub fn close(&mut self, code: u64, reason: &[u8]) {
        let reason = reason
            .get(..reason.len().min(CLOSE_REASON))
            .unwrap_or_default();
        let farewell = Farewell::Application {
            code,
            reason: reason.into(),
        };
        self.start_closing(farewell, CloseReason::Application { code });
    }

    /// Gives up without a word, as when the embedder learns that the peer can't be reached.
    pub fn abandon(&mut self, reason: CloseReason) {
        if self.life.is_open() {
            self.keep_rtt();
            self.tell_end(reason);
        }
        self.life = Life::Closed;
    }

    /// Closes the connection because of `error`.
    pub(super) fn fail(&mut self, error: Error) {
        self.start_closing(Farewell::Transport(error), CloseReason::Local(error));
    }

    /// The peer has closed the connection.
    pub(super) fn on_connection_close(&mut self, close: &Close<'_>, now: Instant) {
        let words = close
            .reason
            .get(..close.reason.len().min(CLOSE_REASON))
            .unwrap_or_default();
        let reason = match close.code {
            CloseCode::Transport { code, frame_type } => CloseReason::Peer {
                code,
                frame: frame_type,
                reason: words.into(),
            },
            CloseCode::Application(code) => CloseReason::PeerApplication {
                code,
                reason: words.into(),
            },
        };
        self.drain(reason, now);
    }

    /// RFC 9000, 10.3.1: a datagram that can't be a packet may be a stateless reset, known by its last 16 bytes.
    pub(super) fn look_for_reset(&mut self, tail: Option<ResetToken>, now: Instant) {
        if tail.is_some_and(|tail| self.remote_cids.is_reset_token(tail)) {
            self.drain(CloseReason::StatelessReset, now);
        }
    }

    /// Stops sending and waits until no packet of the peer can be under way any more.
    pub(super) fn drain(&mut self, reason: CloseReason, now: Instant) {
        if self.life.is_open() {
            self.keep_rtt();
            self.tell_end(reason);
        }
        let until = match &self.life {
            Life::Open => self.end_of_closing(now),
            // RFC 9000, 10.2.2: the time that the closing state was to last isn't extended.
            Life::Closing(closing) => closing.until.unwrap_or_else(|| self.end_of_closing(now)),
            Life::Draining { .. } | Life::Closed => return,
        };
        self.life = Life::Draining { until };
    }

    fn start_closing(&mut self, farewell: Farewell, reason: CloseReason) {
        if self.life.is_open() {
            self.keep_rtt();
            self.tell_end(reason);
            self.life = Life::Closing(Closing::new(farewell));
        }
    }

    /// RFC 9000, 10.2: the closing and draining states last for three PTOs.
    pub(super) fn end_of_closing(&self, now: Instant) -> Instant {
        now.checked_add(self.pto().saturating_mul(3)).unwrap_or(now)
    }
}
