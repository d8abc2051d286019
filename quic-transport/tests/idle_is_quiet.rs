//! An end that has nothing to do is not woken: after each scenario a second passes without a turn that does nothing.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::Ecn;
use quic_transport::{Config, Connection, Direction};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Chance, Link, Party, Route, Verdict};
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, frames, parameters};
use test_fixture::{Bulk, CLIENT, Pair, SERVER};

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

const SECOND: Duration = Duration::from_secs(1);

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

fn to_server(parameters: Parameters) -> ToServer {
    let mut pair = ToServer::scripted_client(&Settings::default(), parameters, link());
    pair.handshake();
    pair
}

fn to_client(parameters: Parameters) -> ToClient {
    let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link());
    pair.handshake();
    pair
}

/// Once timers of the last exchange have run off, each end is asked only because the test asks, once in each second.
fn assert_quiet<C: Party, S: Party>(pair: &mut Pair<C, S>, what: &str) {
    pair.run(SECOND * 5);
    for second in 0..10 {
        assert_eq!(pair.turns(SECOND), (1, 1), "{what}, second {second}");
    }
}

fn server(pair: &mut ToServer) -> &mut Connection {
    pair.server.connection(0).unwrap().0
}

#[test]
fn after_a_handshake() {
    assert_quiet(&mut to_server(Parameters::generous()), "server");
    assert_quiet(&mut to_client(Parameters::generous()), "client");
    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&Settings::default(), link());
    pair.handshake();
    assert_quiet(&mut pair, "both");
}

/// Paths of a small MTU, slow ones, and lossy ones.
#[test]
fn after_a_transfer() {
    let links = [
        link(),
        Link {
            largest: 1300,
            ..link()
        },
        Link {
            bandwidth: Some(2_000_000),
            queue: 20_000,
            ..link()
        },
        Link {
            loss: Chance::percent(10),
            ..link()
        },
    ];
    for link in links {
        let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&Settings::default(), link);
        pair.handshake();
        pair.client.request(300_000, 300_000).unwrap();
        pair.run_until(|pair| pair.client.application.complete == 1);
        // What is lost last is sent again, with a backoff.
        pair.network
            .set_links(Link::delayed(Duration::from_millis(10)));
        pair.run(SECOND * 5);
        assert_quiet(&mut pair, &format!("{link:?}"));
    }
}

/// RFC 9000, 4.1: a sender without credit waits for it.
#[test]
fn without_credit() {
    let limits: [&[(u64, u64)]; 3] = [
        &[(parameters::INITIAL_MAX_DATA, 10)],
        &[
            (parameters::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, 10),
            (parameters::INITIAL_MAX_STREAM_DATA_UNI, 10),
        ],
        &[
            (parameters::INITIAL_MAX_DATA, 0),
            (parameters::INITIAL_MAX_STREAMS_UNI, 1),
        ],
    ];
    for limits in limits {
        let mut parameters = Parameters::generous();
        for (id, value) in limits {
            parameters.set(*id, *value);
        }
        let mut pair = to_server(parameters.clone());
        while let Some(id) = server(&mut pair).open(Direction::Unidirectional) {
            assert!(server(&mut pair).stream_send(id, &[1; 5000]).unwrap() > 0);
        }
        assert_quiet(&mut pair, &format!("server {limits:?}"));

        let mut pair = to_client(parameters);
        for direction in [Direction::Unidirectional, Direction::Bidirectional] {
            while let Some(id) = pair.client.connection.open(direction) {
                let sent = pair.client.connection.stream_send(id, &[1; 5000]);
                assert!(sent.unwrap() > 0);
            }
        }
        assert_quiet(&mut pair, &format!("client {limits:?}"));
    }
}

/// Data that nobody reads: the window stays shut, and its owner quiet.
#[test]
fn with_data_that_nobody_reads() {
    let mut pair = to_server(Parameters::generous());
    for offset in 0..1000 {
        let frame = frames::stream(0, offset * 1000, &[1; 1000], false);
        pair.client.send(Level::OneRtt, &frame);
    }
    assert_quiet(&mut pair, "unread");
}

#[test]
fn after_key_updates() {
    let mut pair = to_server(Parameters::generous());
    for _ in 0..5 {
        pair.client.update_keys();
        pair.client.send(Level::OneRtt, &frames::ping());
        pair.run(SECOND / 10);
    }
    assert_quiet(&mut pair, "updates");
    assert_eq!(pair.client.phases(), (5, 5));
}

/// Frames that nobody expects, ACKs that say nothing new.
#[test]
fn after_frames_that_mean_little() {
    let mut pair = to_server(Parameters::generous());
    for _ in 0..50 {
        let frames = [
            frames::path_challenge([1; 8]),
            frames::path_response([2; 8]),
            frames::data_blocked(1),
            frames::streams_blocked(1),
            frames::max_data(1),
            frames::max_streams(1),
            frames::raw_ack(0, 1 << 40, 0, &[]),
            frames::retire_connection_id(1),
        ]
        .concat();
        pair.client.send(Level::OneRtt, &frames);
        pair.run(SECOND / 50);
    }
    assert_quiet(&mut pair, "odd frames");
    assert_eq!(pair.client.close_code(), None);
}

