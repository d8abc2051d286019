//! Holds what packets, requests and connections cost against a committed baseline, in instructions and allocations:
//! figures that are the same on a busy machine.
//!
//! Without an argument it checks; `update` makes what is counted now the baseline; `profile WORKLOAD` tells which
//! functions the instructions are in. Needs valgrind.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a program for people, in which what goes wrong ends it"
)]

mod workload;
mod callgrind;
mod baseline;

use std::process::ExitCode;
use std::{env, io};

use test_fixture::CountingAllocator;

use baseline::{Unit, Verdict};
use callgrind::Cost;
use workload::{WORKLOADS, Workload};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const USAGE: &str = "guard [update | profile WORKLOAD]";
/// Functions in a profile.
const SHOWN: usize = 40;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["run", name, count] => run(name, count.parse().unwrap()),
        _ if !callgrind::is_available() => Err(io::Error::other("valgrind is not there")),
        [] => check(),
        ["update"] => update(),
        ["profile", name] => profile(name),
        _ => Err(io::Error::other(USAGE)),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            println!("{error}");
            ExitCode::from(2)
        }
    }
}

fn named(name: &str) -> io::Result<Workload> {
    let mut workloads = WORKLOADS.into_iter();
    let found = workloads.find(|workload| workload.name == name);
    found.ok_or_else(|| io::Error::other(format!("no workload is called {name}")))
}

/// What runs under callgrind.
fn run(name: &str, count: u64) -> io::Result<ExitCode> {
    let workload = named(name)?;
    println!("{}", (workload.run)(count).count);
    Ok(ExitCode::SUCCESS)
}

fn measure(workload: &Workload) -> io::Result<(Cost, Unit)> {
    let cost = callgrind::count(workload)?;
    let unit = Unit {
        instructions: cost.instructions() as f64 / workload.count as f64,
        allocations: cost.allocations as f64 / workload.count as f64,
    };
    Ok((cost, unit))
}

fn check() -> io::Result<ExitCode> {
    let known = baseline::read()?;
    let mut worst = Verdict::Same;
    println!("                own instructions               allocations");
    for workload in WORKLOADS {
        let name = workload.name;
        let found = known.iter().find(|(known, _)| known == name);
        let Some((_, base)) = found else {
            let reason = format!("{name} has no baseline: `guard update`");
            return Err(io::Error::other(reason));
        };
        let (_, unit) = measure(&workload)?;
        let verdict = unit.against(*base);
        let change = (unit.instructions / base.instructions - 1.0) * 100.0;
        println!(
            "{name:<12}{:>10.1}, was {:>10.1} ({change:+.1} %){:>10.3}, was {:>8.3}  {verdict:?}",
            unit.instructions, base.instructions, unit.allocations, base.allocations,
        );
        if worst != Verdict::Worse && verdict != Verdict::Same {
            worst = verdict;
        }
    }
    let refresh = "cargo run --release -p benches --bin guard -- update";
    Ok(match worst {
        Verdict::Same => ExitCode::SUCCESS,
        Verdict::Better => {
            println!("Better than the baseline: keep it with `{refresh}`.");
            ExitCode::SUCCESS
        }
        Verdict::Worse => {
            println!(
                "Over 2 % more than benches/baseline.txt. `cargo run --release -p benches --bin guard -- profile WORKLOAD` \
                 shows where; if it is worth its price, make it the baseline with `{refresh}` and say why in the commit."
            );
            ExitCode::FAILURE
        }
    })
}

fn update() -> io::Result<ExitCode> {
    let mut units = Vec::new();
    for workload in WORKLOADS {
        let (_, unit) = measure(&workload)?;
        let Unit {
            instructions,
            allocations,
        } = unit;
        let name = workload.name;
        println!("{name:<12}{instructions:>10.1} instructions{allocations:>10.3} allocations");
        units.push((workload, unit));
    }
    baseline::write(&units)?;
    Ok(ExitCode::SUCCESS)
}

fn profile(name: &str) -> io::Result<ExitCode> {
    let workload = named(name)?;
    let (cost, unit) = measure(&workload)?;
    let mut functions: Vec<(String, i64)> = cost.functions.into_iter().collect();
    functions.sort_by_key(|(name, instructions)| (-instructions, name.clone()));
    let Unit {
        instructions,
        allocations,
    } = unit;
    let what = workload.unit;
    println!("{instructions:.1} own instructions and {allocations:.3} allocations for each {what}");
    for (function, instructions) in functions.iter().take(SHOWN) {
        let each = *instructions as f64 / workload.count as f64;
        println!("{each:>10.1}  {function}");
    }
    Ok(ExitCode::SUCCESS)
}
