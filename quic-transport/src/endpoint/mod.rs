//! The server's side of a socket: every datagram finds its connection, and new clients are let in or not.
//!
//! An endpoint owns the connections of one thread, each with its application. A wake-up hands it all datagrams that
//! have arrived; what they touch is marked, and each marked connection is looked at once, whatever the order in which
//! the datagrams came.

mod router;
mod deadlines;
mod departed;
mod stateless;
mod admission;
mod incoming;
mod knocking;
mod foreign;
mod early;
mod admit;
mod receive;
mod send;

use std::{collections::VecDeque, hash::Hash, net::IpAddr, time::Instant};

use quic_common::{KeyedHasher, KeyedMap, Random, Share};

pub use self::{admission::Admission, foreign::Foreign, incoming::Incoming, router::Handle};
use self::{
    deadlines::Deadlines,
    departed::{Departed, Traces},
    early::EarlyArrivals,
    foreign::Strangers,
    knocking::Knocking,
    router::Router,
    stateless::Replies,
};
use crate::{
    cid::CidGenerator,
    connection::Connection,
    limits::{CONNECTIONS_OF_ADDRESS, ENDPOINT_MEMORY, INCOMING_BYTES, MEMORY_STEPS},
    tls::{ResetKey, ServerSecrets, TokenKey, WallClock},
    used_tokens::UsedTokens,
    wire::{ConnectionId, ResetToken, Versions, wide},
};

/// What runs above a connection of an [`Endpoint`].
pub trait Application {
    /// Something has happened on the connection: take its events, read, write.
    ///
    /// Called at most once for each connection and wake-up, before the connection is asked what to send.
    fn process(&mut self, connection: &mut Connection, now: Instant);

    /// The connection has been silent for a while, and has given back what it needs only to be fast: a good time to do the
    /// same.
    fn rest(&mut self) {}

    /// Whether connection and application are to be kept once the peer has closed, and the application has been told, so
    /// that [`Endpoint::connection_mut`] finds them for three more PTOs. Otherwise no more is kept than it takes to tell
    /// late packets from those of strangers.
    fn outlives_its_peer(&self) -> bool {
        false
    }

    /// What is kept beside the client's session, up to 1 KiB: settings that early data of its next connection will rely
    /// on. Asked for when the connection is accepted.
    fn settings(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Whether early data can be accepted from a client that relies on these settings, from an earlier connection.
    fn accepts_early_data(&self, settings: &[u8]) -> bool {
        settings == self.settings()
    }
}

/// When clients have to show that they receive what is sent to their address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Only when many handshakes are under way.
    #[default]
    UnderLoad,
    /// Each of them.
    Always,
    /// None, whatever the load.
    Never,
}

/// Settings of an [`Endpoint`].
#[derive(Debug)]
pub struct EndpointConfig {
    /// When to send a Retry.
    pub retry: RetryPolicy,
    /// The QUIC versions that are spoken, most wanted first. A client that begins with one of them and can do others
    /// gets the first of these that it can do (RFC 9368, 2.3), but for one that resumes a session, which belongs to a
    /// version. A client of another version is told of them.
    pub versions: Versions,
    /// How the connection IDs of all connections are made.
    pub cids: CidGenerator,
    /// Which of the threads that share the address this endpoint is for; with several, IDs need 8 bytes or more. See
    /// [`Endpoint::take_foreign`].
    pub share: Share,
    /// The key of the stateless reset tokens. An endpoint that is started anew with it can reset the connections of
    /// the one before, and so can others that share it.
    pub reset_key: ResetKey,
    /// The key of the address validation tokens. Endpoints that share it accept each other's.
    pub token_key: TokenKey,
    /// Bytes that all connections may make the endpoint hold: what is held, and a quarter at least of what their
    /// windows let the peers send. When three quarters of it are taken, windows stop growing; when all of it is, new
    /// clients are refused. What other endpoints with the same [`admission`](Self::admission) hold counts as well.
    pub memory: u64,
    /// Connections that one address (one /64 network of IPv6) may have, with those of other endpoints; more of its clients
    /// are refused.
    pub connections_of_address: usize,
    /// What is counted of clients, and compared with the limits. To be shared by the endpoints of a server.
    pub admission: Admission,
    /// The tokens of NEW_TOKEN that have been used: each is good once. To be shared by endpoints that share the key.
    pub used_tokens: UsedTokens,
    /// Whether clients are given a token that spares them a Retry next time (RFC 9000, 8.1.3).
    pub new_tokens: bool,
    /// Whether a client's first packet may have a clear fixed bit: what `Config::grease` says of the others (RFC 9287).
    pub grease: bool,
    /// The time that tokens are dated with.
    pub clock: WallClock,
}

