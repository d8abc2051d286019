//! Runs the same work through this stack and through others, in turns, and prints medians and ranges.
//!
//! Each round runs every stack once, client and server as processes of their own, pinned to a CPU each, so that a
//! machine that gets slower gets slower for all. Where a stack lets us choose, only TLS_AES_128_GCM_SHA256 and X25519 are
//! offered; what was negotiated is read off the network. A client fails unless it has received every byte.

mod number;
mod port;
mod work;
mod measure;
mod tls;
mod asynchronous;
mod peers;
mod bound;
mod ours;
mod stack;
mod negotiated;
mod run;
mod table;
mod chart;
mod namespace;

use std::{
    error::Error,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::SystemTime,
};

#[cfg(feature = "aws-lc-rs")]
use aws_lc_rs::aead;
use clap::{Parser, Subcommand};
use quic_bin::certificate::Identity;
#[cfg(not(feature = "aws-lc-rs"))]
use ring::aead;

use crate::{
    run::Run,
    stack::{Contestant, Stack},
    table::Row,
    work::{Job, Kind, Work},
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Compares QUIC stacks, and TCP with TLS, on this machine's loopback.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// What to do.
    #[arg(long, value_enum, default_value = "download")]
    work: Kind,
    /// Bytes of the body, or how many requests or connections; several make a row each [default: 1 GiB, 10000, 1000].
    #[arg(long, value_delimiter = ',')]
    amount: Vec<u64>,
    /// Requests under way at a time; several make a row each [default: all].
    #[arg(long, value_delimiter = ',')]
    parallel: Vec<u64>,
    /// Rounds; from 20 on, the slowest is held against the median.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// The stacks, in the table's order [default: all that can do the work].
    #[arg(long, value_delimiter = ',')]
    stacks: Vec<Contestant>,
    /// A folder with stacks built elsewhere, each a folder with programs `server` and `client` and a file `works`: see
    /// src/peers/programs.rs.
    #[arg(long, env = "PEERS", value_name = "DIR")]
    peers: Option<PathBuf>,
    /// This program built with `--no-default-features --features aws-lc-rs`: this stack and the bound with that library
    /// beside them with ring.
    #[arg(long, value_name = "PROGRAM")]
    aws_lc_rs: Option<PathBuf>,
    /// Run in a network namespace whose loopback has this MTU (needs root, or unprivileged user namespaces).
    #[arg(long)]
    mtu: Option<u32>,
    /// It does already.
    #[arg(long, hide = true)]
    within_mtu: Option<u32>,
    /// Run client and server on one CPU.
    #[arg(long)]
    one_core: bool,
    /// Count the system calls of one more run of each, with perf.
    #[arg(long)]
    system_calls: bool,
    /// Write a chart of the CPU times to this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Arguments {
    /// What is to be done, all of one kind.
    fn works(&self) -> Vec<Work> {
        let kind = self.work;
        let amounts = if self.amount.is_empty() {
            vec![kind.usual_amount()]
        } else {
            self.amount.clone()
        };
        let works = amounts.into_iter().flat_map(|amount| {
            let all = Work {
                kind,
                amount,
                parallel: if kind == Kind::Requests { amount } else { 1 },
            };
            let some = self.parallel.iter().map(move |parallel| Work {
                parallel: (*parallel).clamp(1, all.parallel),
                ..all
            });
            let some: Vec<Work> = some.collect();
            if some.is_empty() { vec![all] } else { some }
        });
        works.collect()
    }

    fn contestants(&self) -> Outcome<Vec<Contestant>> {
        let other = self.aws_lc_rs.iter().flat_map(|program| {
            let stacks = [Stack::Ours, Stack::Bound].into_iter();
            stacks.map(|stack| Contestant::Rebuilt(stack, program.clone()))
        });
        let other = other.filter(|one| one.does(self.work));
        if self.stacks.is_empty() {
            let is_loopback = self.within_mtu.is_none();
            let usual = Contestant::usual(self.work, is_loopback, self.peers.as_deref())?;
            return Ok(usual.into_iter().chain(other).collect());
        }
        if let Some(unable) = self.stacks.iter().find(|one| !one.does(self.work)) {
            return Err(format!("{}: can't do that", unable.title()).into());
        }
        Ok(self.stacks.iter().cloned().chain(other).collect())
    }
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Serves until its standard input ends (used by the comparison itself).
    #[command(hide = true)]
    Server {
        stack: Contestant,
        cpu: usize,
        #[command(flatten)]
        job: Job,
    },
    /// Does the work once (used by the comparison itself).
    #[command(hide = true)]
    Client {
        stack: Contestant,
        cpu: usize,
        #[command(flatten)]
        job: Job,
        address: SocketAddr,
    },
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    match &arguments.role {
        Some(Role::Server { stack, cpu, job }) => {
            measure::pin(*cpu)?;
            stack.serve(job)
        }
        Some(Role::Client {
            stack,
            cpu,
            job,
            address,
        }) => {
            measure::pin(*cpu)?;
            stack.run(job, *address)
        }
        None => arguments
            .mtu
            .map_or_else(|| compare(&arguments), namespace::again),
    }
}

