//! Components by themselves: what a packet, a frame, a range, a stream cost where nothing else is.
#![expect(clippy::unwrap_used, reason = "benches")]

use std::hint::black_box;
use std::time::Instant;

use criterion::measurement::WallTime;
use criterion::{
    BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use quic_common::Random;
use quic_http3::{Field, Fields, qpack};
use quic_transport::benching::{
    Pacing, Reassembly, Received, Scheduler, Sent, frames, read_header, write_header,
};

/// Packets of a run.
const PACKETS: u64 = 1000;
/// Bytes of data in a packet.
const DATA: usize = 1100;

const fn random() -> Random {
    Random::from_seed([1; 32])
}

fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet");
    group.throughput(Throughput::Elements(1));
    let mut packet = [0; 1200];
    let mut number = 0;
    group.bench_function("write-header", |bencher| {
        bencher.iter(|| {
            number += 1;
            write_header(&mut packet, number)
        });
    });
    group.bench_function("read-header", |bencher| {
        bencher.iter(|| read_header(black_box(&packet)));
    });
    let mut scheduler = Scheduler::new(1);
    group.bench_function("build", |bencher| {
        bencher.iter(|| scheduler.packet(&mut packet));
    });
    let length = scheduler.packet(&mut packet);
    let payload = packet.get(..length).unwrap();
    group.bench_function("frames", |bencher| {
        bencher.iter(|| frames(black_box(payload)));
    });
    // ACK with four ranges, MAX_DATA, MAX_STREAM_DATA, PING, and a STREAM frame.
    let mixed = [
        &[
            0x02, 0x40, 0x64, 0x00, 0x03, 0x05, 0x01, 0x02, 0x01, 0x02, 0x01, 0x02,
        ][..],
        &[0x10, 0x80, 0x01, 0x00, 0x00],
        &[0x11, 0x04, 0x80, 0x01, 0x00, 0x00],
        &[0x01],
        &[0x0e, 0x04, 0x40, 0x40, 0x05, 1, 2, 3, 4, 5],
    ]
    .concat();
    group.bench_function("frames-mixed", |bencher| {
        bencher.iter(|| frames(black_box(&mixed)));
    });
    group.finish();
}

fn acknowledgments(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("acknowledgments");
    group.throughput(Throughput::Elements(PACKETS));
    let mut packet = [0; 1200];
    let mut run = |name: &str, numbers: Vec<u64>| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut received = Received::new(Instant::now());
                for chunk in numbers.chunks(10) {
                    for number in chunk {
                        received.on_packet(*number);
                    }
                    black_box(received.acknowledge(&mut packet));
                }
            });
        });
    };
    run("in-order", (0..PACKETS).collect());
    run(
        "every-second",
        (0..PACKETS).map(|number| 2 * number).collect(),
    );
    run("loss-2-percent", with_gaps(0..PACKETS).collect());
    group.finish();
}

/// Leaves two in a hundred out.
fn with_gaps(numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let mut random = random();
    numbers.filter(move |_| random.below(100) >= 2)
}

fn reassembly(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reassembly");
    let data = [7; DATA];
    let size = u64::try_from(DATA).unwrap();
    group.throughput(Throughput::Bytes(PACKETS * size));
    let mut run = |name: &str, order: Vec<u64>| {
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                Reassembly::default,
                |reassembly| {
                    let mut read = 0;
                    for number in &order {
                        reassembly.insert(number * size, &data);
                        read += reassembly.read();
                    }
                    read
                },
                BatchSize::PerIteration,
            );
        });
    };
    run("in-order", (0..PACKETS).collect());
    let lost: Vec<u64> = (0..PACKETS).filter(|number| number % 50 == 7).collect();
    // What is lost comes again thirty packets later.
    let late = |number: &u64| number + if lost.contains(number) { 30 } else { 0 };
    let mut order: Vec<u64> = (0..PACKETS).collect();
    order.sort_by_key(late);
    run("loss-2-percent", order);
    let swapped = (0..PACKETS / 4).flat_map(|four| [1, 0, 3, 2].map(|at| 4 * four + at));
    run("reordered", swapped.collect());
    run(
        "duplicated",
        (0..PACKETS).flat_map(|number| [number; 2]).collect(),
    );
    group.finish();
}

