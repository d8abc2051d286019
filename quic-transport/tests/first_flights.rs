//! The first datagrams of a connection as the other end sees them: sizes, numbers, connection IDs, and how long the keys
//! of the handshake are good for.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::collections::BTreeMap;
use std::time::Duration;

use quic_common::Reader;
use quic_transport::{Direction, RetryPolicy};
use test_fixture::ends::{ALPN, Settings};
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, SeenPacket, frames, parameters as ids,
    server_config,
};
use test_fixture::scripted_pairs::{
    ROUND_TRIP, ToServer, link, to_client, to_server, to_waiting_server,
};
use test_fixture::{CLIENT, SERVER};

const SECOND: Duration = Duration::from_secs(1);

/// What a client and a server have sent in a handshake and a second of talk after it.
fn conversations() -> [Vec<SeenPacket>; 2] {
    let mut clients = to_client();
    clients.handshake();
    let connection = &mut clients.client.connection;
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.stream_send(id, &vec![1; 20_000]).unwrap();
    clients.run(SECOND);
    let mut servers = to_server();
    servers.handshake();
    let (connection, _) = servers.server.connection(0).unwrap();
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.stream_send(id, &vec![1; 20_000]).unwrap();
    servers.run(SECOND);
    [
        clients.server.packets().to_vec(),
        servers.client.packets().to_vec(),
    ]
}

fn is_ack_eliciting(packet: &SeenPacket) -> bool {
    packet.frames.iter().any(SeenFrame::is_ack_eliciting)
}

/// RFC 9000, 14.1: a client fills every datagram with an Initial, a server those that elicit an acknowledgment;
/// 17.2.2: without a Retry there is no token.
#[test]
fn datagrams_with_initials_are_full() {
    let [by_client, by_server] = conversations();
    for (packets, is_client) in [(by_client, true), (by_server, false)] {
        let initials = packets.iter().filter(|p| p.level == Level::Initial);
        for packet in initials {
            assert!(packet.token.is_empty());
            let must_be_full = is_client || is_ack_eliciting(packet);
            assert!(!must_be_full || packet.datagram_length >= 1200);
        }
    }
}

/// RFC 9000, 19.7 and 19.20.
#[test]
fn a_client_sends_no_frames_of_servers() {
    let [by_client, by_server] = conversations();
    let is_of_server =
        |frame: &SeenFrame| matches!(frame, SeenFrame::NewToken { .. } | SeenFrame::HandshakeDone);
    let has = |packets: &[SeenPacket]| packets.iter().flat_map(|p| &p.frames).any(is_of_server);
    assert!(!has(&by_client) && has(&by_server));
}

/// RFC 9000, 12.3 and 12.4: in each space from 0 on, none twice, and no packet without a frame.
#[test]
fn numbers_start_at_zero_and_grow() {
    for packets in conversations() {
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            let of_level = packets.iter().filter(|packet| packet.level == level);
            let numbers: Vec<_> = of_level.map(|packet| packet.number).collect();
            assert_eq!(numbers.first(), Some(&0));
            assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        }
        assert!(packets.iter().all(|packet| !packet.frames.is_empty()));
    }
}

/// RFC 9000, 17.2 and 17.3.1: the fixed bit is set; reserved bits are zero.
#[test]
fn reserved_bits_are_zero() {
    for packet in conversations().iter().flatten() {
        let (fixed, zero) = if packet.level == Level::OneRtt {
            (0x40, 0x18)
        } else {
            (0xc0, 0x0c)
        };
        assert_eq!(packet.first & (0xc0 | zero), fixed, "{packet:?}");
    }
}

/// RFC 9000, 12.2: coalesced packets are of different levels and for the same connection ID.
#[test]
fn datagrams_hold_one_packet_of_a_level() {
    let mut most = 0;
    for packets in conversations() {
        let mut datagrams = BTreeMap::<usize, Vec<SeenPacket>>::new();
        for packet in packets {
            datagrams.entry(packet.datagram).or_default().push(packet);
        }
        for packets in datagrams.values() {
            most = most.max(packets.len());
            assert!(packets.is_sorted_by(|a, b| a.level < b.level));
            assert!(packets.is_sorted_by(|a, b| a.destination == b.destination));
        }
    }
    assert!(most > 1, "some were coalesced");
}

/// RFC 9000, 7.2: at least 8 bytes, the same until the server is heard, and the server's own from then on.
#[test]
fn the_first_destination_is_kept_until_the_server_speaks() {
    let settings = Settings::default();
    let mut pair = to_client();
    // Another seed than the client's, so that both make up different connection IDs.
    let tls = server_config(&settings.certificate, &[ALPN]);
    pair.server = ScriptedPeer::server(tls, Parameters::generous(), settings.seed + 1);
    pair.server.is_automatic = false;
    pair.run(SECOND * 4);
    let first = pair.server.packets().first().unwrap().destination.clone();
    assert!(first.len() >= 8);
    assert!(pair.server.packets().len() > 2, "the client tries again");
    assert!(pair.server.packets().iter().all(|p| p.destination == first));
    pair.server.forget();
    pair.server.is_automatic = true;
    pair.handshake();
    let own = pair.server.local_cid().to_vec();
    let later = pair
        .server
        .packets()
        .iter()
        .skip_while(|p| p.destination == first);
    assert!(later.clone().count() > 0);
    assert!(later.clone().all(|p| p.destination == own));
}

