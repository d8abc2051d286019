//! How the threads of a server pass on what the kernel gave to the wrong one of them.

use std::sync::{
    Arc,
    mpsc::{Receiver, SyncSender, sync_channel},
};

use mio::Waker;
use quic_common::Share;
use quic_transport::Foreign;

use crate::limits::POST_DATAGRAMS;

/// One thread's ways to the others, and theirs to it.
#[derive(Debug)]
pub struct Post {
    share: Share,
    inbox: Option<Receiver<Foreign>>,
    /// By index; its own among them.
    lines: Vec<Line>,
}

/// The way to one thread.
#[derive(Clone, Debug)]
struct Line {
    letters: SyncSender<Foreign>,
    waker: Arc<Waker>,
}

impl Post {
    /// That of a thread that is alone.
    #[must_use]
    pub const fn alone() -> Self {
        Self {
            share: Share::WHOLE,
            inbox: None,
            lines: Vec::new(),
        }
    }

    /// One for each of several threads, whose loops have these wakers.
    #[must_use]
    pub fn among(wakers: Vec<Arc<Waker>>) -> Vec<Self> {
        let of = u16::try_from(wakers.len()).unwrap_or(u16::MAX);
        let (lines, inboxes): (Vec<_>, Vec<_>) = wakers
            .into_iter()
            .map(|waker| {
                let (letters, inbox) = sync_channel(POST_DATAGRAMS);
                (Line { letters, waker }, inbox)
            })
            .unzip();
        (0..of)
            .zip(inboxes)
            .filter_map(|(index, inbox)| {
                Some(Self {
                    share: Share::new(index, of)?,
                    inbox: Some(inbox),
                    lines: lines.clone(),
                })
            })
            .collect()
    }

    /// Which connections belong to this thread.
    #[must_use]
    pub const fn share(&self) -> Share {
        self.share
    }

    /// Passes a datagram on. When the other thread is far behind it is lost, as it would be in a full socket.
    pub fn send(&self, foreign: Foreign) {
        let line = self.lines.get(usize::from(foreign.owner()));
        if let Some(line) = line.filter(|line| line.letters.try_send(foreign).is_ok()) {
            // A loop that can't be woken up looks when something else happens.
            drop(line.waker.wake());
        }
    }

    /// The next datagram that was passed on to this thread.
    #[must_use]
    pub fn receive(&self) -> Option<Foreign> {
        self.inbox.as_ref()?.try_recv().ok()
    }
}
