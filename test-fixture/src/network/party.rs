//! What the network needs of those that it connects.

use std::net::SocketAddr;
use std::slice::ChunksMut;
use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, BatchHead, Datagram, Ecn};

/// One end: a connection, an endpoint, or something made up by a test.
pub trait Party {
    /// Takes datagrams that have arrived.
    fn receive(&mut self, datagrams: Arrivals<'_>, now: Instant);

    /// Builds the next batch in `buffer`, or says when to be asked again.
    fn transmit(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Transmit;
}

/// A party whose turns are counted.
#[derive(Debug)]
pub struct Counted<'p, P> {
    party: &'p mut P,
    /// How often it was asked what to send.
    pub turns: u32,
}

impl<'p, P> Counted<'p, P> {
    /// No turns so far.
    pub const fn new(party: &'p mut P) -> Self {
        Self { party, turns: 0 }
    }
}

impl<P: Party> Party for Counted<'_, P> {
    fn receive(&mut self, datagrams: Arrivals<'_>, now: Instant) {
        self.party.receive(datagrams, now);
    }

    fn transmit(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Transmit {
        self.turns += 1;
        self.party.transmit(now, buffer)
    }
}

/// What a party does when it is its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Sends the batch that lies in the buffer.
    Batch(BatchHead),
    /// Has nothing to send before this time from now.
    Callback(Duration),
    /// Waits for datagrams only.
    Nothing,
}

/// Datagrams of one batch as they reach the other end, each to be changed in place.
#[derive(Debug)]
pub struct Arrivals<'a> {
    remote: SocketAddr,
    local: Option<SocketAddr>,
    ecn: Ecn,
    segments: ChunksMut<'a, u8>,
}

impl<'a> Arrivals<'a> {
    /// `bytes` in datagrams of `segment` bytes, of which the last may be shorter.
    #[must_use]
    pub fn new(route: Route, ecn: Ecn, segment: usize, bytes: &'a mut [u8]) -> Self {
        Self {
            remote: route.source,
            local: Some(route.destination),
            ecn,
            segments: bytes.chunks_mut(segment.max(1)),
        }
    }
}

impl<'a> Iterator for Arrivals<'a> {
    type Item = Datagram<'a>;

    #[inline]
    fn next(&mut self) -> Option<Datagram<'a>> {
        let payload = self.segments.next()?;
        Some(Datagram {
            remote: self.remote,
            local: self.local,
            ecn: self.ecn,
            payload,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.segments.size_hint()
    }
}

impl ExactSizeIterator for Arrivals<'_> {}

/// The addresses in the header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it seems to be from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
}

impl Route {
    /// The same, to what the receiver calls `destination`.
    pub(super) const fn to(self, destination: SocketAddr) -> Self {
        Self {
            destination,
            ..self
        }
    }
}