/// RFC 9000, 7.2: once a peer has said what it is called, packets under another name are dropped, and nothing goes there.
#[test]
fn another_source_is_dropped() {
    let mut pair = to_client();
    pair.server.is_automatic = false;
    pair.run(ROUND_TRIP);
    pair.server.send(Level::Initial, &frames::ping());
    pair.run(ROUND_TRIP);
    let close = frames::connection_close(2, 0, b"");
    let mut draft = Draft::new(Level::Initial, &close);
    draft.source = Some(b"somebody");
    let packet = pair.server.seal(&draft);
    pair.server.send_datagram(packet);
    pair.run(ROUND_TRIP);
    assert!(!pair.client.connection.is_closing());

    let mut pair = to_waiting_server();
    let own = pair.client.local_cid().to_vec();
    for level in [Level::Initial, Level::Handshake] {
        let mut draft = Draft::new(level, &close);
        draft.source = Some(b"somebody");
        let packet = pair.client.seal(&draft);
        pair.client.send_datagram(packet);
        pair.run(ROUND_TRIP);
        let (connection, _) = pair.server.connection(0).unwrap();
        assert!(!connection.is_closing(), "{level:?}");
    }
    assert!(pair.client.packets().iter().all(|p| p.destination == own));
}

/// The transport parameters that a peer has sent.
fn decode(parameters: &[u8]) -> BTreeMap<u64, Vec<u8>> {
    let mut reader = Reader::new(parameters);
    let mut found = BTreeMap::new();
    while !reader.is_empty() {
        let id = reader.varint().unwrap();
        let value = reader.length_prefixed().unwrap().to_vec();
        assert_eq!(found.insert(id, value), None, "{id:#x} comes twice");
    }
    found
}

/// RFC 9000, 7.3, 7.4 and 18.2: each end names the connection IDs that it has used, and says what its role may say.
#[test]
fn the_parameters_name_the_connection_ids() {
    let of_server = [
        ids::ORIGINAL_DESTINATION_CID,
        ids::STATELESS_RESET_TOKEN,
        ids::PREFERRED_ADDRESS,
        ids::RETRY_SOURCE_CID,
    ];
    let mut pair = to_client();
    pair.handshake();
    let found = decode(pair.server.remote_parameters().unwrap());
    let source = &pair.server.packets().first().unwrap().source;
    assert_eq!(found.get(&ids::INITIAL_SOURCE_CID), Some(source));
    assert!(of_server.iter().all(|id| !found.contains_key(id)));
    let limit = found.get(&ids::ACTIVE_CID_LIMIT).unwrap();
    assert!(limit.first().is_some_and(|limit| *limit >= 2));

    let mut pair = to_server();
    let original = pair.client.remote_cid().to_vec();
    pair.handshake();
    let found = decode(pair.client.remote_parameters().unwrap());
    let source = &pair.client.packets().first().unwrap().source;
    assert_eq!(found.get(&ids::INITIAL_SOURCE_CID), Some(source));
    assert_eq!(found.get(&ids::ORIGINAL_DESTINATION_CID), Some(&original));
    assert_eq!(found.get(&ids::RETRY_SOURCE_CID), None);
    assert_eq!(found.get(&ids::STATELESS_RESET_TOKEN).unwrap().len(), 16);
    assert_eq!(found.get(&ids::DISABLE_ACTIVE_MIGRATION), None);
}

/// RFC 9000, 5.2.3: a server that can't follow its clients says so.
#[test]
fn a_server_asks_its_clients_not_to_move_if_it_is_told_to() {
    let mut settings = Settings::default();
    settings.server.disable_active_migration = true;
    let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link());
    pair.handshake();
    let found = decode(pair.client.remote_parameters().unwrap());
    let value = found.get(&ids::DISABLE_ACTIVE_MIGRATION);
    assert_eq!(value.map(Vec::len), Some(0));
}

/// RFC 9000, 8.1 and RFC 9002, 6.2.2.1: with nothing in flight a client probes all the same: with a full Initial, or with
/// a Handshake packet as soon as it has the keys.
#[test]
fn a_client_probes_while_the_server_may_be_blocked() {
    let mut pair = to_client();
    pair.server.is_automatic = false;
    pair.run(ROUND_TRIP);
    pair.server.send(Level::Initial, &frames::ack(&[0..=0]));
    pair.run(ROUND_TRIP);
    pair.server.forget();
    pair.run(SECOND * 3);
    let probes: Vec<_> = pair
        .server
        .packets()
        .iter()
        .filter(|p| is_ack_eliciting(p))
        .collect();
    assert!(!probes.is_empty());
    assert!(
        probes
            .iter()
            .all(|p| p.level == Level::Initial && p.datagram_length >= 1200)
    );

    let mut pair = to_client();
    pair.server.is_automatic = false;
    pair.run(ROUND_TRIP);
    let hello = pair.server.take_crypto(Level::Initial);
    let flight = [frames::ack(&[0..=0]), frames::crypto(0, &hello)].concat();
    pair.server.send(Level::Initial, &flight);
    pair.run(ROUND_TRIP);
    pair.server.forget();
    pair.run(SECOND * 3);
    let probes: Vec<_> = pair
        .server
        .packets()
        .iter()
        .filter(|p| is_ack_eliciting(p))
        .collect();
    assert!(!probes.is_empty());
    assert!(probes.iter().all(|p| p.level == Level::Handshake));
}

