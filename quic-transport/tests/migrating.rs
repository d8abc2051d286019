//! A client that moves on purpose: to another address of its own, or to the one that its server prefers.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use quic_common::Ecn;
use quic_transport::{ApiError, Direction, Event, PathId, PathNews, PathStats};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Chance, Link, Route};
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, SeenPacket, frames, parameters,
};
use test_fixture::{Bulk, CLIENT, Pair, SERVER};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;
type Logs = Pair<Client<Log>, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn link() -> Link {
    Link {
        bandwidth: Some(50_000_000),
        queue: 200_000,
        ..Link::delayed(MS * 10)
    }
}

fn second() -> SocketAddr {
    ([198, 51, 100, 7], 6000).into()
}

fn preferred() -> SocketAddrV4 {
    "198.51.100.1:8443".parse().unwrap()
}

fn first_of(connection: &quic_transport::Connection) -> PathStats {
    connection.paths().next().unwrap()
}

fn news(events: &[Event]) -> Vec<(SocketAddr, PathNews)> {
    let news = events.iter().filter_map(|event| match event {
        Event::Path(event) => Some((event.remote, event.news)),
        _ => None,
    });
    news.collect()
}

fn server_remote<A: quic_transport::Application + Default, C>(
    pair: &mut Pair<C, Server<A>>,
) -> SocketAddr {
    pair.server.connection(0).unwrap().0.remote()
}

/// RFC 9000, 9.1, 9.2 and 9.5: validated first, then used; with other connection IDs in both directions.
#[test]
fn a_probed_path_takes_over_in_mid_transfer() {
    for loss in [0, 3] {
        let lossy = Link {
            loss: Chance::percent(loss),
            ..link()
        };
        let mut pair = Bulks::new(&Settings::default(), lossy);
        pair.handshake();
        pair.client.request(3_000_000, 1_000_000).unwrap();
        pair.run(MS * 200);
        pair.network.add_address(CLIENT, second());
        let now = pair.network.now();
        let path = pair.client.connection.probe(second(), now).unwrap();
        let is_validated = |pair: &Bulks| {
            let mut paths = pair.client.connection.paths();
            paths.any(|known| known.path == path && known.is_validated)
        };
        pair.run_until(|pair| is_validated(pair));
        assert_ne!(server_remote(&mut pair), second(), "probing moves nothing");
        let now = pair.network.now();
        pair.client.connection.migrate(path, now).unwrap();
        assert_eq!(first_of(&pair.client.connection).path, path);
        pair.run(MS * 100);
        assert_eq!(server_remote(&mut pair), second());
        pair.run_until(|pair| pair.client.application.complete == 1);
        assert!(!pair.client.application.is_wrong);
        pair.run(SECOND * 8);
        assert_eq!(pair.client.connection.paths().count(), 1);
        assert_eq!(pair.server.connection(0).unwrap().0.paths().count(), 1);
    }
}

/// RFC 9000, 9.2: a client may move first and validate on the way, as when its address is gone.
#[test]
fn a_move_without_a_probe_is_validated_on_the_way() {
    let mut pair = Bulks::new(&Settings::default(), link());
    pair.handshake();
    pair.client.request(3_000_000, 0).unwrap();
    pair.run(MS * 200);
    let home = pair.network.address(CLIENT);
    pair.network.add_address(CLIENT, second());
    pair.network.remove_address(CLIENT, home);
    let now = pair.network.now();
    let path = pair.client.connection.probe(second(), now).unwrap();
    pair.client.connection.migrate(path, now).unwrap();
    pair.run_until(|pair| pair.client.application.complete == 1);
    assert_eq!(server_remote(&mut pair), second());
    assert!(first_of(&pair.client.connection).is_validated);
}

fn to_client(parameters: Parameters) -> ToClient {
    let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link());
    pair.handshake();
    pair
}

fn supply(pair: &mut ToClient) {
    for sequence in 1..4_u8 {
        let frame = frames::new_connection_id(sequence.into(), 0, &[sequence; 8], [sequence; 16]);
        pair.server.send(Level::OneRtt, &frame);
    }
    pair.run(SECOND);
    pair.server.forget();
}

fn is_probing(packet: &SeenPacket) -> bool {
    packet.frames.iter().all(|frame| {
        matches!(
            frame,
            SeenFrame::Padding { .. }
                | SeenFrame::PathChallenge(_)
                | SeenFrame::PathResponse(_)
                | SeenFrame::NewConnectionId { .. }
        )
    })
}

