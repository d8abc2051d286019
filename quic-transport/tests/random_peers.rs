//! A scripted peer that says anything: frames drawn from a seed, in packets with real keys, in both roles.
//!
//! Whatever it says, the stack neither panics nor spins, answers in bounded measure, and ends with an error code or goes
//! on working.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "test code"
)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use quic_common::{Ecn, Random};
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Link, Party};
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, frames};
use test_fixture::{Busy, CLIENT, Pair, SERVER};

const SECOND: Duration = Duration::from_secs(1);

/// Numbers of every size, mostly small ones.
fn number(random: &mut Random) -> u64 {
    match random.below(8) {
        0..=3 => random.below(12),
        4 => random.below(400),
        5 => random.below(1 << 20),
        6 => random.below(1 << 32),
        _ => (1 << 62) - 1 - random.below(3),
    }
}

fn bytes(random: &mut Random) -> Vec<u8> {
    let length = if random.below(4) == 0 { 900 } else { 30 };
    let mut bytes = vec![0; usize::try_from(random.below(length)).unwrap()];
    random.fill(&mut bytes);
    bytes
}

/// A frame that keeps to the rules, of a client or a server. Streams have 20000 bytes, of any content.
fn proper(random: &mut Random, is_client: bool) -> Vec<u8> {
    const SIZE: u64 = 20_000;
    let initiator = u64::from(!is_client);
    let ours = 4 * random.below(30) + initiator + 2 * random.below(2);
    let both = 4 * random.below(30) + initiator;
    let value = number(random);
    let data = bytes(random);
    let length = u64::try_from(data.len()).unwrap();
    match random.below(20) {
        0 => frames::padding(3),
        1 => frames::ping(),
        2 => frames::raw_ack(0, value, 0, &[]),
        3 => frames::reset_stream(ours, value, SIZE),
        4 => frames::stop_sending(both, value),
        5 => frames::max_data(value),
        6 => frames::max_stream_data(both, value),
        7 => frames::max_streams(value.min(1 << 60)),
        8 => frames::data_blocked(value),
        9 => frames::stream_data_blocked(ours, value),
        10 => frames::streams_blocked(value.min(1 << 60)),
        11 => {
            let sequence = 1 + random.below(6);
            frames::new_connection_id(sequence, 0, &[u8::try_from(sequence).unwrap(); 8], [7; 16])
        }
        12 => frames::path_challenge(value.to_be_bytes()),
        13 => frames::path_response(value.to_be_bytes()),
        14 => frames::stream(ours, SIZE - length, &data, true),
        _ => frames::stream(ours, random.below(SIZE - length), &data, false),
    }
}

/// Any frame at all.
fn improper(random: &mut Random, next_number: u64) -> Vec<u8> {
    let (a, b, c) = (number(random), number(random), number(random));
    let data = bytes(random);
    let cid: [u8; 8] = a.to_be_bytes();
    match random.below(24) {
        0 => data,
        1 => frames::handshake_done(),
        2 => frames::raw_ack(a, b, c, &[]),
        3 => frames::raw_ack(next_number, 0, a, &[(b, c), (a, a)]),
        4 => frames::reset_stream(a, b, c),
        5 => frames::stop_sending(a, b),
        6 => frames::crypto(b, &data),
        7 => frames::new_token(&data),
        8..=13 => frames::stream(a, b, &data, random.below(4) == 0),
        14 => frames::max_data(b),
        15 => frames::max_stream_data(a, b),
        16 => frames::max_streams(b),
        17 => frames::connection_close(a, b, &data),
        18 => frames::stream_data_blocked(a, b),
        19 => frames::streams_blocked(c),
        20 => frames::new_connection_id(a, c, &cid, [7; 16]),
        21 => frames::retire_connection_id(a),
        22 => frames::application_close(a, &data),
        _ => frames::with_ecn(frames::raw_ack(a, b, 0, &[]), [a, b, c]),
    }
}

/// Sends a packet, which keeps to the rules with a chance of `careful` in 1000.
fn babble(
    peer: &mut ScriptedPeer,
    (level, is_client): (Level, bool),
    random: &mut Random,
    careful: u64,
) {
    let is_odd = random.below(1000) >= careful;
    let mut payload = Vec::new();
    for _ in 0..=random.below(6) {
        let frame = if is_odd {
            improper(random, peer.next_number(level))
        } else {
            proper(random, is_client)
        };
        if payload.len() + frame.len() < 1100 {
            payload.extend(frame);
        }
    }
    let mut draft = Draft::new(level, &payload);
    if is_odd && random.below(5) == 0 {
        draft.number_length = usize::try_from(1 + random.below(4)).unwrap();
        draft.number = Some(peer.next_number(level) + random.below(40));
        draft.flip = u8::try_from(random.below(256)).unwrap() & 0x3c;
    }
    // A packet must be long enough for the sample of its header protection.
    draft.size = draft.size.max(60);
    if is_odd && random.below(30) == 0 {
        peer.update_keys();
    }
    if random.below(10) == 0 {
        peer.set_ecn(Ecn::Ce);
    } else {
        peer.set_ecn(Ecn::Ect0);
    }
    let mut packet = peer.seal(&draft);
    if is_odd && random.below(10) == 0 {
        let place = usize::try_from(random.below(packet.len().try_into().unwrap())).unwrap();
        packet[place] ^= 1 << random.below(8);
    }
    peer.send_datagram(packet);
}

