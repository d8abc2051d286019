//! A sans-I/O QUIC version 1 transport: connections and a server endpoint.
//!
//! Datagrams go in borrowed, batches come out of one long-lived buffer, and time is an argument.
#![forbid(unsafe_code)]

mod limits;
mod wire;
mod error;
pub mod tls;
mod transmit;
mod buffer;
mod ack;
mod rtt;
mod recovery;
mod congestion;
mod path;
mod cid;
mod flow;
mod stream;
mod crypto_stream;
mod event;
mod stats;
mod config;
mod token;
mod connection;
mod endpoint;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

pub use config::{Config, ConfigError, MAX_DATAGRAM, MIN_DATAGRAM};
pub use congestion::CongestionControl;
pub use connection::{Connection, Output};
pub use endpoint::{
    Application, Endpoint, EndpointConfig, EndpointStats, Handle, Incoming, RetryPolicy,
};
pub use error::{ApiError, CloseReason, Error, StreamError};
pub use event::Event;
pub use stats::Stats;
pub use stream::{Fill, Read, StreamEvent};
pub use wire::{
    ConnectionId, Direction, MAX_CID_LENGTH, Side, StreamId, TransportErrorCode, Version,
};