impl EndpointConfig {
    /// The default policy, 8-byte connection IDs, and keys drawn from `random`.
    #[must_use]
    pub fn new(random: &mut Random) -> Self {
        Self {
            retry: RetryPolicy::default(),
            versions: Versions::DEFAULT,
            cids: CidGenerator::Random { length: 8 },
            share: Share::WHOLE,
            reset_key: ResetKey::new(random.array()),
            token_key: TokenKey::new(random.array()),
            memory: ENDPOINT_MEMORY,
            connections_of_address: CONNECTIONS_OF_ADDRESS,
            admission: Admission::default(),
            used_tokens: UsedTokens::default(),
            new_tokens: true,
            grease: true,
            clock: WallClock::system(),
        }
    }
}

/// Counters of an [`Endpoint`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections accepted.
    pub accepted: u64,
    /// Clients refused.
    pub refused: u64,
    /// Retry packets sent.
    pub retries: u64,
    /// Datagrams that no connection wanted and nothing could be made of.
    pub dropped: u64,
}

#[derive(Debug)]
struct Entry<A> {
    connection: Connection,
    application: A,
    /// The destination of the client's first Initial, routed here to the end: a late copy must not look like a new client.
    original: ConnectionId,
    scheduled: Option<Instant>,
    is_queued: bool,
    /// The address that the connection counts for: among handshakes at first, and then among connections.
    address: IpAddr,
    is_half_open: bool,
    /// The application knows that the connection is at rest.
    is_at_rest: bool,
    /// What it counts for in [`Endpoint::memory`].
    memory: u64,
    /// What the router knows it by, should the client reset it.
    reset_token: Option<ResetToken>,
}

impl<A> Entry<A> {
    /// What it is known by.
    fn into_traces(self) -> Traces {
        Traces {
            cids: self
                .connection
                .local_cids()
                .chain([self.original])
                .collect(),
            reset_token: self.reset_token,
            address: self.address,
            is_half_open: self.is_half_open,
        }
    }
}

/// The connections that share one socket.
///
/// Sans-I/O: [`Endpoint::process_multiple_input`] takes datagrams, [`Endpoint::process_output`] gives batches, and
/// between them [`Endpoint::next_incoming`] gives clients that wait to be accepted.
#[derive(Debug)]
pub struct Endpoint<A> {
    config: EndpointConfig,
    router: Router<Box<Entry<A>>>,
    knocking: Knocking,
    early: EarlyArrivals,
    deadlines: Deadlines,
    departed: Departed,
    /// Whose batch was the last one.
    last: Option<Handle>,
    /// Connections to look at before the next wait.
    queue: VecDeque<Handle>,
    replies: Replies,
    strangers: Strangers,
    /// What all connections hold and may be made to hold, in bytes.
    memory: u64,
    /// What the other endpoints know of that.
    told_memory: u64,
    /// How much of it they needn't know.
    memory_step: u64,
    random: Random,
    stats: EndpointStats,
}

