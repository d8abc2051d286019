//! Key updates that we begin, and the end of keys that have been used as often as they may,
//! [RFC 9001, section 6](https://www.rfc-editor.org/rfc/rfc9001#section-6).

use quic_common::MAX_BATCH_SEGMENTS;

use super::Connection;
use crate::{
    error::{ApiError, CloseReason, Error},
    wire::{TransportErrorCode, wide},
};

impl Connection {
    /// Begins a key update: what is sent from now on is protected with new keys.
    ///
    /// The connection does this by itself before the keys wear out; doing it earlier is for tests and for the cautious.
    ///
    /// # Errors
    ///
    /// When the handshake isn't confirmed, or the last update isn't over (RFC 9001, 6.1 and 6.5).
    pub fn update_keys(&mut self) -> Result<(), ApiError> {
        let can_update = self.is_confirmed() && self.drop_old_keys_at.is_none();
        let keys = self
            .keys
            .one_rtt
            .as_mut()
            .filter(|keys| can_update && !keys.has_previous());
        let has_begun = keys.is_some_and(|keys| keys.update());
        if has_begun {
            self.tell_key_update(self.side);
        }
        has_begun.then_some(()).ok_or(ApiError::KeyUpdate)
    }

    /// Before a batch: renews keys that are nearly worn out, and ends the connection when they couldn't be renewed in
    /// time (RFC 9001, 6.6).
    #[inline]
    pub(super) fn mind_key_limits(&mut self) {
        let Some(keys) = self.keys.one_rtt.as_ref() else {
            return;
        };
        let Some(next) = self.spaces.application.numbers.upcoming() else {
            return self.wear_out();
        };
        if keys.is_update_due(next) {
            self.renew_or_end(next);
        }
    }

    #[cold]
    fn renew_or_end(&mut self, next: u64) {
        // Not asked again before the batch is full.
        let last = next.saturating_add(wide(MAX_BATCH_SEGMENTS));
        let is_exhausted = self
            .keys
            .one_rtt
            .as_ref()
            .is_some_and(|keys| keys.is_exhausted(last));
        if self.update_keys().is_err() && is_exhausted {
            self.wear_out();
        }
    }

    /// Nothing more may be sealed, not even a CONNECTION_CLOSE.
    #[cold]
    fn wear_out(&mut self) {
        self.abandon(CloseReason::Local(Error::new(
            TransportErrorCode::AEAD_LIMIT_REACHED,
            0,
            "the keys have protected as many packets as they may",
        )));
    }
}
