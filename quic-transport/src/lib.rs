//! A sans-I/O transport, QUIC versions 1 and 2: connections and a server endpoint.
//!
//! Datagrams go in borrowed, batches come out of one long-lived buffer, and time is an argument.
//!
//! A [`Connection`] is one end of a connection; a client owns one. An [`Endpoint`] is a server's side of a socket: it
//! owns the connections, each with an [`Application`]. Both have the same three parts: `process_multiple_input` takes
//! what has arrived, `process_output` gives what is to be sent, a batch at a time, or says how long to wait, and events
//! tell what has happened. Nothing here opens a socket, reads a clock or calls back.
//!
//! A client and a server over plain `std::net::UdpSocket`s, whole programs of less than 60 lines, are
//! `examples/transport_client.rs` and `examples/transport_server.rs`.
//!
//! # Example
//!
//! A client asks, a server answers, and their datagrams cross in memory; with sockets, [`Output::Datagrams`] is what to
//! send and [`Output::Callback`] how long to wait.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use quic_common::{BatchBuffer, Datagram, DatagramBatch, Random};
//! use quic_transport::{
//!     Application, Config, Connection, Direction, Endpoint, EndpointConfig, Event, Output, StreamEvent, tls,
//! };
//!
//! /// Answers each request with its own bytes.
//! struct Echo;
//!
//! impl Application for Echo {
//!     fn process(&mut self, connection: &mut Connection, _now: Instant) {
//!         while let Some(event) = connection.next_event() {
//!             if let Event::Stream(StreamEvent::Readable(id)) = event {
//!                 let mut buffer = [0; 100];
//!                 let read = connection.stream_read(id, &mut buffer).unwrap();
//!                 connection.stream_send(id, &buffer[..read.length]).unwrap();
//!                 if read.fin {
//!                     connection.finish(id).unwrap();
//!                 }
//!             }
//!         }
//!     }
//! }
//!
//! /// What a socket would do: the datagrams of a batch, as they arrive at the other end.
//! fn carry(batch: DatagramBatch<'_>, mut arrive: impl FnMut(Datagram<'_>)) {
//!     for segment in batch.segments() {
//!         let (remote, ecn) = (batch.head().remote, batch.head().ecn);
//!         arrive(Datagram { remote, local: None, ecn, payload: &mut segment.to_vec() });
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
//! let chain = vec![certificate.cert.der().clone()];
//! let key = rcgen::KeyPair::serialize_der(&certificate.signing_key).try_into()?;
//! let server_tls = tls::ServerConfig::new(chain.clone(), key, &[b"echo"])?;
//! let client_tls = tls::ClientConfig::with_roots(chain, &[b"echo"])?;
//!
//! let (config, address, mut now) = (Config::default(), "127.0.0.1:4433".parse()?, Instant::now());
//! let mut random = Random::from_seed([1; 32]); // from the operating system, in earnest
//! let mut server = Endpoint::new(EndpointConfig::new(&mut random), random.fork());
//! let mut client = Connection::client(&config, &client_tls, "localhost", address, random, now)?;
//! let (mut buffer, mut answer) = (BatchBuffer::new(), Vec::new());
//! while answer.is_empty() {
//!     while let Output::Datagrams(batch) = client.process_output(now, &mut buffer) {
//!         carry(batch, |datagram| server.input(datagram, now));
//!     }
//!     while let Some(incoming) = server.next_incoming() {
//!         server.accept(incoming, &config, &server_tls, Echo, now)?;
//!     }
//!     while let Output::Datagrams(batch) = server.process_output(now, &mut buffer) {
//!         carry(batch, |datagram| client.input(datagram, now));
//!     }
//!     while let Some(event) = client.next_event() {
//!         match event {
//!             Event::Connected => {
//!                 let id = client.open(Direction::Bidirectional).expect("the server permits 100");
//!                 client.stream_send(id, b"hello")?;
//!                 client.finish(id)?;
//!             }
//!             Event::Stream(StreamEvent::Readable(id)) => {
//!                 let fill = client.fill(id)?;
//!                 answer.extend_from_slice(fill.data);
//!             }
//!             _ => {}
//!         }
//!     }
//!     now += Duration::from_millis(1);
//! }
//! assert_eq!(answer, b"hello");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod limits;
mod wire;
mod error;
mod observe;
#[cfg(feature = "qlog")]
pub mod qlog;
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
mod datagram;
mod event;
mod stats;
mod config;
mod token;
mod used_tokens;
mod connection;
mod endpoint;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
#[cfg(feature = "benching")]
pub mod benching;

pub use bytes::Bytes;
pub use cid::{CidGenerator, Routing};
pub use config::{Config, ConfigError, MAX_DATAGRAM, MIN_DATAGRAM};
pub use congestion::CongestionControl;
pub use connection::{Connection, Output};
pub use datagram::{DatagramEvent, DatagramId, DatagramSettings, DatagramStats, WhenFull};
pub use endpoint::{
    Admission, Application, Endpoint, EndpointConfig, EndpointStats, Foreign, Handle, Incoming,
    RetryPolicy,
};
pub use error::{ApiError, CloseReason, DatagramError, Error, StreamError};
pub use event::{Event, PathEvent, PathNews};
pub use observe::{
    CongestionState, DropReason, EcnState, HandshakeState, LossTimerKind, Observation,
    ObservedPacket, Observer, PacketType, RoundTrip, Standing, Start,
};
pub use stats::{PathStats, Stats};
pub use stream::{Fill, Read, StreamEvent, StreamStats};
pub use transmit::PathId;
pub use used_tokens::UsedTokens;
pub use wire::{
    ConnectionId, Direction, MAX_CID_LENGTH, Side, StreamId, TransportErrorCode, Version, Versions,
};
