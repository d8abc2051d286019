//! 0-RTT, RFC 9001, 4.6: what a client that comes back sends at once, and what becomes of it.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quic_common::{Ecn, Random};
use quic_transport::{Application, CloseReason, Config, Connection, Event, RetryPolicy};
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::{Link, Route, Verdict};
use test_fixture::scripted::{Parameters, ScriptedPeer, parameters as ids, server_config};
use test_fixture::visit::{Bulks, DELAY, Visit, client, settings};
use test_fixture::{Bulk, CLIENT, Pair, SERVER, network};

const SECOND: Duration = Duration::from_secs(1);

/// A long header's first byte, but for what is protected: Initial, 0-RTT.
const INITIAL: u8 = 0xc0;
const ZERO_RTT: u8 = 0xd0;

/// The server has read something while its handshake wasn't complete.
fn reads_early(pair: &mut Bulks) -> bool {
    pair.run_until(|pair| {
        let server = pair.server.connection(0);
        server.is_some_and(|(server, bulk)| bulk.received > 0 || !server.is_handshaking())
    });
    let (server, application) = pair.server.connection(0).unwrap();
    server.is_handshaking() && application.received > 0
}

#[test]
fn early_data_arrives_half_a_round_trip_after_it_was_asked_for() {
    let mut visit = Visit::new(&settings());
    visit.come_back();
    assert!(visit.client().is_sending_early_data());
    let start = visit.pair.network.now();
    visit.request(3000, 5000);
    assert!(reads_early(&mut visit.pair));
    assert_eq!(visit.pair.network.now() - start, DELAY);
    visit.finish(1, 5008);
    assert!(visit.client().is_resumed());
    assert!(visit.client().is_early_data_accepted());
    let (server, _) = visit.pair.server.connection(0).unwrap();
    assert!(server.is_resumed() && server.is_early_data_accepted());
}

/// RFC 9001, 4.6.1: no data may be sent early by a client that wasn't told so, nor by one that wasn't asked to.
#[test]
fn who_does_not_want_early_data_sends_and_takes_none() {
    let quiet = Config::default();
    let eager = settings().client;
    for (client, server) in [(&quiet, &eager), (&eager, &quiet), (&quiet, &quiet)] {
        let settings = Settings {
            client: client.clone(),
            server: server.clone(),
            ..Settings::default()
        };
        let mut visit = Visit::new(&settings);
        visit.come_back();
        if !client.early_data {
            visit.pair.client = self::client(&visit.pair, &visit.tls, client, 9);
        }
        assert!(!visit.client().is_sending_early_data());
        visit.pair.handshake();
        assert!(visit.client().is_resumed());
        assert!(!visit.client().is_early_data_accepted());
    }
}

/// RFC 9001, 4.6.2: rejected streams begin anew; nothing is lost and nothing comes twice.
#[test]
fn what_is_rejected_is_sent_again() {
    let mut visit = Visit::new(&settings());
    visit.pair.server.config.early_data = false;
    visit.come_back();
    assert!(visit.client().is_sending_early_data());
    for _ in 0..5 {
        visit.request(3000, 20_000);
    }
    assert!(!reads_early(&mut visit.pair));
    visit.finish(5, 5 * 20_008);
    assert!(visit.client().is_resumed());
    assert!(!visit.client().is_early_data_accepted());
}

/// RFC 9000, 7.4.1 (C10): a server whose limits have shrunk rejects early data; the session is resumed all the same.
#[test]
fn shrunk_limits_reject_early_data_and_resumption_goes_on() {
    type Shrink = fn(&mut Config);
    let shrinks: [Shrink; 4] = [
        |config| config.stream_window -= 1,
        |config| config.connection_window -= 1,
        |config| config.max_streams_bidirectional -= 1,
        |config| config.max_streams_unidirectional -= 1,
    ];
    for shrink in shrinks {
        let mut visit = Visit::new(&settings());
        shrink(&mut visit.pair.server.config);
        visit.come_back();
        visit.request(3000, 5000);
        assert!(!reads_early(&mut visit.pair));
        visit.finish(1, 5008);
        assert!(visit.client().is_resumed());
        assert!(!visit.client().is_early_data_accepted());
    }
}

