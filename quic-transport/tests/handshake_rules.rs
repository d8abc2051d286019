//! A scripted peer that breaks the rules of the handshake: transport parameters, premature frames, CRYPTO floods,
//! odd first flights.

use std::time::Duration;

use quic_transport::RetryPolicy;
use test_fixture::certificates::{Algorithm, Leaf, TestCa};
use test_fixture::ends::{Client, Log, NAME, Server, Settings};
use test_fixture::network::{Link, Verdict};
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames, parameters as ids,
};
use test_fixture::{CLIENT, Pair, SERVER};

const TRANSPORT_PARAMETER: u64 = 8;
const PROTOCOL: u64 = 10;
const CRYPTO_BUFFER: u64 = 13;

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

fn to_server(parameters: Parameters) -> ToServer {
    ToServer::scripted_client(&Settings::default(), parameters, link())
}

fn to_client(parameters: Parameters) -> ToClient {
    ToClient::scripted_server(&Settings::default(), parameters, link())
}

fn server_says(parameters: Parameters) -> Option<u64> {
    let mut pair = to_server(parameters);
    pair.run(Duration::from_secs(1));
    pair.client.close_code()
}

fn client_says(parameters: Parameters) -> Option<u64> {
    let mut pair = to_client(parameters);
    pair.run(Duration::from_secs(1));
    pair.server.close_code()
}

/// RFC 9000, 7.3, 7.4 and 18.2.
#[test]
fn transport_parameters_that_are_wrong_are_an_error() {
    let wrong: [fn(&mut Parameters); 12] = [
        |p| _ = p.leave_out(ids::INITIAL_SOURCE_CID),
        |p| _ = p.set_bytes(ids::INITIAL_SOURCE_CID, b"another"),
        |p| _ = p.add(ids::MAX_IDLE_TIMEOUT, &[5]),
        |p| _ = p.set(ids::MAX_UDP_PAYLOAD_SIZE, 1199),
        |p| _ = p.set(ids::ACK_DELAY_EXPONENT, 21),
        |p| _ = p.set(ids::MAX_ACK_DELAY, 1 << 14),
        |p| _ = p.set(ids::ACTIVE_CID_LIMIT, 1),
        |p| _ = p.set(ids::INITIAL_MAX_STREAMS_BIDI, (1 << 60) + 1),
        |p| _ = p.set(ids::INITIAL_MAX_STREAMS_UNI, (1 << 60) + 1),
        |p| _ = p.set_bytes(ids::INITIAL_MAX_DATA, &[0x40]),
        |p| _ = p.set_bytes(ids::INITIAL_MAX_DATA, &[1, 0]),
        |p| _ = p.set_bytes(ids::RETRY_SOURCE_CID, b"no retry"),
    ];
    for (case, change) in wrong.into_iter().enumerate() {
        let mut parameters = Parameters::generous();
        change(&mut parameters);
        assert_eq!(
            server_says(parameters.clone()),
            Some(TRANSPORT_PARAMETER),
            "{case}"
        );
        assert_eq!(client_says(parameters), Some(TRANSPORT_PARAMETER), "{case}");
    }
}

/// RFC 9000, 18.2: what only a server may send, and what a client needs of it.
#[test]
fn each_role_has_its_own_transport_parameters() {
    let of_server: [fn(&mut Parameters); 3] = [
        |p| _ = p.set_bytes(ids::ORIGINAL_DESTINATION_CID, b"12345678"),
        |p| _ = p.set_bytes(ids::STATELESS_RESET_TOKEN, &[1; 16]),
        |p| _ = p.set_bytes(ids::PREFERRED_ADDRESS, &[1; 49]),
    ];
    for change in of_server {
        let mut parameters = Parameters::generous();
        change(&mut parameters);
        assert_eq!(server_says(parameters), Some(TRANSPORT_PARAMETER));
    }
    let needed: [fn(&mut Parameters); 3] = [
        |p| _ = p.leave_out(ids::ORIGINAL_DESTINATION_CID),
        |p| _ = p.set_bytes(ids::ORIGINAL_DESTINATION_CID, b"another"),
        |p| _ = p.set_bytes(ids::STATELESS_RESET_TOKEN, &[1; 15]),
    ];
    for change in needed {
        let mut parameters = Parameters::generous();
        change(&mut parameters);
        assert_eq!(client_says(parameters), Some(TRANSPORT_PARAMETER));
    }
}

