//! Challenges of the peer that wait to be answered on the path that they came on,
//! [RFC 9000, section 8.2.2](https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2).
//!
//! A lost answer is not sent again: the peer asks again.

use crate::limits::PATH_RESPONSES;

/// The queue, oldest first. What doesn't fit is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathResponses {
    waiting: [Option<[u8; 8]>; PATH_RESPONSES],
}

impl PathResponses {
    /// None waiting.
    pub(crate) const fn new() -> Self {
        Self {
            waiting: [None; PATH_RESPONSES],
        }
    }

    /// A PATH_CHALLENGE with `data` was received.
    pub(crate) fn on_challenge(&mut self, data: [u8; 8]) {
        if let Some(free) = self.waiting.iter_mut().find(|place| place.is_none()) {
            *free = Some(data);
        }
    }

    /// The data of the PATH_RESPONSE to send next.
    #[inline]
    pub(crate) const fn next(&self) -> Option<[u8; 8]> {
        self.waiting.first().copied().flatten()
    }

    /// The next response was written.
    pub(crate) const fn on_sent(&mut self) {
        if let Some(first) = self.waiting.first_mut() {
            *first = None;
        }
        self.waiting.rotate_left(1);
    }
}

#[cfg(test)]
mod tests {
    use super::{PATH_RESPONSES, PathResponses};

    /// RFC 9000, 8.2.2: one response for each challenge, up to a bound.
    #[test]
    fn each_challenge_is_answered_once_up_to_the_cap() {
        let mut responses = PathResponses::new();
        let cap = u8::try_from(PATH_RESPONSES).unwrap();
        for n in 0..=cap {
            responses.on_challenge([n; 8]);
        }
        for n in 0..cap {
            assert_eq!(responses.next(), Some([n; 8]));
            responses.on_sent();
        }
        assert_eq!(responses.next(), None, "cap + 1 was dropped");
        responses.on_sent();
        responses.on_challenge([9; 8]);
        assert_eq!(responses.next(), Some([9; 8]));
    }
}
