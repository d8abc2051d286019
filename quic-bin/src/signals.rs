//! Being told to end: SIGINT and SIGTERM let a program say goodbye to its peers first.
//!
//! A thread waits for the signals and wakes the event loop up. A second signal ends the program at once, as it would
//! have without all this.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use mio::Waker;

/// Whether the program, or the part of it that holds a clone of this, is to end.
#[derive(Clone, Debug, Default)]
pub struct Termination {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    is_requested: AtomicBool,
    /// The event loops to be woken up.
    wakers: Mutex<Vec<Arc<Waker>>>,
}

impl Termination {
    /// Whether the end was asked for.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.inner.is_requested.load(Ordering::Relaxed)
    }

    /// Asks for the end.
    pub fn request(&self) {
        self.inner.is_requested.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Has the loop with this waker woken up too.
    pub fn wakes(&self, waker: Arc<Waker>) {
        self.wakers().push(waker);
        if self.is_requested() {
            self.wake();
        }
    }

    /// Wakes the loops up without ending them.
    pub(crate) fn wake(&self) {
        for waker in self.wakers().iter() {
            // A loop that can't be woken up sees it when something happens.
            drop(waker.wake());
        }
    }

    fn wakers(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Waker>>> {
        self.inner
            .wakers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Has SIGINT and SIGTERM ask for the end; where the system has no such signals, nothing does.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    #[cfg(unix)]
    pub fn on_signals(&self) -> std::io::Result<()> {
        use signal_hook::{
            consts::{SIGINT, SIGTERM},
            flag,
            iterator::Signals,
        };

        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag not set yet.
            flag::register_conditional_default(signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let termination = self.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for _ in signals.forever() {
                    termination.request();
                    // Once more, for a loop whose socket takes no goodbye.
                    std::thread::sleep(crate::limits::GOODBYE);
                    termination.wake();
                }
            })?;
        Ok(())
    }

    /// Has SIGINT and SIGTERM ask for the end; where the system has no such signals, nothing does.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    #[cfg(not(unix))]
    pub const fn on_signals(&self) -> std::io::Result<()> {
        let _ = self;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mio::{Events, Poll, Token, Waker};

    use super::Termination;

    fn poll() -> (Poll, Arc<Waker>) {
        let poll = Poll::new().unwrap();
        let waker = Arc::new(Waker::new(poll.registry(), Token(7)).unwrap());
        (poll, waker)
    }

    fn is_woken(poll: &mut Poll) -> bool {
        let mut events = Events::with_capacity(4);
        poll.poll(&mut events, Some(std::time::Duration::ZERO))
            .unwrap();
        events.iter().any(|event| event.token() == Token(7))
    }

    #[test]
    fn a_request_wakes_every_loop() {
        let termination = Termination::default();
        let (mut first, waker) = poll();
        termination.wakes(waker);
        let (mut second, waker) = poll();
        termination.wakes(waker);
        assert!(!termination.is_requested() && !is_woken(&mut second));
        termination.request();
        assert!(termination.is_requested());
        assert!(is_woken(&mut second) && is_woken(&mut first));
    }

    #[test]
    fn a_loop_that_starts_late_is_told_at_once() {
        let termination = Termination::default();
        termination.request();
        let (mut late, waker) = poll();
        termination.wakes(waker);
        assert!(is_woken(&mut late));
    }
}
