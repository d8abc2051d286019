//! The network and the addresses that clients move between.
#![allow(unreachable_pub, clippy::allow_attributes, reason = "shared by tests")]

use std::net::SocketAddr;
use std::time::Duration;

use test_fixture::network::Link;

pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);

pub fn link() -> Link {
    Link {
        bandwidth: Some(50_000_000),
        queue: 200_000,
        ..Link::delayed(MS * 10)
    }
}

pub fn other_port() -> SocketAddr {
    ([192, 0, 2, 1], 50_001).into()
}

pub fn other_host() -> SocketAddr {
    ([203, 0, 113, 9], 9999).into()
}