#[test]
fn grown_limits_are_used_after_the_handshake() {
    let settings = Settings {
        server: Config {
            max_streams_bidirectional: 2,
            stream_window: 5_000,
            connection_window: 10_000,
            ..settings().server
        },
        ..settings()
    };
    let mut visit = Visit::new(&settings);
    visit.pair.server.config = self::settings().server;
    visit.come_back();
    visit.request(10, 100_000);
    visit.request(10, 100_000);
    assert_eq!(visit.pair.client.request(10, 10), None);
    assert!(reads_early(&mut visit.pair));
    let (_, application) = visit.pair.server.connection(0).unwrap();
    assert!(application.received <= 10_000);
    visit.finish(2, 200_016);
    visit.request(10, 10);
    visit.finish(3, 200_034);
    assert!(visit.client().is_early_data_accepted());
}

/// RFC 9001, 4.6.2: streams beyond a limit that is smaller now wait until the server lets them in.
#[test]
fn streams_beyond_a_shrunk_limit_wait_for_their_turn() {
    let mut visit = Visit::new(&settings());
    visit.pair.server.config.max_streams_bidirectional = 2;
    visit.pair.server.config.stream_window = 2_000;
    visit.pair.server.config.connection_window = 3_000;
    visit.come_back();
    for _ in 0..10 {
        visit.request(500, 10_000);
    }
    let connection = &mut visit.pair.client.connection;
    let given_up = connection.open(quic_transport::Direction::Bidirectional);
    connection
        .stream_send(given_up.unwrap(), b"never mind")
        .unwrap();
    connection.reset(given_up.unwrap(), 7).unwrap();
    visit.finish(10, 100_080);
    assert!(!visit.client().is_early_data_accepted());
}

/// RFC 9000, 17.2.5.3: after a Retry early data is sent again, to the server's new connection ID.
#[test]
fn early_data_goes_through_a_retry() {
    let settings = Settings {
        retry: RetryPolicy::Always,
        ..settings()
    };
    let mut visit = Visit::new(&settings);
    // The token of the first visit would spare the Retry: another connection takes it, with one of two sessions.
    visit.come_back();
    visit.come_back();
    let retries = visit.pair.server.endpoint.stats().retries;
    assert!(visit.client().is_sending_early_data());
    visit.request(3000, 5000);
    assert!(reads_early(&mut visit.pair));
    visit.finish(1, 5008);
    assert_eq!(visit.pair.server.endpoint.stats().retries, retries + 1);
    assert!(visit.client().is_early_data_accepted());
}

/// RFC 9000, 5.2.2: 0-RTT packets that come before the Initial are kept for a while, up to a bound.
#[test]
fn early_data_that_overtakes_the_initial_is_kept() {
    let mut visit = Visit::new(&settings());
    visit.come_back();
    visit.request(3000, 6_000);
    let held = DELAY / 2;
    let passed = visit.pair.network.passed(CLIENT, SERVER).sent;
    visit.pair.network.set_filter(
        CLIENT,
        SERVER,
        Box::new(move |datagram, number| {
            let is_first = number == passed && datagram[0] & 0xf0 == INITIAL;
            if is_first {
                Verdict::Hold(held)
            } else {
                Verdict::Pass
            }
        }),
    );
    let start = visit.pair.network.now();
    visit.pair.run_until(|pair| {
        let server = pair.server.connection(0);
        server.is_some_and(|(_, bulk)| bulk.received >= 6008)
    });
    assert_eq!(visit.pair.network.now() - start, DELAY + held);
    visit.finish(1, 6008);
    assert!(visit.client().is_early_data_accepted());
}

#[test]
fn lost_early_data_is_sent_again_in_1_rtt_packets() {
    for lost in 0..5_u64 {
        let mut visit = Visit::new(&settings());
        visit.come_back();
        visit.request(3000, 6_000);
        let passed = visit.pair.network.passed(CLIENT, SERVER).sent;
        visit.pair.network.set_filter(
            CLIENT,
            SERVER,
            Box::new(move |_, number| {
                let is_lost = number == passed + lost;
                if is_lost {
                    Verdict::Drop
                } else {
                    Verdict::Pass
                }
            }),
        );
        visit.finish(1, 6008);
        assert!(visit.client().is_early_data_accepted(), "{lost}");
    }
}

