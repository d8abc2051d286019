//! A client and those who answer its first Initial: Retry and Version Negotiation packets, true or forged.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quic_common::Ecn;
use quic_transport::{CloseReason, Event};
use test_fixture::crypto::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use test_fixture::ends::{ALPN, Client, Log, Settings};
use test_fixture::network::{Arrivals, Link, Party as _, Route, Verdict};
use test_fixture::scripted::{
    Level, Parameters, ScriptedPeer, SeenFrame, frames, parameters, server_config,
};
use test_fixture::{CLIENT, Pair, SERVER};

type ToClient = Pair<Client<Log>, ScriptedPeer>;

/// RFC 9001, 5.8.
const RETRY_KEY: [u8; 16] = [
    0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
];
const RETRY_NONCE: [u8; 12] = [
    0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
];

/// Longer than the way to the server, and shorter than a probe timeout.
const A_WHILE: Duration = Duration::from_millis(50);

/// A client's long headers, as seen on the wire.
#[derive(Clone, Debug, Default)]
struct Seen {
    destinations: Vec<Vec<u8>>,
    tokens: Vec<Vec<u8>>,
}

impl Seen {
    /// Reads an Initial whose token is shorter than 64 bytes.
    fn on_datagram(&mut self, datagram: &[u8]) {
        if datagram[0] & 0xf0 != 0xc0 {
            return;
        }
        let length = usize::from(datagram[5]);
        let (destination, rest) = datagram[6..].split_at(length);
        let source_length = usize::from(rest[0]);
        let token = &rest[1 + source_length..];
        let token_length = usize::from(token[0]);
        self.destinations.push(destination.to_vec());
        self.tokens.push(token[1..=token_length].to_vec());
    }
}

struct Bench {
    pair: ToClient,
    seen: Arc<Mutex<Seen>>,
}

impl Bench {
    /// The client's first Initial has arrived; the server keeps silent.
    fn new(parameters: Parameters) -> Self {
        let link = Link::delayed(Duration::from_millis(10));
        let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let sink = Arc::clone(&seen);
        let filter = move |datagram: &mut Vec<u8>, _| {
            sink.lock().unwrap().on_datagram(datagram);
            Verdict::Pass
        };
        pair.network.set_filter(CLIENT, SERVER, Box::new(filter));
        pair.server.is_automatic = false;
        pair.run(A_WHILE);
        Self { pair, seen }
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// The first destination that the client made up.
    fn original(&self) -> Vec<u8> {
        self.seen().destinations[0].clone()
    }

    /// Delivers a datagram, and says whether the client has sent any Initial since.
    fn answer(&mut self, datagram: Vec<u8>) -> bool {
        let before = self.seen().tokens.len();
        self.pair.server.send_datagram(datagram);
        self.pair.run(A_WHILE);
        self.seen().tokens.len() > before
    }

    fn retry(&self, source: &[u8], token: &[u8]) -> Vec<u8> {
        retry(
            self.pair.server.remote_cid(),
            source,
            &self.original(),
            token,
        )
    }
}

fn long_header(first: u8, version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    for cid in [destination, source] {
        packet.push(u8::try_from(cid.len()).unwrap());
        packet.extend(cid);
    }
    packet
}

/// A Retry packet with the right tag.
fn retry(destination: &[u8], source: &[u8], original: &[u8], token: &[u8]) -> Vec<u8> {
    let mut packet = long_header(0xf0, 1, destination, source);
    packet.extend(token);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &RETRY_KEY).unwrap());
    let mut pseudo = vec![u8::try_from(original.len()).unwrap()];
    pseudo.extend(original);
    pseudo.extend(&packet);
    let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
    let tag = key
        .seal_in_place_separate_tag(nonce, Aad::from(pseudo), &mut [])
        .unwrap();
    packet.extend(tag.as_ref());
    packet
}

fn negotiation(destination: &[u8], source: &[u8], versions: &[u32]) -> Vec<u8> {
    let mut packet = long_header(0x80, 0, destination, source);
    packet.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
    packet
}

