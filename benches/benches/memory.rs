//! Whole transfers in memory, and variable-length integers: no socket, no clock.
//!
//! The sizes of packets repeat for a seed, so the benches with varying seeds show how much hangs on that.
#![expect(clippy::unwrap_used, reason = "benches")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use quic_common::{Random, Reader, Writer};
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::{Bulk, Pair};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

/// Bytes of a transfer.
const SIZE: u32 = 4 << 20;

/// What a transfer is like.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    link: Link,
    is_paced: bool,
    is_upload: bool,
    has_one_seed: bool,
}

fn download() -> Transfer {
    Transfer {
        link: Link::delayed(Duration::from_millis(1)),
        is_paced: true,
        is_upload: false,
        has_one_seed: true,
    }
}

impl Transfer {
    /// Two ends that have shaken hands.
    fn pair(self, seed: u8) -> Bulks {
        let mut settings = Settings {
            seed,
            ..Settings::default()
        };
        settings.client.pacing = self.is_paced;
        settings.server.pacing = self.is_paced;
        let mut pair = Bulks::new(&settings, self.link);
        pair.handshake();
        pair.client.application.skips_check = true;
        pair
    }

    fn run(self, mut pair: Bulks) -> Bulks {
        let size = u64::from(SIZE);
        let (down, up) = if self.is_upload { (0, size) } else { (size, 0) };
        pair.client.request(down, up).unwrap();
        pair.run_until(|pair| pair.client.application.complete == 1);
        pair
    }
}

fn transfers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transfer");
    group.throughput(Throughput::Bytes(SIZE.into()));
    group.sample_size(20);
    let lossy = Link {
        loss: Chance::percent(2),
        reorder: Chance::percent(2),
        reorder_delay: Duration::from_millis(1),
        ..download().link
    };
    for (name, transfer) in [
        ("pacing-true/same-seed", download()),
        (
            "pacing-false/same-seed",
            Transfer {
                is_paced: false,
                ..download()
            },
        ),
        (
            "pacing-true/varying-seeds",
            Transfer {
                has_one_seed: false,
                ..download()
            },
        ),
        (
            "pacing-false/varying-seeds",
            Transfer {
                is_paced: false,
                has_one_seed: false,
                ..download()
            },
        ),
        (
            "upload",
            Transfer {
                is_upload: true,
                ..download()
            },
        ),
        (
            "loss-and-reordering",
            Transfer {
                link: lossy,
                ..download()
            },
        ),
    ] {
        let mut seed: u8 = 1;
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || {
                    if !transfer.has_one_seed {
                        seed = seed.wrapping_add(1);
                    }
                    transfer.pair(seed)
                },
                |pair| transfer.run(pair),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn varints(criterion: &mut Criterion) {
    let mut random = Random::from_seed([1; 32]);
    let values: Vec<u64> = (0..1000)
        .map(|_| random.below(1 << 62) >> random.below(62))
        .collect();
    let mut buffer = vec![0; 8 * values.len()];
    let mut group = criterion.benchmark_group("varint");
    group.throughput(Throughput::Elements(1000));
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            let mut writer = Writer::new(&mut buffer);
            for value in &values {
                writer.varint(*value);
            }
            black_box(writer.len())
        });
    });
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            let mut reader = Reader::new(&buffer);
            (0..1000).fold(0_u64, |sum, _| sum.wrapping_add(reader.varint().unwrap()))
        });
    });
    group.finish();
}

criterion_group!(benches, transfers, varints);
criterion_main!(benches);
