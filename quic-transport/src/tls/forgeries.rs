//! The integrity limit: how many forged packets a connection may see
//! ([RFC 9001, section 6.6](https://www.rfc-editor.org/rfc/rfc9001#section-6.6)).

use super::suite::CipherSuite;
use crate::error::Error;
use crate::wire::TransportErrorCode;

/// Counts the packets of a connection that failed to authenticate, over all levels and keys (RFC 9001, 6.6).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Forgeries {
    count: u64,
}

impl Forgeries {
    /// A packet failed to authenticate under a key of `suite`.
    ///
    /// # Errors
    ///
    /// AEAD_LIMIT_REACHED when there have been more than the suite allows.
    #[inline]
    pub(crate) const fn on_forged(&mut self, suite: CipherSuite) -> Result<(), Error> {
        self.count = self.count.saturating_add(1);
        if self.count > suite.integrity_limit() {
            return Err(Error::new(
                TransportErrorCode::AEAD_LIMIT_REACHED,
                0,
                "too many packets failed to authenticate",
            ));
        }
        Ok(())
    }

    /// How many there have been.
    #[cfg(test)]
    #[must_use]
    pub(crate) const fn count(self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::{CipherSuite, Forgeries, TransportErrorCode};

    /// RFC 9001, 6.6: the integrity limit.
    #[test]
    fn forgeries_at_the_limit_pass_and_one_more_closes() {
        for suite in CipherSuite::ALL {
            let mut forgeries = Forgeries {
                count: suite.integrity_limit() - 1,
            };
            assert_eq!(forgeries.on_forged(suite), Ok(()));
            assert_eq!(forgeries.count(), suite.integrity_limit());
            let error = forgeries.on_forged(suite).unwrap_err();
            assert_eq!(error.code, TransportErrorCode::AEAD_LIMIT_REACHED);
        }
    }
}
