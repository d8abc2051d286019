//! Which version a connection comes to, with two ends of ours and with peers that say something else (A11).
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::Ecn;
use quic_transport::{CloseReason, Config, Event, RetryPolicy, Version, Versions};
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::{Chance, Link, Route, Verdict};
use test_fixture::scripted::{
    Level, Parameters, ScriptedPeer, SeenFrame, SeenPacket, VERSION_2, client_config, frames,
    parameters,
};
use test_fixture::{CLIENT, Pair, SERVER};

type Ours = Pair<Client<Log>, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;
type ToServer = Pair<ScriptedPeer, Server<Log>>;

const V1: u32 = 1;
const V2: u32 = VERSION_2;
const DELAY: Duration = Duration::from_millis(10);
const ROUND_TRIP: Duration = Duration::from_millis(20);
const SECOND: Duration = Duration::from_secs(1);

/// A version, what the peer says of versions, and the code that the connection is closed with.
type Case<'a> = (u32, Option<&'a [u32]>, Option<u64>);

const TRANSPORT_PARAMETER_ERROR: u64 = 0x08;
const VERSION_NEGOTIATION_ERROR: u64 = 0x11;

fn versions(list: &[u32]) -> Versions {
    let list: Vec<_> = list.iter().copied().map(Version).collect();
    Versions::new(&list).unwrap()
}

/// A client that begins with the first of its versions, or with another one.
fn client(list: &[u32], first: u32) -> Config {
    Config {
        versions: versions(list),
        first_version: Some(Version(first)),
        ..Config::default()
    }
}

fn settings(client: Config, server: &[u32]) -> Settings {
    Settings {
        client,
        versions: versions(server),
        ..Settings::default()
    }
}

/// Both ends' version, once they are connected.
fn connect(settings: &Settings, link: Link) -> (Version, Duration) {
    let mut pair = Ours::new(settings, link);
    pair.handshake();
    let client = &pair.client.connection;
    let (server, _) = pair.server.connection(0).unwrap();
    assert_eq!(server.version(), client.version());
    (client.version(), client.stats().handshake_time.unwrap())
}

/// RFC 9368, 2.3: the server's order decides, among what the client can do, and it costs no round trip.
#[test]
fn the_server_chooses_among_the_clients_versions() {
    let cases = [
        (client(&[V1], V1), &[V1, V2][..], V1),
        (client(&[V2], V2), &[V1, V2], V2),
        (client(&[V1, V2], V1), &[V1, V2], V1),
        (client(&[V1, V2], V1), &[V2, V1], V2),
        (client(&[V2, V1], V1), &[V2, V1], V2),
        (client(&[V2, V1], V2), &[V1, V2], V1),
        (client(&[V1], V1), &[V2, V1], V1),
        (Config::default(), &[V1, V2], V1),
    ];
    for (client, server, expected) in cases {
        for retry in [RetryPolicy::Never, RetryPolicy::Always] {
            let settings = Settings {
                retry,
                ..settings(client.clone(), server)
            };
            let (version, time) = connect(&settings, Link::delayed(DELAY));
            assert_eq!(version, Version(expected), "{server:?}");
            let round_trips = if retry == RetryPolicy::Always { 2 } else { 1 };
            assert_eq!(time, ROUND_TRIP * round_trips);
        }
    }
}

/// RFC 9368, 2.1: a server that can't read the first flight costs one round trip; the client takes what it wants most
/// of what the server speaks.
#[test]
fn a_client_begins_anew_with_a_version_of_the_servers() {
    for (client, server, expected) in [
        (client(&[V1, V2], V1), &[V2][..], V2),
        (client(&[V2, V1], V2), &[V1], V1),
    ] {
        for retry in [RetryPolicy::Never, RetryPolicy::Always] {
            let settings = Settings {
                retry,
                ..settings(client.clone(), server)
            };
            let (version, time) = connect(&settings, Link::delayed(DELAY));
            assert_eq!(version, Version(expected));
            let round_trips = if retry == RetryPolicy::Always { 3 } else { 2 };
            assert_eq!(time, ROUND_TRIP * round_trips);
        }
    }
}

