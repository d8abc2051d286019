//! quic-client
const fn main() {}
