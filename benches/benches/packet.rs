//! What a packet costs: a client and a server in memory, one thread, 1200-byte packets, all of recovery, pacing,
//! acknowledgements and stream copies included; beside it, what sealing and opening such a packet takes alone.
//!
//! Each round measures both, so that the difference is not one between two states of the machine. The rounds are short
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
        let packet = transfer(&mut pair, PACKETS);
        let aeads = aeads();
        rounds.push((packet, aeads));
    }
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(ROUNDS / 2).copied().unwrap()
    };
    let (packet, aeads) = (median(|round| round.0), median(|round| round.1));
    let rest = median(|round| round.0 - round.1);
    println!("both ends, per packet of {PACKET} bytes: {packet:.0} ns");
    println!("of which sealing and opening:         {aeads:.0} ns");
    println!("everything else:                      {rest:.0} ns");
    let least = |pick: fn(&(f64, f64)) -> f64| rounds.iter().map(pick).fold(f64::MAX, f64::min);
    let (packet, aeads) = (least(|round| round.0), least(|round| round.1));
    println!(
        "undisturbed:                          {packet:.0} - {aeads:.0} = {:.0} ns",
        packet - aeads
    );
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

/// Nanoseconds for sealing and opening one packet.
fn aeads() -> f64 {
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).unwrap());
    let header = [0_u8; 13];
    let mut packet = [0_u8; PACKET - 13];
    let start = Instant::now();
    for _ in 0..PACKETS {
        let nonce = || Nonce::assume_unique_for_key([1; 12]);
        let (payload, tag) = packet.split_at_mut(PACKET - 13 - 16);
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
