//! Datagrams: bytes that belong to no stream and are sent once, [RFC 9221](https://www.rfc-editor.org/rfc/rfc9221).
//!
//! Both directions have a queue that is bounded in bytes. What doesn't fit is a decision of the settings on the way out,
//! and costs the oldest datagrams on the way in, since nothing tells the peer to wait.

mod settings;
mod queue;
mod outgoing;
mod incoming;
mod datagrams;

pub use outgoing::{DatagramEvent, DatagramId};
pub use settings::{DatagramSettings, DatagramStats, WhenFull};

pub(crate) use datagrams::Datagrams;
pub(crate) use outgoing::OutgoingDatagrams;