/// RFC 9368, 2.1: without a version in common the attempt ends.
#[test]
fn no_version_in_common_ends_the_attempt() {
    for (ours, theirs) in [(V1, V2), (V2, V1)] {
        let settings = settings(client(&[ours], ours), &[theirs]);
        let mut pair = Ours::new(&settings, Link::delayed(DELAY));
        pair.run(SECOND);
        let ended = Event::Closed(CloseReason::VersionMismatch);
        assert_eq!(pair.client.application.events, [ended]);
        assert!(pair.server.endpoint.is_empty());
    }
}

/// Lost, repeated and reordered packets of both versions do no harm.
#[test]
fn versions_are_negotiated_over_a_bad_network() {
    for seed in 0..60 {
        let cases = [
            (client(&[V1, V2], V1), &[V2, V1][..], V2),
            (client(&[V2, V1], V2), &[V1, V2], V1),
            (client(&[V1, V2], V1), &[V2], V2),
        ];
        for (client, server, expected) in cases {
            let settings = Settings {
                seed,
                ..settings(client, server)
            };
            let link = Link {
                loss: Chance::percent(20),
                duplicate: Chance::percent(20),
                reorder: Chance::percent(30),
                reorder_delay: DELAY,
                ..Link::delayed(DELAY)
            };
            let (version, _) = connect(&settings, link);
            assert_eq!(version, Version(expected), "seed {seed}");
        }
    }
}

/// A scripted server that answers in `version`, whatever the client's, and says `information` of it.
fn to_client(client: Config, version: u32, information: Option<&[u32]>) -> ToClient {
    let mut parameters = Parameters::generous();
    if let Some(information) = information {
        parameters.set_versions(information);
    }
    let settings = settings(client, &[V1]);
    let mut pair = ToClient::scripted_server(&settings, parameters, Link::delayed(DELAY));
    pair.server.set_version(version);
    pair
}

/// What comes of it: `None` when the handshake completes, else the code that the client closes with.
fn outcome(mut pair: ToClient) -> Option<u64> {
    pair.run(SECOND);
    let client = &pair.client.connection;
    assert_eq!(client.is_handshaking(), pair.server.close_code().is_some());
    pair.server.close_code()
}

/// RFC 9368, 4: the version that the server says it has chosen is one that was offered, and the one in use; RFC 9368, 3
/// and 4: a list that can't be parsed is a TRANSPORT_PARAMETER_ERROR.
#[test]
fn a_client_checks_what_the_server_says_of_versions() {
    let both = client(&[V1, V2], V1);
    let cases: [Case<'_>; 14] = [
        (V1, None, None),
        (V1, Some(&[V1]), None),
        (V1, Some(&[V1, V2, V1]), None),
        (V1, Some(&[V1, 0x0a0a_0a0a, 7]), None),
        (V1, Some(&[V2, V1, V2]), Some(VERSION_NEGOTIATION_ERROR)),
        (V1, Some(&[7, V1]), Some(VERSION_NEGOTIATION_ERROR)),
        (V2, Some(&[V2]), None),
        (V2, Some(&[V2, V1, V2]), None),
        (V2, Some(&[V1, V1, V2]), Some(VERSION_NEGOTIATION_ERROR)),
        (V2, None, Some(VERSION_NEGOTIATION_ERROR)),
        (V1, Some(&[]), Some(TRANSPORT_PARAMETER_ERROR)),
        (V1, Some(&[0, V1]), Some(TRANSPORT_PARAMETER_ERROR)),
        (V1, Some(&[V1, 0]), Some(TRANSPORT_PARAMETER_ERROR)),
        (V2, Some(&[V2, V2, 0]), Some(TRANSPORT_PARAMETER_ERROR)),
    ];
    for (version, information, expected) in cases {
        let pair = to_client(both.clone(), version, information);
        assert_eq!(outcome(pair), expected, "{version:#x} {information:x?}");
    }
    let mut cut = Parameters::generous();
    cut.set_bytes(parameters::VERSION_INFORMATION, &[0, 0, 0, 1, 0]);
    let settings = Settings::default();
    let pair = ToClient::scripted_server(&settings, cut, Link::delayed(DELAY));
    assert_eq!(outcome(pair), Some(TRANSPORT_PARAMETER_ERROR));
}

