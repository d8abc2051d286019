//! One QUIC connection.