/// RFC 9000, 7.4.2 and 18.1: values at their bounds, and what nobody knows.
#[test]
fn transport_parameters_at_their_bounds_are_fine() {
    let mut parameters = Parameters::generous();
    parameters
        .set(ids::MAX_UDP_PAYLOAD_SIZE, 1200)
        .set(ids::ACK_DELAY_EXPONENT, 20)
        .set(ids::MAX_ACK_DELAY, (1 << 14) - 1)
        .set(ids::ACTIVE_CID_LIMIT, 2)
        .set(ids::INITIAL_MAX_STREAMS_BIDI, 1 << 60)
        .set_bytes(31 * 7 + 27, b"reserved")
        .set_bytes((1 << 62) - 1, b"");
    let mut pair = to_server(parameters.clone());
    pair.handshake();
    assert_eq!(pair.client.close_code(), None);
    let mut pair = to_client(parameters);
    pair.handshake();
    assert_eq!(pair.server.close_code(), None);
}

/// RFC 9000, 12.4, table 3: frames that Initial and Handshake packets may not carry.
#[test]
fn premature_frames_are_an_error() {
    for frame in [
        frames::stream(0, 0, b"early", false),
        frames::max_data(5),
        frames::handshake_done(),
        frames::new_token(b"token"),
        frames::application_close(1, b"early"),
        frames::path_challenge([1; 8]),
        frames::new_connection_id(1, 0, b"12345678", [1; 16]),
    ] {
        let mut pair = to_server(Parameters::generous());
        pair.client.is_automatic = false;
        let hello = pair.client.take_crypto(Level::Initial);
        let flight = [frames::crypto(0, &hello), frame.clone()].concat();
        pair.client.send(Level::Initial, &flight);
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.client.close_code(), Some(PROTOCOL), "{frame:?}");

        let mut pair = to_client(Parameters::generous());
        pair.server.is_automatic = false;
        pair.run(Duration::from_millis(15));
        pair.server.send(Level::Initial, &frame);
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.server.close_code(), Some(PROTOCOL), "{frame:?}");
    }
}

/// RFC 9000, 17.2: reserved bits of a long header.
#[test]
fn reserved_bits_of_a_long_header_are_an_error() {
    for flip in [4, 8] {
        let mut pair = to_server(Parameters::generous());
        pair.client.is_automatic = false;
        let hello = pair.client.take_crypto(Level::Initial);
        let hello = frames::crypto(0, &hello);
        let mut draft = Draft::new(Level::Initial, &hello);
        draft.flip = flip;
        let packet = pair.client.seal(&draft);
        pair.client.send_datagram(packet);
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.client.close_code(), Some(PROTOCOL), "{flip}");
    }
}

/// RFC 9000, 7.5: at least 4096 bytes are taken out of order, and a bound holds.
#[test]
fn crypto_data_is_buffered_within_bounds() {
    let mut pair = to_server(Parameters::generous());
    pair.handshake();
    pair.client
        .send(Level::OneRtt, &frames::crypto(4095, b"far"));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.close_code(), None);
    pair.client
        .send(Level::OneRtt, &frames::crypto(64 << 10, b"too far"));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.close_code(), Some(CRYPTO_BUFFER));

    let mut pair = to_server(Parameters::generous());
    pair.handshake();
    pair.client
        .send(Level::OneRtt, &frames::crypto((1 << 62) - 1, b"x"));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client.close_code(), Some(CRYPTO_BUFFER));
}

