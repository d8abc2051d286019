//! A client whose address changes without its knowledge, as behind a NAT that forgets: transfers go on.
#![expect(clippy::unwrap_used, reason = "test code")]

mod moving;

use quic_common::{Ecn, Random};
use quic_transport::{PathStats, tls};
use std::sync::mpsc;
use test_fixture::ends::{Client, NAME, Server, Settings};
use test_fixture::network::{Chance, Link, Route, Verdict};
use test_fixture::{Bulk, CLIENT, Pair, SERVER};

use moving::{MS, SECOND, link, other_host, other_port};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

fn downloading(settings: &Settings, link: Link, bytes: u64) -> Bulks {
    let mut pair = Bulks::new(settings, link);
    pair.handshake();
    pair.client.request(bytes, 0).unwrap();
    pair
}

fn server_paths(pair: &mut Bulks) -> Vec<PathStats> {
    pair.server.connection(0).unwrap().0.paths().collect()
}

/// RFC 9000, 9.3: the transfer goes on at the new address, which is validated; the old one is forgotten in the end.
#[test]
fn a_transfer_survives_a_new_port_and_a_new_host() {
    for address in [other_port(), other_host()] {
        for (download, upload) in [(3_000_000, 0), (0, 3_000_000)] {
            let mut pair = Bulks::new(&Settings::default(), link());
            pair.handshake();
            pair.client.request(download, upload).unwrap();
            pair.run(MS * 300);
            let start = pair.network.now();
            pair.network.rebind(CLIENT, address);
            pair.run_until(|pair| pair.client.application.complete == 1);
            let elapsed = pair.network.now() - start;
            assert!(elapsed < SECOND * 3, "{elapsed:?}");
            assert!(!pair.client.application.is_wrong);
            let paths = server_paths(&mut pair);
            assert_eq!(paths[0].remote, address);
            assert!(paths[0].is_validated && paths[0].is_in_use);
            pair.run(SECOND * 8);
            assert_eq!(server_paths(&mut pair).len(), 1, "the old one is forgotten");
        }
    }
}

#[test]
fn it_survives_loss_on_both_sides_of_the_move() {
    for seed in 0..8 {
        let mut settings = Settings {
            seed,
            ..Settings::default()
        };
        // A client that only receives hears nothing any more, and would have nothing to say.
        settings.client.keep_alive = Some(MS * 500);
        let lossy = Link {
            loss: Chance::percent(5),
            ..link()
        };
        let mut pair = downloading(&settings, lossy, 2_000_000);
        pair.run(MS * 200);
        for host in 10..13 {
            pair.run(MS * 200);
            pair.network
                .rebind(CLIENT, ([203, 0, 113, host], 1000 + u16::from(host)).into());
        }
        pair.run_until(|pair| pair.client.application.complete == 1);
        assert!(!pair.client.application.is_wrong, "seed {seed}");
    }
}

/// RFC 9000, 9.4: a new port keeps the congestion window, the RTT and the MTU; a new host starts anew.
#[test]
fn only_a_new_port_keeps_what_is_known_of_the_network() {
    for (address, is_kept) in [(other_port(), true), (other_host(), false)] {
        let mut pair = downloading(&Settings::default(), link(), 10_000_000);
        pair.run(SECOND);
        let before = server_paths(&mut pair)[0];
        assert!(before.congestion_window > 60_000, "{before:?}");
        assert_eq!(before.path_mtu, 1452);
        pair.network.rebind(CLIENT, address);
        pair.run_until(|pair| server_paths(pair)[0].remote == address);
        let after = server_paths(&mut pair)[0];
        if is_kept {
            assert!(after.congestion_window >= before.congestion_window);
            assert_eq!(after.path_mtu, before.path_mtu);
            assert!(after.smoothed_rtt < MS * 100);
        } else {
            assert_eq!(after.congestion_window, 12_000);
            assert_eq!(after.path_mtu, 1200);
            assert_eq!(after.smoothed_rtt, MS * 333);
        }
        assert!(!after.is_validated);
        // What the old path loses is no sign of congestion on the new one.
        pair.run(MS * 60);
        let later = server_paths(&mut pair)[0];
        assert!(later.is_validated);
        assert!(later.congestion_window >= after.congestion_window);
    }
}