fn has_challenge(packet: &SeenPacket) -> bool {
    let is_challenge = |frame: &SeenFrame| matches!(frame, SeenFrame::PathChallenge(_));
    packet.frames.iter().any(is_challenge)
}

/// RFC 9000, 8.2.1, 8.2.4 and 9.5: full datagrams with one challenge each, to a connection ID of their own; given up
/// after three PTO, while the connection goes on.
#[test]
fn a_probe_without_an_answer_fails_and_nothing_else_does() {
    let mut pair = to_client(Parameters::generous());
    supply(&mut pair);
    pair.network.add_address(CLIENT, second());
    let now = pair.network.now();
    let path = pair.client.connection.probe(second(), now).unwrap();
    let again = pair.client.connection.probe(second(), now).unwrap();
    assert_eq!(path, again);
    pair.run(SECOND * 5);
    let from_second = |packet: &&SeenPacket| packet.from == Some(second());
    let probes: Vec<_> = pair.server.packets().iter().filter(from_second).collect();
    assert!((1..=3).contains(&probes.len()), "{probes:?}");
    for probe in &probes {
        assert!(is_probing(probe) && has_challenge(probe), "{probe:?}");
        assert!(probe.datagram_length >= 1200);
        assert_eq!(probe.destination, [1; 8]);
    }
    let waits: Vec<_> = probes.windows(2).map(|w| w[1].at - w[0].at).collect();
    assert!(waits.iter().all(|wait| *wait >= SECOND), "{waits:?}");
    let remote = pair.network.address(SERVER);
    let failed = (remote, PathNews::Failed);
    assert_eq!(news(&pair.client.application.events), [failed]);
    assert_eq!(pair.client.connection.paths().count(), 1);
    let retired = SeenFrame::RetireConnectionId { sequence: 1 };
    let mut seen = pair.server.frames(Level::OneRtt);
    assert!(seen.any(|frame| *frame == retired));
    let now = pair.network.now();
    let error = pair.client.connection.migrate(path, now).unwrap_err();
    assert!(matches!(error, ApiError::Migration(_)));
}

/// RFC 9000, 9.3.2: a client that moved to a path on which nobody answers returns.
#[test]
fn a_client_returns_from_where_nobody_answers() {
    let mut pair = to_client(Parameters::generous());
    supply(&mut pair);
    pair.network.add_address(CLIENT, second());
    let now = pair.network.now();
    let path = pair.client.connection.probe(second(), now).unwrap();
    pair.client.connection.migrate(path, now).unwrap();
    pair.run(SECOND);
    let mut packets = pair.server.packets().iter();
    assert!(packets.any(|packet| packet.from == Some(second()) && !is_probing(packet)));
    pair.run(SECOND * 5);
    assert_eq!(first_of(&pair.client.connection).path, PathId::default());
    assert!(!pair.client.connection.is_closing());
}

