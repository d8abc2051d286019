//! The paths of a connection beside the one in use: those that are being validated, and those that were left.
//!
//! Few, and bounded: a peer can come from a new address with each packet, so what isn't known to lead to it gives way.

use std::mem;
use std::net::SocketAddr;
use std::time::Instant;

use super::Path;
use crate::limits::PATHS;
use crate::transmit::PathId;

/// A path that isn't in use.
#[derive(Clone, Debug)]
pub(crate) struct OtherPath {
    /// The path.
    pub(crate) path: Path,
    /// The number of the connection ID that is sent to on it; `None` while there is none to spare.
    pub(crate) cid: Option<u64>,
    /// Whether it comes into use as soon as it is validated.
    pub(crate) is_awaited: bool,
    /// Whether the application is to hear whether the peer can be reached on it.
    pub(crate) is_wanted: bool,
    /// Whether it may go: it was in use and wasn't asked for since, or was asked for in vain.
    pub(crate) is_left: bool,
    /// When it may be forgotten; before, late packets may still come from there.
    pub(crate) keep_until: Option<Instant>,
}

/// The paths that aren't in use, those that were used last at the end.
#[derive(Debug, Default)]
pub(crate) struct OtherPaths {
    paths: Vec<OtherPath>,
    last_id: PathId,
    /// The path of the packet that is being processed, if it isn't the one in use.
    arrival: Option<PathId>,
}

impl OtherPath {
    /// A path that nothing is known about yet.
    pub(crate) const fn new(path: Path, cid: Option<u64>) -> Self {
        Self {
            path,
            cid,
            is_awaited: false,
            is_wanted: false,
            is_left: false,
            keep_until: None,
        }
    }
}

impl OtherPaths {
    /// Whether there is none, as on nearly all connections.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether there is no place for another.
    pub(crate) const fn is_full(&self) -> bool {
        self.paths.len() + 1 >= PATHS
    }

    /// An ID for a new path, that neither `current` nor any other has.
    pub(crate) fn next_id(&mut self, current: PathId) -> PathId {
        loop {
            self.last_id = self.last_id.next();
            if self.last_id != current && self.get(self.last_id).is_none() {
                return self.last_id;
            }
        }
    }

    /// The path that a datagram with these addresses is on: one that is known to have them, else one that may have them.
    pub(crate) fn find(&self, remote: SocketAddr, local: Option<SocketAddr>) -> Option<PathId> {
        let exact = local.and_then(|local| self.find_exact(remote, local));
        exact.or_else(|| {
            let mut paths = self.paths.iter();
            let found = paths.find(|other| other.path.may_have_addresses(remote, local))?;
            Some(found.path.id)
        })
    }

    /// The path that is known to have these addresses.
    pub(crate) fn find_exact(&self, remote: SocketAddr, local: SocketAddr) -> Option<PathId> {
        let mut paths = self.paths.iter();
        let found = paths.find(|other| other.path.has_addresses(remote, local))?;
        Some(found.path.id)
    }

    /// The path that batches with these addresses are sent on.
    pub(crate) fn sent_on(
        &mut self,
        remote: SocketAddr,
        source: Option<SocketAddr>,
    ) -> Option<&mut Path> {
        let mut paths = self.paths.iter_mut().map(|other| &mut other.path);
        paths.find(|path| path.remote == remote && path.source == source)
    }

    /// The path with this ID.
    pub(crate) fn get(&self, id: PathId) -> Option<&OtherPath> {
        self.paths.iter().find(|other| other.path.id == id)
    }

    /// The path with this ID.
    pub(crate) fn get_mut(&mut self, id: PathId) -> Option<&mut OtherPath> {
        self.paths.iter_mut().find(|other| other.path.id == id)
    }

    /// Takes a path out.
    pub(crate) fn take(&mut self, id: PathId) -> Option<OtherPath> {
        let place = self.paths.iter().position(|other| other.path.id == id)?;
        Some(self.paths.remove(place))
    }

