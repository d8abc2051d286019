//! A client whose address changes without its knowledge, as behind a NAT that forgets: the server follows.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use quic_common::{Ecn, Random};
use quic_transport::{Connection, Event, PathEvent, PathNews, PathStats, tls};
use test_fixture::ends::{Client, Log, NAME, Server, Settings};
use test_fixture::network::{Chance, Link, Route, Verdict};
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, SeenPacket, frames,
};
use test_fixture::{Bulk, CLIENT, Pair, SERVER};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;
type ToServer = Pair<ScriptedPeer, Server<Log>>;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn link() -> Link {
    Link {
        bandwidth: Some(50_000_000),
        queue: 200_000,
        ..Link::delayed(MS * 10)
    }
}

fn other_port() -> SocketAddr {
    ([192, 0, 2, 1], 50_001).into()
}

fn other_host() -> SocketAddr {
    ([203, 0, 113, 9], 9999).into()
}

fn downloading(settings: &Settings, link: Link, bytes: u64) -> Bulks {
    let mut pair = Bulks::new(settings, link);
    pair.handshake();
    let Client {
        connection,
        application,
    } = &mut pair.client;
    application.request(connection, bytes, 0).unwrap();
    pair
}

fn server_paths(pair: &mut Bulks) -> Vec<PathStats> {
    pair.server.connection(0).unwrap().0.paths().collect()
}

fn in_use(connection: &Connection) -> PathStats {
    connection.paths().next().unwrap()
}

