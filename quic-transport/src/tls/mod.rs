//! TLS and packet protection: the only module that names rustls, ring or aws-lc-rs
//! ([RFC 9001](https://www.rfc-editor.org/rfc/rfc9001)).
//!
//! rustls does the handshake; the keys of every packet are derived and used here, from the traffic secrets that it
//! hands out.

mod crypto;
mod seed;
mod keyless;
mod suite;
mod key_exchange;
mod algorithms;
mod labels;
mod protect;
mod schedule;
mod forgeries;
mod phases;
mod one_rtt;
mod retry;
mod reset_key;
mod token_key;
mod ticket_key;
mod server_secrets;
mod clock;
mod secrets;
mod exporter;
mod outcome;
mod verify;
mod failure;
mod ech;
mod given;
mod session_store;
mod server_sessions;
mod client_config;
mod server_config;
mod client_hello;
mod job;
mod session;
#[cfg(test)]
mod handshake_tests;
#[cfg(test)]
mod vectors;

pub use client_config::ClientConfig;
pub use clock::WallClock;
pub use crypto::crypto_provider;
pub use ech::EchStatus;
pub use job::HandshakeJob;
pub use key_exchange::KeyExchange;
pub use reset_key::ResetKey;
pub use seed::random_seed;
pub use server_config::{ClientCertificates, ServerConfig};
pub use server_secrets::ServerSecrets;
pub use server_sessions::{ServerSessions, SessionCache};
pub use session_store::SessionStore;
pub use suite::CipherSuite;
pub use ticket_key::TicketKey;
pub use token_key::TokenKey;
pub use verify::pin_of;

pub(crate) use client_hello::ClientHello;
pub(crate) use forgeries::Forgeries;
pub(crate) use one_rtt::{DormantKeys, OneRttKeys};
pub(crate) use phases::{Choice, Phase};
pub(crate) use protect::{HeaderKey, LevelKeys, TAG_LENGTH};
pub(crate) use retry::{is_retry_authentic, retry_tag};
pub(crate) use schedule::initial_keys;
pub(crate) use server_sessions::Terms;
pub(crate) use session::{NewKeys, Recalled, Session};
pub(crate) use session_store::Memory;

/// The bytes that hexadecimal digits stand for, spaces and line ends left out.
#[cfg(test)]
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| u8::try_from(digit).unwrap())
        .collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] << 4) | pair[1])
        .collect()
}
