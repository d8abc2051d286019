//! The map of connection IDs, with IDs that nobody chose and with as many that collide under a hash without a key
//! (`(rotate(state, 5) ^ word) * constant`, as many maps have it): both take the same time.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use quic_common::{KeyedHasher, KeyedMap, Random};

const IDS: u64 = 10_000;
const FACTOR: u64 = 0x517c_c1b7_2722_0a95;

type Id = [u64; 2];

fn drawn() -> Vec<Id> {
    let mut random = Random::from_seed([1; 32]);
    (0..IDS).map(|_| [random.u64(), random.u64()]).collect()
}

fn colliding() -> Vec<Id> {
    (0..IDS)
        .map(|first| [first, first.wrapping_mul(FACTOR).rotate_left(5) ^ 1])
        .collect()
}

fn empty() -> KeyedMap<Id, u64> {
    KeyedMap::with_hasher(KeyedHasher::new(&mut Random::from_seed([2; 32])))
}

fn filled(ids: &[Id]) -> KeyedMap<Id, u64> {
    let mut map = empty();
    map.extend((0..).zip(ids).map(|(value, id)| (*id, value)));
    map
}

fn connection_ids(criterion: &mut Criterion) {
    for (name, ids) in [("drawn", drawn()), ("colliding", colliding())] {
        let mut group = criterion.benchmark_group(format!("connection-ids/{IDS}-{name}"));
        group.bench_function("insert", |bencher| {
            bencher.iter_batched(empty, |_| black_box(filled(&ids)), BatchSize::SmallInput);
        });
        let map = filled(&ids);
        group.bench_function("lookup", |bencher| {
            bencher.iter(|| {
                ids.iter()
                    .filter_map(|id| map.get(black_box(id)))
                    .sum::<u64>()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, connection_ids);
criterion_main!(benches);
