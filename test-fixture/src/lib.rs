//! What the tests and benches of the stack share: a network simulator, a scripted peer, certificates, an allocation
//! counter and the layering checker.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "test code"
)]

pub mod layering;
pub mod ledger;
mod allocations;
pub mod crypto;
pub mod certificates;
pub mod network;
pub mod scripted;
pub mod ends;
mod bulk;
mod busy;
mod http3;
mod pair;
pub mod scripted_pairs;
pub mod visit;
pub mod inputs;
pub mod fuzzing;

pub use allocations::{Allocations, CountingAllocator, allocations, held_bytes};
pub use bulk::Bulk;
pub use busy::Busy;
pub use http3::Http3;
pub use pair::{CLIENT, Pair, SERVER, network};
