//! Bytes to types and back: no state, no time.