/// RFC 9000, 17.2.5: an authentic Retry is followed, once.
#[test]
fn the_first_authentic_retry_is_followed_and_no_second() {
    let mut bench = Bench::new(Parameters::generous());
    let first = bench.retry(b"the next", b"token");
    assert!(bench.answer(first));
    let seen = bench.seen();
    assert_eq!(seen.destinations.last().unwrap(), b"the next");
    assert_eq!(seen.tokens.last().unwrap(), b"token");
    let count = seen.tokens.len();
    let second = bench.retry(b"another.", b"another token");
    bench.answer(second);
    let seen = bench.seen();
    assert!(seen.tokens[count..].iter().all(|token| token == b"token"));
    let again = retry(
        bench.pair.server.remote_cid(),
        b"another.",
        b"the next",
        b"third",
    );
    bench.answer(again);
    bench.pair.run(Duration::from_secs(2));
    let seen = bench.seen();
    assert!(seen.tokens[count..].iter().all(|token| token == b"token"));
    assert!(seen.tokens.len() > count, "probes carry the token, too");
}

/// RFC 9000, 17.2.5.2: what a Retry must not be.
#[test]
fn a_retry_that_is_wrong_is_dropped() {
    let bench = Bench::new(Parameters::generous());
    let ours = bench.pair.server.remote_cid().to_vec();
    let original = bench.original();
    let mut wrong_tag = bench.retry(b"the next", b"token");
    *wrong_tag.last_mut().unwrap() ^= 0x80;
    let mut wrong_version = bench.retry(b"the next", b"token");
    wrong_version[4] = 2;
    let cases = [
        wrong_tag,
        wrong_version,
        bench.retry(b"the next", b""),
        bench.retry(&original, b"token"),
        retry(b"somebody", b"the next", &original, b"token"),
        retry(&ours, b"the next", b"not this", b"token"),
        bench.retry(b"the next", &[7; 1025]),
        bench.retry(b"the next", b"token")[..30].to_vec(),
    ];
    for (case, datagram) in cases.into_iter().enumerate() {
        let mut bench = Bench::new(Parameters::generous());
        assert_eq!(bench.original(), original, "the same seed");
        assert!(!bench.answer(datagram), "{case}");
        bench.pair.server.is_automatic = true;
        bench.pair.run(Duration::from_secs(3));
        assert!(!bench.pair.client.connection.is_handshaking(), "{case}");
    }
}

/// RFC 9000, 17.2.5.2: not after any other packet of the server.
#[test]
fn a_retry_after_an_initial_is_dropped() {
    let mut bench = Bench::new(Parameters::generous());
    let late = bench.retry(b"the next", b"token");
    bench.pair.server.send(Level::Initial, &frames::ping());
    bench.pair.run(A_WHILE);
    bench.answer(late);
    bench.pair.run(Duration::from_secs(2));
    assert!(bench.seen().tokens.iter().all(Vec::is_empty));
}

