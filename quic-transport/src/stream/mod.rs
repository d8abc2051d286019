//! Streams, [RFC 9000, sections 2 and 3](https://www.rfc-editor.org/rfc/rfc9000#section-2).
//!
//! [`Streams`] is the whole; each file with an `impl Streams` is one of its verbs. What is to be done next always
//! waits in a list of those streams that need it, so that no step looks at streams that it has nothing to do for.

mod flags;
mod lanes;
mod priority;
mod send_state;
mod receive_state;
mod partial;
mod send;
mod receive;
mod table;
mod stats;
mod streams;
mod events;
mod input;
mod row;
mod output;
mod blocked;
mod fate;
mod api;
mod restart;
#[cfg(test)]
mod tests;

pub use api::{Fill, Read};
pub use events::StreamEvent;
pub use stats::StreamStats;

pub(crate) use priority::Priority;
pub(crate) use row::{Row, RowEnd};
pub(crate) use streams::{PeerLimits, StreamSettings, Streams};