/// RFC 9000, 9.4 and RFC 9002, 5.1: what is acknowledged of the old path gives the new one neither window nor RTT.
#[test]
fn the_old_path_says_nothing_of_the_new_one() {
    let mut pair = downloading(&Settings::default(), link(), 10_000_000);
    pair.run(SECOND);
    // What is on its way to the old address still arrives, and is acknowledged from the new one.
    let address = other_host();
    let old = pair.network.address(CLIENT);
    pair.network.add_address(CLIENT, old);
    pair.network.rebind(CLIENT, address);
    pair.run_until(|pair| server_paths(pair)[0].remote == address);
    pair.run(MS * 19);
    let now = server_paths(&mut pair);
    assert_eq!(
        now[0].smoothed_rtt,
        MS * 333,
        "nothing of it is acknowledged yet"
    );
    assert_eq!(now[0].congestion_window, 12_000);
    assert!(now[1].bytes_in_flight < now[1].congestion_window);
}

/// A copy of a client's packet that comes first, from an attacker's address, gains it three times its size.
#[test]
fn a_forwarded_copy_gains_little_and_the_transfer_goes_on() {
    for copies in [1, 3, 20] {
        let mut pair = downloading(&Settings::default(), link(), 3_000_000);
        pair.run(MS * 300);
        let (sink, taken) = mpsc::channel();
        let mut left = copies;
        let copy = move |payload: &mut Vec<u8>, _| {
            if left > 0 {
                left -= 1;
                sink.send(payload.clone()).unwrap();
            }
            Verdict::Hold(MS * 5)
        };
        pair.network.set_filter(CLIENT, SERVER, Box::new(copy));
        let route = Route {
            source: other_host(),
            destination: pair.network.address(SERVER),
        };
        let mut stolen = 0;
        pair.run_until(|pair| {
            for payload in taken.try_iter() {
                stolen += payload.len();
                pair.network.inject(route, Ecn::NotEct, &payload);
            }
            pair.client.application.complete == 1
        });
        assert!(!pair.client.application.is_wrong);
        assert!(stolen > 0);
        let most = 3 * stolen / 64 + 1;
        let gained = usize::try_from(pair.network.unroutable()).unwrap();
        assert!(gained <= most, "{gained} datagrams for {stolen} bytes");
        let home = pair.network.address(CLIENT);
        assert_eq!(server_paths(&mut pair)[0].remote, home);
    }
}

/// Nor do the news of it pile up for an application that doesn't take them.
#[test]
fn news_of_paths_are_bounded() {
    let mut pair = downloading(&Settings::default(), link(), 30_000_000);
    let handle = pair.server.handles[0];
    for port in 1..200 {
        pair.network.rebind(CLIENT, ([203, 0, 113, 1], port).into());
        pair.run(MS * 10);
    }
    let (connection, _) = pair.server.endpoint.connection_mut(handle).unwrap();
    let news = std::iter::from_fn(|| connection.next_event());
    assert!(news.count() < 50);
}

/// RFC 9000, 9.5: a client without connection IDs can be followed as well; there is nothing else to send to.
#[test]
fn a_client_without_connection_ids_is_followed() {
    let mut settings = Settings::default();
    settings.client.cid_length = 0;
    let mut pair = downloading(&settings, link(), 2_000_000);
    pair.run(MS * 200);
    pair.network.rebind(CLIENT, other_port());
    pair.run(MS * 200);
    pair.network.rebind(CLIENT, other_host());
    pair.run_until(|pair| pair.client.application.complete == 1);
    assert!(server_paths(&mut pair)[0].is_validated);
    assert!(!pair.client.connection.is_closing());
}

/// RFC 9000, 9: a client that seems to have moved though it was asked not to is followed, once it is validated.
#[test]
fn a_client_that_was_asked_not_to_move_is_followed() {
    let mut settings = Settings::default();
    settings.server.disable_active_migration = true;
    let mut pair = downloading(&settings, link(), 2_000_000);
    pair.run(MS * 200);
    pair.network.rebind(CLIENT, other_host());
    pair.run_until(|pair| pair.client.application.complete == 1);
    assert!(server_paths(&mut pair)[0].is_validated);
}

/// RFC 9000, 9.3: the token of the first address is of no use at the new one.
#[test]
fn a_client_that_moved_gets_a_token_for_its_new_address() {
    let (settings, sessions) = (Settings::default(), tls::SessionStore::new());
    let mut pair = Bulks::new(&settings, link());
    let tls = settings.client_tls().sessions(sessions.clone());
    let remote = (NAME, pair.network.address(SERVER));
    let (random, now) = (Random::from_seed([1; 32]), pair.network.now());
    pair.client = Client::with_tls(&tls, &settings.client, remote, random, now);
    pair.handshake();
    pair.run(SECOND);
    let with_one = sessions.export().len();
    pair.network.rebind(CLIENT, other_host());
    pair.client.request(10_000, 10_000).unwrap();
    pair.run(SECOND);
    assert!(sessions.export().len() > with_one, "there are two tokens");
}
