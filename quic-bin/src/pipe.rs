//! Standard output as a place for bodies.
//!
//! Who reads it may be slower than the network, or stop for a while, and the connection has to live on: so a thread
//! writes, and a bounded number of pieces wait for it.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{Builder, JoinHandle},
};

use mio::Waker;

use crate::{failure::Failure, limits::PIPE_PIECES};

/// See the module.
#[derive(Debug)]
pub struct Pipe {
    shared: Arc<Shared>,
    writer: Mutex<Option<Writer>>,
}

/// The way to the thread, and the thread.
#[derive(Debug)]
struct Writer {
    pieces: Sender<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Pieces that are not written yet.
    waiting: AtomicUsize,
    /// Writing has failed.
    is_broken: AtomicBool,
    /// The event loop to be woken when there is room again.
    waker: Mutex<Option<Arc<Waker>>>,
}

impl Pipe {
    /// A pipe to `out`.
    ///
    /// # Errors
    ///
    /// When the system gives no thread.
    pub fn new(out: impl Write + Send + 'static) -> Result<Self, Failure> {
        let shared = Arc::new(Shared::default());
        let (pieces, waiting) = channel();
        let theirs = Arc::clone(&shared);
        let thread = Builder::new()
            .name("stdout".to_owned())
            .spawn(move || theirs.write_all(&waiting, out))
            .map_err(|error| Failure::new(format!("can't start a thread: {error}")))?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(Writer { pieces, thread })),
        })
    }

    /// Has the loop with this waker woken up from now on, instead of any other, when there is room again.
    pub fn wakes(&self, waker: Arc<Waker>) {
        *lock(&self.shared.waker) = Some(waker);
    }

    /// Whether another piece is taken now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.shared.waiting.load(Ordering::Acquire) < PIPE_PIECES
            || self.shared.is_broken.load(Ordering::Acquire)
    }

    /// Hands a piece over, whether there is room or not.
    ///
    /// # Errors
    ///
    /// When an earlier piece couldn't be written.
    pub fn write(&self, piece: &[u8]) -> Result<(), Failure> {
        self.shared.waiting.fetch_add(1, Ordering::AcqRel);
        let is_taken = lock(&self.writer)
            .as_ref()
            .is_some_and(|writer| writer.pieces.send(piece.to_vec()).is_ok());
        if is_taken { Ok(()) } else { self.finish() }
    }

    /// Waits until all is written.
    ///
    /// # Errors
    ///
    /// When it couldn't be.
    pub fn finish(&self) -> Result<(), Failure> {
        let writer = lock(&self.writer).take();
        let Some(Writer { pieces, thread }) = writer else {
            return Ok(());
        };
        drop(pieces);
        let result = thread
            .join()
            .unwrap_or_else(|_panicked| Err(io::Error::other("the writing thread is gone")));
        result.map_err(|error| Failure::new(format!("can't write to stdout: {error}")))
    }
}

impl Shared {
    /// What the thread does.
    fn write_all(&self, pieces: &Receiver<Vec<u8>>, mut out: impl Write) -> io::Result<()> {
        let written = pieces.iter().try_for_each(|piece| {
            out.write_all(&piece)?;
            if self.waiting.fetch_sub(1, Ordering::AcqRel) >= PIPE_PIECES {
                self.wake();
            }
            Ok(())
        });
        let result = written.and_then(|()| out.flush());
        if result.is_err() {
            self.is_broken.store(true, Ordering::Release);
            self.wake();
        }
        result
    }

    fn wake(&self) {
        if let Some(waker) = lock(&self.waker).as_ref() {
            // A loop that can't be woken up sees it when something happens.
            drop(waker.wake());
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::{
            Arc, Mutex,
            mpsc::{Receiver, channel},
        },
    };

    use super::Pipe;
    use crate::limits::PIPE_PIECES;

    /// Writes a piece each time that it is let.
    struct Gate {
        open: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.open
                .recv()
                .map_err(|_closed| io::ErrorKind::BrokenPipe)?;
            self.written.lock().unwrap().extend(data);
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stops_holds_nobody_up_and_loses_nothing() {
        let (open, gate) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let pipe = Pipe::new(Gate {
            open: gate,
            written: Arc::clone(&written),
        })
        .unwrap();
        for piece in 0..PIPE_PIECES {
            assert!(pipe.has_room());
            pipe.write(&[u8::try_from(piece).unwrap()]).unwrap();
        }
        assert!(!pipe.has_room());
        for _ in 0..PIPE_PIECES {
            open.send(()).unwrap();
        }
        pipe.finish().unwrap();
        assert!(pipe.has_room());
        let all: Vec<_> = (0..=u8::MAX).take(PIPE_PIECES).collect();
        assert_eq!(*written.lock().unwrap(), all);
    }

    #[test]
    fn what_can_not_be_written_is_told_once() {
        let (open, gate) = channel();
        let pipe = Pipe::new(Gate {
            open: gate,
            written: Arc::default(),
        })
        .unwrap();
        drop(open);
        let mut pieces = 0;
        let failure = loop {
            match pipe.write(b"x") {
                Ok(()) => pieces += 1,
                Err(failure) => break failure,
            }
            assert!(pieces < 1_000_000);
        };
        assert!(failure.to_string().starts_with("can't write to stdout"));
        assert!(pipe.has_room(), "nothing is waited for");
        assert_eq!(pipe.finish(), Ok(()));
    }
}
