//! How much nonsense a peer may cause: a bucket of tokens that refills with time.
//!
//! Resets, malformed messages, unknown frames and streams are each harmless and allowed; a flood of them is not
//! ([RFC 9114, section 10.5](https://www.rfc-editor.org/rfc/rfc9114#section-10.5)).

use std::time::{Duration, Instant};

use crate::error::{Code, Error};
use crate::limits::{GLITCH_BURST, GLITCHES_PER_SECOND};

/// The bucket, in thousandths of a glitch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glitches {
    left: u64,
    refilled: Option<Instant>,
}

const UNIT: u64 = 1000;
#[expect(clippy::as_conversions, reason = "`From` is not const")]
const FULL: u64 = GLITCH_BURST as u64 * UNIT;

impl Glitches {
    pub(crate) const fn new() -> Self {
        Self {
            left: FULL,
            refilled: None,
        }
    }

    /// Counts one glitch.
    pub(crate) fn count(&mut self, now: Instant) -> Result<(), Error> {
        let since = *self.refilled.get_or_insert(now);
        let passed = now.saturating_duration_since(since);
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let refill = millis.saturating_mul(u64::from(GLITCHES_PER_SECOND));
        self.left = self.left.saturating_add(refill).min(FULL);
        // A part of a millisecond stays to be counted later.
        self.refilled = since.checked_add(Duration::from_millis(millis));
        self.left = self.left.checked_sub(UNIT).ok_or(Error::new(
            Code::EXCESSIVE_LOAD,
            "too many resets, errors and unknown frames",
        ))?;
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "an instant to count from")]
mod tests {
    use std::time::{Duration, Instant};

    use super::Glitches;
    use crate::error::Code;
    use crate::limits::{GLITCH_BURST, GLITCHES_PER_SECOND};

    #[test]
    fn the_burst_is_exact() {
        let now = Instant::now();
        let mut glitches = Glitches::new();
        for _ in 0..GLITCH_BURST {
            assert_eq!(glitches.count(now), Ok(()));
        }
        assert_eq!(glitches.count(now).unwrap_err().code, Code::EXCESSIVE_LOAD);
    }

    #[test]
    fn the_bucket_refills_to_the_brim_and_no_further() {
        let start = Instant::now();
        let mut glitches = Glitches::new();
        for _ in 0..GLITCH_BURST {
            assert_eq!(glitches.count(start), Ok(()));
        }
        let mut now = start + Duration::from_secs(1);
        for _ in 0..GLITCHES_PER_SECOND {
            assert_eq!(glitches.count(now), Ok(()));
        }
        assert!(glitches.count(now).is_err());
        now += Duration::from_hours(1);
        for _ in 0..GLITCH_BURST {
            assert_eq!(glitches.count(now), Ok(()));
        }
        assert!(glitches.count(now).is_err());
        // A clock that goes back gives nothing and breaks nothing.
        assert!(glitches.count(start).is_err());
    }
}
