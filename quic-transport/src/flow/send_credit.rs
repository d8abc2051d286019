//! What the peer lets us send, for a stream or for the connection.
//!
//! The limit only grows. When it stops us the peer is told, once for each limit: a second DATA_BLOCKED at the same
//! offset says nothing new, unless it is to break a silence
//! ([RFC 9000, section 4.1](https://www.rfc-editor.org/rfc/rfc9000#section-4.1)).

/// Bytes that may be sent before the peer's limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendCredit {
    limit: u64,
    used: u64,
    blocked: Blocked,
    times_blocked: u32,
}

/// Whether the peer knows that we are stopped at the present limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Blocked {
    #[default]
    Untold,
    Owed,
    Told,
}

impl SendCredit {
    /// Starts with the peer's limit.
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            blocked: Blocked::Untold,
            times_blocked: 0,
        }
    }

    /// Starts anew with the peer's limit, `used` of which, or more, are taken already.
    pub(crate) const fn restarted(limit: u64, used: u64) -> Self {
        Self {
            limit,
            used,
            blocked: Blocked::Untold,
            times_blocked: 0,
        }
    }

    /// The peer's limit.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that may be sent now.
    #[inline]
    pub(crate) const fn available(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Uses `bytes`, which the caller has seen to be available.
    #[inline]
    pub(crate) fn take(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available(), "more than the peer allows");
        self.used = self.used.saturating_add(bytes);
    }

    /// There is more to send than may be sent; returns whether a blocked frame is newly owed for that.
    #[inline]
    pub(crate) fn on_blocked(&mut self) -> bool {
        let owed = self.blocked == Blocked::Untold;
        if owed {
            self.blocked = Blocked::Owed;
            self.times_blocked = self.times_blocked.saturating_add(1);
        }
        owed
    }

    /// How many limits have stopped us.
    pub(crate) const fn times_blocked(&self) -> u32 {
        self.times_blocked
    }

    /// Applies MAX_DATA, MAX_STREAM_DATA or a transport parameter; returns whether it gave any credit.
    ///
    /// A smaller limit is an old frame that was reordered, and is ignored.
    #[inline]
    pub(crate) const fn on_limit(&mut self, limit: u64) -> bool {
        let grew = limit > self.limit;
        if grew {
            self.limit = limit;
            self.blocked = Blocked::Untold;
        }
        grew
    }

    /// The offset for a blocked frame, if one is owed.
    #[inline]
    pub(crate) fn blocked_owed(&self) -> Option<u64> {
        (self.blocked == Blocked::Owed).then_some(self.limit)
    }

    /// The frame for [`Self::blocked_owed`] has been sent.
    pub(crate) const fn on_blocked_sent(&mut self) {
        self.blocked = Blocked::Told;
    }

    /// Whether the limit stops us, and the peer knows.
    pub(crate) fn is_told(&self) -> bool {
        self.blocked == Blocked::Told && self.available() == 0
    }

    /// The peer is to be told again.
    pub(crate) fn repeat_blocked(&mut self) {
        if self.is_told() {
            self.blocked = Blocked::Owed;
        }
    }

    /// A blocked frame for `at` was lost: it is owed again if the limit still stands; returns whether it is.
    pub(crate) fn on_blocked_lost(&mut self, at: u64) -> bool {
        let owed = self.blocked == Blocked::Told && at == self.limit;
        if owed {
            self.blocked = Blocked::Owed;
        }
        owed
    }
}

#[cfg(test)]
mod tests {
    use super::SendCredit;

    #[test]
    fn blocked_is_said_once_for_each_limit() {
        let mut credit = SendCredit::new(10);
        credit.take(10);
        assert!(credit.on_blocked());
        assert_eq!(credit.blocked_owed(), Some(10));
        credit.on_blocked_sent();
        assert!(!credit.on_blocked());
        assert_eq!(credit.blocked_owed(), None);

        assert!(credit.on_limit(12));
        assert!(credit.on_blocked());
        assert_eq!(credit.blocked_owed(), Some(12));
    }

    #[test]
    fn blocked_is_repeated_only_once_it_was_told_and_while_it_is_true() {
        let mut credit = SendCredit::new(1);
        credit.take(1);
        credit.repeat_blocked();
        assert_eq!(credit.blocked_owed(), None);
        assert!(credit.on_blocked() && !credit.is_told());
        credit.on_blocked_sent();
        assert!(credit.is_told());
        credit.repeat_blocked();
        assert_eq!(credit.blocked_owed(), Some(1));
        credit.on_blocked_sent();
        assert!(credit.on_limit(2) && !credit.is_told());
        credit.repeat_blocked();
        assert_eq!(credit.blocked_owed(), None);
    }

    #[test]
    fn lost_blocked_frame_is_resent_only_while_the_limit_stands() {
        let mut credit = SendCredit::new(1);
        credit.take(1);
        assert!(credit.on_blocked());
        credit.on_blocked_sent();
        assert!(credit.on_blocked_lost(1));
        assert_eq!(credit.blocked_owed(), Some(1));
        assert!(!credit.on_blocked_lost(1), "it is owed already");
        credit.on_blocked_sent();

        assert!(credit.on_limit(2));
        assert!(!credit.on_blocked_lost(1));
        assert_eq!(credit.blocked_owed(), None);
        credit.take(1);
        assert!(credit.on_blocked());
        credit.on_blocked_sent();
        assert!(!credit.on_blocked_lost(1), "the limit is another by now");
    }

    /// RFC 9000, 4.1: a limit that doesn't grow MUST be ignored.
    #[test]
    fn reordered_limit_is_ignored() {
        let mut credit = SendCredit::new(10);
        assert!(!credit.on_limit(9));
        assert!(!credit.on_limit(10));
        assert_eq!(credit.available(), 10);
    }
}