fn compare(arguments: &Arguments) -> Outcome<()> {
    let directory = std::env::temp_dir().join(format!("compare-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let outcome = compare_in(&directory, arguments);
    fs::remove_dir_all(&directory)?;
    outcome
}

fn compare_in(directory: &Path, arguments: &Arguments) -> Outcome<()> {
    write_identity(directory)?;
    let contestants = arguments.contestants()?;
    let jobs: Vec<Job> = arguments
        .works()
        .into_iter()
        .map(|work| Job {
            directory: directory.to_owned(),
            work,
        })
        .collect();
    let runs: Vec<Run<'_>> = contestants
        .iter()
        .flat_map(|contestant| {
            jobs.iter().map(move |job| Run {
                contestant,
                job,
                is_one_cpu: arguments.one_core,
            })
        })
        .collect();
    let rows: Outcome<Vec<Row>> = runs.iter().map(|run| row(run, arguments)).collect();
    let mut rows = rows?;
    for _ in 0..arguments.rounds {
        for (run, row) in runs.iter().zip(&mut rows) {
            row.runs.push(run.figures()?);
        }
    }
    measure::say(table::table(&rows, arguments.work))?;
    if let Some(file) = &arguments.svg {
        fs::write(file, chart::chart(&rows, arguments.work))?;
    }
    Ok(())
}

/// What is found out before the rounds, which warms up everything.
fn row(run: &Run<'_>, arguments: &Arguments) -> Outcome<Row> {
    let calls = if arguments.system_calls {
        run.system_calls()?
    } else {
        None
    };
    let work = run.job.work;
    let little = Job {
        directory: run.job.directory.clone(),
        work: Work {
            amount: work.amount.min(3),
            parallel: 1,
            ..work
        },
    };
    let little = Run {
        job: &little,
        ..*run
    };
    let has_tls = run.contestant.has_tls();
    Ok(Row {
        title: run.contestant.title(),
        work,
        runs: Vec::new(),
        calls,
        negotiated: has_tls.then(|| little.negotiated()).transpose()?,
    })
}

/// A certificate and its key, in the two forms that the stacks want.
fn write_identity(directory: &Path) -> Outcome<()> {
    let identity = Identity::self_signed(&["localhost".to_owned()], SystemTime::now())?;
    let certificate = identity.chain.first().ok_or("no certificate")?;
    for (name, tag, der) in [
        ("cert", "CERTIFICATE", certificate.as_ref()),
        ("key", "PRIVATE KEY", identity.key.secret_der()),
    ] {
        fs::write(directory.join(format!("{name}.der")), der)?;
        let pem = pem::encode(&pem::Pem::new(tag, der));
        fs::write(directory.join(format!("{name}.pem")), pem)?;
    }
    Ok(())
}
