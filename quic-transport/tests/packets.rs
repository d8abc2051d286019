//! Packets that come twice, changed, cut or together with others; and the sizes of our own.

use std::time::Duration;

use quic_transport::{CloseReason, Config, Event};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames, parameters as ids,
};
use test_fixture::{Bulk, CLIENT, Pair, SERVER};

const SECOND: Duration = Duration::from_secs(1);

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

fn to_server() -> ToServer {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.handshake();
    pair.run(SECOND);
    pair.client.forget();
    pair
}

fn challenge() -> Vec<u8> {
    frames::path_challenge(*b"question")
}

fn answers(peer: &ScriptedPeer) -> usize {
    let frames = peer.frames(Level::OneRtt);
    frames
        .filter(|frame| **frame == SeenFrame::PathResponse(*b"question"))
        .count()
}

/// RFC 9000, 12.3: a copy of a packet is not processed.
#[test]
fn a_packet_is_processed_once() {
    let mut pair = to_server();
    let packet = pair.client.seal(&Draft::new(Level::OneRtt, &challenge()));
    for _ in 0..3 {
        pair.client.send_datagram(packet.clone());
        pair.run(SECOND);
    }
    assert_eq!(answers(&pair.client), 1);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert_eq!(connection.stats().packets_dropped, 2);
}

/// RFC 9000, 12.3: which packet is a copy is asked after authentication: one that was changed on its way doesn't keep out
/// the one that wasn't.
#[test]
fn a_copy_that_was_changed_is_no_duplicate() {
    let mut pair = to_server();
    let packet = pair.client.seal(&Draft::new(Level::OneRtt, &challenge()));
    let mut changed = packet.clone();
    *changed.last_mut().unwrap() ^= 1;
    pair.client.send_datagram(changed);
    pair.client.send_datagram(packet);
    pair.run(SECOND);
    assert_eq!(answers(&pair.client), 1);
}

/// RFC 9000, 12.2: a packet that can't be opened doesn't take those along that are coalesced with it.
#[test]
fn what_follows_an_unreadable_packet_is_processed() {
    let mut pair = to_server();
    let mut datagram = pair.client.seal(&Draft::new(Level::Handshake, &[1]));
    datagram.extend(pair.client.seal(&Draft::new(Level::OneRtt, &challenge())));
    pair.client.send_datagram(datagram);
    pair.run(SECOND);
    assert_eq!(answers(&pair.client), 1);
}

/// RFC 9001, 5.4.2, and RFC 9000, 10.3: a packet without a whole sample is dropped.
#[test]
fn packets_too_short_for_a_sample_are_dropped() {
    let mut pair = to_server();
    let whole = pair.client.seal(&Draft::new(Level::OneRtt, &challenge()));
    let header = 1 + pair.client.remote_cid().len();
    for length in 1..header + 20 {
        pair.client
            .send_datagram(whole.get(..length).unwrap().to_vec());
    }
    pair.run(SECOND);
    assert_eq!((answers(&pair.client), pair.client.close_code()), (0, None));
    pair.client.send_datagram(whole);
    pair.run(SECOND);
    assert_eq!(answers(&pair.client), 1);
}

/// RFC 9000, 10.3: no packet is shorter than a stateless reset could be, which has 21 bytes after a connection ID.
#[test]
fn the_smallest_packet_is_as_long_as_a_reset() {
    for local in [0, 8, 20] {
        let mut settings = Settings::default();
        settings.server.cid_length = local;
        let parameters = Parameters::generous();
        let mut pair = ToServer::scripted_client(&settings, parameters, link());
        pair.handshake();
        for _ in 0..20 {
            pair.client.send(Level::OneRtt, &frames::ping());
            pair.run(SECOND);
        }
        // Silence: the idle timeout approaches, and what isn't acknowledged is probed for.
        pair.client.acknowledges = false;
        pair.run(SECOND * 20);
        let alone = pair
            .client
            .packets()
            .iter()
            .filter(|p| p.level == Level::OneRtt);
        let shortest = alone.map(|packet| packet.datagram_length).min();
        assert!(shortest >= Some(local + 22), "{shortest:?} for {local}");
    }
}

