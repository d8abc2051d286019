//! quic-server
const fn main() {}
