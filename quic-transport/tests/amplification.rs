//! A client whose address isn't validated gets at most three times what came from it, in whole datagrams, and each
//! datagram of a server that elicits the acknowledgment of an Initial is a full one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use test_fixture::certificates::{Algorithm, Leaf, TestCa};
use test_fixture::ends::{Log, NAME, Server, Settings};
use test_fixture::network::{Link, Verdict};
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames};
use test_fixture::{CLIENT, Pair, SERVER};

type ToServer = Pair<ScriptedPeer, Server<Log>>;

const SECOND: Duration = Duration::from_secs(1);

/// A pair whose server has a certificate of 16 KB, on a link that watches every datagram.
fn watched() -> ToServer {
    let authority = TestCa::new(Algorithm::Ed25519);
    let mut certificate = authority.certificate(&Leaf {
        names: &[NAME],
        padding: 16_000,
        ..Leaf::default()
    });
    certificate.chain.push(authority.root().clone());
    let settings = Settings {
        certificate,
        ..Settings::default()
    };
    let link = Link::delayed(Duration::from_millis(10));
    let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link);
    pair.client.is_automatic = false;
    let received = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&received);
    let from_client = move |datagram: &mut Vec<u8>, _| {
        counted.fetch_add(datagram.len(), Relaxed);
        Verdict::Pass
    };
    pair.network
        .set_filter(CLIENT, SERVER, Box::new(from_client));
    let mut sent = 0;
    let from_server = move |datagram: &mut Vec<u8>, _| {
        sent += datagram.len();
        let received = received.load(Relaxed);
        assert!(sent <= 3 * received, "{sent} for {received}");
        Verdict::Pass
    };
    pair.network
        .set_filter(SERVER, CLIENT, Box::new(from_server));
    pair
}

fn send_hello(pair: &mut ToServer, size: usize) {
    let hello = pair.client.take_crypto(Level::Initial);
    let hello = frames::crypto(0, &hello);
    let mut draft = Draft::new(Level::Initial, &hello);
    draft.size = size;
    let packet = pair.client.seal(&draft);
    pair.client.send_datagram(packet);
}

fn sent(pair: &ToServer) -> u64 {
    pair.network.passed(SERVER, CLIENT).sent_bytes
}

/// RFC 9000, 14.1: a server pads datagrams with ack-eliciting Initials, so it keeps back what the limit would cut.
fn assert_padded(peer: &ScriptedPeer) {
    for packet in peer.packets() {
        let elicits = packet.frames.iter().any(SeenFrame::is_ack_eliciting);
        if packet.level == Level::Initial && elicits {
            assert!(packet.datagram_length >= 1200, "{packet:?}");
        }
    }
}

/// RFC 9000, 8.1 and 14.1.
#[test]
fn silence_after_a_first_datagram_of_any_size_gets_three_times_as_much() {
    for size in [1200, 1201, 1250, 1337, 1452, 1799, 4000] {
        let mut pair = watched();
        send_hello(&mut pair, size);
        pair.run(SECOND * 2);
        assert_padded(&pair.client);
        let limit = 3 * u64::try_from(size).unwrap();
        assert!(sent(&pair) + 1200 > limit, "{size}: {}", sent(&pair));
        let (_, turns) = pair.turns(SECOND);
        assert_eq!(turns, 1, "a blocked server waits, without spinning");
        pair.run(SECOND * 20);
        assert!(sent(&pair) <= limit, "{size}");
        assert!(pair.server.connection(0).is_none(), "10 seconds are enough");
    }
}

/// RFC 9002, 6.2.2.1: whatever arrives lets the server go on, and a probe that was due is sent then.
#[test]
fn each_datagram_that_arrives_lets_three_more_leave() {
    let mut pair = watched();
    send_hello(&mut pair, 1200);
    pair.run(SECOND * 3);
    assert_eq!(sent(&pair), 3600);
    // Until the congestion window is full.
    for round in 1..3_u64 {
        pair.client.send(Level::Initial, &frames::ping());
        pair.run(SECOND);
        assert!(sent(&pair) > 3600 * round, "{round}: {}", sent(&pair));
        assert!(sent(&pair) <= 3600 * (round + 1));
    }
    assert_padded(&pair.client);
}

/// RFC 9000, 8.1: a datagram counts as a whole, with packets in it that nobody can open.
#[test]
fn the_whole_datagram_counts() {
    let mut pair = watched();
    let hello = pair.client.take_crypto(Level::Initial);
    let hello = frames::crypto(0, &hello);
    let mut draft = Draft::new(Level::Initial, &hello);
    draft.size = 0;
    let mut datagram = pair.client.seal(&draft);
    assert!(datagram.len() < 600);
    datagram.resize(1200, 0x55);
    pair.client.send_datagram(datagram);
    pair.run(SECOND * 3);
    assert_eq!(sent(&pair), 3600);
}

/// RFC 9000, 10.2.1 and 8.1: goodbyes count, too, however often the client asks for them.
#[test]
fn closing_stays_within_the_limit() {
    let mut pair = watched();
    let hello = pair.client.take_crypto(Level::Initial);
    let wrong = [frames::crypto(0, &hello), frames::stream(0, 0, b"x", false)].concat();
    pair.client.send(Level::Initial, &wrong);
    pair.run(SECOND / 10);
    assert_eq!(pair.client.close_code(), Some(10), "PROTOCOL_VIOLATION");
    let mut small = Draft::new(Level::Initial, &[1]);
    small.size = 60;
    for _ in 0..200 {
        let packet = pair.client.seal(&small);
        pair.client.send_datagram(packet);
    }
    pair.run(SECOND / 10);
    let (_, turns) = pair.turns(SECOND / 10);
    assert_eq!(turns, 1);
    pair.run(SECOND * 5);
    assert!(pair.server.connection(0).is_none());
}

/// RFC 9000, 13.2.1: acknowledgments of Initials count.
#[test]
fn acknowledgments_stay_within_the_limit() {
    let mut pair = watched();
    send_hello(&mut pair, 1200);
    pair.run(SECOND);
    let mut small = Draft::new(Level::Initial, &[1]);
    small.size = 60;
    for _ in 0..300 {
        let packet = pair.client.seal(&small);
        pair.client.send_datagram(packet);
        pair.run(Duration::from_millis(1));
    }
    pair.run(SECOND);
    assert_padded(&pair.client);
    assert_eq!(pair.client.close_code(), None);
}

/// RFC 9000, 8.1: a Handshake packet shows that the client is where it says.
#[test]
fn a_handshake_packet_lifts_the_limit() {
    let mut pair = watched();
    pair.network.clear_filter(SERVER, CLIENT);
    pair.client.is_automatic = true;
    pair.handshake();
    let received = pair.network.passed(CLIENT, SERVER).sent_bytes;
    assert!(sent(&pair) > 16_000 && received > 0);
}
