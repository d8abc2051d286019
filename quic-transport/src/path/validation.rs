//! Whether the peer can be reached on a path, [RFC 9000, section 8.2](https://www.rfc-editor.org/rfc/rfc9000#section-8.2).
//!
//! A challenge without an answer is followed by another, with other data, each time after twice as long, until the
//! attempt is given up.

use std::time::{Duration, Instant};

/// Challenges whose answers are awaited at a time.
const CHALLENGES: usize = 3;

/// Our own challenges on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathValidation {
    state: State,
    /// The latest challenges, newest first.
    sent: [Option<Challenge>; CHALLENGES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is asked, or all is answered.
    Idle,
    /// The challenge with this data must be sent.
    Wanted { data: [u8; 8], times: Times },
    /// An answer is awaited.
    Waiting { times: Times },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    /// When to ask again, and how long that is after the last time.
    again: Instant,
    wait: Duration,
    /// When to stop.
    give_up: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Challenge {
    data: [u8; 8],
    /// Its datagram had the size that every path must carry.
    is_full: bool,
}

/// What an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// The path leads to the peer, and carries datagrams of 1200 bytes.
    InFull,
    /// It leads to the peer; the datagram that was answered had to be smaller.
    WithLess,
}

/// What the time brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// Nothing yet.
    Nothing,
    /// Another challenge.
    Again,
    /// The end: the peer hasn't answered.
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

    /// Begins with a challenge of unpredictable `data`; another follows after `pto`, the path's probe timeout, and the
    /// attempt ends after `patience`.
    pub(crate) fn begin(&mut self, data: [u8; 8], pto: Duration, patience: Duration, now: Instant) {
        let give_up = now.checked_add(patience).unwrap_or(now);
        let times = Times {
            again: now.checked_add(pto).unwrap_or(give_up),
            wait: pto,
            give_up,
        };
        self.state = State::Wanted { data, times };
        self.sent = [None; CHALLENGES];
    }

    /// The data of the challenge to be sent.
    #[inline]
    pub(crate) const fn owed(&self) -> Option<[u8; 8]> {
        match self.state {
            State::Wanted { data, .. } => Some(data),
            State::Idle | State::Waiting { .. } => None,
        }
    }

    /// The challenge that is owed is in a packet.
    pub(crate) const fn on_sent(&mut self) {
        let State::Wanted { data, times } = self.state else {
            return;
        };
        self.sent.rotate_right(1);
        if let Some(first) = self.sent.first_mut() {
            *first = Some(Challenge {
                data,
                is_full: false,
            });
        }
        self.state = State::Waiting { times };
    }

    /// The packet of the newest challenge fills a datagram of 1200 bytes.
    pub(crate) const fn on_full(&mut self) {
        if let Some(Some(newest)) = self.sent.first_mut() {
            newest.is_full = true;
        }
    }

    /// A PATH_RESPONSE with `data` was received, on whichever path; tells what it shows, if this path was asked for it.
    pub(crate) fn on_response(&mut self, data: [u8; 8]) -> Option<Reached> {
        if !self.is_pending() {
            return None;
        }
        let mut sent = self.sent.iter().flatten();
        let answered = sent.find(|challenge| challenge.data == data)?;
        let reached = if answered.is_full {
            Reached::InFull
        } else {
            Reached::WithLess
        };
        *self = Self::new();
        Some(reached)
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let times = self.times()?;
        Some(times.again.min(times.give_up))
    }

    /// Time has passed; `draw` gives unpredictable data.
    pub(crate) fn expire(&mut self, now: Instant, draw: impl FnOnce() -> [u8; 8]) -> Expired {
        let Some(mut times) = self
            .times()
            .filter(|times| times.again.min(times.give_up) <= now)
        else {
            return Expired::Nothing;
        };
        if times.give_up <= now {
            *self = Self::new();
            return Expired::Failed;
        }
        times.wait = times.wait.saturating_mul(2);
        times.again = now.checked_add(times.wait).unwrap_or(times.give_up);
        // One that couldn't be sent yet is as good as new.
        let data = self.owed().unwrap_or_else(draw);
        self.state = State::Wanted { data, times };
        Expired::Again
    }

    /// The challenge that was sent last couldn't leave: the attempt has [failed](Self::expire).
    pub(crate) fn on_refused(&mut self) {
        if let State::Wanted { times, .. } | State::Waiting { times } = &mut self.state {
            let asked = times.again.checked_sub(times.wait);
            times.give_up = times.give_up.min(asked.unwrap_or(times.again));
        }
    }

    /// Whether an answer is awaited.
    pub(crate) const fn is_pending(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    const fn times(&self) -> Option<Times> {
        match self.state {
            State::Wanted { times, .. } | State::Waiting { times } => Some(times),
            State::Idle => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Expired, PathValidation, Reached};

    const PTO: Duration = Duration::from_secs(1);

    fn begun() -> (PathValidation, Instant) {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        let now = Instant::now();
        let mut validation = PathValidation::new();
        assert!(validation.on_response([1; 8]).is_none() && validation.owed().is_none());
        validation.begin([1; 8], PTO, PTO * 9, now);
        (validation, now)
    }

    /// RFC 9000, 8.2.3: a response validates if it echoes the data of any challenge sent before; B24: another is
    /// ignored.
    #[test]
    fn only_an_echo_validates() {
        let (mut validation, now) = begun();
        assert_eq!(validation.owed(), Some([1; 8]));
        assert_eq!(validation.on_response([1; 8]), None, "not sent yet");
        validation.on_sent();
        validation.on_full();
        assert_eq!(
            (validation.owed(), validation.on_response([2; 8])),
            (None, None)
        );
        assert_eq!(validation.expire(now + PTO, || [2; 8]), Expired::Again);
        validation.on_sent();
        assert_eq!(validation.on_response([1; 8]), Some(Reached::InFull));
        assert_eq!(validation.on_response([1; 8]), None, "once");
        assert!(!validation.is_pending() && validation.deadline().is_none());
    }

    /// RFC 9000, 8.2.1: another challenge after a while, with other data, and no more often than Initial packets are
    /// repeated; 8.2.4: given up in the end.
    #[test]
    fn challenges_are_repeated_until_given_up() {
        let (mut validation, now) = begun();
        let mut asked = Vec::new();
        for n in 2.. {
            assert!(validation.owed().is_some());
            validation.on_sent();
            let at = validation.deadline().unwrap();
            asked.push((at - now).as_secs());
            assert_eq!(
                validation.expire(at.checked_sub(PTO / 2).unwrap(), || [n; 8]),
                Expired::Nothing
            );
            match validation.expire(at, || [n; 8]) {
                Expired::Again => assert_eq!(validation.owed(), Some([n; 8])),
                Expired::Failed => break,
                Expired::Nothing => panic!("a deadline without reason"),
            }
        }
        assert_eq!(asked, [1, 3, 7, 9]);
        assert!(!validation.is_pending() && validation.on_response([1; 8]).is_none());
    }

    /// RFC 9000, 8.2.3: a challenge in a small datagram says nothing of the path's MTU.
    #[test]
    fn an_answer_to_a_small_datagram_is_told_apart() {
        let (mut validation, _) = begun();
        validation.on_sent();
        assert_eq!(validation.on_response([1; 8]), Some(Reached::WithLess));
    }

    #[test]
    fn only_the_latest_challenges_are_remembered() {
        let (mut validation, now) = begun();
        validation.begin([1; 8], PTO, PTO * 99, now);
        for n in 2..=4 {
            validation.on_sent();
            let at = validation.deadline().unwrap();
            assert_eq!(validation.expire(at, || [n; 8]), Expired::Again);
        }
        validation.on_sent();
        assert_eq!(validation.on_response([1; 8]), None);
        assert_eq!(validation.on_response([2; 8]), Some(Reached::WithLess));
    }

    /// What the limits of an address forbid to send isn't drawn anew.
    #[test]
    fn a_challenge_that_could_not_leave_is_kept() {
        let (mut validation, now) = begun();
        assert_eq!(validation.expire(now + PTO, || [2; 8]), Expired::Again);
        assert_eq!(validation.owed(), Some([1; 8]));
    }
}
