//! Handshakes on networks that lose just the datagrams that hurt.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::Random;
use quic_transport::{RetryPolicy, tls};
use test_fixture::certificates::{Algorithm, Leaf, TestCa, WALL_CLOCK};
use test_fixture::ends::{ALPN, Client, NAME, Server, Settings};
use test_fixture::network::{Link, Network, Verdict};
use test_fixture::{Bulk, CLIENT, Pair, SERVER};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

const DELAY: Duration = Duration::from_millis(20);

/// A ClientHello that takes two datagrams.
fn with_large_hello(settings: &Settings) -> Bulks {
    let mut pair = Bulks::new(settings, Link::delayed(DELAY));
    let root = settings.certificate.chain.last().unwrap().clone();
    let names: Vec<Vec<u8>> = (0..8).map(|n| vec![b'a' + n; 200]).collect();
    let alpn: Vec<&[u8]> = names.iter().map(Vec::as_slice).chain([ALPN]).collect();
    let tls = tls::ClientConfig::with_roots([root], &alpn).unwrap();
    let tls = tls.wall_clock(tls::WallClock::manual(WALL_CLOCK));
    let random = Random::from_seed([settings.seed; 32]);
    let remote = pair.network.address(SERVER);
    let now = pair.network.now();
    pair.client = Client::with_tls(&tls, &settings.client, (NAME, remote), random, now);
    pair
}

/// Loses the datagrams with these numbers on their way from one node to the other.
fn lose(network: &mut Network, from: usize, to: usize, lost: Vec<u64>) {
    network.set_filter(
        from,
        to,
        Box::new(move |_, number| {
            if lost.contains(&number) {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        }),
    );
}

/// Completes a handshake and moves something both ways; returns how long it took.
fn exchange(mut pair: Bulks, what: &str) -> Duration {
    let mut is_asked = false;
    let mut turns = 0;
    while pair.client.application.complete == 0 {
        if !is_asked && pair.client.application.is_connected {
            is_asked = true;
            pair.client.request(3000, 3000).unwrap();
        }
        assert!(
            pair.client.application.closed.is_none(),
            "{what}: {:?}",
            pair.client.application.closed
        );
        assert!(pair.step(), "{what}: nothing happens any more");
        turns += 1;
        assert!(turns < 10_000, "{what}: no end");
    }
    pair.network.elapsed()
}

#[test]
fn a_client_hello_whose_second_datagram_is_lost_is_repeated_whole() {
    for lost in [vec![0], vec![1], vec![0, 1], vec![1, 2], vec![1, 2, 3]] {
        let mut pair = with_large_hello(&Settings::default());
        let what = format!("{lost:?}");
        lose(&mut pair.network, CLIENT, SERVER, lost);
        let elapsed = exchange(pair, &what);
        assert!(elapsed < Duration::from_secs(8), "{what}: {elapsed:?}");
    }
}

/// RFC 9002, 6.2: whichever datagrams are lost, a timer of either end finds out, soon.
#[test]
fn each_datagram_and_each_pair_of_them_may_be_lost() {
    let authority = TestCa::new(Algorithm::Ed25519);
    for (retry, padding) in [
        (RetryPolicy::Never, 0),
        (RetryPolicy::Always, 0),
        (RetryPolicy::Never, 6000),
    ] {
        let leaf = Leaf {
            names: &[NAME],
            intermediates: 1,
            padding,
            ..Leaf::default()
        };
        for first in 0..24_u64 {
            for second in first..24 {
                let settings = Settings {
                    retry,
                    certificate: authority.certificate(&leaf),
                    ..Settings::default()
                };
                let mut pair = Bulks::new(&settings, Link::delayed(DELAY));
                let lost = [first, second];
                for (from, to, parity) in [(CLIENT, SERVER, 0), (SERVER, CLIENT, 1)] {
                    let numbers = lost.iter().filter(|n| *n % 2 == parity).map(|n| n / 2);
                    lose(&mut pair.network, from, to, numbers.collect());
                }
                let what = format!("{retry:?}, {padding}, {lost:?}");
                let elapsed = exchange(pair, &what);
                let limit = if first == second { 1200 } else { 3200 };
                assert!(
                    elapsed < Duration::from_millis(limit),
                    "{what}: {elapsed:?}"
                );
            }
        }
    }
}