/// RFC 9000, 9, 9.5 and 18.2: no move before confirmation, none that the server forbids, none without a connection ID
/// to spare; servers don't move.
#[test]
fn moves_that_are_not_possible_are_refused() {
    let why = |pair: &mut ToClient| {
        let now = pair.network.now();
        match pair.client.connection.probe(second(), now) {
            Err(ApiError::Migration(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let mut pair = ToClient::scripted_server(&Settings::default(), Parameters::generous(), link());
    assert!(why(&mut pair).contains("confirmed"));
    let mut pair = to_client(Parameters::generous());
    assert!(why(&mut pair).contains("spare"));
    let mut forbidding = Parameters::generous();
    forbidding.set_bytes(parameters::DISABLE_ACTIVE_MIGRATION, &[]);
    let mut pair = to_client(forbidding);
    supply(&mut pair);
    assert!(why(&mut pair).contains("forbids"));
    assert_eq!(pair.network.passed(CLIENT, SERVER).lost, 0);

    let mut settings = Settings::default();
    settings.server.disable_active_migration = true;
    let mut pair = Logs::new(&settings, link());
    pair.handshake();
    pair.run(SECOND);
    let now = pair.network.now();
    let refused = pair.client.connection.probe(second(), now);
    assert!(matches!(refused, Err(ApiError::Migration(_))));
    let (connection, _) = pair.server.connection(0).unwrap();
    let refused = connection.probe(second(), now);
    assert!(matches!(refused, Err(ApiError::Migration(_))));
}

/// No more paths than there are places and connection IDs for.
#[test]
fn probes_are_bounded() {
    let mut pair = Logs::new(&Settings::default(), link());
    pair.handshake();
    pair.run(SECOND);
    let mut made = Vec::new();
    // Whoever stays where it is has IDs for two more paths; the server gives more when it sees the first of them.
    for (ports, expected) in [(1..50, 2), (50..100, 4)] {
        for port in ports {
            let local = SocketAddr::from(([198, 51, 100, 7], port));
            pair.network.add_address(CLIENT, local);
            let now = pair.network.now();
            match pair.client.connection.probe(local, now) {
                Ok(path) => made.push(path),
                Err(error) => assert!(matches!(error, ApiError::Migration(_))),
            }
        }
        assert_eq!(made.len(), expected);
        pair.run(Duration::from_millis(30));
    }
    let now = pair.network.now();
    pair.client.connection.abandon_path(made[0]);
    let freed = pair.client.connection.probe(second(), now);
    assert!(freed.is_ok(), "{freed:?}");
}

/// RFC 9000, 5.1.1 and 9.5: each attempt takes a connection ID of the server's, and none can be asked for while nothing is
/// heard. A connection that has been in use for a while has enough for several.
#[test]
fn attempts_may_fail_while_nothing_else_is_heard() {
    let mut pair = Logs::new(&Settings::default(), link());
    pair.handshake();
    for _ in 0..5 {
        let client = &mut pair.client.connection;
        let id = client.open(Direction::Unidirectional).unwrap();
        client.stream_send(id, b"in use").unwrap();
        pair.run(SECOND / 2);
    }
    let home = pair.network.address(CLIENT);
    let dead = Link {
        loss: Chance::percent(100),
        ..link()
    };
    pair.network.set_links(dead);
    let probe = |pair: &mut Logs, port: u16| {
        let local = SocketAddr::from(([198, 51, 100, 7], port));
        pair.network.add_address(CLIENT, local);
        let now = pair.network.now();
        let path = pair.client.connection.probe(local, now);
        pair.run(SECOND * 4);
        (local, path)
    };
    for port in 1..=5 {
        let (_, path) = probe(&mut pair, port);
        assert!(path.is_ok(), "{port}: {path:?}");
        assert_eq!(pair.client.connection.paths().count(), 1, "it has failed");
    }
    pair.network.set_links(link());
    pair.network.remove_address(CLIENT, home);
    let (local, path) = probe(&mut pair, 6);
    let now = pair.network.now();
    pair.client.connection.migrate(path.unwrap(), now).unwrap();
    pair.run(SECOND);
    assert_eq!(server_remote(&mut pair), local);
    assert!(first_of(&pair.client.connection).is_validated);
}

/// RFC 9000, 9: a client drops what comes from where it has sent nothing.
#[test]
fn a_client_drops_packets_of_unknown_servers() {
    let mut pair = to_client(Parameters::generous());
    let before = pair.network.passed(CLIENT, SERVER).sent;
    let dropped = pair.client.connection.stats().packets_dropped;
    let draft = Draft::new(Level::OneRtt, &[1]);
    let packet = pair.server.seal(&draft);
    let route = Route {
        source: second(),
        destination: pair.network.address(CLIENT),
    };
    pair.network.inject(route, Ecn::NotEct, &packet);
    pair.run(SECOND);
    assert_eq!(pair.client.connection.stats().packets_dropped, dropped + 1);
    assert_eq!(pair.network.passed(CLIENT, SERVER).sent, before);
    assert_eq!(pair.network.unroutable(), 0);
}

fn preferring() -> Settings {
    let mut settings = Settings::default();
    settings.server.preferred_v4 = Some(preferred());
    settings.server.preferred_v6 = Some("[2001:db8::1]:8443".parse().unwrap());
    settings
}

/// RFC 9000, 9.6: the client validates the address and moves there; the server answers from there once it has seen it.
#[test]
fn both_ends_move_to_the_preferred_address() {
    for loss in [0, 3] {
        let lossy = Link {
            loss: Chance::percent(loss),
            ..link()
        };
        let mut pair = Bulks::new(&preferring(), lossy);
        pair.network.add_address(SERVER, preferred().into());
        pair.handshake();
        pair.client.request(3_000_000, 0).unwrap();
        pair.run_until(|pair| pair.client.application.complete == 1);
        assert!(!pair.client.application.is_wrong);
        let here = SocketAddr::from(preferred());
        assert_eq!(pair.client.connection.remote(), here, "loss {loss}");
        let (connection, _) = pair.server.connection(0).unwrap();
        assert_eq!(first_of(connection).local, Some(here));
        pair.run(SECOND * 8);
        assert_eq!(pair.client.connection.paths().count(), 1);
    }
}

/// B35. RFC 9000, 9.6.1 and 21.5.3: where nobody answers, the client stays; and whoever is there gets a probe or two.
#[test]
fn a_preferred_address_that_leads_nowhere_gets_probes_only() {
    let mut pair = Logs::new(&preferring(), link());
    pair.handshake();
    pair.run(SECOND * 10);
    let (home, nowhere) = (pair.network.address(SERVER), SocketAddr::from(preferred()));
    assert!(pair.network.unroutable() <= 3);
    assert_eq!(pair.client.connection.remote(), home);
    assert_eq!(
        news(&pair.client.application.events),
        [(nowhere, PathNews::Failed)]
    );
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.paths().count(), 1);
}

#[test]
fn a_client_need_not_follow() {
    let mut settings = preferring();
    settings.client.follows_preferred_address = false;
    let mut pair = Logs::new(&settings, link());
    pair.network.add_address(SERVER, preferred().into());
    pair.handshake();
    pair.run(SECOND * 2);
    assert_eq!(
        pair.client.connection.remote(),
        pair.network.address(SERVER)
    );
    assert_eq!(pair.client.connection.paths().count(), 1);
}

fn with_preferred(v4: SocketAddrV4) -> Parameters {
    let mut value = v4.ip().octets().to_vec();
    value.extend(v4.port().to_be_bytes());
    value.extend([0; 18]);
    value.push(8);
    value.extend([9; 8]);
    value.extend([10; 16]);
    let mut parameters = Parameters::generous();
    parameters.set_bytes(parameters::PREFERRED_ADDRESS, &value);
    parameters
}

/// RFC 9000, 9.6.2 and 21.5.3: nothing but probes goes there before it is validated, and all but probes after.
#[test]
fn the_client_moves_when_the_preferred_address_is_validated() {
    let parameters = with_preferred(preferred());
    let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link());
    pair.network.add_address(SERVER, preferred().into());
    pair.handshake();
    let there = |packet: &SeenPacket| packet.to == Some(preferred().into());
    let mut packets = pair.server.packets().iter().filter(|p| there(p));
    let probe = packets.next().unwrap().clone();
    assert!(is_probing(&probe) && has_challenge(&probe));
    assert!(packets.all(is_probing));
    assert_eq!(
        probe.destination, [9; 8],
        "the connection ID that came with it"
    );
    let challenge = probe.frames.iter().find_map(|frame| match frame {
        SeenFrame::PathChallenge(data) => Some(*data),
        _ => None,
    });
    pair.server.forget();
    pair.server
        .send(Level::OneRtt, &frames::path_response(challenge.unwrap()));
    pair.run(MS * 100);
    pair.client
        .connection
        .open(Direction::Unidirectional)
        .and_then(|id| pair.client.connection.stream_send(id, b"moved").ok())
        .unwrap();
    pair.run(MS * 100);
    let mut rest = pair.server.packets().iter().filter(|p| !is_probing(p));
    assert!(rest.all(there));
    let here = SocketAddr::from(preferred());
    assert_eq!(pair.client.connection.remote(), here);
}

/// RFC 9000, 21.5.6: no server gets a client to talk to the client's own machine.
#[test]
fn a_loopback_address_is_not_preferred_from_elsewhere() {
    let loopback = SocketAddrV4::new([127, 0, 0, 1].into(), 80);
    let pair = to_client(with_preferred(loopback));
    assert_eq!(pair.client.connection.paths().count(), 1);
    assert_eq!(pair.network.unroutable(), 0);
}

/// RFC 9000, 9.3.3: a challenge on the path in use is answered by a packet that says that it is in use.
#[test]
fn an_answer_on_the_path_in_use_is_no_probe() {
    let mut pair = to_client(Parameters::generous());
    pair.server.forget();
    pair.server
        .send(Level::OneRtt, &frames::path_challenge([3; 8]));
    pair.run(MS * 100);
    let [answer] = pair.server.packets() else {
        panic!("{:?}", pair.server.packets());
    };
    assert!(answer.frames.contains(&SeenFrame::PathResponse([3; 8])));
    assert!(!is_probing(answer));
}

fn challenge_in<'p>(mut packets: impl Iterator<Item = &'p SeenPacket>) -> Option<[u8; 8]> {
    packets.find_map(|packet| {
        packet.frames.iter().find_map(|frame| match frame {
            SeenFrame::PathChallenge(data) => Some(*data),
            _ => None,
        })
    })
}

/// RFC 9000, 9.6.2 and 9.6.3: the server probes from its preferred address, and uses it when the client has been seen
/// there and the way is validated; what is new and comes to the old address then is dropped. If the client comes from
/// another address as well, that gets three times what came from it.
#[test]
fn a_server_stays_until_the_client_is_seen_at_the_preferred_address() {
    for moves_too in [false, true] {
        let settings = preferring();
        let parameters = Parameters::generous();
        let mut pair =
            Pair::<ScriptedPeer, Server<Log>>::scripted_client(&settings, parameters, link());
        let (old, new) = (pair.network.address(SERVER), SocketAddr::from(preferred()));
        pair.network.add_address(SERVER, new);
        pair.handshake();
        for sequence in 1..4_u8 {
            let frame =
                frames::new_connection_id(sequence.into(), 0, &[sequence; 8], [sequence; 16]);
            pair.client.send(Level::OneRtt, &frame);
        }
        pair.run(SECOND);
        pair.client.forget();
        pair.client.acknowledges = false;
        if moves_too {
            pair.network.rebind(CLIENT, second());
        }
        pair.client.set_remote(new);
        let packet = pair.client.seal(&Draft {
            size: 1200,
            ..Draft::new(Level::OneRtt, &frames::path_challenge([5; 8]))
        });
        pair.client.send_datagram(packet);
        pair.run(MS * 50);
        let from_new = |packet: &&SeenPacket| packet.from == Some(new);
        let probes: Vec<_> = pair.client.packets().iter().filter(from_new).collect();
        assert!(probes.iter().all(|packet| is_probing(packet)), "{probes:?}");
        assert!(probes[0].frames.contains(&SeenFrame::PathResponse([5; 8])));
        let sent: usize = probes.iter().map(|packet| packet.datagram_length).sum();
        assert!(sent <= 3600);
        let asked = challenge_in(probes.into_iter()).unwrap();
        // Seen there, but not validated yet.
        pair.client.send(Level::OneRtt, &frames::ping());
        pair.run(MS * 50);
        let (connection, _) = pair.server.connection(0).unwrap();
        assert_eq!(first_of(connection).local, Some(old));
        pair.client
            .send(Level::OneRtt, &frames::path_response(asked));
        pair.run(MS * 50);
        let (connection, _) = pair.server.connection(0).unwrap();
        assert_eq!(first_of(connection).local, Some(new));
        let dropped = connection.stats().packets_dropped;
        pair.client.set_remote(old);
        pair.client.send(Level::OneRtt, &frames::ping());
        pair.run(MS * 50);
        let (connection, _) = pair.server.connection(0).unwrap();
        assert_eq!(first_of(connection).local, Some(new));
        if !moves_too {
            assert_eq!(connection.stats().packets_dropped, dropped + 1);
        }
    }
}

/// RFC 9000, 9.6.3: while the preferred address is being asked, a client that moves asks both from its new address, and
/// goes on with the preferred one if that answers.
#[test]
fn a_client_that_moves_early_asks_both_addresses() {
    let here = SocketAddr::from(preferred());
    let parameters = with_preferred(preferred());
    let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link());
    pair.network.add_address(SERVER, here);
    pair.network.add_address(CLIENT, second());
    pair.server.is_automatic = true;
    pair.run_until(|pair| pair.server.is_confirmed());
    for sequence in 2..5_u8 {
        let frame = frames::new_connection_id(sequence.into(), 0, &[sequence; 8], [sequence; 16]);
        pair.server.send(Level::OneRtt, &frame);
    }
    pair.run(MS * 30);
    let now = pair.network.now();
    let path = pair.client.connection.probe(second(), now).unwrap();
    pair.run(MS * 30);
    let old = pair.network.address(SERVER);
    let moved = |packet: &&SeenPacket| packet.from == Some(second());
    let to = |to| move |packet: &&SeenPacket| moved(packet) && packet.to == Some(to);
    assert!(challenge_in(pair.server.packets().iter().filter(to(old))).is_some());
    let asked = challenge_in(pair.server.packets().iter().filter(to(here))).unwrap();
    pair.server
        .send(Level::OneRtt, &frames::path_response(asked));
    pair.run(MS * 50);
    let used = first_of(&pair.client.connection);
    assert_eq!((used.remote, used.local), (here, Some(second())));
    let mut known = pair.client.connection.paths();
    assert!(known.all(|known| known.path != path));
}
