//! Waking up on time. The poller's own timeout is rounded up to whole milliseconds, far too coarse for pacing; on Linux
//! a timer descriptor does better.

use std::{io, time::Duration};

use mio::{Registry, Token};

pub(super) use imp::Timer;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod imp {
    use std::{
        os::fd::{AsRawFd as _, OwnedFd},
        time::Instant,
    };

    use mio::{Interest, event::Source as _, unix::SourceFd};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    use super::{Duration, Registry, Token, io};
    use crate::limits::{MAX_PRECISE_WAIT, TIMER_SLACK};

    /// A timer that expires at one deadline. It is set anew only for an earlier one: for a later one it expires too
    /// soon once, which costs less than setting it in each turn.
    #[derive(Debug)]
    pub(in super::super) struct Timer {
        descriptor: OwnedFd,
        deadline: Option<Instant>,
    }

    impl Timer {
        pub(in super::super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            SourceFd(&descriptor.as_raw_fd()).register(registry, token, Interest::READABLE)?;
            Ok(Self {
                descriptor,
                deadline: None,
            })
        }

        /// Sees to it that the poller returns after `wait`; returns the timeout to give to it.
        pub(in super::super) fn arm(&mut self, wait: Option<Duration>) -> Option<Duration> {
            let wait = wait?;
            if wait.is_zero() || wait > MAX_PRECISE_WAIT {
                return Some(wait);
            }
            let deadline = Instant::now() + wait;
            if self
                .deadline
                .is_some_and(|armed| armed <= deadline + TIMER_SLACK)
            {
                return None;
            }
            if self.set(wait).is_err() {
                return Some(wait);
            }
            self.deadline = Some(deadline);
            None
        }

        pub(in super::super) const fn on_expired(&mut self) {
            self.deadline = None;
        }

        fn set(&self, wait: Duration) -> io::Result<()> {
            let once = Itimerspec {
                it_interval: Timespec::default(),
                it_value: Timespec::try_from(wait).map_err(io::Error::other)?,
            };
            timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &once)?;
            Ok(())
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod imp {
    use super::{Duration, Registry, Token, io};

    /// The poller's timeout is all there is.
    #[derive(Debug)]
    pub(in super::super) struct Timer;

    impl Timer {
        #[expect(clippy::unnecessary_wraps, reason = "fails elsewhere")]
        pub(in super::super) const fn new(_: &Registry, _: Token) -> io::Result<Self> {
            Ok(Self)
        }

        #[expect(
            clippy::unused_self,
            clippy::needless_pass_by_ref_mut,
            reason = "has state elsewhere"
        )]
        pub(in super::super) const fn arm(&mut self, wait: Option<Duration>) -> Option<Duration> {
            wait
        }

        #[expect(
            clippy::unused_self,
            clippy::needless_pass_by_ref_mut,
            reason = "has state elsewhere"
        )]
        pub(in super::super) const fn on_expired(&mut self) {}
    }
}