/// RFC 9002, 6.2.1: probes back off, and are all that happens until the idle timeout.
#[test]
fn while_the_peer_is_gone() {
    let mut pair = to_server(Parameters::generous());
    pair.client.is_automatic = false;
    let id = server(&mut pair).open(Direction::Unidirectional).unwrap();
    server(&mut pair)
        .stream_send(id, &vec![1; 100_000])
        .unwrap();
    let (_, turns) = pair.turns(SECOND * 60);
    assert!(turns < 60, "{turns}");
    assert!(pair.server.endpoint.is_empty());
    let sent = pair.network.passed(SERVER, CLIENT).sent;
    assert_eq!(pair.turns(SECOND * 100), (1, 1));
    assert_eq!(pair.network.passed(SERVER, CLIENT).sent, sent);
}

/// RFC 9002, 6.2.2.1: a client that hears nothing probes with a backoff until it gives up.
#[test]
fn while_the_server_is_silent() {
    let mut pair = ToClient::scripted_server(&Settings::default(), Parameters::generous(), link());
    pair.server.is_automatic = false;
    let (turns, _) = pair.turns(SECOND * 40);
    assert!(turns < 40, "{turns}");
    assert!(pair.client.connection.is_closed());
    assert_eq!(pair.turns(SECOND * 100), (1, 1));
}

/// RFC 9002, 6.2.2.1: nor does it spin when the server has sent all but the end of its handshake.
#[test]
fn while_half_of_the_handshake_is_missing() {
    let mut pair = ToClient::scripted_server(&Settings::default(), Parameters::generous(), link());
    pair.network.set_filter(
        SERVER,
        CLIENT,
        Box::new(|_, number| {
            if number == 0 {
                Verdict::Pass
            } else {
                Verdict::Drop
            }
        }),
    );
    let (turns, _) = pair.turns(SECOND * 40);
    assert!(turns < 60, "{turns}");
    assert!(pair.client.connection.is_closed());
}

/// RFC 9000, 8.2 and 9.3: an acknowledgment that is due waits, without a turn, where the new address may get nothing more.
/// A packet that came from the old address has asked for it, and doesn't move the connection back.
#[test]
fn while_an_address_in_doubt_gets_nothing_more() {
    let mut pair = to_server(Parameters::generous());
    pair.run(SECOND);
    pair.client.is_automatic = false;
    let known = pair.network.address(CLIENT);
    let elsewhere = "198.51.100.7:5000".parse().unwrap();
    let another_id = frames::new_connection_id(1, 0, &[1; 8], [1; 16]);
    for (source, frames) in [(elsewhere, frames::ping()), (known, another_id)] {
        let datagram = pair.client.seal(&Draft::new(Level::OneRtt, &frames));
        let route = Route {
            source,
            destination: pair.network.address(SERVER),
        };
        pair.network.inject(route, Ecn::NotEct, &datagram);
        pair.run(Duration::from_millis(1));
        assert_eq!(server(&mut pair).remote(), elsewhere);
    }
    let (_, turns) = pair.turns(Duration::from_millis(50));
    assert!(turns < 10, "{turns}");
}

/// RFC 8899, 5.1.1: the time to look for a larger MTU may come while nothing gets through.
#[test]
fn while_the_search_for_a_larger_datagram_has_to_wait() {
    const SEARCH: Duration = Duration::from_mins(10);
    let config = Config {
        idle_timeout: SEARCH * 3,
        ..Config::default()
    };
    let settings = Settings {
        client: config.clone(),
        server: config,
        ..Settings::default()
    };
    let narrow = Link {
        largest: 1300,
        ..link()
    };
    let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&settings, narrow);
    pair.handshake();
    pair.client.request(1 << 20, 1 << 20).unwrap();
    pair.run(SEARCH.saturating_sub(SECOND * 2));
    for _ in 0..40 {
        for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
            let lost = |_: &mut Vec<u8>, _: u64| Verdict::Drop;
            pair.network.set_filter(from, to, Box::new(lost));
        }
        pair.client.request(1, 1).unwrap();
        // For one probe timeout, so that it doesn't look as if only small datagrams got through.
        let (turns, _) = pair.turns(Duration::from_millis(75));
        assert!(turns < 50, "{turns}");
        pair.network.clear_filter(CLIENT, SERVER);
        pair.network.clear_filter(SERVER, CLIENT);
        pair.run(Duration::from_millis(35));
    }
    pair.run(SECOND);
    assert_eq!(pair.client.application.complete, 41);
}

/// RFC 9000, 10.2: three probe timeouts of closing or draining, and then nothing is left.
#[test]
fn after_the_end() {
    let mut pair = to_server(Parameters::generous());
    server(&mut pair).close(7, b"over");
    let (_, turns) = pair.turns(SECOND * 5);
    assert!(turns <= 10, "{turns}");
    assert!(pair.server.endpoint.is_empty());
    assert_eq!(pair.turns(SECOND * 100), (1, 1));

    let mut pair = to_server(Parameters::generous());
    pair.client
        .send(Level::OneRtt, &frames::application_close(7, b"over"));
    pair.run(SECOND / 20);
    let sent = pair.network.passed(SERVER, CLIENT).sent;
    let (_, turns) = pair.turns(SECOND * 5);
    assert!(turns <= 10, "{turns}");
    assert!(pair.server.endpoint.is_empty());
    assert_eq!(
        pair.network.passed(SERVER, CLIENT).sent,
        sent,
        "nothing is sent when draining"
    );
}
