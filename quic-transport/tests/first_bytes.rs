//! The bits of the first byte that say nothing of the packet: the fixed bit (RFC 9287) and the spin bit (RFC 9000, 17.4).
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_transport::{Config, Direction};
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::parameters::GREASE_QUIC_BIT;
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames};

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

fn settings(seed: u8, change: impl Fn(&mut Config)) -> Settings {
    let mut config = Config::default();
    change(&mut config);
    Settings {
        seed,
        client: config.clone(),
        server: config,
        ..Settings::default()
    }
}

/// The first bytes of 200 packets of a client with data.
fn first_bytes(pair: &mut ToClient) -> Vec<u8> {
    pair.server.forget();
    let id = pair
        .client
        .connection
        .open(Direction::Unidirectional)
        .unwrap();
    for _ in 0..200 {
        pair.client.connection.stream_send(id, b"x").unwrap();
        pair.run(Duration::from_millis(1));
    }
    let packets = pair.server.packets().iter();
    let short = packets.filter(|packet| packet.level == Level::OneRtt);
    short.map(|packet| packet.first).collect()
}

/// RFC 9287, 3.1: the bit is cleared at random once the peer has said that it doesn't mind, and only then.
#[test]
fn the_fixed_bit_is_cleared_for_who_permits_it() {
    for (permits, greases, expected) in [
        (false, true, 0..1),
        (true, false, 0..1),
        (true, true, 50..150),
    ] {
        let mut parameters = Parameters::generous();
        if permits {
            parameters.set_bytes(GREASE_QUIC_BIT, &[]);
        }
        let settings = settings(1, |config| config.grease = greases);
        let mut pair = ToClient::scripted_server(&settings, parameters, link());
        pair.handshake();
        let initial = pair.server.packets().first().unwrap();
        assert_eq!(initial.first & FIXED, FIXED, "nothing is known yet");
        let bytes = first_bytes(&mut pair);
        assert!(bytes.len() > 150);
        let clear = bytes.iter().filter(|first| *first & FIXED == 0).count();
        assert!(expected.contains(&clear), "{clear}");
    }
}

/// RFC 9287, 3: who offers the parameter MUST take packets with a clear bit; RFC 9000, 17.3.1: others drop them.
#[test]
fn a_clear_fixed_bit_is_taken_when_it_was_permitted() {
    for greases in [true, false] {
        let settings = settings(1, |config| config.grease = greases);
        let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link());
        pair.handshake();
        let offered = pair.client.remote_parameters().unwrap();
        let entry = [frames::varint(GREASE_QUIC_BIT), vec![0]].concat();
        let is_offered = offered.windows(entry.len()).any(|window| window == entry);
        assert_eq!(is_offered, greases);
        pair.run(Duration::from_secs(1));
        pair.client.forget();
        let ping = frames::ping();
        let mut draft = Draft::new(Level::OneRtt, &ping);
        draft.flip = FIXED;
        draft.size = 60;
        let packet = pair.client.seal(&draft);
        pair.client.send_datagram(packet);
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.client.close_code(), None);
        let mut answers = pair.client.frames(Level::OneRtt);
        let is_acked = answers.any(|frame| matches!(frame, SeenFrame::Ack { .. }));
        assert_eq!(is_acked, greases);
    }
}

/// Both ends clear the bit, and everything arrives.
#[test]
fn two_ends_that_grease_understand_each_other() {
    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&settings(5, |_| {}), link());
    pair.handshake();
    let id = pair
        .client
        .connection
        .open(Direction::Unidirectional)
        .unwrap();
    pair.client
        .connection
        .stream_send(id, &[7; 10_000])
        .unwrap();
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.client.connection.stats().packets_lost, 0);
    let (server, _) = pair.server.connection(0).unwrap();
    assert_eq!(server.stats().packets_dropped, 0);
}

