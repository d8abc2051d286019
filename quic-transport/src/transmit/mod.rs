//! How a component puts a frame in a packet and learns its fate.
//!
//! A component writes through a [`PacketWriter`], which notes a [`SentFrame`] for each frame in the space's
//! [`FrameLog`]. When the packet is acknowledged or lost, the notes come back to the component
//! ([RFC 9000, section 13.3](https://www.rfc-editor.org/rfc/rfc9000#section-13.3)).

mod space;
mod sent_frame;
mod run;
mod frame_log;
mod packet_writer;

pub(crate) use frame_log::FrameLog;
pub(crate) use packet_writer::{PacketWriter, Written};
pub(crate) use run::Run;
pub(crate) use sent_frame::SentFrame;
pub use space::PathId;
pub(crate) use space::{SPACES, Space};
