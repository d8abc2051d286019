//! quic-client
fn main() {}