fn sent(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sent-packets");
    group.throughput(Throughput::Elements(PACKETS));
    group.bench_function("in-order", |bencher| {
        let mut sent = Sent::new(Instant::now());
        bencher.iter(|| {
            let first = sent.send();
            let last = (1..PACKETS).fold(first, |_, _| sent.send());
            (first..last)
                .step_by(10)
                .map(|from| sent.acknowledge(from, (from + 9).min(last)))
                .sum::<usize>()
        });
    });
    group.bench_function("every-tenth-lost", |bencher| {
        let mut sent = Sent::new(Instant::now());
        bencher.iter(|| {
            let first = sent.send();
            let last = (1..PACKETS).fold(first, |_, _| sent.send());
            (first..last)
                .step_by(10)
                .map(|from| sent.acknowledge(from + 1, (from + 9).min(last)))
                .sum::<usize>()
        });
    });
    group.finish();
}

fn scheduler(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scheduler");
    group.throughput(Throughput::Elements(1));
    let mut payload = [0; 1200];
    for count in [1, 100, 10_000] {
        let mut scheduler = Scheduler::new(count);
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| scheduler.packet(&mut payload));
        });
    }
    group.finish();
}

fn pacer(criterion: &mut Criterion) {
    let mut pacing = Pacing::new(Instant::now());
    criterion.bench_function("pacer", |bencher| bencher.iter(|| pacing.batch()));
}

fn field_lines() -> [Field<'static>; 9] {
    [
        Field::new(":method", "GET"),
        Field::new(":scheme", "https"),
        Field::new(":authority", "www.example.com"),
        Field::new(":path", "/index.html?query=value"),
        Field::new("user-agent", "an agent with a name of some length/1.0"),
        Field::new("accept", "text/html,application/xhtml+xml"),
        Field::new("accept-encoding", "gzip, deflate, br"),
        Field::new("cookie", "session=0123456789abcdef"),
        Field::new("x-request", "12345"),
    ]
}

fn field_sections(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("qpack");
    group.throughput(Throughput::Elements(1));
    let mut section = Vec::new();
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            section.clear();
            qpack::encode(field_lines(), &mut section)
        });
    });
    let mut section = Vec::new();
    qpack::encode(field_lines(), &mut section);
    let mut fields = Fields::default();
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            fields.clear();
            qpack::decode(black_box(&section), 1 << 16, &mut fields)
        });
    });
    dynamic_field_sections(&mut group);
    group.finish();
}

/// The same lines again and again on one connection: all that isn't in the static table is in the dynamic one.
fn dynamic_field_sections(group: &mut BenchmarkGroup<'_, WallTime>) {
    let mut encoder = qpack::Encoder::new(4096, 100);
    let mut decoder = qpack::Decoder::new(4096, 100);
    let (mut section, mut fields, mut news) = (Vec::new(), Fields::default(), Vec::new());
    group.bench_function("encode-and-decode-dynamic", |bencher| {
        bencher.iter(|| {
            section.clear();
            fields.clear();
            news.clear();
            let references = encoder.encode(field_lines(), &mut section).references;
            encoder.on_sent(0, references);
            encoder.take_instructions(&mut news);
            decoder.read(&news).unwrap();
            news.clear();
            let result = decoder.decode(0, black_box(&section), 1 << 16, &mut fields);
            assert_eq!(result, Ok(qpack::Decoded::Whole));
            decoder.take_news(true, &mut news).unwrap();
            encoder.read(&news).unwrap();
        });
    });
}

criterion_group!(
    benches,
    packets,
    acknowledgments,
    reassembly,
    sent,
    scheduler,
    pacer,
    field_sections
);
criterion_main!(benches);
