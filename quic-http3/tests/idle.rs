//! What an established connection with HTTP/3 takes when nothing happens on it, at either end.

use std::time::Duration;

use quic_common::Random;
use quic_transport::tls;
use test_fixture::certificates::WALL_CLOCK;
use test_fixture::ends::{ALPN, Client, NAME, Server, Settings};
use test_fixture::network::Link;
use test_fixture::{CountingAllocator, Http3, Pair, SERVER, held_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const COUNT: u8 = 50;

/// Bytes that one server connection takes, and one client, after three requests each and two seconds of silence.
#[test]
fn an_idle_connection_takes_ten_kibibytes_at_most() {
    let mut settings = Settings::default();
    for config in [&mut settings.client, &mut settings.server] {
        config.idle_timeout = Duration::from_hours(10);
    }
    let mut pair = Pair::<Client<Http3>, Server<Http3>>::new(&settings, Link::default());
    let root = settings.certificate.chain.last().unwrap().clone();
    let tls = tls::ClientConfig::with_roots([root], &[ALPN]).unwrap();
    let tls = tls
        .wall_clock(tls::WallClock::manual(WALL_CLOCK))
        .without_resumption();
    let mut clients = Vec::with_capacity(usize::from(COUNT) + 3);
    let mut held = 0;
    for number in 0..COUNT + 2 {
        let network = &pair.network;
        let client = Client::with_tls(
            &tls,
            &settings.client,
            (NAME, network.address(SERVER)),
            Random::from_seed([number; 32]),
            network.now(),
        );
        clients.push(std::mem::replace(&mut pair.client, client));
        if number == 2 {
            held = held_bytes();
        }
        let application = &mut pair.client.application;
        application.wanted = 3;
        application.parallel = 1;
        pair.run_until(|pair| pair.client.application.complete == 3);
        pair.run(Duration::from_secs(2));
        assert!(pair.client.connection.is_at_rest());
        let last = pair.server.handles.len() - 1;
        assert!(pair.server.connection(last).unwrap().0.is_at_rest());
    }
    assert_eq!(clients.len(), usize::from(COUNT) + 2);
    let both = (held_bytes() - held) / i64::from(COUNT);
    clients.truncate(2);
    let client_held = both - (held_bytes() - held) / i64::from(COUNT);
    let server_held = both - client_held;
    println!("{server_held} bytes at the server, {client_held} at the client");
    assert!(server_held <= 10 << 10, "{server_held}");
    assert!(client_held <= 16 << 10, "{client_held}");
}
