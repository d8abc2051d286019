//! Both directions of a connection's datagrams.

use super::incoming::IncomingDatagrams;
use super::outgoing::{DatagramEvent, OutgoingDatagrams};
use super::settings::{DatagramSettings, DatagramStats};

/// See the module.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub(crate) incoming: IncomingDatagrams,
    pub(crate) outgoing: OutgoingDatagrams,
}

impl Datagrams {
    pub(crate) fn new(settings: &DatagramSettings) -> Self {
        Self {
            incoming: IncomingDatagrams::new(settings),
            outgoing: OutgoingDatagrams::new(settings),
        }
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.incoming.rest();
        self.outgoing.rest();
    }

    /// The next thing to tell the application.
    pub(crate) fn next_event(&mut self) -> Option<DatagramEvent> {
        if self.incoming.take_news() {
            return Some(DatagramEvent::Readable);
        }
        self.outgoing.next_event()
    }

    /// Whether [`Self::next_event`] has something.
    pub(crate) fn has_event(&self) -> bool {
        self.incoming.has_news() || self.outgoing.has_event()
    }

    /// Bytes that wait in both directions.
    pub(crate) fn memory(&self) -> u64 {
        let size = self.incoming.size().saturating_add(self.outgoing.size());
        u64::try_from(size).unwrap_or(u64::MAX)
    }

    pub(crate) const fn stats(&self) -> DatagramStats {
        let (received, unread) = self.incoming.counts();
        let [sent, acked, lost, dropped] = self.outgoing.counts();
        DatagramStats {
            sent,
            acked,
            lost,
            dropped,
            received,
            unread,
        }
    }
}
