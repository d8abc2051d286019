//! Where a server keeps the sessions that its clients may resume, and what it remembers beside each: the limits and
//! settings that 0-RTT data would rely on ([RFC 9000, section 7.4.1](https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1)).
//!
//! A session is taken out when it is used, so that nobody can use it again: that is what keeps 0-RTT data from being
//! replayed ([RFC 8446, section 8.1](https://www.rfc-editor.org/rfc/rfc8446#section-8.1)). rustls decides on early data
//! while it reads the ClientHello; so the session that the client names is taken out before, and looked at.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quic_common::Reader;
use rustls::server::{ProducesTickets, StoresServerSessions};

use crate::limits::{REMEMBERED_SETTINGS, SERVER_SESSIONS};
use crate::wire::{Side, TransportParameters, Version};

/// The first byte of a stored session.
const FORMAT: u8 = 1;

/// Bytes of a stored session beside its three parts.
const FIXED: usize = 1 + 4 + 2 + 2;

/// Keeps sessions until they are used once. Shared by all threads of a server, or by several servers.
pub trait ServerSessions: std::fmt::Debug + Send + Sync {
    /// Stores a session under `identity`, which is never the same twice; false when it can't be stored, and the client
    /// gets no ticket for it. Sessions are secret, and may be forgotten after a day, or at any time.
    fn put(&self, identity: Vec<u8>, session: Vec<u8>) -> bool;

    /// Takes a session out. Of several calls for the same identity, at any time and anywhere, only one gets it: else
    /// whoever recorded a client's 0-RTT data could send it again.
    fn take(&self, identity: &[u8]) -> Option<Vec<u8>>;
}

/// Keeps sessions in memory; the oldest goes when there are too many.
pub struct SessionCache {
    capacity: usize,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    by_identity: BTreeMap<Vec<u8>, Vec<u8>>,
    /// In the order in which they came, those that are gone included.
    order: VecDeque<Vec<u8>>,
}

impl Sessions {
    fn put(&mut self, identity: Vec<u8>, session: Vec<u8>, capacity: usize) -> bool {
        let Self { by_identity, order } = self;
        if order.len() > 2 * by_identity.len() + 64 {
            order.retain(|identity| by_identity.contains_key(identity));
        }
        while by_identity.len() >= capacity {
            let Some(oldest) = order.pop_front() else {
                return false;
            };
            by_identity.remove(&oldest);
        }
        order.push_back(identity.clone());
        by_identity.insert(identity, session);
        true
    }
}

impl SessionCache {
    /// Room for `capacity` sessions of about half a kilobyte each; clients get two at a time.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            sessions: Mutex::default(),
        }
    }

    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().by_identity.len()
    }

    /// Whether there is no session.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for SessionCache {
    fn default() -> Self {
        Self::new(SERVER_SESSIONS)
    }
}

impl std::fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionCache")
            .field("capacity", &self.capacity)
            .field("sessions", &self.len())
            .finish_non_exhaustive()
    }
}

impl ServerSessions for SessionCache {
    fn put(&self, identity: Vec<u8>, session: Vec<u8>) -> bool {
        self.lock().put(identity, session, self.capacity)
    }

    fn take(&self, identity: &[u8]) -> Option<Vec<u8>> {
        self.lock().by_identity.remove(identity)
    }
}

/// What a server says to one client, and what it asks before it accepts early data.
pub(crate) struct Terms<'a> {
    /// The version of the client's first flight.
    pub(crate) first: Version,
    /// The version of the connection.
    pub(crate) version: Version,
    /// Our transport parameters, encoded.
    pub(crate) parameters: &'a [u8],
    /// The application's settings.
    pub(crate) settings: &'a [u8],
    /// Whether early data is wanted, as far as the transport is concerned.
    pub(crate) early_data: bool,
    /// The session that the client offers early data with.
    pub(crate) psk_identity: Option<&'a [u8]>,
    /// Whether the application can keep to the settings of an earlier connection.
    pub(crate) accepts: &'a dyn Fn(&[u8]) -> bool,
}

/// A session as it is stored: what is remembered, then rustls' bytes.
#[derive(Debug, PartialEq, Eq)]
struct Stored<'a> {
    version: u32,
    parameters: &'a [u8],
    settings: &'a [u8],
    session: &'a [u8],
}

impl<'a> Stored<'a> {
    fn encode(&self) -> Option<Vec<u8>> {
        let parts = self.parameters.len() + self.settings.len() + self.session.len();
        let mut out = Vec::with_capacity(FIXED + parts);
        out.push(FORMAT);
        out.extend(self.version.to_be_bytes());
        for part in [self.parameters, self.settings] {
            out.extend(u16::try_from(part.len()).ok()?.to_be_bytes());
            out.extend_from_slice(part);
        }
        out.extend_from_slice(self.session);
        Some(out)
    }

    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u8().ok()? != FORMAT {
            return None;
        }
        let version = reader.u32().ok()?;
        let mut part = || {
            let length = usize::from(reader.u16().ok()?);
            reader.bytes(length).ok()
        };
        let (parameters, settings) = (part()?, part()?);
        Some(Self {
            version,
            parameters,
            settings,
            session: reader.rest(),
        })
    }

    /// Whether a client that keeps to what it was told then keeps to `terms` too.
    fn allows_early_data(&self, terms: &Terms<'_>) -> bool {
        let parse = |bytes| TransportParameters::parse(bytes, Side::Server).ok();
        let (Some(then), Some(now)) = (parse(self.parameters), parse(terms.parameters)) else {
            return false;
        };
        now.shrunk_since(&then).is_none() && (terms.accepts)(self.settings)
    }
}