/// RFC 9000, 14.1 and 7.2: nothing answers an Initial in a small datagram, or to a short connection ID.
#[test]
fn small_initials_are_dropped_in_silence() {
    let first = |size, destination: &[u8]| {
        let mut pair = to_server(Parameters::generous());
        pair.client.is_automatic = false;
        let hello = pair.client.take_crypto(Level::Initial);
        let hello = frames::crypto(0, &hello);
        let mut draft = Draft::new(Level::Initial, &hello);
        draft.size = size;
        if !destination.is_empty() {
            draft.destination = Some(destination);
        }
        let packet = pair.client.seal(&draft);
        pair.client.send_datagram(packet);
        pair.run(Duration::from_secs(1));
        pair.client.datagrams()
    };
    assert_eq!(first(1199, b""), 0);
    assert!(first(1200, b"") > 0);
    assert_eq!(first(1200, b"1234567"), 0);
}

/// RFC 9000, 8.1: three times what came, whatever is sent: handshake, probes, close.
#[test]
fn a_client_that_falls_silent_gets_three_times_what_it_sent() {
    let settings = Settings {
        certificate: TestCa::new(Algorithm::Ed25519).certificate(&Leaf {
            names: &[NAME],
            padding: 16_000,
            ..Leaf::default()
        }),
        ..Settings::default()
    };
    let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link());
    pair.client.is_automatic = false;
    let hello = pair.client.take_crypto(Level::Initial);
    pair.client.send(Level::Initial, &frames::crypto(0, &hello));
    pair.run(Duration::from_secs(40));
    assert_eq!(pair.network.passed(CLIENT, SERVER).sent_bytes, 1200);
    let sent = pair.network.passed(SERVER, CLIENT).sent_bytes;
    assert!((2400..=3600).contains(&sent), "{sent}");
    assert!(pair.server.connection(0).is_none(), "the state is freed");
}

/// RFC 9000, 12.2: packets for somebody else in the same datagram neither count nor make state.
#[test]
fn coalesced_packets_for_others_are_dropped() {
    let mut pair = to_server(Parameters::generous());
    pair.client.is_automatic = false;
    let hello = pair.client.take_crypto(Level::Initial);
    let hello = frames::crypto(0, &hello);
    let mut datagram = pair.client.seal(&Draft::new(Level::Initial, &hello));
    for other in 0..20_u8 {
        let cid = [other; 8];
        let mut draft = Draft::new(Level::Initial, &[1]);
        draft.destination = Some(&cid);
        draft.size = 100;
        datagram.extend(pair.client.seal(&draft));
    }
    pair.client.send_datagram(datagram);
    pair.run(Duration::from_millis(100));
    assert_eq!(pair.server.endpoint.len(), 1);
    assert_eq!(pair.server.handles.len(), 1);
    pair.client.is_automatic = true;
    pair.handshake();
}

/// RFC 9000, 7 and 13: a ClientHello over several packets, in any order, twice.
#[test]
fn a_client_hello_in_pieces_is_put_together() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut pair = to_server(Parameters::generous());
        pair.client.is_automatic = false;
        let hello = pair.client.take_crypto(Level::Initial);
        let third = hello.len().div_ceil(3);
        let pieces: Vec<&[u8]> = hello.chunks(third).collect();
        for _ in 0..2 {
            for place in order {
                let offset = u64::try_from(place * third).unwrap();
                let piece = frames::crypto(offset, pieces.get(place).unwrap());
                pair.client.send(Level::Initial, &piece);
            }
        }
        pair.run(Duration::from_millis(15));
        pair.client.is_automatic = true;
        pair.handshake();
        assert_eq!(pair.client.close_code(), None);
    }
}

