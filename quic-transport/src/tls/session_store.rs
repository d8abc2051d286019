//! What a client remembers of the servers that it has been to, so that the next connection begins sooner: TLS sessions,
//! address validation tokens, the round-trip time
//! ([RFC 9001, section 4.5](https://www.rfc-editor.org/rfc/rfc9001#section-4.5)).
//!
//! rustls asks for a session by the server's name alone. A connection puts itself between: it knows the port, the
//! application protocols and the QUIC version too, and a session is good for these only.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quic_common::{Reader, Truncated, Writer};
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use crate::limits::{REMEMBERED_SERVERS, REMEMBERED_SETTINGS, TICKETS, TOKEN, TOKENS};
use crate::wire::Version;

/// The first byte of what [`SessionStore::export`] gives.
const FORMAT: u8 = 1;

/// Remembers servers, up to 256 of them; clones share what they remember.
///
/// Sessions and tokens are used once, so that nobody can link connections by them. What is remembered of a server is
/// good for the same name, port, application protocols and QUIC version, and a session for the same TLS settings.
#[derive(Clone, Default)]
pub struct SessionStore(Arc<Mutex<VecDeque<Server>>>);

/// Where a connection leads, as far as it matters to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) name: String,
    pub(super) port: u16,
    /// The application protocols offered, each behind its length.
    pub(super) alpn: Vec<u8>,
    pub(super) version: u32,
}

impl Destination {
    pub(super) fn new(name: &str, port: u16, alpn: &[Vec<u8>], version: Version) -> Self {
        let mut names = Vec::new();
        for name in alpn {
            names.extend(u8::try_from(name.len()));
            names.extend_from_slice(name);
        }
        Self {
            name: name.to_ascii_lowercase(),
            port,
            alpn: names,
            version: version.0,
        }
    }
}

/// What is remembered of one server; the one seen last comes last.
struct Server {
    destination: Destination,
    tickets: VecDeque<Ticket>,
    tokens: VecDeque<Box<[u8]>>,
    rtt: Option<Duration>,
    group: Option<NamedGroup>,
}

/// A session to be resumed.
struct Ticket {
    session: Tls13ClientSessionValue,
    /// The TLS settings that it belongs to.
    settings: u64,
    /// What the connection that brought it has learnt, and may still learn.
    learnt: Arc<Mutex<Learnt>>,
}

/// What a connection learns of its server that rustls has no place for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Learnt {
    /// The application protocol chosen.
    pub(super) alpn: Vec<u8>,
    /// What the application wants to know next time: the server's settings.
    pub(super) application: Vec<u8>,
}

impl SessionStore {
    /// Remembers nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many servers are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Whether no server is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }

    /// What may outlive the process, as bytes: tokens and round-trip times. TLS sessions may not, because rustls gives
    /// no access to their secrets.
    ///
    /// Tokens are used once: who exports them should not use this store any more.
    #[must_use]
    pub fn export(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        for server in &*lock(&self.0) {
            put(&mut out, server.destination.name.as_bytes());
            put_integer(&mut out, server.destination.port.into());
            put(&mut out, &server.destination.alpn);
            put_integer(&mut out, server.destination.version.into());
            let rtt = server.rtt.map_or(0, |rtt| rtt.as_micros());
            put_integer(&mut out, u64::try_from(rtt).unwrap_or(0));
            put_integer(&mut out, u64::try_from(server.tokens.len()).unwrap_or(0));
            for token in &server.tokens {
                put(&mut out, token);
            }
        }
        out
    }

    /// Adds what [`Self::export`] gave; false, and nothing is added, when the bytes are not of that form.
    #[must_use]
    pub fn import(&self, bytes: &[u8]) -> bool {
        let Some((&FORMAT, rest)) = bytes.split_first() else {
            return false;
        };
        let mut reader = Reader::new(rest);
        let mut servers = Vec::new();
        while !reader.is_empty() {
            match read_server(&mut reader) {
                Some(server) => servers.push(server),
                None => return false,
            }
        }
        for Server {
            destination,
            tokens,
            rtt,
            ..
        } in servers
        {
            self.update(&destination, |server| {
                server.rtt = rtt.or(server.rtt);
                server.tokens.extend(tokens);
                keep_last(&mut server.tokens, TOKENS);
            });
        }
        true
    }

