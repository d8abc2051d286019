//! What the tests and benches of the stack share: a network simulator, certificates, an allocation counter and the
//! layering checker.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

pub mod layering;
mod allocations;
pub mod certificates;
pub mod network;

pub use allocations::{Allocations, CountingAllocator, allocations};
