//! What a packet costs: a client and a server in memory, one thread, 1200-byte packets, all of recovery, pacing,
//! acknowledgements and stream copies included; beside it, what sealing and opening such a packet takes alone. A full packet
//! leaves a few of the 1200 bytes unused, so that it holds whole blocks of the cipher: both sizes are measured.
//!
//! Each round measures all, so that the difference is not one between two states of the machine. The rounds are short
//! and many: the least of each kind is what the machine does when nothing else runs on it.
//!
//! With a number as its argument it transfers so many packets and measures nothing, for a profiler that counts
//! instructions: the difference between two runs is exact.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for people"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use test_fixture::crypto::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::Link;
use test_fixture::{Bulk, Pair};

const PACKETS: u64 = 10_000;
/// After so many packets windows and buffers have their size.
const WARM_UP: u64 = 20_000;
const ROUNDS: usize = 151;
const PACKET: usize = 1200;
const HEADER: usize = 11;
const TAG: usize = 16;
/// Of a packet as it is sent: whole blocks.
const PLAINTEXT: usize = (PACKET - HEADER - TAG) / 16 * 16;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    if let Some(packets) = std::env::args().find_map(|argument| argument.parse().ok()) {
        transfer(&mut pair(), packets);
        return;
    }
    let mut pair = pair();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(Round {
            packet: transfer(&mut pair, PACKETS),
            of_1200: aeads(PACKET - HEADER - TAG),
            of_blocks: aeads(PLAINTEXT),
        });
    }
    let median = |pick: fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(ROUNDS / 2).copied().unwrap()
    };
    let least = |pick: fn(&Round) -> f64| rounds.iter().map(pick).fold(f64::MAX, f64::min);
    let line = |what: &str, pick: fn(&Round) -> f64| {
        println!(
            "{what:48} {:4.0} ns, least {:4.0}",
            median(pick),
            least(pick)
        );
    };
    line("both ends, a packet of up to 1200 bytes:", |round| {
        round.packet
    });
    line("sealing and opening 1200 bytes:", |round| round.of_1200);
    line("sealing and opening those that were sent:", |round| {
        round.of_blocks
    });
    println!(
        "{:48} {:4.0} ns, of the least {:4.0}",
        "everything but sealing and opening what was sent:",
        median(|round| round.packet - round.of_blocks),
        least(|round| round.packet) - least(|round| round.of_blocks)
    );
}

/// Nanoseconds for a packet, and for what it can't do without.
struct Round {
    packet: f64,
    of_1200: f64,
    of_blocks: f64,
}

fn pair() -> Pair<Client<Bulk>, Server<Bulk>> {
    let mut settings = Settings::default();
    settings.client.max_datagram = 1200;
    settings.server.max_datagram = 1200;
    let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&settings, Link::default());
    pair.handshake();
    pair.client.application.skips_check = true;
    pair.client.request(1 << 50, 0).unwrap();
    transfer(&mut pair, WARM_UP);
    pair
}

/// Nanoseconds for each packet that carries data.
fn transfer(pair: &mut Pair<Client<Bulk>, Server<Bulk>>, count: u64) -> f64 {
    let packets =
        |pair: &Pair<Client<Bulk>, Server<Bulk>>| pair.client.connection.stats().packets_received;
    let first = packets(pair);
    let start = Instant::now();
    pair.run_until(|pair| packets(pair) - first >= count);
    per_packet(start.elapsed(), packets(pair) - first)
}

/// Nanoseconds for sealing and opening one packet with so many bytes of plaintext.
fn aeads(plaintext: usize) -> f64 {
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).unwrap());
    let header = [0_u8; HEADER];
    let mut packet = vec![0_u8; plaintext + TAG];
    let start = Instant::now();
    for _ in 0..PACKETS {
        let nonce = || Nonce::assume_unique_for_key([1; 12]);
        let (payload, tag) = packet.split_at_mut(plaintext);
        let sealed = key
            .seal_in_place_separate_tag(nonce(), Aad::from(header), payload)
            .unwrap();
        tag.copy_from_slice(sealed.as_ref());
        black_box(
            key.open_in_place(nonce(), Aad::from(header), &mut packet)
                .unwrap(),
        );
    }
    per_packet(start.elapsed(), PACKETS)
}

fn per_packet(time: Duration, packets: u64) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(u32::try_from(packets).unwrap())
}