/// One connection's way to the sessions, as rustls wants it.
pub(super) struct Desk {
    sessions: Arc<dyn ServerSessions>,
    /// The version that sessions are taken for, and that they are kept for.
    first: u32,
    version: u32,
    parameters: Box<[u8]>,
    settings: Box<[u8]>,
    /// The session that was taken out ahead, with its identity.
    offered: Mutex<Option<(Vec<u8>, Vec<u8>)>>,
}

impl Desk {
    pub(super) fn new(sessions: Arc<dyn ServerSessions>, terms: &Terms<'_>) -> Self {
        Self {
            sessions,
            first: terms.first.0,
            version: terms.version.0,
            parameters: terms.parameters.into(),
            settings: terms.settings.into(),
            offered: Mutex::default(),
        }
    }

    /// Takes out the session that the client offers early data with; returns whether that can be accepted.
    pub(super) fn allows_early_data(&self, terms: &Terms<'_>) -> bool {
        // 0-RTT packets have the version of the first flight (RFC 9369, 4.1): there are none of two versions here.
        let is_wanted = terms.early_data && terms.first == terms.version;
        let identity = terms.psk_identity.filter(|_| is_wanted);
        let Some(identity) = identity else {
            return false;
        };
        let Some(bytes) = self.sessions.take(identity) else {
            return false;
        };
        let allows = Stored::decode(&bytes)
            .filter(|stored| stored.version == self.first)
            .is_some_and(|stored| stored.allows_early_data(terms));
        *self.offered() = Some((identity.to_vec(), bytes));
        allows
    }

    fn offered(&self) -> MutexGuard<'_, Option<(Vec<u8>, Vec<u8>)>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoresServerSessions for Desk {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let stored = Stored {
            version: self.version,
            parameters: &self.parameters,
            settings: &self.settings,
            session: &value,
        };
        self.settings.len() <= REMEMBERED_SETTINGS
            && stored
                .encode()
                .is_some_and(|bytes| self.sessions.put(key, bytes))
    }

    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let ahead = self.offered().take_if(|(identity, _)| identity == key);
        let bytes = match ahead {
            Some((_, bytes)) => bytes,
            None => self.sessions.take(key)?,
        };
        let stored = Stored::decode(&bytes)?;
        // RFC 9369, 5: a session of one version is not for another.
        (stored.version == self.first).then(|| stored.session.to_vec())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

/// Tickets that hold their session themselves, each for one QUIC version.
#[derive(Debug)]
pub(super) struct VersionedTickets {
    pub(super) tickets: Arc<dyn ProducesTickets>,
    /// The version that tickets are taken for.
    pub(super) first: Version,
    /// The version that they are given for.
    pub(super) version: Version,
}

impl ProducesTickets for VersionedTickets {
    fn enabled(&self) -> bool {
        self.tickets.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.tickets.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut all = self.version.0.to_be_bytes().to_vec();
        all.extend_from_slice(plain);
        self.tickets.encrypt(&all)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let all = self.tickets.decrypt(cipher)?;
        let plain = all.strip_prefix(&self.first.0.to_be_bytes())?;
        Some(plain.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::{ServerSessions as _, SessionCache, Stored};

    #[test]
    fn a_session_is_taken_once() {
        let cache = SessionCache::new(4);
        assert!(cache.put(vec![1], vec![2]));
        assert_eq!(cache.take(&[1]), Some(vec![2]));
        assert_eq!(cache.take(&[1]), None);
        assert!(cache.is_empty());
    }

    #[test]
    fn at_the_capacity_the_oldest_goes() {
        let cache = SessionCache::new(3);
        for byte in 0..3 {
            assert!(cache.put(vec![byte], vec![byte]));
        }
        assert_eq!(cache.len(), 3);
        assert!(cache.put(vec![3], vec![3]));
        assert_eq!(cache.len(), 3);
        assert_eq!(cache.take(&[0]), None);
        assert_eq!(cache.take(&[1]), Some(vec![1]));
        assert!(!SessionCache::new(0).put(vec![1], vec![1]));
    }

    #[test]
    fn sessions_that_were_taken_leave_nothing() {
        let cache = SessionCache::new(100);
        for index in 0..10_000_u32 {
            let identity = index.to_be_bytes().to_vec();
            assert!(cache.put(identity.clone(), vec![1]));
            assert!(cache.take(&identity).is_some());
        }
        assert!(cache.lock().order.len() <= 65);
    }

    #[test]
    fn what_is_remembered_comes_back() {
        let stored = Stored {
            version: 1,
            parameters: b"parameters",
            settings: b"settings",
            session: b"session",
        };
        let bytes = stored.encode().unwrap();
        assert_eq!(Stored::decode(&bytes), Some(stored));
        for length in 0..bytes.len() - b"session".len() {
            assert_eq!(Stored::decode(&bytes[..length]), None);
        }
    }
}