/// RFC 9368, 2.3: a client that offers no other version takes none.
#[test]
fn a_version_that_was_not_offered_is_dropped() {
    let mut pair = to_client(client(&[V1], V1), V2, Some(&[V2, V1, V2]));
    pair.run(SECOND);
    assert!(pair.client.connection.is_handshaking());
    assert!(pair.client.connection.stats().packets_dropped > 0);
}

/// A Version Negotiation packet, as the server that heard the client's first Initial would send it.
fn negotiation(pair: &ToClient, list: &[u32]) -> Vec<u8> {
    let heard = pair.server.packets().last().unwrap();
    let mut packet = vec![0x80, 0, 0, 0, 0];
    for cid in [&heard.source, &heard.destination] {
        packet.push(u8::try_from(cid.len()).unwrap());
        packet.extend(cid);
    }
    packet.extend(list.iter().flat_map(|version| version.to_be_bytes()));
    packet
}

/// What becomes of a client that was told of the versions `list` by someone, and then meets a server that speaks
/// `version` and says `information`.
fn told(client: &Config, list: &[u32], version: u32, information: Option<&[u32]>) -> Option<u64> {
    let mut silent = to_client(client.clone(), V1, None);
    silent.server.is_automatic = false;
    silent.run(DELAY + DELAY / 2);
    let packet = negotiation(&silent, list);

    let mut pair = to_client(client.clone(), version, information);
    let lose_first = |_: &mut Vec<u8>, number| {
        if number == 0 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    };
    pair.network
        .set_filter(CLIENT, SERVER, Box::new(lose_first));
    pair.run(DELAY);
    let route = Route {
        source: pair.network.address(SERVER),
        destination: pair.network.address(CLIENT),
    };
    pair.network.inject(route, Ecn::NotEct, &packet);
    let outcome = outcome(pair);
    assert_ne!(outcome, Some(0), "the client has begun anew");
    outcome
}