/// RFC 9000, 7.3: after a Retry the server has to say so in its transport parameters.
#[test]
fn a_retry_that_the_server_does_not_vouch_for_is_an_error() {
    for (source, expected) in [
        (Some(b"the next"), None),
        (Some(b"not that"), Some(8)),
        (None, Some(8)),
    ] {
        let mut parameters = Parameters::generous();
        if let Some(source) = source {
            parameters.set_bytes(parameters::RETRY_SOURCE_CID, source);
        }
        let link = Link::delayed(Duration::from_millis(10));
        let first = Bench::new(Parameters::generous());
        let original = first.original();
        let packet = first.retry(b"the next", b"token");
        parameters.set_bytes(parameters::ORIGINAL_DESTINATION_CID, &original);
        let mut pair = ToClient::scripted_server(&Settings::default(), parameters, link);
        // The scripted server hears the second Initial only.
        let swallow = |_: &mut Vec<u8>, number| {
            if number == 0 {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        };
        pair.network.set_filter(CLIENT, SERVER, Box::new(swallow));
        pair.run(A_WHILE);
        let route = Route {
            source: pair.network.address(SERVER),
            destination: pair.network.address(CLIENT),
        };
        pair.network.inject(route, Ecn::NotEct, &packet);
        pair.run(Duration::from_secs(2));
        assert_eq!(pair.server.close_code(), expected, "{source:?}");
        assert_eq!(pair.client.connection.is_handshaking(), expected.is_some());
    }
}

/// RFC 9000, 6.2: versions that we don't speak end the attempt.
#[test]
fn a_server_of_other_versions_ends_the_attempt() {
    let mut bench = Bench::new(Parameters::generous());
    let ours = bench.pair.server.remote_cid().to_vec();
    let list = [0x0a0a_0a0a, 7];
    let packet = negotiation(&ours, &bench.original(), &list);
    assert!(!bench.answer(packet));
    let ended = Event::Closed(CloseReason::VersionMismatch);
    assert!(bench.pair.client.application.events.contains(&ended));
    let (turns, _) = bench.pair.turns(Duration::from_secs(10));
    assert_eq!(turns, 1);
}

/// RFC 9000, 6.2: a list that can't be true is ignored.
#[test]
fn a_forged_version_negotiation_is_ignored() {
    let bench = Bench::new(Parameters::generous());
    let ours = bench.pair.server.remote_cid().to_vec();
    let original = bench.original();
    let cases = [
        (
            "our version is in it",
            negotiation(&ours, &original, &[2, 1]),
        ),
        ("not for us", negotiation(b"somebody", &original, &[2])),
        ("not an answer", negotiation(&ours, b"somebody", &[2])),
        ("no list", negotiation(&ours, &original, &[])),
        ("half a version", {
            let mut packet = negotiation(&ours, &original, &[2]);
            packet.pop();
            packet
        }),
    ];
    for (case, packet) in cases {
        let mut bench = Bench::new(Parameters::generous());
        bench.answer(packet);
        assert!(!bench.pair.client.connection.is_closing(), "{case}");
        bench.pair.server.is_automatic = true;
        bench.pair.run(Duration::from_secs(3));
        assert!(!bench.pair.client.connection.is_handshaking(), "{case}");
    }
}

/// RFC 9000, 6.2: nor after any packet of the server, or after a Retry.
#[test]
fn a_late_version_negotiation_is_ignored() {
    let mut bench = Bench::new(Parameters::generous());
    let ours = bench.pair.server.remote_cid().to_vec();
    let packet = negotiation(&ours, &bench.original(), &[2]);
    bench.pair.server.send(Level::Initial, &frames::ping());
    bench.pair.run(A_WHILE);
    bench.answer(packet);
    assert!(!bench.pair.client.connection.is_closing());

    let mut bench = Bench::new(Parameters::generous());
    let retry = bench.retry(b"the next", b"token");
    assert!(bench.answer(retry));
    for source in [bench.original(), b"the next".to_vec()] {
        bench.answer(negotiation(&ours, &source, &[2]));
        assert!(!bench.pair.client.connection.is_closing());
    }
}

/// RFC 9000, 17.2.2: an Initial of a server has no token; one that has is dropped.
#[test]
fn an_initial_of_a_server_with_a_token_is_dropped() {
    let mut bench = Bench::new(Parameters::generous());
    bench.pair.server.set_token(b"token");
    bench
        .pair
        .server
        .send(Level::Initial, &frames::connection_close(2, 0, b""));
    bench.pair.run(A_WHILE);
    assert!(!bench.pair.client.connection.is_closing());
    bench.pair.server.set_token(b"");
    bench.pair.server.is_automatic = true;
    bench.pair.handshake();
}

/// RFC 9000, 17.2.5.3: after a Retry come the same ClientHello and the same source, and packet numbers go on.
#[test]
fn after_a_retry_the_handshake_goes_on() {
    let settings = Settings::default();
    let link = Link::delayed(Duration::from_millis(10));
    let mut pair = ToClient::scripted_server(&settings, Parameters::generous(), link);
    let first = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&first);
    let take_first = move |datagram: &mut Vec<u8>, number| {
        if number > 0 {
            return Verdict::Pass;
        }
        sink.lock().unwrap().clone_from(datagram);
        Verdict::Drop
    };
    pair.network
        .set_filter(CLIENT, SERVER, Box::new(take_first));
    pair.run(A_WHILE);
    let route = Route {
        source: pair.network.address(SERVER),
        destination: pair.network.address(CLIENT),
    };
    // A server of its own reads what came before the Retry.
    let tls = server_config(&settings.certificate, &[ALPN]);
    let mut reader = ScriptedPeer::server(tls, Parameters::generous(), 5);
    let mut datagram = first.lock().unwrap().clone();
    let length = datagram.len();
    let arrivals = Arrivals::new(route, Ecn::NotEct, length, &mut datagram);
    reader.receive(arrivals, pair.network.now());
    let before = reader.packets().first().unwrap().clone();

    let packet = retry(&before.source, b"the next", &before.destination, b"token");
    pair.network.inject(route, Ecn::NotEct, &packet);
    pair.server.is_automatic = false;
    pair.run(Duration::from_secs(3));
    let after = pair.server.packets();
    assert!(after.len() > 1);
    let hello = before.frames.first();
    assert!(matches!(hello, Some(SeenFrame::Crypto { .. })));
    assert_eq!(after.first().unwrap().frames.first(), hello);
    for packet in after {
        assert_eq!(packet.destination, b"the next");
        assert_eq!(packet.source, before.source);
        assert_eq!(packet.token, b"token");
        assert!(packet.number > before.number);
    }
}
