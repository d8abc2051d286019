//! Receive windows that tune themselves cost next to nothing against windows that never stop anyone.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::Link;
use test_fixture::{Bulk, Pair};

const RTT: Duration = Duration::from_millis(100);
const BYTES: u64 = 200_000_000;

/// How long a download takes at 1 Gbit/s with a round trip of 100 ms.
fn download(settings: &Settings) -> Duration {
    let link = Link {
        bandwidth: Some(1_000_000_000),
        queue: 12_500_000,
        ..Link::delayed(RTT / 2)
    };
    let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(settings, link);
    pair.handshake();
    pair.client.application.skips_check = true;
    pair.client.request(BYTES, 0).unwrap();
    let start = pair.network.now();
    pair.run_until(|pair| pair.client.application.complete == 1);
    pair.network.now() - start
}

/// A sender whose congestion window grows from the start is stopped by flow control for a round trip at most.
#[test]
fn flow_control_stops_a_fast_path_for_a_round_trip_at_most() {
    let tuned = download(&Settings::default());
    let mut wide = Settings::default();
    wide.client.stream_window = 1 << 30;
    wide.client.max_stream_window = 1 << 30;
    wide.client.connection_window = 1 << 30;
    wide.client.max_connection_window = 1 << 30;
    let unlimited = download(&wide);
    println!("tuned {tuned:?}, unlimited {unlimited:?}");
    assert!(tuned <= unlimited + RTT, "{tuned:?} and {unlimited:?}");
}