/// RFC 9000, 8.1.2: the client comes back with the token, and not with one that was changed or is another's.
#[test]
fn a_retry_is_followed_and_its_token_is_checked() {
    let settings = Settings {
        retry: RetryPolicy::Always,
        ..Settings::default()
    };
    let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link());
    pair.handshake();
    assert_eq!(pair.client.retries(), 1);
    assert!(!pair.client.token().is_empty());

    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&settings, link());
    pair.handshake();
    assert_eq!(pair.server.endpoint.stats().retries, 1);

    let mut pair = ToServer::scripted_client(&settings, Parameters::generous(), link());
    pair.run(Duration::from_millis(5));
    pair.client.is_automatic = false;
    pair.run(Duration::from_millis(20));
    assert_eq!(pair.client.retries(), 1);
    let mut token = pair.client.token().to_vec();
    if let Some(last) = token.last_mut() {
        *last ^= 1;
    }
    pair.client.set_token(&token);
    pair.client.is_automatic = true;
    pair.run(Duration::from_millis(5));
    pair.client.is_automatic = false;
    pair.run(Duration::from_millis(100));
    assert_eq!(pair.server.handles.len(), 0);
}

/// RFC 9000, 17.2.5: a Retry with a wrong tag, or after another packet, changes nothing.
#[test]
fn a_forged_retry_is_dropped() {
    let settings = Settings {
        retry: RetryPolicy::Always,
        ..Settings::default()
    };
    let mut pair = Pair::<Client<Log>, Server<Log>>::new(&settings, link());
    let spoil = |datagram: &mut Vec<u8>, number| {
        if number == 0
            && let Some(last) = datagram.last_mut()
        {
            *last ^= 1;
        }
        Verdict::Pass
    };
    pair.network.set_filter(SERVER, CLIENT, Box::new(spoil));
    pair.handshake();
    assert!(
        pair.server.endpoint.stats().retries >= 2,
        "the first was dropped"
    );
}

/// RFC 9000, 6: an unknown version is answered with ours, if the datagram is large enough.
#[test]
fn an_unknown_version_is_negotiated() {
    for (size, is_answered) in [(1200, true), (1199, false)] {
        let mut pair = to_server(Parameters::generous());
        pair.client.is_automatic = false;
        let mut draft = Draft::new(Level::Initial, &[1]);
        draft.version = Some(0x5a6a_7a8a);
        draft.size = size;
        let packet = pair.client.seal(&draft);
        pair.client.send_datagram(packet);
        pair.run(Duration::from_millis(100));
        assert_eq!(pair.client.versions().contains(&1), is_answered);
        let sent = pair.network.passed(SERVER, CLIENT).sent_bytes;
        assert!(sent < 1200, "{sent}");
    }
}

/// RFC 9000, 10.3: a packet for no connection is answered with less than itself.
#[test]
fn a_stateless_reset_is_smaller_than_what_it_answers() {
    let mut pair = to_server(Parameters::generous());
    pair.handshake();
    pair.client.acknowledges = false;
    pair.client.set_remote_cid(b"nobody's");
    for size in [30, 40, 60, 100, 1200] {
        let mut draft = Draft::new(Level::OneRtt, &[1]);
        draft.size = size;
        let packet = pair.client.seal(&draft);
        pair.client.send_datagram(packet);
        let known = pair.client.unreadable().len();
        pair.run(Duration::from_millis(100));
        let resets = pair.client.unreadable().get(known..).unwrap();
        let lengths: Vec<_> = resets.iter().map(Vec::len).collect();
        assert!(
            lengths.iter().all(|length| *length < size),
            "{size}: {lengths:?}"
        );
        assert!(size < 50 || lengths.len() == 1, "{size}: {lengths:?}");
    }
}

/// RFC 9000, 10.2.2: the handshake is closed at the level that the client can read.
#[test]
fn a_close_during_the_handshake_is_understood() {
    let mut pair = to_client(Parameters::generous());
    pair.server.is_automatic = false;
    pair.run(Duration::from_millis(15));
    pair.server
        .send(Level::Initial, &frames::connection_close(2, 0, b"busy"));
    pair.run(Duration::from_secs(1));
    assert!(pair.client.connection.is_closing());
    let closes = |frame: &SeenFrame| frame.as_close().is_some();
    assert!(!pair.server.frames(Level::Initial).any(closes));
}