/// RFC 9000, 10.3: whatever a datagram looks like, if it ends with the token it is a stateless reset.
#[test]
fn a_stateless_reset_may_have_any_header() {
    let token = [0x42; 16];
    let mut parameters = Parameters::generous();
    parameters.set_bytes(ids::STATELESS_RESET_TOKEN, &token);
    let long = |first: u8, version: u32| {
        let mut bytes = vec![first];
        bytes.extend(version.to_be_bytes());
        bytes.extend(b"\x08somebody\x08nobody..\x00\x40\x30");
        bytes.resize(60, 0x5a);
        bytes
    };
    for start in [
        vec![0x40; 24],
        vec![0x00; 24],
        vec![0xff; 24],
        long(0xc0, 1),
        long(0xe0, 1),
        long(0xf0, 1),
        long(0xc0, 0),
        long(0xc0, 0x5a6a_7a8a),
        vec![0x55; 1400],
    ] {
        let mut pair = ToClient::scripted_server(&Settings::default(), parameters.clone(), link());
        pair.handshake();
        let sent = pair.network.passed(CLIENT, SERVER).sent;
        pair.server.send_datagram([&start[..], &token].concat());
        pair.run(SECOND);
        let ended = Event::Closed(CloseReason::StatelessReset);
        assert!(
            pair.client.application.events.contains(&ended),
            "{start:02x?}"
        );
        assert_eq!(pair.network.passed(CLIENT, SERVER).sent, sent);
    }
}

/// RFC 9000, 14: where 1200 bytes don't get through there is no connection.
#[test]
fn a_path_too_narrow_for_quic_carries_nothing() {
    let mut narrow = link();
    narrow.largest = 1199;
    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&Settings::default(), narrow);
    pair.run(SECOND * 40);
    assert!(pair.client.connection.is_closed());
    assert!(!pair.client.application.events.contains(&Event::Connected));
    assert!(pair.server.handles.is_empty());
}

/// RFC 9000, 14.2: only probes are larger than what the path is known to carry.
#[test]
fn datagrams_fit_the_mtu_that_was_found() {
    let mut narrow = link();
    narrow.largest = 1350;
    let settings = Settings {
        server: Config {
            max_datagram: 9000,
            ..Config::default()
        },
        ..Settings::default()
    };
    let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&settings, narrow);
    pair.handshake();
    let client = &mut pair.client;
    client
        .application
        .request(&mut client.connection, 20_000_000, 0)
        .unwrap();
    pair.run_until(|pair| pair.client.application.complete == 1);
    let oversized = pair.network.passed(SERVER, CLIENT).oversized;
    assert!((1..=30).contains(&oversized), "{oversized}");
    let mtu = pair.server.connection(0).unwrap().0.stats().path_mtu;
    assert!((1270..=1350).contains(&mtu), "{mtu}");
}

/// RFC 9000, 5.1.2 and 19.16: from the packet on that says that an ID is retired, another is in use.
#[test]
fn a_raised_bound_moves_us_to_another_id() {
    let mut pair = to_server();
    let old = pair.client.local_cid().to_vec();
    let fresh = b"87654321";
    let frame = frames::new_connection_id(1, 1, fresh, [1; 16]);
    pair.client.send(Level::OneRtt, &frame);
    pair.run(SECOND);
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND);
    assert!(!pair.client.packets().is_empty());
    let retired = SeenFrame::RetireConnectionId { sequence: 0 };
    assert!(
        pair.client
            .frames(Level::OneRtt)
            .any(|frame| *frame == retired)
    );
    for packet in pair.client.packets() {
        assert_eq!(
            packet.destination, fresh,
            "{old:02x?} is out of use: {packet:?}"
        );
    }
}

/// RFC 9000, 19.15: the same frame again, and a bound that doesn't rise, are fine.
#[test]
fn connection_ids_that_repeat_are_fine() {
    let mut pair = to_server();
    let new = |sequence: u8, retire| {
        frames::new_connection_id(sequence.into(), retire, &[sequence; 8], [sequence; 16])
    };
    for frame in [
        new(1, 0),
        new(1, 0),
        new(2, 2),
        new(3, 0),
        new(2, 2),
        new(1, 0),
    ] {
        pair.client.send(Level::OneRtt, &frame);
        pair.run(SECOND);
    }
    assert_eq!(pair.client.close_code(), None);
    assert_eq!(pair.client.packets().last().unwrap().destination, [2; 8]);
}
