//! Which tokens of NEW_TOKEN have been used: each is good once,
//! [RFC 9000, section 8.1.4](https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4).
//!
//! Their number is bounded. When there are too many, the one issued longest ago is forgotten, and with it all that were
//! issued as early are refused: none is ever good twice.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::limits::USED_TOKENS;
use crate::token::{NEW_TOKEN_LIFETIME, NewToken};

/// Tokens that have been used; clones share it, as endpoints that share a key should.
#[derive(Clone, Debug, Default)]
pub struct UsedTokens(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    /// When each was issued, in seconds since 1970, and which it is.
    used: BTreeSet<(u64, [u8; 12])>,
    /// Tokens issued up to then are refused.
    horizon: Option<u64>,
}

impl UsedTokens {
    /// Uses a token at wall-clock time `now`; false when it was used before.
    pub(crate) fn spend(&self, token: NewToken, now: Duration) -> bool {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.spend(token, now)
    }
}

impl Log {
    fn spend(&mut self, token: NewToken, now: Duration) -> bool {
        let issued = token.issued.as_secs();
        let is_forgotten = self.horizon.is_some_and(|horizon| issued <= horizon);
        if is_forgotten || !self.used.insert((issued, token.id)) {
            return false;
        }
        // What has expired is refused anyhow.
        let expired = now.saturating_sub(NEW_TOKEN_LIFETIME).as_secs();
        let is_expired = |first: Option<&(u64, _)>| first.is_some_and(|(at, _)| *at < expired);
        while is_expired(self.used.first()) {
            self.used.pop_first();
        }
        while self.used.len() > USED_TOKENS {
            self.horizon = self.used.pop_first().map(|(issued, _)| issued);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{NEW_TOKEN_LIFETIME, NewToken, USED_TOKENS, UsedTokens};

    const NOW: Duration = Duration::from_hours(1000);

    /// Uses a token at the time at which it is issued.
    fn spend(used: &UsedTokens, issued: Duration, number: usize) -> bool {
        let mut id = [0; 12];
        id[..8].copy_from_slice(&number.to_be_bytes());
        used.spend(NewToken { issued, id }, issued)
    }

    #[test]
    fn a_token_is_good_once() {
        let used = UsedTokens::default();
        assert!(spend(&used, NOW, 1));
        let other = used.clone();
        assert!(!spend(&other, NOW, 1), "clones share what they know");
        assert!(spend(&used, NOW, 2) && !spend(&other, NOW, 2));
    }

    #[test]
    fn as_many_as_fit_are_remembered_and_none_is_good_twice_beyond() {
        let used = UsedTokens::default();
        let at = |number: usize| NOW + Duration::from_secs(u64::try_from(number).unwrap());
        for number in 0..USED_TOKENS {
            assert!(spend(&used, at(number), number));
        }
        assert_eq!(used.0.lock().unwrap().used.len(), USED_TOKENS);
        assert!(spend(&used, at(USED_TOKENS), USED_TOKENS));
        assert_eq!(used.0.lock().unwrap().used.len(), USED_TOKENS);
        assert!(!spend(&used, at(0), 0));
        assert!(!spend(&used, at(0), 7));
        assert!(!spend(&used, at(1), 1));
        assert!(spend(&used, at(1), 7));
    }

    #[test]
    fn expired_ones_are_forgotten() {
        let used = UsedTokens::default();
        assert!(spend(&used, NOW, 1));
        let later = NOW + NEW_TOKEN_LIFETIME + Duration::from_secs(1);
        assert!(spend(&used, later, 2));
        assert_eq!(used.0.lock().unwrap().used.len(), 1);
    }
}
