//! The clients that knock, by the destination of their Initials: until their ClientHello is whole, and then until
//! someone takes them.
//!
//! All wait equally long, so they expire in the order in which they came.

use std::{collections::VecDeque, time::Instant};

use quic_common::{Datagram, KeyedHasher, KeyedMap};

use super::{Admission, Incoming, incoming::Progress};
use crate::{limits::HALF_OPEN_TIMEOUT, wire::ConnectionId};

/// See the module.
#[derive(Debug)]
pub(super) struct Knocking {
    clients: KeyedMap<ConnectionId, Box<Incoming>>,
    /// Those whose ClientHello is whole, in order.
    ready: VecDeque<ConnectionId>,
    /// When each came, in order; those that are gone again are skipped.
    arrivals: VecDeque<(Instant, ConnectionId)>,
}

impl Knocking {
    pub(super) const fn new(hasher: KeyedHasher) -> Self {
        Self {
            clients: KeyedMap::with_hasher(hasher),
            ready: VecDeque::new(),
            arrivals: VecDeque::new(),
        }
    }

    /// How many there are, ready ones included.
    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    pub(super) fn contains(&self, dcid: &ConnectionId) -> bool {
        self.clients.contains_key(dcid)
    }

    /// Takes a new one in.
    pub(super) fn insert(&mut self, incoming: Incoming, admission: &Admission) {
        admission.begin(incoming.path.remote.ip());
        self.arrivals.push_back((incoming.since, incoming.dcid));
        self.clients.insert(incoming.dcid, Box::new(incoming));
        if self.arrivals.len() > 2 * self.clients.len() + 64 {
            let clients = &self.clients;
            self.arrivals
                .retain(|(since, dcid)| is_waiting(clients, *since, dcid));
        }
    }

    /// Gives a datagram to the client that it is from; false when it is dropped.
    pub(super) fn on_datagram(
        &mut self,
        dcid: &ConnectionId,
        datagram: &Datagram<'_>,
        admission: &Admission,
    ) -> bool {
        let Some(incoming) = self
            .clients
            .get_mut(dcid)
            .filter(|incoming| incoming.path.remote == datagram.remote)
        else {
            return false;
        };
        match incoming.on_datagram(datagram) {
            Progress::NeedMore => true,
            Progress::Ready => {
                self.ready.push_back(*dcid);
                true
            }
            Progress::Drop => {
                self.remove(*dcid, admission);
                false
            }
        }
    }

    /// Takes the first one whose ClientHello is whole.
    pub(super) fn take_ready(&mut self, admission: &Admission) -> Option<Incoming> {
        let dcid = self.ready.pop_front()?;
        self.remove(dcid, admission).map(|incoming| *incoming)
    }

    /// Forgets those whose ClientHello isn't whole in time, and says when to look again.
    pub(super) fn expire(&mut self, now: Instant, admission: &Admission) -> Option<Instant> {
        while let Some((since, dcid)) = self.arrivals.front().copied() {
            if is_waiting(&self.clients, since, &dcid) {
                let end = since.checked_add(HALF_OPEN_TIMEOUT)?;
                if now < end {
                    return Some(end);
                }
                self.remove(dcid, admission);
            }
            self.arrivals.pop_front();
        }
        self.arrivals.shrink_to(64);
        None
    }

    /// None of them counts any more.
    pub(super) fn leave(&self, admission: &Admission) {
        let clients = self.clients.values();
        clients.for_each(|incoming| admission.give_up(incoming.path.remote.ip()));
    }

    /// Forgets one, and the room that a crowd took once it is gone.
    fn remove(&mut self, dcid: ConnectionId, admission: &Admission) -> Option<Box<Incoming>> {
        let incoming = self.clients.remove(&dcid)?;
        admission.give_up(incoming.path.remote.ip());
        super::shrink(&mut self.clients);
        if self.ready.is_empty() {
            self.ready.shrink_to(64);
        }
        Some(incoming)
    }
}

/// Whether the client that came at `since` still waits for the rest of its ClientHello.
fn is_waiting(
    clients: &KeyedMap<ConnectionId, Box<Incoming>>,
    since: Instant,
    dcid: &ConnectionId,
) -> bool {
    clients
        .get(dcid)
        .is_some_and(|incoming| incoming.since == since && !incoming.is_ready)
}
