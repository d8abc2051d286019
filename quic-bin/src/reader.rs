//! The thread that waits for the disk, so that a server's loop doesn't.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use mio::Waker;
use quic_transport::{Handle, StreamId};

use crate::file_body::FileRead;

/// Where a chunk is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The connection.
    pub connection: Handle,
    /// The request's stream.
    pub stream: StreamId,
}

/// A chunk, and where it goes.
type Read = (Reference, FileRead);

/// The loop's end: it asks for chunks, and is woken up when they are there.
#[derive(Debug)]
pub struct Reader {
    wanted: Sender<Read>,
    done: Receiver<Read>,
}

/// One connection's way to the reader. There is at most one chunk for each stream under way.
#[derive(Clone, Debug)]
pub struct Requests {
    wanted: Sender<Read>,
    connection: Option<Handle>,
}

impl Reader {
    /// Starts a thread that wakes the loop of `waker`, and ends with the reader.
    ///
    /// # Errors
    ///
    /// When there can't be another thread.
    pub fn start(waker: Arc<Waker>) -> io::Result<Self> {
        let (wanted, requests) = channel::<Read>();
        let (answer, done) = channel();
        thread::Builder::new()
            .name("reader".to_owned())
            .spawn(move || {
                for (reference, mut read) in requests {
                    read.read();
                    if answer.send((reference, read)).is_err() {
                        return;
                    }
                    // A loop that can't be woken up looks when something else happens.
                    drop(waker.wake());
                }
            })?;
        Ok(Self { wanted, done })
    }

    /// A way here for a connection that is about to be made.
    #[must_use]
    pub fn requests(&self) -> Requests {
        Requests {
            wanted: self.wanted.clone(),
            connection: None,
        }
    }

    /// The next chunk that has been read.
    #[must_use]
    pub fn receive(&self) -> Option<Read> {
        self.done.try_recv().ok()
    }
}

impl Requests {
    /// The connection has been made.
    pub const fn set_connection(&mut self, connection: Handle) {
        self.connection = Some(connection);
    }

    /// Asks for a chunk.
    pub fn ask(&self, stream: StreamId, read: FileRead) {
        if let Some(connection) = self.connection {
            let reference = Reference { connection, stream };
            // The reader lives as long as the loop.
            drop(self.wanted.send((reference, read)));
        }
    }
}
