//! A sans-I/O HTTP/3 client and server with QPACK.
//!
//! [`ClientSession`] and [`ServerSession`] turn the streams of a [`Transport`] into requests and responses. They do no
//! I/O, keep no clock and copy no body: bytes are lent as the transport holds them.
//!
//! A client and a server over plain `std::net::UdpSocket`s, whole programs of less than 60 lines, are
//! `examples/http3_client.rs` and `examples/http3_server.rs`.
//!
//! Two layers of fields: borrowed [`Field`] lines in wire order, and the `http` crate's types above them.
#![forbid(unsafe_code)]

mod limits;
mod error;
mod field;
pub mod qpack;
mod frame;
mod settings;
mod message;
mod priority;
mod convert;
mod transport;
mod glitches;
mod receive;
mod send;
mod control;
mod session;
mod face;
mod client;
mod server;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

pub use client::{ClientEvent, ClientSession};
pub use convert::ConvertError;
pub use error::{ApiError, Code, Error};
pub use field::{Field, Fields, Iter};
pub use server::{ServerEvent, ServerSession};
pub use settings::Settings;
pub use transport::Transport;
