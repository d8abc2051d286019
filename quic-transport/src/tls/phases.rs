//! The receive keys before, in and after the current key phase, and which of them a packet gets
//! ([RFC 9001, sections 6.3 to 6.5](https://www.rfc-editor.org/rfc/rfc9001#section-6.3)).
//!
//! The next key always exists before a packet can ask for it, and the choice is made from the packet's number and phase
//! bit before the packet is touched: a forged phase bit costs what any other forged packet costs. A connection that has
//! been silent for long makes all its keys anew before it looks at the packet that ends the silence, whatever that says.

use super::protect::OpenKey;
use super::schedule::TrafficSecret;
use crate::error::Error;
use crate::wire::TransportErrorCode;

/// The receive keys around the current phase.
pub(super) struct RemotePhases {
    previous: Option<OpenKey>,
    current: OpenKey,
    next: OpenKey,
    /// The secret of `current`.
    secret: TrafficSecret,
    course: Course,
}

/// Where the phases stand.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// The lowest number received in this phase; `None` between our update and the peer's answer.
    first: Option<u64>,
    /// The highest number received in this phase.
    last: Option<u64>,
    /// The highest number received in earlier phases.
    last_before: Option<u64>,
    /// Whether the peer began this phase and has seen no acknowledgment in it from us.
    answer_owed: bool,
    phase: bool,
}

/// Which key a packet gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Previous,
    Current,
    Next,
}

/// What a packet meant for the phase of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Sealed with the keys of the current phase.
    Current,
    /// Sealed with those before: the packet was delayed.
    Previous,
    /// The first packet of the peer's answer to our update: old keys may be dropped after 3 PTO.
    Confirmed,
    /// The peer began an update, which has been followed: old keys may be dropped after 3 PTO.
    Updated,
}

impl RemotePhases {
    pub(super) fn new(current: OpenKey, secret: TrafficSecret) -> Self {
        let course = Course {
            first: Some(0),
            last: None,
            last_before: None,
            answer_owed: false,
            phase: false,
        };
        Self::at(current, secret, course)
    }

    fn at(current: OpenKey, secret: TrafficSecret, course: Course) -> Self {
        Self {
            previous: None,
            current,
            next: secret.next().open_key(),
            secret,
            course,
        }
    }

    /// What is left without the keys; those of the phase before are gone for good.
    pub(super) fn into_dormant(self) -> DormantPhases {
        DormantPhases {
            secret: self.secret,
            course: self.course,
        }
    }

    /// The current phase bit.
    #[inline]
    pub(super) const fn phase(&self) -> bool {
        self.course.phase
    }

    /// Whether the peer is known to have followed into this phase.
    pub(super) const fn is_answered(&self) -> bool {
        self.course.first.is_some()
    }

    pub(super) const fn has_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// Drops the keys of the phase before, unless the peer may still be in it.
    pub(super) fn drop_previous(&mut self) {
        let is_owed = !self.is_answered();
        self.previous = self.previous.take().filter(|_| is_owed);
    }

    #[inline]
    pub(super) const fn on_ack_sent(&mut self) {
        self.course.answer_owed = false;
    }

    /// Decrypts a packet in place, and says with which key; `None` when it isn't authentic.
    #[inline]
    pub(super) fn open<'p>(
        &self,
        number: u64,
        phase: bool,
        header_length: usize,
        packet: &'p mut [u8],
    ) -> Option<(&'p [u8], Choice)> {
        let choice = self.choose(number, phase);
        let key = match choice {
            Choice::Current => &self.current,
            // A key that was dropped is replaced by one that can't fit, so that the time taken tells nothing (6.3).
            Choice::Previous => self.previous.as_ref().unwrap_or(&self.next),
            Choice::Next => &self.next,
        };
        let payload = key.open(number, header_length, packet)?;
        Some((payload, choice))
    }

    /// The packet `number` was opened with this key: moves to the next phase if that is what it shows.
    #[inline]
    pub(super) fn on_opened(&mut self, number: u64, choice: Choice) -> Result<Phase, Error> {
        match choice {
            Choice::Current => self.on_current(number),
            Choice::Previous => self.on_previous(number),
            Choice::Next => self.on_next(number),
        }
    }

    /// RFC 9001, 6.5: a number before the current phase means the previous keys, one within or after it the next.
    #[inline]
    const fn choose(&self, number: u64, phase: bool) -> Choice {
        if phase == self.course.phase {
            return Choice::Current;
        }
        match self.course.first {
            Some(first) if number >= first => Choice::Next,
            _ => Choice::Previous,
        }
    }

    #[inline]
    fn on_current(&mut self, number: u64) -> Result<Phase, Error> {
        if self.course.last_before.is_some_and(|last| number < last) {
            return Err(older_keys_after_newer());
        }
        self.course.last = self.course.last.max(Some(number));
        let phase = if self.course.first.is_some() {
            Phase::Current
        } else {
            Phase::Confirmed
        };
        self.course.first = Some(self.course.first.map_or(number, |first| first.min(number)));
        Ok(phase)
    }

    fn on_previous(&mut self, number: u64) -> Result<Phase, Error> {
        if self.previous.is_none() {
            // The next key fitted a number below the phase: the peer went back.
            return Err(older_keys_after_newer());
        }
        self.course.last_before = self.course.last_before.max(Some(number));
        Ok(Phase::Previous)
    }

    fn on_next(&mut self, number: u64) -> Result<Phase, Error> {
        if self.course.answer_owed {
            return Err(Error::new(
                TransportErrorCode::KEY_UPDATE_ERROR,
                0,
                "a second key update before the first was acknowledged",
            ));
        }
        if self.course.last.is_some_and(|last| number < last) {
            return Err(older_keys_after_newer());
        }
        self.rotate();
        self.course.first = Some(number);
        self.course.last = Some(number);
        self.course.answer_owed = true;
        Ok(Phase::Updated)
    }

    /// Moves to the next phase, in which nothing has been received yet.
    #[cold]
    pub(super) fn rotate(&mut self) {
        self.secret = self.secret.next();
        let next = self.secret.next().open_key();
        let current = std::mem::replace(&mut self.next, next);
        self.previous = Some(std::mem::replace(&mut self.current, current));
        self.course.last_before = self.course.last_before.max(self.course.last);
        self.course.first = None;
        self.course.last = None;
        self.course.phase = !self.course.phase;
    }
}

/// [`RemotePhases`] without their keys.
pub(super) struct DormantPhases {
    secret: TrafficSecret,
    course: Course,
}

impl DormantPhases {
    /// The secret of the current phase.
    pub(super) const fn secret(&self) -> &TrafficSecret {
        &self.secret
    }

    /// Makes the keys of the current phase and of the next one.
    pub(super) fn wake(self) -> RemotePhases {
        RemotePhases::at(self.secret.open_key(), self.secret, self.course)
    }
}

#[cold]
const fn older_keys_after_newer() -> Error {
    Error::new(
        TransportErrorCode::KEY_UPDATE_ERROR,
        0,
        "old keys used for a higher packet number than new ones",
    )
}