/// RFC 9368, 4: a client that began anew asks whether it would have done so, had the server itself told it; and 8: a
/// server of version 1 alone need not say anything.
#[test]
fn a_downgrade_is_detected() {
    let wants_1 = client(&[V1, V2], V1);
    let wants_2 = client(&[V2, V1], V2);
    let downgrade = Some(VERSION_NEGOTIATION_ERROR);
    let cases: [(&Config, Case<'_>); 10] = [
        (&wants_1, (V2, Some(&[V2, V2]), None)),
        (&wants_1, (V2, Some(&[V2, V2, 7, 0x1a1a_1a1a]), None)),
        (&wants_1, (V2, Some(&[V2, V1, V2]), downgrade)),
        (&wants_1, (V2, Some(&[V2]), downgrade)),
        (&wants_1, (V2, None, downgrade)),
        (&wants_2, (V1, Some(&[V1, V1]), None)),
        (&wants_2, (V1, None, None)),
        (&wants_2, (V1, Some(&[V1, V1, V2]), downgrade)),
        (&wants_2, (V1, Some(&[V1]), downgrade)),
        (&wants_2, (V1, Some(&[V1, V2]), downgrade)),
    ];
    for (client, (version, information, expected)) in cases {
        let outcome = told(client, &[version, 0x5a5a_5a5a], version, information);
        assert_eq!(outcome, expected, "{version:#x} {information:x?}");
    }
}

/// RFC 9368, 2.4 and 4: after it began anew, the server may still choose another compatible version.
#[test]
fn a_compatible_version_may_follow_a_new_beginning() {
    let wants_2 = client(&[V2, V1], V2);
    assert_eq!(told(&wants_2, &[V1], V1, Some(&[V1, V1])), None);
    // This server spoke version 2 after all, so that the packet that said otherwise was forged.
    let outcome = told(&wants_2, &[V1], V2, Some(&[V2, V1, V2]));
    assert_eq!(outcome, Some(VERSION_NEGOTIATION_ERROR));
}

/// RFC 9368, 4: a client follows one Version Negotiation packet, and no second.
#[test]
fn a_client_begins_anew_once() {
    let mut pair = to_client(client(&[V1, V2], V1), V1, None);
    pair.server.is_automatic = false;
    pair.run(DELAY + DELAY / 2);
    let packet = negotiation(&pair, &[V2]);
    pair.server.send_datagram(packet);
    pair.run(ROUND_TRIP);
    assert_eq!(pair.client.connection.version(), Version::V2);
    // The scripted server can't read what came, since its keys are those of the first attempt.
    let heard = pair.server.unreadable().last().unwrap().clone();
    let destination = heard[6..14].to_vec();
    let source = heard[15..23].to_vec();
    let mut second = vec![0x80, 0, 0, 0, 0, 8];
    second.extend(source);
    second.push(8);
    second.extend(destination);
    second.extend(V1.to_be_bytes());
    pair.server.send_datagram(second);
    pair.run(ROUND_TRIP);
    assert_eq!(pair.client.connection.version(), Version::V2);
    assert!(!pair.client.connection.is_closing());
    assert!(pair.client.connection.stats().packets_dropped > 0);
}

/// RFC 9369, 4.1: CRYPTO frames in the first version settle that it stays.
#[test]
fn crypto_in_the_first_version_settles_it() {
    let mut pair = to_client(client(&[V1, V2], V1), V1, None);
    pair.server.is_automatic = false;
    pair.run(DELAY + DELAY / 2);
    let hello = pair.server.take_crypto(Level::Initial);
    pair.server
        .send(Level::Initial, &frames::crypto(0, &hello[..10]));
    pair.run(ROUND_TRIP);
    let dropped = pair.client.connection.stats().packets_dropped;
    pair.server.change_version(V2);
    pair.server.send(Level::Initial, &frames::ping());
    pair.run(ROUND_TRIP);
    assert_eq!(pair.client.connection.version(), Version::V1);
    assert_eq!(pair.client.connection.stats().packets_dropped, dropped + 1);
}

/// RFC 9369, 4.1: before it knows the ClientHello a server may answer in the first version, and go on in another; the
/// client then sends that one, and no other.
#[test]
fn a_client_follows_from_the_first_packet_of_another_version() {
    let mut pair = to_client(client(&[V1, V2], V1), V2, Some(&[V2, V1, V2]));
    pair.server.is_automatic = false;
    pair.run(DELAY + DELAY / 2);
    pair.server.change_version(V1);
    pair.server.send(
        Level::Initial,
        &[frames::ack(&[0..=0]), frames::ping()].concat(),
    );
    pair.run(ROUND_TRIP);
    assert_eq!(pair.client.connection.version(), Version::V1);
    pair.server.change_version(V2);
    pair.server.is_automatic = true;
    pair.handshake();
    assert_eq!(pair.client.connection.version(), Version::V2);
    let packets = pair.server.packets();
    let turn = packets.iter().position(|packet| packet.version == V2);
    let (first, then) = packets.split_at(turn.unwrap());
    assert!(first.iter().all(|packet| packet.version == V1));
    assert!(then.iter().all(|packet| packet.version != V1));
}

/// A scripted client that begins in one version and does its handshake in another, and what it says of versions.
fn to_server(spoken: (u32, u32), server: &[u32], information: Option<&[u32]>) -> ToServer {
    let mut parameters = Parameters::generous();
    if let Some(information) = information {
        parameters.set_versions(information);
    }
    let settings = settings(Config::default(), server);
    let link = Link::delayed(DELAY);
    let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link);
    let root = settings.certificate.chain.last().unwrap();
    let tls = client_config(root, &[ALPN]);
    let remote = pair.network.address(SERVER);
    pair.client = ScriptedPeer::client_of_versions(spoken, tls, NAME, parameters, remote, 1);
    pair
}

/// RFC 9368, 4: a server compares the version that the client says it has chosen with the one in use.
#[test]
fn a_server_checks_what_the_client_says_of_versions() {
    let cases: [Case<'_>; 12] = [
        (V1, None, None),
        (V1, Some(&[V1, V1]), None),
        (V1, Some(&[V1, 7, 0x0a0a_0a0a, V1]), None),
        (V2, Some(&[V2, V2]), None),
        (V2, None, None),
        (V1, Some(&[V2, V1, V2]), Some(VERSION_NEGOTIATION_ERROR)),
        (V2, Some(&[V1, V1, V2]), Some(VERSION_NEGOTIATION_ERROR)),
        (V1, Some(&[7, 7, V1]), Some(VERSION_NEGOTIATION_ERROR)),
        (V1, Some(&[V1, V2]), Some(TRANSPORT_PARAMETER_ERROR)),
        (V1, Some(&[V1]), Some(TRANSPORT_PARAMETER_ERROR)),
        (V1, Some(&[V1, V1, 0]), Some(TRANSPORT_PARAMETER_ERROR)),
        (V1, Some(&[0, 0, V1]), Some(TRANSPORT_PARAMETER_ERROR)),
    ];
    for (version, information, expected) in cases {
        let mut pair = to_server((version, version), &[V2, V1], information);
        pair.run(SECOND);
        let close = pair.client.close_code();
        assert_eq!(close, expected, "{version:#x} {information:x?}");
        assert_eq!(pair.client.is_confirmed(), expected.is_none());
    }
}

