//! Every bound of the programs.

use std::time::Duration;

/// Reads from one socket in one turn of the event loop. With more waiting, timers and other sockets come first.
pub const READS_PER_TURN: usize = 16;

/// Batches sent on one socket in one turn of the event loop. With more to send, what has arrived is read first.
pub const BATCHES_PER_TURN: usize = 16;

/// Waits longer than this are left to the poller's own timeout, in whole milliseconds.
///
/// An acknowledgment, whose deadline leaves room for that, or a probe may be a millisecond late, and needs no timer then,
/// which would have to be set and may go off for nothing.
pub const MAX_PRECISE_WAIT: Duration = Duration::from_millis(10);

/// Deadlines that differ by less than this are the same one.
pub const TIMER_SLACK: Duration = Duration::from_micros(20);

/// Bytes of a request's path. A longer one names no file.
pub const MAX_PATH_BYTES: usize = 4096;

/// Bytes of a request in HTTP/0.9: the longest path, and the words around it.
pub const MAX_REQUEST_LINE: usize = MAX_PATH_BYTES + 16;

/// Bytes of a generated body, 16 TiB.
pub const MAX_GENERATED_BYTES: u64 = 1 << 44;

/// Bytes of a PEM file.
pub const MAX_PEM_BYTES: u64 = 4 << 20;

/// How long a certificate that the server makes for itself is valid. Browsers accept at most 14 days where they are
/// given its hash.
pub const SELF_SIGNED_VALIDITY: Duration = Duration::from_hours(13 * 24);

/// How often a progress line is drawn at most.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Pieces of a body, of up to 16 KiB each, that wait for standard output to take them.
pub const PIPE_PIECES: usize = 64;

/// Bytes read from a file at a time, once as many have been sent.
pub const FILE_CHUNK: usize = 256 << 10;

/// Bytes read from a file at first, so that a body that nobody takes holds little.
pub const FIRST_FILE_CHUNK: usize = 16 << 10;

/// Files that the requests of one connection have open at a time; further requests wait for one of them to be answered.
pub const OPEN_FILES: usize = 64;

/// Room for pieces of files that is kept for the next ones, in pieces of [`FILE_CHUNK`].
pub const SPARE_CHUNKS: usize = 32;

/// The largest datagram between programs of one machine: what UDP over IPv4 takes.
pub const MAX_LOOPBACK_DATAGRAM: u16 = 65_507;

/// Requests that a client may have open at a time.
pub const SERVER_STREAMS: u64 = 1000;

/// Datagrams that a client sends beside its requests.
pub const MAX_DATAGRAMS: u32 = 1_000_000;

/// How long a program that was told to end tries to tell its peers.
pub const GOODBYE: Duration = Duration::from_secs(1);

/// Datagrams that one thread of a server has passed on to another, and that it has not looked at; further ones are lost.
pub const POST_DATAGRAMS: usize = 1024;

/// Threads of a server.
pub const MAX_THREADS: u16 = 256;
