//! What a flood costs those who are connected already: a download on loopback, alone and while 50 000 Initials a second
//! come from other addresses, most of them new clients.
//!
//! The flood's sender takes a share of the processor too. So there is a third figure, with the same flood sent to a
//! socket that nobody reads, and the ratio that counts is between those two. Rounds alternate, since machines vary.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for people"
)]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benches::{Load, Plan, Service};
use quic_common::{BatchBuffer, Random};
use quic_transport::{Config, Connection, Output};

const INITIALS_PER_SECOND: u64 = 50_000;
/// As many clients, each with an Initial of its own; then they come again.
const CLIENTS: u64 = 20_000;
/// Addresses that they come from.
const SOURCES: u8 = 100;
const BULK: u64 = 200 << 20;
const ROUNDS: usize = 7;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let service = Service::start();
    let initials: Arc<[Vec<u8>]> = (0..CLIENTS).map(|index| initial(&service, index)).collect();
    let nowhere = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut load = Load::connect(&service, 1);
    let mut rounds: [Vec<f64>; 3] = Default::default();
    let mut sent = 0.0;
    for _ in 0..ROUNDS {
        let targets = [
            None,
            Some(nowhere.local_addr().unwrap()),
            Some(service.address),
        ];
        for (target, round) in targets.into_iter().zip(&mut rounds) {
            let flood = target.map(|target| Flood::start(&initials, target));
            // Handshakes under way, or as many as there may be.
            std::thread::sleep(Duration::from_millis(200));
            let start = Instant::now();
            let received = load.run(Plan {
                requests: 1,
                parallel: 1,
                response: BULK,
                request: None,
            });
            let time = start.elapsed();
            round.push(bits(received, time));
            sent = flood.map_or(sent, Flood::stop);
        }
    }
    load.close();
    let [alone, beside, under] = rounds.map(median);
    println!("alone:                       {alone:.2} Gbit/s");
    println!("beside a flood to elsewhere: {beside:.2} Gbit/s");
    println!("under the flood:             {under:.2} Gbit/s");
    println!("Initials sent:               {sent:.0} a second");
    println!("under the flood / beside it: {:.2}", under / beside);
    println!("under the flood / alone:     {:.2}", under / alone);
}

/// A client's first datagram.
fn initial(service: &Service, index: u64) -> Vec<u8> {
    let mut seed = [0xf1; 32];
    if let Some(start) = seed.first_chunk_mut() {
        *start = index.to_le_bytes();
    }
    let (config, random) = (Config::default(), Random::from_seed(seed));
    let now = Instant::now();
    let mut connection = Connection::client(
        &config,
        &service.tls,
        "localhost",
        service.address,
        random,
        now,
    )
    .unwrap();
    let mut buffer = BatchBuffer::new();
    let Output::Datagrams(batch) = connection.process_output(now, &mut buffer) else {
        return Vec::new();
    };
    batch.segments().next().unwrap_or_default().to_vec()
}

/// A thread that sends Initials.
struct Flood {
    is_over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    start: Instant,
    thread: std::thread::JoinHandle<()>,
}

impl Flood {
    fn start(initials: &Arc<[Vec<u8>]>, target: SocketAddr) -> Self {
        let (is_over, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (is_told, count, initials) = (
            Arc::clone(&is_over),
            Arc::clone(&sent),
            Arc::clone(initials),
        );
        let start = Instant::now();
        let thread = std::thread::spawn(move || {
            let sources: Vec<UdpSocket> = (0..SOURCES)
                .map(|host| UdpSocket::bind((Ipv4Addr::new(127, 0, 1, host + 1), 0)).unwrap())
                .collect();
            let mut clients = initials.iter().cycle().zip(sources.iter().cycle());
            while !is_told.load(Ordering::Relaxed) {
                let micros = u64::try_from(start.elapsed().as_micros()).unwrap();
                let due = micros * INITIALS_PER_SECOND / 1_000_000;
                while count.load(Ordering::Relaxed) < due {
                    let Some((initial, source)) = clients.next() else {
                        return;
                    };
                    // A full queue drops it, as a network would.
                    let _: Option<usize> = source.send_to(initial, target).ok();
                    count.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        Self {
            is_over,
            sent,
            start,
            thread,
        }
    }

    /// Returns how many Initials there were in a second.
    fn stop(self) -> f64 {
        let rate = rate(self.sent.load(Ordering::Relaxed), self.start.elapsed());
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        rate
    }
}

fn rate(count: u64, time: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap()) / time.as_secs_f64()
}

/// Gigabits a second.
fn bits(bytes: u64, time: Duration) -> f64 {
    rate(bytes, time) * 8.0 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap()
}
