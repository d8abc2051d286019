//! A sans-I/O QUIC version 1 transport: connections and a server endpoint.
#![forbid(unsafe_code)]
