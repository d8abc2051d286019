//! Entry points for fuzzing: each takes any bytes, does what they say, and asserts what must hold whatever they are.
//!
//! Decoders get the bytes as they are; what has state gets operations that are read from them, and is compared with a
//! model that is too simple to be wrong. The tests below run each over its corpus in `fuzz/corpus` and over seeded inputs;
//! the targets in `fuzz/` call the same functions. There is no such module without the feature `fuzzing`.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "what panics here is what a fuzzer looks for"
)]

mod frames;
mod headers;
mod parameters;
mod tokens;
mod routing;
mod received;
mod sent;
mod buffers;
mod crypto;
mod session_store;

pub use buffers::{reassembly, send_buffer};
pub use crypto::{client_hello, crypto};
pub use frames::frames;
pub use headers::headers;
pub use parameters::transport_parameters;
pub use received::received_packets;
pub use routing::routing;
pub use sent::sent_packets;
pub use session_store::session_store;
pub use tokens::tokens;

use quic_common::Reader;

/// What an input says to do next, one value at a time; `None` at its end.
fn byte(input: &mut Reader<'_>) -> Option<usize> {
    input.u8().ok().map(usize::from)
}

/// A number of up to 16 bits.
fn short(input: &mut Reader<'_>) -> Option<usize> {
    input.u16().ok().map(usize::from)
}

/// A wide number.
fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap()
}

/// A number that is known to be small.
fn narrow(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

/// The byte at an offset of a stream in a model.
fn pattern(offset: usize) -> u8 {
    u8::try_from((offset ^ (offset >> 8).wrapping_mul(29)) & 0xff).unwrap()
}

#[cfg(test)]
mod tests {
    use test_fixture::inputs;

    #[test]
    fn frames() {
        inputs::run("frames", 20_000, super::frames);
    }

    #[test]
    fn headers() {
        inputs::run("headers", 20_000, super::headers);
    }

    #[test]
    fn transport_parameters() {
        inputs::run("transport_parameters", 20_000, super::transport_parameters);
    }

    #[test]
    fn tokens() {
        inputs::run("tokens", 5_000, super::tokens);
    }

    #[test]
    fn routing() {
        inputs::run("routing", 10_000, super::routing);
    }

    #[test]
    fn received_packets() {
        inputs::run("received_packets", 800, super::received_packets);
    }

    #[test]
    fn sent_packets() {
        inputs::run("sent_packets", 2_000, super::sent_packets);
    }

    #[test]
    fn reassembly() {
        inputs::run("reassembly", 400, super::reassembly);
    }

    #[test]
    fn send_buffer() {
        inputs::run("send_buffer", 300, super::send_buffer);
    }

    #[test]
    fn crypto() {
        inputs::run("crypto", 1_000, super::crypto);
    }

    #[test]
    fn client_hello() {
        inputs::run("client_hello", 10_000, super::client_hello);
    }
    #[test]
    fn session_store() {
        inputs::run("session_store", 10_000, super::session_store);
    }
}
