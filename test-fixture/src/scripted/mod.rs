//! A peer with real keys that says what a script tells it to, in both roles.
//!
//! It does its own handshake, with rustls' own packet keys, and shares no code with the stack under test: its frames,
//! headers and transport parameters are bytes that a script may get wrong on purpose. What it hears it decodes and
//! keeps. It sends nothing again, so it wants a network that loses nothing.

pub mod frames;
pub mod parameters;
mod seen;
mod protection;
mod packet;
mod settings;
mod space;
mod peer;
#[cfg(test)]
mod tests;

pub use packet::Draft;
pub use parameters::Parameters;
pub use peer::ScriptedPeer;
pub use protection::VERSION_2;
pub use seen::{Level, SeenClose, SeenFrame, SeenPacket};
pub use settings::{client_config, server_config};
