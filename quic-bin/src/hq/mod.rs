//! HTTP/0.9 over QUIC streams, under the name `hq-interop`: what interoperability tests of QUIC speak where HTTP/3 is
//! not the question.
//!
//! A request is a line, `GET /path`, on a stream of its own; the answer is the body and nothing else, up to the end of
//! the stream. There is no status: what can't be had is a stream that is reset.

mod client;
mod server;

pub use client::Client;
pub use server::Responder;

/// The code of a stream that is given up, or of which no more is wanted.
const GIVEN_UP: u64 = 1;