/// Lets time pass, and checks that nobody spins and answers are in proportion.
fn pass<C: Party, S: Party>(pair: &mut Pair<C, S>, random: &mut Random) {
    let time = match random.below(10) {
        0 => SECOND * 3,
        1..=3 => SECOND / 5,
        _ => Duration::from_millis(random.below(30)),
    };
    let (client, server) = pair.turns(time);
    let most = 200 + 100 * u32::try_from(time.as_secs() + 1).unwrap();
    assert!(
        client < most && server < most,
        "{client} {server} in {time:?}"
    );
}

/// Prints the seed of a run that fails.
fn with_seeds(seeds: std::ops::Range<u8>, run: impl Fn(u8)) {
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            println!("seed {seed}");
            resume_unwind(panic);
        }
    }
}

fn link() -> Link {
    Link::delayed(Duration::from_millis(5))
}

#[test]
fn a_server_survives_any_client() {
    with_seeds(0..60, |seed| {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let mut random = Random::from_seed([seed; 32]);
        let mut pair = Pair::<ScriptedPeer, Server<Busy>>::scripted_client(
            &settings,
            Parameters::generous(),
            link(),
        );
        pair.handshake();
        pair.client.acknowledges = seed % 4 != 0;
        let careful = [1000, 1000, 990, 500][usize::from(seed / 4 % 4)];
        for _ in 0..400 {
            babble(
                &mut pair.client,
                (Level::OneRtt, true),
                &mut random,
                careful,
            );
            pass(&mut pair, &mut random);
        }
        if careful == 1000 {
            assert_eq!(pair.client.close(), None);
        }
        pair.client.is_automatic = false;
        pair.run(SECOND * 100);
        assert!(pair.server.endpoint.is_empty(), "the state is freed");
        let sent = pair.network.passed(SERVER, CLIENT).sent_bytes;
        assert!(sent < 8_000_000, "{sent}");
    });
}

#[test]
fn a_client_survives_any_server() {
    with_seeds(60..120, |seed| {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let mut random = Random::from_seed([seed; 32]);
        let mut pair = Pair::<Client<Busy>, ScriptedPeer>::scripted_server(
            &settings,
            Parameters::generous(),
            link(),
        );
        pair.handshake();
        pair.server.acknowledges = seed % 4 != 0;
        let careful = [1000, 1000, 990, 500][usize::from(seed / 4 % 4)];
        for _ in 0..400 {
            babble(
                &mut pair.server,
                (Level::OneRtt, false),
                &mut random,
                careful,
            );
            pass(&mut pair, &mut random);
        }
        if careful == 1000 {
            assert_eq!(pair.server.close(), None);
        }
        pair.server.is_automatic = false;
        pair.run(SECOND * 100);
        assert!(pair.client.connection.is_closed());
    });
}

/// During the handshake, in packets of every level that there is.
#[test]
fn handshakes_survive_any_peer() {
    with_seeds(120..200, |seed| {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let mut random = Random::from_seed([seed; 32]);
        let steps = Duration::from_millis(u64::from(seed % 8) * 4);
        let careful = 500;
        let mut pair = Pair::<ScriptedPeer, Server<Busy>>::scripted_client(
            &settings,
            Parameters::generous(),
            link(),
        );
        pair.run(steps);
        for _ in 0..40 {
            babble(
                &mut pair.client,
                (Level::Initial, true),
                &mut random,
                careful,
            );
            pass(&mut pair, &mut random);
        }
        pair.client.is_automatic = false;
        pair.run(SECOND * 100);
        assert!(pair.server.endpoint.is_empty());

        let mut pair = Pair::<Client<Busy>, ScriptedPeer>::scripted_server(
            &settings,
            Parameters::generous(),
            link(),
        );
        pair.server.is_automatic = false;
        pair.run(Duration::from_millis(8));
        for _ in 0..20 {
            let level = if random.below(3) == 0 {
                Level::Initial
            } else {
                Level::Handshake
            };
            babble(&mut pair.server, (level, false), &mut random, careful);
            pass(&mut pair, &mut random);
        }
        pair.run(SECOND * 100);
        assert!(pair.client.connection.is_closed());
    });
}
