//! One QUIC connection.
//!
//! The struct holds one component for each concern, by value; a file of this folder is one verb over several of them.
//! The order of the `mod` lines is the order of the layers: a verb calls only those above it.
//!
//! The contract: datagrams go in with [`Connection::process_multiple_input`], batches come out of
//! [`Connection::process_output`] until it answers with a wait, events come out of [`Connection::next_event`].
//! Nothing here reads a clock, opens a socket, blocks or calls back.

mod life;
mod idle;
mod first_byte;
mod versions;
mod setup;
mod space;
mod keys;
mod info;
mod observed;
mod undecryptable;
mod streams;
mod datagrams;
mod memory;
mod close;
mod refused;
mod switch;
mod fate;
mod acked;
mod settle;
mod migrate;
mod validate;
mod early;
mod handshake;
mod negotiate;
mod unprotect;
mod dispatch;
mod elsewhere;
mod input;
mod train;
mod lend;
mod timers;
mod standing;
mod rekey;
mod rare;
mod draft;
mod bulk;
mod aside;
mod assemble;
mod rest;
mod output;
mod start;

use std::{collections::VecDeque, time::Instant};

use quic_common::Random;

pub use self::output::Output;
use self::{
    first_byte::FirstByte,
    idle::Idle,
    keys::Keys,
    life::{Life, Progress},
    rare::NewToken,
    setup::{Peer, Setup},
    space::Spaces,
};
pub(crate) use self::{
    output::Step,
    start::{EarlyTerms, ServerStart},
};
use crate::{
    ack::AckRequests,
    cid::{LocalCids, RemoteCids},
    config::Config,
    datagram::Datagrams,
    event::Event,
    observe::Tap,
    path::{OtherPaths, Path},
    recovery::{Acked, LossTimer, Lost},
    stats::Stats,
    stream::Streams,
    tls::{Forgeries, Session},
    wire::{ConnectionId, Level, Side, Version},
};

/// A QUIC connection, client or server.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    version: Version,
    config: Config,
    life: Life,
    progress: Progress,
    setup: Box<Setup>,
    session: Session,
    /// The level that TLS writes at.
    write_level: Level,
    keys: Keys,
    forgeries: Forgeries,
    spaces: Spaces,
    timer: LossTimer,
    path: Path,
    /// Those that aren't in use.
    others: OtherPaths,
    local_cids: LocalCids,
    remote_cids: RemoteCids,
    peer: Peer,
    ack_requests: AckRequests,
    streams: Streams,
    datagrams: Datagrams,
    /// Receive windows grow when they are used fast; not while memory is short.
    may_grow: bool,
    idle: Idle,
    first_byte: FirstByte,
    /// The ID that the last packet came to, if stream data was the end of it: more of that kind may follow.
    streaming: Option<ConnectionId>,
    /// When the application wants to be woken.
    alarm: Option<Instant>,
    /// When the keys of the phase before the current one go away.
    drop_old_keys_at: Option<Instant>,
    owes_handshake_done: bool,
    new_token: NewToken,
    /// Packets have been acknowledged since losses were last looked for.
    needs_loss_detection: bool,
    /// When the pacer lets the next packet go, if it holds one back.
    pacing_deadline: Option<Instant>,
    events: VecDeque<Event>,
    /// Where an observer listens, if one does.
    tap: Option<Box<Tap>>,
    stats: Stats,
    random: Random,
    scratch: Scratch,
}

/// Memory that is used again for each batch.
#[derive(Debug, Default)]
struct Scratch {
    acked: Vec<Acked>,
    lost: Vec<Lost>,
    crypto: Vec<u8>,
}
