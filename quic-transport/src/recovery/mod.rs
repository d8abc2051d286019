//! Sent packets, loss detection and probes.