/// Copies of what the client sends from now on that begins with a packet of these kinds.
fn record(visit: &mut Visit, kinds: &'static [u8]) -> Arc<Mutex<Vec<Vec<u8>>>> {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let copies = Arc::clone(&recorded);
    visit.pair.network.set_filter(
        CLIENT,
        SERVER,
        Box::new(move |datagram, _| {
            if datagram
                .first()
                .is_some_and(|first| kinds.contains(&(first & 0xf0)))
            {
                copies.lock().unwrap().push(datagram.clone());
            }
            Verdict::Pass
        }),
    );
    recorded
}

/// Who records a client's first flight and sends it again gets a full handshake out of the server, and no data.
#[test]
fn a_replayed_first_flight_delivers_nothing() {
    let mut visit = Visit::new(&settings());
    visit.come_back();
    visit.request(3000, 2_000);
    let recorded = record(&mut visit, &[INITIAL, ZERO_RTT]);
    visit.finish(1, 2008);
    assert!(visit.client().is_early_data_accepted());
    visit.leave();
    // From another address, to the same server.
    let source = "198.51.100.7:5000".parse().unwrap();
    let destination = visit.pair.network.address(SERVER);
    for datagram in recorded.lock().unwrap().iter() {
        let route = Route {
            source,
            destination,
        };
        visit.pair.network.inject(route, Ecn::NotEct, datagram);
    }
    visit.pair.run(SECOND);
    let (server, application) = visit.pair.server.connection(0).unwrap();
    assert!(server.is_handshaking());
    assert!(!server.is_resumed() && !server.is_early_data_accepted());
    assert_eq!(application.received, 0);
}

/// Settings of the application that differ from those beside the session.
#[test]
fn the_application_may_refuse_early_data() {
    #[derive(Debug, Default)]
    struct Choosy(Bulk);
    impl Application for Choosy {
        fn process(&mut self, connection: &mut Connection, now: std::time::Instant) {
            self.0.process(connection, now);
        }
        fn settings(&self) -> Vec<u8> {
            vec![7]
        }
        fn accepts_early_data(&self, settings: &[u8]) -> bool {
            assert_eq!(settings, [7]);
            false
        }
    }
    let settings = settings();
    let mut pair = Pair::<Client<Choosy>, Server<Choosy>>::new(&settings, Link::delayed(DELAY));
    let tls = settings.client_tls();
    for visit in 0..2 {
        let remote = (NAME, pair.network.address(SERVER));
        let random = Random::from_seed([visit; 32]);
        let now = pair.network.now();
        pair.client = Client::with_tls(&tls, &settings.client, remote, random, now);
        assert_eq!(pair.client.connection.is_sending_early_data(), visit > 0);
        pair.handshake();
        assert_eq!(pair.client.connection.is_resumed(), visit > 0);
        assert!(!pair.client.connection.is_early_data_accepted());
        pair.run(SECOND);
        pair.client.connection.close(0, b"");
        pair.run(SECOND * 10);
        pair.server.handles.clear();
    }
}

#[test]
fn the_outcome_is_an_event() {
    for accepts in [true, false] {
        let settings = settings();
        let mut pair = Pair::<Client<Log>, Server<Log>>::new(&settings, Link::delayed(DELAY));
        let tls = settings.client_tls();
        for visit in 0..2 {
            let remote = (NAME, pair.network.address(SERVER));
            let random = Random::from_seed([visit; 32]);
            let now = pair.network.now();
            pair.client = Client::with_tls(&tls, &settings.client, remote, random, now);
            pair.handshake();
            pair.run(SECOND);
            pair.client.connection.abandon(CloseReason::Unreachable);
            pair.server.config.early_data = accepts;
            pair.server.handles.clear();
        }
        let events = &pair.client.application.events;
        let outcome = Event::EarlyData { accepted: accepts };
        let place = |event| events.iter().position(|one| *one == event);
        assert!(place(outcome).unwrap() < place(Event::Connected).unwrap());
    }
}

