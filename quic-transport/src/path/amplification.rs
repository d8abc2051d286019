//! The anti-amplification limit, [RFC 9000, section 8](https://www.rfc-editor.org/rfc/rfc9000#section-8): an address
//! that hasn't been validated gets at most three times what came from it.

/// What was received from an address and sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amplification {
    /// It may be anybody's address.
    Unvalidated {
        /// Bytes of all datagrams from it, whatever was in them.
        received: u64,
        /// Bytes of all datagrams to it.
        sent: u64,
    },
    /// The peer receives what is sent to it.
    Validated,
}

/// How many bytes may be sent for each received.
const FACTOR: u64 = 3;

impl Amplification {
    /// An address that nothing has come from yet.
    pub(crate) const fn new() -> Self {
        Self::Unvalidated {
            received: 0,
            sent: 0,
        }
    }

    /// A datagram of `bytes` came from the address; whole datagrams count.
    #[inline]
    pub(crate) const fn on_received(&mut self, bytes: u64) {
        if let Self::Unvalidated { received, .. } = self {
            *received = received.saturating_add(bytes);
        }
    }

    /// A datagram of `bytes` was sent to the address.
    #[inline]
    pub(crate) const fn on_sent(&mut self, bytes: u64) {
        if let Self::Unvalidated { sent, .. } = self {
            *sent = sent.saturating_add(bytes);
        }
    }

    /// Bytes that may be sent now.
    #[inline]
    pub(crate) const fn allowance(&self) -> u64 {
        match self {
            Self::Unvalidated { received, sent } => {
                received.saturating_mul(FACTOR).saturating_sub(*sent)
            }
            Self::Validated => u64::MAX,
        }
    }

    /// The peer has shown that it receives what is sent to the address.
    pub(crate) const fn validate(&mut self) {
        *self = Self::Validated;
    }

    /// Whether there is no limit.
    #[inline]
    pub(crate) const fn is_validated(&self) -> bool {
        matches!(self, Self::Validated)
    }
}

#[cfg(test)]
mod tests {
    use super::Amplification;

    /// RFC 9000, 8.1: an endpoint MUST NOT send more than three times what it received, until validation.
    #[test]
    fn three_times_what_was_received() {
        let mut limit = Amplification::new();
        assert_eq!(limit.allowance(), 0);
        limit.on_received(1200);
        assert_eq!(limit.allowance(), 3600);
        limit.on_sent(3599);
        assert_eq!(limit.allowance(), 1);
        limit.on_sent(2);
        assert_eq!(limit.allowance(), 0);
        limit.on_received(1);
        assert_eq!(limit.allowance(), 2);
        limit.validate();
        assert!(limit.is_validated());
        assert_eq!(limit.allowance(), u64::MAX);
        limit.on_received(u64::MAX);
        limit.on_sent(u64::MAX);
        assert!(limit.is_validated());
    }

    #[test]
    fn sums_saturate() {
        let mut limit = Amplification::new();
        limit.on_received(u64::MAX);
        limit.on_received(1);
        limit.on_sent(u64::MAX);
        assert_eq!(limit.allowance(), 0);
    }
}