    /// Changes what is remembered of a server; a new one takes the place of the one seen longest ago.
    fn update(&self, destination: &Destination, change: impl FnOnce(&mut Server)) {
        update(&mut lock(&self.0), destination, change);
    }

    /// Looks at what is remembered of a server, which may take something out.
    fn look<T>(
        &self,
        destination: &Destination,
        look: impl FnOnce(&mut Server) -> Option<T>,
    ) -> Option<T> {
        lock(&self.0)
            .iter_mut()
            .rfind(|server| server.destination == *destination)
            .and_then(look)
    }
}

fn update(
    servers: &mut VecDeque<Server>,
    destination: &Destination,
    change: impl FnOnce(&mut Server),
) {
    let place = servers
        .iter()
        .rposition(|server| server.destination == *destination);
    let mut server = place
        .and_then(|place| servers.remove(place))
        .unwrap_or_else(|| Server::new(destination.clone()));
    change(&mut server);
    servers.push_back(server);
    keep_last(servers, REMEMBERED_SERVERS);
}

impl std::fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionStore")
            .field("servers", &self.len())
            .finish_non_exhaustive()
    }
}

impl Server {
    const fn new(destination: Destination) -> Self {
        Self {
            destination,
            tickets: VecDeque::new(),
            tokens: VecDeque::new(),
            rtt: None,
            group: None,
        }
    }
}

/// One connection's way to the store.
pub(crate) struct Memory {
    store: SessionStore,
    /// The version in it may change while the handshake begins.
    destination: Mutex<Destination>,
    settings: u64,
    /// What this connection learns, for the next one.
    learnt: Arc<Mutex<Learnt>>,
    /// What the connection knew whose session this one resumes.
    recalled: Mutex<Option<Learnt>>,
}

impl Memory {
    pub(super) fn new(store: SessionStore, destination: Destination, settings: u64) -> Self {
        Self {
            store,
            destination: Mutex::new(destination),
            settings,
            learnt: Arc::default(),
            recalled: Mutex::default(),
        }
    }

    /// The server has chosen another version: what is learnt from here on is for that one (RFC 9369, 5).
    pub(super) fn set_version(&self, version: Version) {
        lock(&self.destination).version = version.0;
    }

    /// What an earlier connection learnt, if its session was taken from the store; to be asked for once.
    pub(super) fn take_recalled(&self) -> Option<Learnt> {
        lock(&self.recalled).take()
    }

    fn update(&self, change: impl FnOnce(&mut Server)) {
        self.store.update(&lock(&self.destination), change);
    }

    fn look<T>(&self, look: impl FnOnce(&mut Server) -> Option<T>) -> Option<T> {
        self.store.look(&lock(&self.destination), look)
    }

    /// The application protocol of this connection is known.
    pub(super) fn learn_alpn(&self, alpn: &[u8]) {
        lock(&self.learnt).alpn = alpn.to_vec();
    }

    /// What the application wants to know next time; false when that is too much.
    pub(crate) fn learn(&self, application: &[u8]) -> bool {
        let fits = application.len() <= REMEMBERED_SETTINGS;
        if fits {
            lock(&self.learnt).application = application.to_vec();
        }
        fits
    }

    /// Whether there is a session to be resumed.
    pub(super) fn has_session(&self) -> bool {
        let is_ours = |ticket: &Ticket| ticket.settings == self.settings;
        let found = self.look(|server| Some(server.tickets.iter().any(is_ours)));
        found.unwrap_or(false)
    }

    /// Takes the newest token: it is the one that is good for the longest time.
    pub(crate) fn take_token(&self) -> Option<Box<[u8]>> {
        self.look(|server| server.tokens.pop_back())
    }

