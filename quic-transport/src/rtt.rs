//! The round-trip time.