/// RFC 9000, 9.3: the transfer goes on at the new address, which is validated; the old one is forgotten in the end.
#[test]
fn a_transfer_survives_a_new_port_and_a_new_host() {
    for address in [other_port(), other_host()] {
        for (download, upload) in [(3_000_000, 0), (0, 3_000_000)] {
            let mut pair = Bulks::new(&Settings::default(), link());
            pair.handshake();
            let Client {
                connection,
                application,
            } = &mut pair.client;
            application.request(connection, download, upload).unwrap();
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

fn to_server() -> ToServer {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.handshake();
    pair.run(SECOND);
    pair
}

/// The scripted client, with spare connection IDs given to the server.
fn supplied() -> ToServer {
    let mut pair = to_server();
    for sequence in 1..4_u8 {
        let frame = frames::new_connection_id(sequence.into(), 0, &[sequence; 8], [sequence; 16]);
        pair.client.send(Level::OneRtt, &frame);
    }
    pair.run(SECOND);
    pair.client.forget();
    pair
}

fn challenges(packets: &[SeenPacket]) -> Vec<[u8; 8]> {
    let frames = packets.iter().flat_map(|packet| &packet.frames);
    frames
        .filter_map(|frame| match frame {
            SeenFrame::PathChallenge(data) => Some(*data),
            _ => None,
        })
        .collect()
}

fn path_events(pair: &mut ToServer) -> Vec<PathEvent> {
    let (_, log) = pair.server.connection(0).unwrap();
    let events = log.events.iter();
    events
        .filter_map(|event| match event {
            Event::Path(event) => Some(**event),
            _ => None,
        })
        .collect()
}

/// RFC 9000, 9.3 and 8.2.1: the first packet to the new address has a challenge, in a datagram of 1200 bytes as far as
/// three times what came permits; and until that is answered nothing goes beyond.
#[test]
fn the_first_packet_has_a_challenge_and_the_limit_holds() {
    for size in [30, 100, 400, 1200] {
        let mut pair = supplied();
        let (connection, _) = pair.server.connection(0).unwrap();
        let id = connection
            .open(quic_transport::Direction::Unidirectional)
            .unwrap();
        pair.client.acknowledges = false;
        pair.network.rebind(CLIENT, other_host());
        let before = pair.network.passed(SERVER, CLIENT).sent_bytes;
        let packet = pair.client.seal(&Draft {
            size,
            ..Draft::new(Level::OneRtt, &frames::ping())
        });
        let received = packet.len();
        pair.client.send_datagram(packet);
        pair.run(MS * 15);
        let (connection, _) = pair.server.connection(0).unwrap();
        connection.stream_send(id, &vec![1; 50_000]).unwrap();
        pair.run(MS * 900);
        let sent = pair.network.passed(SERVER, CLIENT).sent_bytes - before;
        assert!(
            sent <= 3 * u64::try_from(received).unwrap(),
            "{sent} for {received}"
        );
        let first = &pair.client.packets()[0];
        assert_eq!(
            challenges(std::slice::from_ref(first)).len(),
            1,
            "{first:?}"
        );
        assert_eq!(
            first.datagram_length >= 1200,
            received * 3 >= 1200,
            "{received}"
        );
    }
}

/// RFC 9000, 8.2.3: an answer to a small datagram validates the address; then the MTU is validated, too.
#[test]
fn a_validation_in_a_small_datagram_is_followed_by_a_full_one() {
    let mut pair = supplied();
    pair.network.rebind(CLIENT, other_host());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 30);
    let [small] = challenges(pair.client.packets())[..] else {
        panic!("{:?}", pair.client.packets());
    };
    assert!(pair.client.packets()[0].datagram_length < 1200);
    pair.client.forget();
    pair.client
        .send(Level::OneRtt, &frames::path_response(small));
    pair.run(MS * 30);
    let [full] = challenges(pair.client.packets())[..] else {
        panic!("{:?}", pair.client.packets());
    };
    assert_ne!(small, full, "unpredictable data each time");
    assert!(pair.client.packets()[0].datagram_length >= 1200);
    pair.client.forget();
    pair.client
        .send(Level::OneRtt, &frames::path_response(full));
    pair.run(SECOND * 2);
    assert_eq!(challenges(pair.client.packets()), [[0; 8]; 0]);
}

/// RFC 9000, 9.3.2: when the new address doesn't answer, the last one that did is used again.
#[test]
fn without_an_answer_the_server_returns() {
    let mut pair = supplied();
    pair.client.acknowledges = false;
    let home = pair.network.address(CLIENT);
    let packet = pair.client.seal(&Draft {
        size: 1200,
        ..Draft::new(Level::OneRtt, &frames::ping())
    });
    let route = Route {
        source: other_host(),
        destination: pair.network.address(SERVER),
    };
    pair.network.inject(route, Ecn::NotEct, &packet);
    pair.run(SECOND * 2);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), other_host());
    // RFC 9000, 9.3.3: the old path is asked at once.
    let asked = challenges(pair.client.packets());
    assert!(!asked.is_empty());
    assert!(
        pair.network.unroutable() <= 3,
        "{}",
        pair.network.unroutable()
    );
    pair.run(SECOND * 2);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
    assert!(!connection.is_closing());
    let news: Vec<_> = path_events(&mut pair)
        .iter()
        .map(|e| (e.remote, e.news))
        .collect();
    let expected = [
        (other_host(), PathNews::InUse),
        (home, PathNews::InUse),
        (other_host(), PathNews::Failed),
    ];
    assert_eq!(news, expected);
    pair.client.forget();
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND);
    assert!(!pair.client.packets().is_empty());
}

/// B22. RFC 9000, 9.3: an older packet that comes late from the old address doesn't lead back there; a newer one does.
#[test]
fn only_the_newest_packet_tells_where_the_client_is() {
    let mut pair = supplied();
    let home = pair.network.address(CLIENT);
    let late = pair
        .client
        .seal(&Draft::new(Level::OneRtt, &frames::ping()));
    pair.network.rebind(CLIENT, other_port());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    let route = Route {
        source: home,
        destination: pair.network.address(SERVER),
    };
    pair.network.inject(route, Ecn::NotEct, &late);
    pair.run(MS * 50);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), other_port());
    let newer = pair
        .client
        .seal(&Draft::new(Level::OneRtt, &frames::ping()));
    pair.network.inject(route, Ecn::NotEct, &newer);
    pair.run(MS * 50);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
    assert!(in_use(connection).is_validated, "it was known before");
}

