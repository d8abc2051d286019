//! How much may be in flight, and how fast.
