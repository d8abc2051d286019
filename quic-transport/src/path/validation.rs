//! Whether the peer can be reached on a path, [RFC 9000, section 8.2](https://www.rfc-editor.org/rfc/rfc9000#section-8.2).

use std::time::{Duration, Instant};

/// Challenges whose answers are awaited at a time.
const CHALLENGES: usize = 3;

/// Our own challenges on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathValidation {
    state: State,
    /// The data of the latest challenges, newest first.
    sent: [Option<[u8; 8]>; CHALLENGES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is asked.
    Idle,
    /// A challenge must be sent.
    Wanted { give_up: Instant },
    /// An answer is awaited.
    Waiting { again: Instant, give_up: Instant },
    /// The peer answered.
    Validated,
    /// The peer didn't answer.
    Failed,
}

impl PathValidation {
    /// Nothing is asked.
    pub(crate) const fn new() -> Self {
        Self {
            state: State::Idle,
            sent: [None; CHALLENGES],
        }
    }

    /// Begins; `pto` is the larger of the current probe timeout and that of a path without samples
    /// (RFC 9000, 8.2.4).
    pub(crate) fn begin(&mut self, now: Instant, pto: Duration) {
        let give_up = now.checked_add(pto.saturating_mul(3)).unwrap_or(now);
        *self = Self {
            state: State::Wanted { give_up },
            sent: [None; CHALLENGES],
        };
    }

    /// Whether a PATH_CHALLENGE with new, unpredictable data is to be sent.
    #[inline]
    pub(crate) const fn wants_challenge(&self) -> bool {
        matches!(self.state, State::Wanted { .. })
    }

    /// A PATH_CHALLENGE with `data` was sent; without an answer it is followed by another after `pto`.
    pub(crate) fn on_challenge_sent(&mut self, data: [u8; 8], now: Instant, pto: Duration) {
        let (State::Wanted { give_up } | State::Waiting { give_up, .. }) = self.state else {
            return;
        };
        self.sent.rotate_right(1);
        if let Some(first) = self.sent.first_mut() {
            *first = Some(data);
        }
        self.state = State::Waiting {
            again: now.checked_add(pto).unwrap_or(give_up),
            give_up,
        };
    }

    /// A PATH_RESPONSE with `data` was received, on whichever path; returns whether this path is validated by it.
    pub(crate) fn on_response(&mut self, data: [u8; 8]) -> bool {
        let pending = matches!(self.state, State::Wanted { .. } | State::Waiting { .. });
        let answered = pending && self.sent.contains(&Some(data));
        if answered {
            self.state = State::Validated;
        }
        answered
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Idle | State::Validated | State::Failed => None,
            State::Wanted { give_up } => Some(give_up),
            State::Waiting { again, give_up } => Some(again.min(give_up)),
        }
    }

    /// Time has passed; returns whether validation has failed now.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        match self.state {
            State::Wanted { give_up } | State::Waiting { give_up, .. } if give_up <= now => {
                self.state = State::Failed;
                true
            }
            State::Waiting { again, give_up } if again <= now => {
                self.state = State::Wanted { give_up };
                false
            }
            State::Idle
            | State::Wanted { .. }
            | State::Waiting { .. }
            | State::Validated
            | State::Failed => false,
        }
    }

    /// Whether an answer is awaited.
    pub(crate) const fn is_pending(&self) -> bool {
        matches!(self.state, State::Wanted { .. } | State::Waiting { .. })
    }

    /// Whether the peer has answered.
    pub(crate) const fn is_validated(&self) -> bool {
        matches!(self.state, State::Validated)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::PathValidation;

    const PTO: Duration = Duration::from_secs(1);

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        Instant::now()
    }

    /// RFC 9000, 8.2.3: a response validates if it echoes the data of any challenge sent before; B24: another is
    /// ignored.
    #[test]
    fn only_an_echo_validates() {
        let mut validation = PathValidation::new();
        assert!(!validation.on_response([0; 8]) && !validation.wants_challenge());
        validation.begin(start(), PTO);
        assert!(validation.wants_challenge() && !validation.on_response([0; 8]));
        validation.on_challenge_sent([1; 8], start(), PTO);
        assert!(!validation.wants_challenge() && !validation.on_response([2; 8]));
        validation.on_challenge_sent([2; 8], start(), PTO);
        assert!(validation.on_response([1; 8]) && validation.is_validated());
        assert!(!validation.on_response([1; 8]), "once");
        assert_eq!(validation.deadline(), None);
    }

    /// RFC 9000, 8.2.1: another challenge after a while, with other data; 8.2.4: given up after three PTO.
    #[test]
    fn challenges_are_repeated_until_given_up() {
        let (mut validation, now) = (PathValidation::new(), start());
        validation.begin(now, PTO);
        validation.on_challenge_sent([1; 8], now, PTO);
        assert_eq!(validation.deadline(), Some(now + PTO));
        assert!(!validation.expire(now) && !validation.wants_challenge());
        assert!(!validation.expire(now + PTO) && validation.wants_challenge());
        assert_eq!(validation.deadline(), Some(now + PTO * 3));
        assert!(validation.expire(now + PTO * 3) && !validation.is_pending());
        assert!(!validation.expire(now + PTO * 4) && !validation.on_response([1; 8]));
    }

    #[test]
    fn only_the_latest_challenges_are_remembered() {
        let (mut validation, now) = (PathValidation::new(), start());
        validation.begin(now, PTO);
        for n in 1..=4 {
            validation.on_challenge_sent([n; 8], now, PTO);
        }
        assert!(!validation.on_response([1; 8]));
        assert!(validation.on_response([2; 8]));
    }
}
