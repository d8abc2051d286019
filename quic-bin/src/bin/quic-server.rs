//! quic-server
fn main() {}