    /// Exchanges a path with the one in use.
    pub(crate) fn exchange(&mut self, id: PathId, current: &mut Path) {
        if let Some(other) = self.get_mut(id) {
            mem::swap(current, &mut other.path);
        }
    }

    /// Adds a path; [make room](Self::surplus) first.
    pub(crate) fn push(&mut self, other: OtherPath) {
        debug_assert!(!self.is_full());
        self.paths.push(other);
    }

    /// The path that has to go before there is a place for another: the oldest that isn't known to lead to the peer,
    /// else the oldest.
    pub(crate) fn surplus(&self) -> Option<PathId> {
        if !self.is_full() {
            return None;
        }
        let mut doubtful = self.paths.iter().filter(|other| !other.path.is_validated);
        let oldest = doubtful.next().or_else(|| self.paths.first())?;
        Some(oldest.path.id)
    }

    /// The path used last that is known to have led to the peer.
    pub(crate) fn last_validated(&self) -> Option<PathId> {
        let mut latest = self.paths.iter().rev();
        latest
            .find(|other| other.path.is_validated)
            .map(|other| other.path.id)
    }

    /// A path to another address of the peer than this one, unless it was left.
    pub(crate) fn aimed_elsewhere(&self, remote: SocketAddr) -> Option<PathId> {
        let is_aimed = |other: &&OtherPath| !other.is_left && other.path.remote != remote;
        let found = self.paths.iter().find(is_aimed)?;
        Some(found.path.id)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, OtherPath> {
        self.paths.iter()
    }

    /// All of them, for what concerns each.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OtherPath> {
        self.paths.iter_mut()
    }

    /// The next time at which something is to be done about one of them.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.paths.is_empty() {
            return None;
        }
        let times = |other: &OtherPath| [other.path.probing.deadline(), other.keep_until];
        self.paths.iter().flat_map(times).flatten().min()
    }

    /// Where the packet that is being processed came from, if not on the path in use.
    pub(crate) fn arrival_mut(&mut self) -> Option<&mut OtherPath> {
        self.get_mut(self.arrival?)
    }

    /// A packet from a path is processed from now on; `None` when it is done with.
    pub(crate) const fn set_arrival(&mut self, id: Option<PathId>) {
        self.arrival = id;
    }
}

#[cfg(test)]
mod tests {
    use super::{OtherPath, OtherPaths, PATHS, Path, PathId};
    use crate::path::PathSettings;

    fn other(paths: &mut OtherPaths, port: u16) -> OtherPath {
        let id = paths.next_id(PathId::default());
        let remote = ([192, 0, 2, 1], port).into();
        OtherPath::new(Path::new(id, remote, None, &PathSettings::default()), None)
    }

    /// At the cap, what isn't validated goes first, the oldest before others.
    #[test]
    fn the_cap_holds_and_validated_paths_stay() {
        let mut paths = OtherPaths::default();
        let cap = u16::try_from(PATHS).unwrap() - 1;
        for port in 0..cap {
            assert_eq!(paths.surplus(), None);
            let mut new = other(&mut paths, port);
            new.path.is_validated = port == 0;
            paths.push(new);
        }
        assert!(paths.is_full());
        for port in cap..100 {
            let oldest = paths.surplus().unwrap();
            assert_eq!(
                paths.get(oldest).unwrap().path.remote.port(),
                port - cap + 1
            );
            paths.take(oldest).unwrap();
            let new = other(&mut paths, port);
            paths.push(new);
        }
        assert_eq!(paths.last_validated(), Some(PathId(1)));
        assert_eq!(paths.iter().count(), PATHS - 1);
        for other in paths.iter_mut() {
            other.path.is_validated = true;
        }
        assert_eq!(paths.surplus(), Some(PathId(1)));
    }

    #[test]
    fn ids_are_not_used_twice_at_a_time() {
        let mut paths = OtherPaths::default();
        let current = paths.next_id(PathId::default());
        let kept = other(&mut paths, 1);
        let id = kept.path.id;
        paths.push(kept);
        for _ in 0..200_000 {
            let next = paths.next_id(current);
            assert!(next != current && next != id);
        }
    }
}