/// What a client's spin bits are when the server sets these; `None` where they don't follow.
fn spins(seed: u8, spin_bit: bool) -> Option<Vec<bool>> {
    let settings = settings(seed, |config| config.spin_bit = spin_bit);
    let mut pair = ToClient::scripted_server(&settings, Parameters::generous(), link());
    pair.handshake();
    let mut bits = Vec::new();
    for set in [true, false, false, true, true] {
        pair.server.forget();
        let ping = frames::ping();
        let mut draft = Draft::new(Level::OneRtt, &ping);
        draft.flip = if set { SPIN } else { 0 };
        draft.size = 60;
        let packet = pair.server.seal(&draft);
        pair.server.send_datagram(packet);
        pair.run(Duration::from_millis(100));
        let last = pair.server.packets().last().unwrap();
        bits.push(last.first & SPIN != 0);
    }
    (bits == [false, true, true, false, false]).then_some(bits)
}

/// RFC 9000, 17.4: the client turns the bit over, but on some connections, and never when it is turned off.
#[test]
fn a_client_spins_on_most_connections() {
    let spinning = (1..=40).filter(|seed| spins(*seed, true).is_some()).count();
    assert!((30..40).contains(&spinning), "{spinning}");
    assert_eq!(
        (1..=10)
            .filter(|seed| spins(*seed, false).is_some())
            .count(),
        0
    );
}

/// RFC 9000, 17.4: a server gives back what the newest packet had; an older one changes nothing.
#[test]
fn a_server_reflects_the_newest_packet() {
    let reflects = |seed: u8| {
        let settings = settings(seed, |_| {});
        let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link());
        pair.handshake();
        pair.run(Duration::from_secs(1));
        let mut seen = Vec::new();
        let next = pair.client.next_number(Level::OneRtt);
        for (number, set) in [
            (3, true),
            (4, true),
            (5, false),
            (2, true),
            (6, false),
            (8, true),
            (7, false),
        ] {
            pair.client.forget();
            let ping = frames::ping();
            let mut draft = Draft::new(Level::OneRtt, &ping);
            draft.flip = if set { SPIN } else { 0 };
            draft.size = 60;
            draft.number = Some(next + number);
            let packet = pair.client.seal(&draft);
            pair.client.send_datagram(packet);
            pair.run(Duration::from_millis(100));
            let last = pair.client.packets().last().unwrap();
            seen.push(last.first & SPIN != 0);
        }
        seen == [true, true, false, false, false, true, true]
    };
    let reflecting = (1..=20).filter(|seed| reflects(*seed)).count();
    assert!(reflecting >= 14, "{reflecting}");
}

/// A ClientHello that is cut in the name: no packet shows the name to who doesn't put it together, and it arrives.
#[test]
fn a_client_hello_can_be_cut_in_the_servers_name() {
    for cut in [true, false] {
        let settings = settings(1, |config| config.split_client_hello = cut);
        let mut pair = ToClient::scripted_server(&settings, Parameters::generous(), link());
        pair.run(Duration::from_millis(15));
        let mut pieces = Vec::new();
        for frame in pair.server.frames(Level::Initial) {
            if let SeenFrame::Crypto { offset, data } = frame {
                pieces.push((*offset, data.clone()));
            }
        }
        let name = b"localhost";
        let shown = pieces
            .iter()
            .any(|(_, data)| data.windows(name.len()).any(|window| window == name));
        assert_eq!(shown, !cut);
        assert_eq!(pieces.first().unwrap().0 > 0, cut, "the wrong way round");
    }
    let mut settings = settings(1, |config| config.split_client_hello = true);
    for (retry, loss) in [(false, 0), (true, 0), (false, 20), (true, 20)] {
        if retry {
            settings.retry = quic_transport::RetryPolicy::Always;
        }
        let link = Link {
            loss: test_fixture::network::Chance::percent(loss),
            ..link()
        };
        let mut pair = Pair::<Client<Log>, Server<Log>>::new(&settings, link);
        pair.handshake();
        let (server, _) = pair.server.connection(0).unwrap();
        assert_eq!(server.server_name(), Some("localhost"));
    }
}