/// RFC 9000, 9.1: packets of probing frames only don't move the connection, and are answered where they came from.
#[test]
fn a_probe_is_answered_on_its_path_and_moves_nothing() {
    let mut pair = supplied();
    let (home, second) = (pair.network.address(CLIENT), other_host());
    pair.network.add_address(CLIENT, second);
    pair.client.set_local(second);
    pair.client.acknowledges = false;
    let packet = pair.client.seal(&Draft {
        size: 1200,
        ..Draft::new(Level::OneRtt, &frames::path_challenge([7; 8]))
    });
    pair.client.send_datagram(packet);
    pair.run(MS * 50);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
    let there = |packet: &&SeenPacket| packet.to == Some(second);
    let probes: Vec<_> = pair.client.packets().iter().filter(there).collect();
    let [probe] = probes[..] else {
        panic!("{probes:?}");
    };
    assert!(probe.frames.contains(&SeenFrame::PathResponse([7; 8])));
    assert!(probe.datagram_length >= 1200);
    assert_eq!(
        probe.destination, [1; 8],
        "a connection ID that was never used"
    );
    // RFC 9000, 9.6.3: it is asked in turn, and may answer from anywhere (8.2.2, B24).
    let [question] = challenges(pair.client.packets())[..] else {
        panic!("{probe:?}");
    };
    pair.client.set_local(home);
    pair.client
        .send(Level::OneRtt, &frames::path_response([9; 8]));
    pair.run(MS * 50);
    let is_validated = |pair: &mut ToServer| {
        let (connection, _) = pair.server.connection(0).unwrap();
        let path = connection
            .paths()
            .find(|path| path.remote == second)
            .unwrap();
        path.is_validated
    };
    assert!(!is_validated(&mut pair));
    pair.client
        .send(Level::OneRtt, &frames::path_response(question));
    pair.run(MS * 50);
    assert!(is_validated(&mut pair));
}

/// RFC 9000, 9.5 and 5.1.2: another connection ID on the new path, and the one of the old path is retired in the end;
/// where there is none to spare, a client that didn't change its own gets the same again.
#[test]
fn the_new_path_has_a_new_connection_id_if_there_is_any() {
    let mut pair = supplied();
    let home = pair.client.local_cid().to_vec();
    pair.network.rebind(CLIENT, other_host());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    let there = |packet: &&SeenPacket| packet.destination == [1; 8];
    let new: Vec<_> = pair.client.packets().iter().filter(there).collect();
    let answer = challenges(&[new[0].clone()])[0];
    pair.client
        .send(Level::OneRtt, &frames::path_response(answer));
    pair.run(SECOND * 8);
    let retired = SeenFrame::RetireConnectionId { sequence: 0 };
    assert!(
        pair.client
            .frames(Level::OneRtt)
            .any(|frame| *frame == retired)
    );

    let mut pair = to_server();
    pair.client.forget();
    pair.network.rebind(CLIENT, other_host());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    assert!(
        pair.client
            .packets()
            .iter()
            .all(|packet| packet.destination == home)
    );
    assert!(!challenges(pair.client.packets()).is_empty());
}

/// RFC 9000, 9.3: a client that uses another connection ID has moved on purpose, and gets nothing before it has given
/// one to answer with.
#[test]
fn a_deliberate_move_waits_for_a_connection_id() {
    let mut pair = to_server();
    let given = pair
        .client
        .frames(Level::OneRtt)
        .find_map(|frame| match frame {
            SeenFrame::NewConnectionId { cid, .. } => Some(cid.clone()),
            _ => None,
        });
    pair.client.set_remote_cid(&given.unwrap());
    pair.client.forget();
    pair.network.rebind(CLIENT, other_host());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    assert!(
        pair.client.packets().is_empty(),
        "{:?}",
        pair.client.packets()
    );
    let spare = frames::new_connection_id(1, 0, &[1; 8], [1; 16]);
    pair.client.send(Level::OneRtt, &spare);
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(MS * 50);
    assert!(
        pair.client
            .packets()
            .iter()
            .all(|packet| packet.destination == [1; 8])
    );
    assert!(!challenges(pair.client.packets()).is_empty());
}

/// B22: a copy of a client's packet that comes first, from an attacker's address, gains it three times its size.
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