impl<A: Application> Endpoint<A> {
    /// An endpoint without connections.
    #[must_use]
    pub fn new(config: EndpointConfig, mut random: Random) -> Self {
        let router = Router::new(&mut random);
        let hasher = KeyedHasher::new(&mut random);
        config.admission.join(hasher.clone());
        let memory_step = config.memory / MEMORY_STEPS / u64::from(config.share.of());
        Self {
            config,
            router,
            knocking: Knocking::new(hasher),
            early: EarlyArrivals::default(),
            deadlines: Deadlines::default(),
            departed: Departed::default(),
            last: None,
            queue: VecDeque::new(),
            replies: Replies::default(),
            strangers: Strangers::default(),
            memory: 0,
            told_memory: 0,
            memory_step,
            random,
            stats: EndpointStats::default(),
        }
    }

    /// Goes over to other secrets, for tokens and for connection IDs that are given out from now on.
    pub fn set_secrets(&mut self, secrets: &ServerSecrets) {
        self.config.token_key = secrets.token_key();
        self.config.reset_key = secrets.reset_key();
    }

    /// How many connections there are, closing ones included, and those that their peers have closed as long as packets
    /// may be late for them: there is no connection any more then, but datagrams for it are still told from others.
    #[must_use]
    pub fn len(&self) -> usize {
        self.router.len() + self.departed.len()
    }

    /// Whether there is no connection, and nothing left of any: see [`Endpoint::len`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the endpoint has done so far.
    #[must_use]
    pub const fn stats(&self) -> EndpointStats {
        self.stats
    }

    /// A connection and its application, to be used outside of [`Application::process`]; it is looked at again in the
    /// next [`Endpoint::process_output`].
    pub fn connection_mut(&mut self, handle: Handle) -> Option<(&mut Connection, &mut A)> {
        self.enqueue(handle);
        let entry = self.router.get_mut(handle)?;
        Some((&mut entry.connection, &mut entry.application))
    }

    /// All connections that are kept; only those looked at through [`Endpoint::connection_mut`] are
    /// processed again.
    pub fn handles(&mut self) -> impl Iterator<Item = Handle> {
        self.router.iter_mut().map(|(handle, _)| handle)
    }

    /// Bytes that connections hold, or that count for what their windows allow, and those of clients that knock: what
    /// [`EndpointConfig::memory`] is compared with.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let knocking = wide(self.knocking.len()).saturating_mul(wide(INCOMING_BYTES));
        self.memory.saturating_add(knocking)
    }

    /// What other endpoints hold, as far as they have told.
    fn memory_of_others(&self) -> u64 {
        let all = self.config.admission.memory();
        all.saturating_sub(self.told_memory)
    }

    /// Whether windows may still grow.
    fn has_spare_memory(&self) -> bool {
        let all = self.memory_of_others().saturating_add(self.memory);
        all < self.config.memory - self.config.memory / 4
    }

    /// Tells the other endpoints what this one holds, when that has changed enough to matter to them.
    fn tell_memory(&mut self) {
        let held = self.memory();
        if held.abs_diff(self.told_memory) > self.memory_step {
            self.config.admission.tell_memory(self.told_memory, held);
            self.told_memory = held;
        }
    }

    fn enqueue(&mut self, handle: Handle) {
        let Some(entry) = self.router.get_mut(handle) else {
            return;
        };
        if !entry.is_queued {
            entry.is_queued = true;
            self.queue.push_back(handle);
        }
    }
}

/// What an endpoint counted for is free for the others.
impl<A> Drop for Endpoint<A> {
    fn drop(&mut self) {
        let admission = &self.config.admission;
        admission.tell_memory(self.told_memory, 0);
        self.knocking.leave(admission);
        for (_, entry) in self.router.iter_mut() {
            admission.release(entry.address, entry.is_half_open);
        }
        for traces in self.departed.iter() {
            admission.release(traces.address, traces.is_half_open);
        }
    }
}

/// Gives back the room that a map needed for more than it holds now.
fn shrink<K: Eq + Hash, V>(map: &mut KeyedMap<K, V>) {
    if map.capacity() > 64 && map.len() < map.capacity() / 8 {
        map.shrink_to(map.len() * 2);
    }
}
