//! What the benches of the stack share: a server in a thread, a client that makes requests as fast as it can, and both in
//! memory.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::wildcard_enum_match_arm,
    reason = "bench code: what goes wrong ends it; the events of the libraries are non-exhaustive"
)]

mod load;
mod service;

pub use load::{Load, Plan};
pub use service::Service;