/// B23: a client that comes from another address with each packet.
#[test]
fn a_storm_of_moves_is_bounded() {
    let mut pair = supplied();
    for round in 0..20_000_u32 {
        let [_, a, b, c] = round.to_be_bytes();
        let source = SocketAddr::from(([203, a, b, c], 4000));
        let frame = if round % 2 == 0 {
            frames::ping()
        } else {
            frames::path_challenge([c; 8])
        };
        let packet = pair.client.seal(&Draft::new(Level::OneRtt, &frame));
        let route = Route {
            source,
            destination: pair.network.address(SERVER),
        };
        pair.network.inject(route, Ecn::NotEct, &packet);
        if round % 50 == 0 {
            pair.run(MS);
            let (connection, _) = pair.server.connection(0).unwrap();
            assert!(!connection.is_closing());
            assert!(connection.paths().count() <= 5);
        }
    }
    // All that was gained: three times the packets, and nothing that stays.
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND * 30);
    let home = pair.network.address(CLIENT);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
    assert_eq!(connection.paths().count(), 1);
    pair.client.forget();
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND);
    assert!(!pair.client.packets().is_empty());
}

/// B23: nor do the news of it pile up for an application that doesn't take them.
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

/// B05: challenges from an address that isn't validated are answered within three times what came.
#[test]
fn a_flood_of_challenges_from_elsewhere_is_bounded() {
    let mut pair = supplied();
    pair.client.acknowledges = false;
    let second = other_host();
    pair.network.add_address(CLIENT, second);
    pair.client.set_local(second);
    let before = pair.network.passed(SERVER, CLIENT).sent_bytes;
    let mut received = 0;
    for round in 0..2000_u64 {
        let packet = pair.client.seal(&Draft::new(
            Level::OneRtt,
            &frames::path_challenge(round.to_be_bytes()),
        ));
        received += u64::try_from(packet.len()).unwrap();
        pair.client.send_datagram(packet);
        pair.run(MS);
    }
    let home = pair.network.address(CLIENT);
    let there = |packet: &&SeenPacket| packet.to == Some(second);
    let to_second = pair.client.packets().iter().filter(there);
    let sent: usize = to_second.map(|packet| packet.datagram_length).sum();
    assert!(
        u64::try_from(sent).unwrap() <= 3 * received,
        "{sent} for {received}"
    );
    let all = pair.network.passed(SERVER, CLIENT).sent_bytes - before;
    assert!(all < 4 * received, "{all}");
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.remote(), home);
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

/// RFC 9000, 9: addresses stay during the handshake; what comes from elsewhere then changes nothing.
#[test]
fn nobody_moves_during_the_handshake() {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.client.is_automatic = false;
    let hello = pair.client.take_crypto(Level::Initial);
    pair.client.send(Level::Initial, &frames::crypto(0, &hello));
    pair.run(MS * 30);
    pair.client.forget();
    let home = pair.network.address(CLIENT);
    pair.network.rebind(CLIENT, other_host());
    let finished = pair.client.take_crypto(Level::Handshake);
    pair.client
        .send(Level::Handshake, &frames::crypto(0, &finished));
    pair.run(MS * 30);
    assert!(pair.client.packets().is_empty());
    let (connection, _) = pair.server.connection(0).unwrap();
    assert!(connection.is_handshaking() && connection.remote() == home);
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
    let Client {
        connection,
        application,
    } = &mut pair.client;
    application.request(connection, 10_000, 10_000).unwrap();
    pair.run(SECOND);
    assert!(sessions.export().len() > with_one, "there are two tokens");
}

/// RFC 9002, 6.2.2: the time between a challenge and its answer is no RTT sample.
#[test]
fn a_response_is_no_rtt_sample() {
    let mut pair = supplied();
    pair.client.acknowledges = false;
    pair.network.rebind(CLIENT, other_host());
    let packet = pair.client.seal(&Draft {
        size: 1200,
        ..Draft::new(Level::OneRtt, &frames::ping())
    });
    pair.client.send_datagram(packet);
    pair.run(MS * 50);
    let data = challenges(pair.client.packets())[0];
    pair.client
        .send(Level::OneRtt, &frames::path_response(data));
    pair.run(MS * 50);
    let (connection, _) = pair.server.connection(0).unwrap();
    let path = in_use(connection);
    assert!(path.is_validated);
    assert_eq!(path.smoothed_rtt, MS * 333);
}
