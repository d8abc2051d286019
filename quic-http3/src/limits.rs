//! Every bound of this crate: what a peer can make us hold, repeat or wait for.

use std::time::Duration;

/// The largest field section accepted, in bytes of names and values plus [`FIELD_OVERHEAD`] for each line;
/// also the longest HEADERS frame.
pub(crate) const MAX_FIELD_SECTION: u64 = 64 * 1024;

/// What each line of a field section counts for beside its name and value (RFC 9114, 4.2.2).
pub(crate) const FIELD_OVERHEAD: u64 = 32;

/// Interim (1xx) responses accepted before the final one.
pub(crate) const MAX_INTERIM_RESPONSES: u8 = 64;

/// The longest frame accepted on a control stream, unknown types excepted: those are skipped, never held.
pub(crate) const MAX_CONTROL_FRAME: u64 = 4 * 1024;

/// The longest value of a PRIORITY_UPDATE frame.
pub(crate) const MAX_PRIORITY_VALUE: u64 = 256;

/// Requests whose priority is kept though they haven't come; that of further ones is forgotten.
pub(crate) const MAX_EARLY_PRIORITIES: usize = 64;

/// Unidirectional streams whose type has not arrived yet, plus the critical ones.
pub(crate) const MAX_UNIDIRECTIONAL_STREAMS: usize = 128;

/// Glitches that may come at once: resets, malformed messages, unknown frames and streams.
pub(crate) const GLITCH_BURST: u32 = 10_000;

/// Glitches forgiven each second.
pub(crate) const GLITCHES_PER_SECOND: u32 = 330;

/// How long a field section of a request may take to arrive.
pub(crate) const SECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of field sections that have come in part, or wait for the dynamic table, on all streams of a connection together.
pub(crate) const MAX_HELD_SECTIONS: usize = 1 << 20;

/// The longest DATA frame that a body of unknown length is written in.
pub(crate) const MAX_DATA_FRAME: u64 = 1 << 20;

/// Field lists kept for reuse.
pub(crate) const MAX_SPARE_FIELDS: usize = 64;

/// The largest buffer that stays with a recycled request or field list, in bytes.
pub(crate) const MAX_SPARE_CAPACITY: usize = 16 * 1024;

/// The capacity that the peer's encoder may give our dynamic table, in bytes as RFC 9204, 3.2.1 counts.
pub(crate) const MAX_DECODER_CAPACITY: u64 = 4096;

/// Bytes copied out of the dynamic table, for sections and for further lines, that count as a glitch: a few bytes may ask for
/// many.
pub(crate) const COPIES_PER_GLITCH: usize = 64 * 1024;

/// Streams that may wait for the dynamic table at a time.
pub(crate) const MAX_BLOCKED_STREAMS: u64 = 100;

/// Bytes of acknowledgments for the peer's encoder that wait while it gives our decoder stream no room.
pub(crate) const MAX_DECODER_NEWS: usize = 16 * 1024;

/// The capacity that we give the peer's dynamic table, where it allows as much.
pub(crate) const MAX_ENCODER_CAPACITY: u64 = 4096;

/// Bytes of instructions for the peer's decoder that wait to be sent; lines beyond are not inserted.
pub(crate) const MAX_INSTRUCTIONS: usize = 8 * 1024;

/// Sections that refer to the dynamic table and are not acknowledged; further ones don't refer to it.
pub(crate) const MAX_SECTIONS_UNDER_WAY: usize = 256;
