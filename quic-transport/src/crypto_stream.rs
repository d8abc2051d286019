//! The byte streams of the TLS handshake.