/// RFC 9001, 4.9.3 and 5.6: a server forgets the keys of 0-RTT packets after a while, and packets that come later.
#[test]
fn late_early_data_is_taken_for_a_while_and_dropped_then() {
    for (late, is_taken) in [(DELAY * 2, true), (SECOND, false)] {
        let mut visit = Visit::new(&settings());
        visit.come_back();
        visit.request(3000, 6_000);
        let passed = visit.pair.network.passed(CLIENT, SERVER).sent;
        visit.pair.network.set_filter(
            CLIENT,
            SERVER,
            Box::new(move |datagram, number| {
                let is_early = number > passed && datagram[0] & 0xf0 == ZERO_RTT;
                if is_early {
                    Verdict::Hold(late)
                } else {
                    Verdict::Pass
                }
            }),
        );
        visit.finish(1, 6008);
        let (server, _) = visit.pair.server.connection(0).unwrap();
        let dropped = server.stats().packets_dropped;
        assert_eq!(dropped == 0, is_taken, "{dropped}");
    }
}

/// A scripted server that accepts early data, with a client that has been to one which had other parameters.
fn scripted(then: &Parameters, now: &Parameters) -> Pair<Client<Log>, ScriptedPeer> {
    let settings = settings();
    let mut config = server_config(&settings.certificate, &[ALPN]);
    config.max_early_data_size = u32::MAX;
    let tls = settings.client_tls();
    let connect = |parameters: &Parameters, seed: u8| {
        let network = network(&settings, Link::delayed(DELAY));
        let remote = (NAME, network.address(SERVER));
        let random = Random::from_seed([seed; 32]);
        Pair {
            client: Client::with_tls(&tls, &settings.client, remote, random, network.now()),
            server: ScriptedPeer::server(config.clone(), parameters.clone(), seed),
            network,
        }
    };
    let mut first: Pair<Client<Log>, ScriptedPeer> = connect(then, 1);
    first.handshake();
    first.run(SECOND);
    let second = connect(now, 2);
    assert!(second.client.connection.is_sending_early_data());
    second
}

/// RFC 9000, 7.4.1 (C10): a server that accepts early data and lowers a limit is closed with PROTOCOL_VIOLATION.
#[test]
fn a_server_that_breaks_its_promise_is_an_error() {
    let mut then = Parameters::generous();
    then.set(ids::MAX_DATAGRAM_FRAME_SIZE, 1000);
    for id in [
        ids::INITIAL_MAX_DATA,
        ids::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL,
        ids::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE,
        ids::INITIAL_MAX_STREAM_DATA_UNI,
        ids::INITIAL_MAX_STREAMS_BIDI,
        ids::INITIAL_MAX_STREAMS_UNI,
        ids::MAX_DATAGRAM_FRAME_SIZE,
    ] {
        let mut now = then.clone();
        now.set(id, 999);
        let mut pair = scripted(&then, &now);
        pair.run(SECOND);
        assert_eq!(pair.server.close_code(), Some(0x0a), "{id}");
    }
    let mut now = then.clone();
    now.set(ids::INITIAL_MAX_STREAMS_BIDI, 1001);
    let mut pair = scripted(&then, &now);
    pair.handshake();
    assert!(pair.client.connection.is_early_data_accepted());
    assert_eq!(pair.server.close_code(), None);
}

/// RFC 9001, 5.6: 0-RTT packets come from clients only, and a client's own can be sent back to it.
#[test]
fn a_clients_own_packets_sent_back_are_dropped() {
    let mut visit = Visit::new(&settings());
    visit.come_back();
    visit.request(3000, 6_000);
    let recorded = record(&mut visit, &[ZERO_RTT]);
    visit.pair.run(DELAY / 2);
    let route = Route {
        source: visit.pair.network.address(SERVER),
        destination: visit.pair.network.address(CLIENT),
    };
    let copies = recorded.lock().unwrap().clone();
    assert!(!copies.is_empty());
    for mut copy in copies {
        // Addressed to the client: both IDs have eight bytes.
        let (one, other) = copy[5..23].split_at_mut(9);
        one.swap_with_slice(other);
        visit.pair.network.inject(route, Ecn::NotEct, &copy);
    }
    visit.finish(1, 6008);
    assert!(visit.client().is_early_data_accepted());
    assert!(visit.client().stats().packets_dropped > 0);
}