/// RFC 9369, 4.1: the server's CRYPTO frames, and all Handshake packets, are of the version that it has chosen; RFC
/// 9368, 3: it says which, and which it speaks.
#[test]
fn a_server_speaks_the_version_that_it_has_chosen() {
    for (first, server, chosen) in [(V1, [V2, V1], V2), (V2, [V1, V2], V1), (V1, [V1, V2], V1)] {
        let mut pair = to_server((first, chosen), &server, Some(&[first, V1, V2]));
        pair.handshake();
        let long = |packet: &&SeenPacket| packet.level != Level::OneRtt;
        let mut seen = pair.client.packets().iter().filter(long);
        assert!(seen.all(|packet| packet.version == chosen));
        let said = pair.client.remote_parameters().unwrap();
        let words = [chosen, server[0], server[1]].map(u32::to_be_bytes);
        let expected = [&[0x11, 16][..], words.as_flattened()].concat();
        let found = said.windows(expected.len()).any(|part| part == expected);
        assert!(found, "{said:x?}");
        let (connection, _) = pair.server.connection(0).unwrap();
        assert_eq!(connection.version(), Version(chosen));
    }
}

/// RFC 9369, 4.1: Initial packets of the client's first version are read until a Handshake packet has come.
#[test]
fn a_server_reads_the_first_version_until_the_handshake_goes_on() {
    let mut pair = to_server((V1, V2), &[V2, V1], Some(&[V1, V1, V2]));
    pair.client.is_automatic = false;
    let hello = pair.client.take_crypto(Level::Initial);
    pair.client.send(Level::Initial, &frames::crypto(0, &hello));
    pair.run(SECOND / 20);
    let heard = |pair: &ToServer| {
        pair.client
            .frames(Level::Initial)
            .filter(|frame| matches!(frame, SeenFrame::Ack { .. }))
            .count()
    };
    for version in [V1, V2, V1] {
        let before = heard(&pair);
        pair.client.change_version(version);
        pair.client.send(Level::Initial, &frames::ping());
        pair.run(ROUND_TRIP);
        assert!(heard(&pair) > before, "{version:#x}");
    }
    // A Handshake packet of the first version is none.
    let (server, _) = pair.server.connection(0).unwrap();
    let dropped = server.stats().packets_dropped;
    pair.client.change_version(V1);
    pair.client.send(Level::Handshake, &frames::ping());
    pair.run(ROUND_TRIP);
    let (server, _) = pair.server.connection(0).unwrap();
    assert_eq!(server.stats().packets_dropped, dropped + 1);

    pair.client.change_version(V2);
    pair.client.send(Level::Handshake, &frames::ping());
    pair.run(ROUND_TRIP);
    let before = heard(&pair);
    pair.client.change_version(V1);
    pair.client.send(Level::Initial, &frames::ping());
    pair.run(ROUND_TRIP);
    assert_eq!(heard(&pair), before);
}

/// RFC 9000, 6.1 and RFC 9368, 2.1: a version that isn't spoken is answered with those that are, and a reserved one.
#[test]
fn a_version_that_is_switched_off_is_as_good_as_unknown() {
    for (first, server) in [(V1, V2), (V2, V1)] {
        let mut pair = to_server((first, first), &[server], None);
        pair.run(SECOND);
        let list = pair.client.versions();
        assert_eq!(list.len(), 2);
        assert!(Version(list[0]).is_reserved());
        assert_eq!(list[1], server);
        assert!(pair.server.endpoint.is_empty());
    }
}
