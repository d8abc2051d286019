//! HTTP/3 over real sockets on loopback, client and server in a thread each: the workloads that the field measures.
//!
//! Loopback's own MTU is used as far as it goes; for another, run in a network namespace:
//! `unshare -rn sh -c 'ip link set lo up mtu 1500; exec cargo bench -p benches --bench http3 --offline'`.
#![expect(
    clippy::significant_drop_tightening,
    reason = "a group of benches ends with its function"
)]

use std::time::Duration;

use benches::{Load, Plan, Service};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const GET: Plan = Plan {
    requests: 1,
    parallel: 1,
    response: 1,
    request: None,
};
const BULK: u64 = 100 * 1024 * 1024;

fn one_connection(criterion: &mut Criterion, name: &str, throughput: Throughput, plan: Plan) {
    let service = Service::start();
    let mut load = Load::connect(&service, 1);
    let mut group = criterion.benchmark_group("1-conn");
    group.throughput(throughput);
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(5));
    group.bench_function(name, |bencher| bencher.iter(|| load.run(plan)));
    group.finish();
    load.close();
}

fn bulk(criterion: &mut Criterion) {
    let download = Plan {
        response: BULK,
        ..GET
    };
    let upload = Plan {
        request: Some(BULK),
        ..GET
    };
    let bytes = Throughput::Bytes(BULK);
    one_connection(
        criterion,
        "1-100mb-resp (aka. Download)",
        bytes.clone(),
        download,
    );
    one_connection(criterion, "1-100mb-req (aka. Upload)", bytes, upload);
}

fn requests(criterion: &mut Criterion) {
    let parallel = Plan {
        requests: 10_000,
        parallel: 10_000,
        ..GET
    };
    let sequential = Plan {
        requests: 10_000,
        ..GET
    };
    let count = Throughput::Elements(10_000);
    one_connection(
        criterion,
        "10_000-parallel-1b-resp (aka. RPS)",
        count.clone(),
        parallel,
    );
    one_connection(criterion, "10_000-1b-seq-resp", count, sequential);
    one_connection(
        criterion,
        "1-1b-resp (aka. HPS)",
        Throughput::Elements(1),
        GET,
    );
}

fn connections(criterion: &mut Criterion) {
    let service = Service::start();
    let mut seed = 0;
    let mut group = criterion.benchmark_group("100-seq-conn");
    group.throughput(Throughput::Elements(100));
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(5));
    group.bench_function("1-1b-resp", |bencher| {
        bencher.iter_batched(
            || (),
            |()| {
                for _ in 0..100 {
                    seed += 1;
                    let mut load = Load::connect(&service, seed);
                    load.run(GET);
                    load.close();
                }
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, bulk, requests, connections);
criterion_main!(benches);
