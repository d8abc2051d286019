//! Wall-clock time: for certificates and for what outlives a process, tickets and tokens. All else runs on the `now`
//! that is passed in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// A source of wall-clock time; clones share it.
#[derive(Clone, Debug, Default)]
pub struct WallClock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    /// Seconds since 1970.
    Manual(Arc<AtomicU64>),
}

impl WallClock {
    /// The system's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands still at `since_1970`, in whole seconds, until it is advanced: for tests and simulations.
    #[must_use]
    pub fn manual(since_1970: Duration) -> Self {
        Self(Source::Manual(Arc::new(AtomicU64::new(
            since_1970.as_secs(),
        ))))
    }

    /// Moves a manual clock, and all its clones, forward by whole seconds; the system's clock stays as it is.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(seconds) = &self.0 {
            seconds.fetch_add(by.as_secs(), Ordering::Relaxed);
        }
    }

    /// The time since the start of 1970, UTC.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_secs(self.unix_time().as_secs())
    }

    fn unix_time(&self) -> UnixTime {
        match &self.0 {
            Source::System => UnixTime::now(),
            Source::Manual(seconds) => {
                UnixTime::since_unix_epoch(Duration::from_secs(seconds.load(Ordering::Relaxed)))
            }
        }
    }
}

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.unix_time())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::WallClock;

    #[test]
    fn clones_of_a_manual_clock_move_together() {
        let clock = WallClock::manual(Duration::from_secs(1_700_000_000));
        let clone = clock.clone();
        assert_eq!(clone.now(), Duration::from_secs(1_700_000_000));
        clock.advance(Duration::from_mins(1));
        assert_eq!(clone.now(), Duration::from_secs(1_700_000_060));
    }
}