    /// Keeps a token for the next connection, if it isn't too long; the oldest one goes when there are too many.
    pub(crate) fn keep_token(&self, token: &[u8]) {
        if token.len() > TOKEN {
            return;
        }
        self.update(|server| {
            server.tokens.push_back(token.into());
            keep_last(&mut server.tokens, TOKENS);
        });
    }

    /// The round-trip time of an earlier connection.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.look(|server| server.rtt)
    }

    /// Keeps the round-trip time of this connection.
    pub(crate) fn keep_rtt(&self, rtt: Duration) {
        self.update(|server| server.rtt = Some(rtt));
    }
}

impl ClientSessionStore for Memory {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.update(|server| server.group = Some(group));
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.look(|server| server.group)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, session: Tls13ClientSessionValue) {
        self.update(|server| {
            server.tickets.push_back(Ticket {
                session,
                settings: self.settings,
                learnt: Arc::clone(&self.learnt),
            });
            keep_last(&mut server.tickets, TICKETS);
        });
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let ticket = self.look(|server| {
            let mut tickets = server.tickets.iter();
            let newest = tickets.rposition(|ticket| ticket.settings == self.settings)?;
            server.tickets.remove(newest)
        })?;
        *lock(&self.recalled) = Some(lock(&ticket.learnt).clone());
        Some(ticket.session)
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("destination", &*lock(&self.destination))
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep_last<T>(items: &mut VecDeque<T>, most: usize) {
    let excess = items.len().saturating_sub(most);
    items.drain(..excess);
}

fn read_server(reader: &mut Reader<'_>) -> Option<Server> {
    let (server, count) = read_head(reader).ok()??;
    let mut server = server;
    for _ in 0..count {
        let token = reader.length_prefixed().ok()?;
        if token.len() <= TOKEN {
            server.tokens.push_back(token.into());
            keep_last(&mut server.tokens, TOKENS);
        }
    }
    Some(server)
}

/// The part before the tokens, and how many those are.
fn read_head(reader: &mut Reader<'_>) -> Result<Option<(Server, u64)>, Truncated> {
    let name = reader.length_prefixed()?;
    let port = reader.varint()?;
    let alpn = reader.length_prefixed()?.to_vec();
    let version = reader.varint()?;
    let rtt = reader.varint()?;
    let count = reader.varint()?;
    let name = std::str::from_utf8(name).map(str::to_owned);
    let (Ok(name), Ok(port), Ok(version)) = (name, u16::try_from(port), u32::try_from(version))
    else {
        return Ok(None);
    };
    let destination = Destination {
        name,
        port,
        alpn,
        version,
    };
    let server = Server {
        rtt: (rtt > 0).then(|| Duration::from_micros(rtt)),
        ..Server::new(destination)
    };
    Ok(Some((server, count)))
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_integer(out, u64::try_from(bytes.len()).unwrap_or(0));
    out.extend_from_slice(bytes);
}

fn put_integer(out: &mut Vec<u8>, value: u64) {
    let mut space = [0; 8];
    let mut writer = Writer::new(&mut space);
    let written = writer.varint(value);
    debug_assert!(written, "the value is over 2^62 - 1");
    out.extend_from_slice(writer.written());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quic_common::Random;

    use super::{Destination, Memory, REMEMBERED_SERVERS, SessionStore, TOKEN, TOKENS};
    use crate::limits::REMEMBERED_SETTINGS;
    use crate::wire::Version;

    fn destination(port: u16) -> Destination {
        Destination::new("Example.com", port, &[b"h3".to_vec()], Version::V1)
    }

    fn memory(store: &SessionStore, port: u16) -> Memory {
        Memory::new(store.clone(), destination(port), 1)
    }

    #[test]
    fn a_token_is_taken_once_the_newest_first() {
        let store = SessionStore::new();
        for byte in 0..10 {
            memory(&store, 443).keep_token(&[byte]);
        }
        let taken: Vec<u8> = std::iter::from_fn(|| memory(&store, 443).take_token())
            .map(|token| token[0])
            .collect();
        assert_eq!(taken, [9, 8, 7, 6, 5, 4, 3, 2]);
        assert_eq!(taken.len(), TOKENS);
    }

    #[test]
    fn a_token_as_long_as_they_may_be_is_kept_and_a_longer_one_is_not() {
        let store = SessionStore::new();
        memory(&store, 443).keep_token(&[1; TOKEN]);
        memory(&store, 443).keep_token(&[2; TOKEN + 1]);
        assert_eq!(memory(&store, 443).take_token().unwrap()[0], 1);
        assert_eq!(memory(&store, 443).take_token(), None);
    }

    /// RFC 9369, 5: what a version 1 connection brought is not for version 2.
    #[test]
    fn what_is_remembered_is_for_one_name_port_protocol_and_version() {
        let store = SessionStore::new();
        memory(&store, 443).keep_token(b"token");
        let h3 = [b"h3".to_vec()];
        for other in [
            Destination::new("example.org", 443, &h3, Version::V1),
            Destination::new("example.com", 444, &h3, Version::V1),
            Destination::new("example.com", 443, &[b"hq".to_vec()], Version::V1),
            Destination::new("example.com", 443, &h3, Version::V2),
        ] {
            assert_eq!(Memory::new(store.clone(), other, 1).take_token(), None);
        }
        let same = Destination::new("EXAMPLE.com", 443, &h3, Version::V1);
        assert!(Memory::new(store, same, 1).take_token().is_some());
    }

    /// RFC 9369, 5: what a server says in the version that it has chosen is for that version.
    #[test]
    fn what_is_learnt_belongs_to_the_version_chosen() {
        let store = SessionStore::new();
        let first = memory(&store, 443);
        first.set_version(Version::V2);
        first.keep_token(b"token");
        assert_eq!(memory(&store, 443).take_token(), None);
        let again = memory(&store, 443);
        again.set_version(Version::V2);
        assert!(again.take_token().is_some());
    }

    #[test]
    fn the_server_seen_longest_ago_makes_room() {
        let store = SessionStore::new();
        let ports = u16::try_from(REMEMBERED_SERVERS).unwrap();
        for port in 0..ports {
            memory(&store, port).keep_rtt(Duration::from_millis(5));
        }
        memory(&store, 0).keep_token(b"seen again");
        assert_eq!(store.len(), REMEMBERED_SERVERS);
        memory(&store, ports).keep_rtt(Duration::from_millis(5));
        assert_eq!(store.len(), REMEMBERED_SERVERS);
        assert!(memory(&store, 0).rtt().is_some());
        assert!(memory(&store, 1).rtt().is_none());
        assert!(memory(&store, 2).rtt().is_some());
    }

    #[test]
    fn settings_as_long_as_they_may_be_are_learnt_and_longer_ones_are_not() {
        let memory = memory(&SessionStore::new(), 443);
        assert!(memory.learn(&[1; REMEMBERED_SETTINGS]));
        assert!(!memory.learn(&[1; REMEMBERED_SETTINGS + 1]));
    }

    #[test]
    fn what_was_exported_comes_back() {
        let store = SessionStore::new();
        memory(&store, 443).keep_token(b"one");
        memory(&store, 443).keep_token(b"two");
        memory(&store, 444).keep_rtt(Duration::from_millis(20));
        let bytes = store.export();
        let other = SessionStore::new();
        assert!(other.import(&bytes));
        assert_eq!(other.export(), bytes);
        assert_eq!(
            memory(&other, 443).take_token().as_deref(),
            Some(&b"two"[..])
        );
        assert_eq!(memory(&other, 444).rtt(), Some(Duration::from_millis(20)));
    }

    #[test]
    fn other_bytes_are_refused_whole() {
        let store = SessionStore::new();
        memory(&store, 443).keep_token(b"token");
        let bytes = store.export();
        for length in 0..bytes.len() {
            let other = SessionStore::new();
            let is_empty = length == 1;
            assert_eq!(other.import(&bytes[..length]), is_empty, "{length}");
            assert!(other.is_empty());
        }
        let mut random = Random::from_seed([4; 32]);
        for _ in 0..5000 {
            let mut noise = random.array::<40>();
            noise[0] = 1;
            let _outcome = SessionStore::new().import(&noise);
        }
    }
}