/// RFC 9000, 5.2.1: a client that has chosen a version takes no packet of another.
#[test]
fn a_packet_of_another_version_is_dropped() {
    for (version, is_closed) in [
        (0x5a6a_7a8a, false),
        (2, false),
        (0x6b33_43cf, false),
        (1, true),
    ] {
        let mut pair = to_client();
        pair.server.is_automatic = false;
        pair.run(ROUND_TRIP);
        let close = frames::connection_close(2, 0, b"");
        let mut draft = Draft::new(Level::Initial, &close);
        draft.version = Some(version);
        let packet = pair.server.seal(&draft);
        pair.server.send_datagram(packet);
        pair.run(ROUND_TRIP);
        assert_eq!(
            pair.client.connection.is_closing(),
            is_closed,
            "{version:#x}"
        );
    }
}

/// RFC 9000, 5.2.2: packets of other types, for connections that nobody knows, make no state and get no answer.
#[test]
fn nothing_but_an_initial_opens_a_connection() {
    for first in [0xd0, 0xe0, 0xf0] {
        let mut pair = to_server();
        pair.client.is_automatic = false;
        let mut packet = vec![first, 0, 0, 0, 1, 8];
        packet.extend(b"somebody\x08nobody..\x44\x00");
        packet.resize(1200, 0x5a);
        pair.client.send_datagram(packet);
        pair.run(SECOND);
        assert!(pair.server.handles.is_empty() && pair.server.endpoint.is_empty());
        assert_eq!(pair.network.passed(SERVER, CLIENT).sent, 0, "{first:#x}");
    }
}

/// RFC 9000, 14.1: small datagrams with Initials are dropped on a connection too, and end nothing (14).
#[test]
fn an_initial_in_a_small_datagram_does_no_harm() {
    for (size, is_closed) in [(0, false), (1199, false), (1200, true)] {
        let mut pair = to_waiting_server();
        let close = frames::connection_close(2, 0, b"");
        let mut draft = Draft::new(Level::Initial, &close);
        draft.size = size;
        let packet = pair.client.seal(&draft);
        pair.client.send_datagram(packet);
        pair.run(ROUND_TRIP);
        let (connection, _) = pair.server.connection(0).unwrap();
        assert_eq!(connection.is_closing(), is_closed, "{size}");
    }
}

/// RFC 9000, 17.2.5: the server's end of a Retry: another source than the client's destination, one for a datagram, and
/// then the handshake.
#[test]
fn a_server_sends_one_retry_for_a_datagram() {
    let settings = Settings {
        retry: RetryPolicy::Always,
        ..Settings::default()
    };
    let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link());
    let original = pair.client.remote_cid().to_vec();
    pair.client.is_automatic = false;
    let hello = pair.client.take_crypto(Level::Initial);
    let (first, rest) = hello.split_at(hello.len() / 2);
    let mut datagram = pair
        .client
        .seal(&Draft::new(Level::Initial, &frames::crypto(0, first)));
    let offset = u64::try_from(first.len()).unwrap();
    datagram.extend(
        pair.client
            .seal(&Draft::new(Level::Initial, &frames::crypto(offset, rest))),
    );
    pair.client.send_datagram(datagram);
    pair.run(ROUND_TRIP);
    assert_eq!(pair.client.retries(), 1);
    assert_ne!(pair.client.remote_cid(), original);
}

/// RFC 9001, 4.9.1: a client sends no Initial after its first Handshake packet; a server takes none after that.
#[test]
fn initial_keys_go_with_the_first_handshake_packet() {
    let [by_client, _] = conversations();
    let levels: Vec<_> = by_client.iter().map(|packet| packet.level).collect();
    let first = levels
        .iter()
        .position(|level| *level == Level::Handshake)
        .unwrap();
    let later = levels.get(first..).unwrap();
    assert!(!later.contains(&Level::Initial), "{levels:?}");

    for (has_spoken, is_closed) in [(false, true), (true, false)] {
        let mut pair = to_waiting_server();
        if has_spoken {
            pair.client.send(Level::Handshake, &frames::ping());
        }
        pair.client
            .send(Level::Initial, &frames::connection_close(2, 0, b""));
        pair.run(ROUND_TRIP);
        let (connection, _) = pair.server.connection(0).unwrap();
        assert_eq!(connection.is_closing(), is_closed);
    }
}
