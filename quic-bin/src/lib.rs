//! What the programs `quic-client` and `quic-server` are made of: command lines, files, certificates, and the event
//! loop that joins the sockets of `quic-udp` to a protocol that does no I/O of its own.
#![forbid(unsafe_code)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the events of the libraries are non-exhaustive"
)]

pub mod failure;
pub mod limits;
pub mod format;
pub mod url;
pub mod pattern;
pub mod certificate;
pub mod ech;
pub mod content_type;
pub mod files;
pub mod progress;
pub mod summary;
pub mod qlog_files;
pub mod event_loop;
pub mod roaming;
pub mod datagrams;
pub mod alpn;
pub mod cli;
pub mod random;
pub mod signals;
pub mod secrets;
pub mod pipe;
pub mod chunks;
pub mod file_body;
pub mod reader;
pub mod site;
pub mod responder;
pub mod hq;
pub mod service;
pub mod post;
pub mod server;
pub mod threads;
pub mod listen;
pub mod session;
pub mod exchange;
pub mod download;
pub mod client;
pub mod demo;
