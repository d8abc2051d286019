//! Connection IDs.
