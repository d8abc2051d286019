//! What a process used, as the operating system accounts for it, and how the ends of a run talk to whoever started them.

use std::{
    io::{self, Read as _, Write as _},
    net::SocketAddr,
    time::Duration,
};

use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::resource::{UsageWho, getrusage},
    unistd::Pid,
};
use tokio::io::AsyncReadExt as _;

use crate::Outcome;

/// The figures of one end of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Seconds of the work; the client's alone.
    pub(crate) wall: f64,
    /// Seconds of CPU, user and system.
    pub(crate) cpu: f64,
    /// Peak memory in MiB.
    pub(crate) memory: f64,
}

impl Figures {
    /// Of this process, so far.
    pub(crate) fn of_self(wall: Duration) -> Outcome<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let seconds =
            |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        Ok(Self {
            wall: wall.as_secs_f64(),
            cpu: seconds(usage.user_time()) + seconds(usage.system_time()),
            memory: usage.max_rss() as f64 / 1024.0,
        })
    }

    /// One line for the parent.
    pub(crate) fn print(&self) {
        println!("{} {} {}", self.wall, self.cpu, self.memory);
    }

    /// Reads that line.
    pub(crate) fn parse(line: &str) -> Outcome<Self> {
        let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers?.as_slice() {
            &[wall, cpu, memory] => Ok(Self { wall, cpu, memory }),
            _ => Err(format!("unexpected figures: {line}").into()),
        }
    }
}

/// Tells the parent where the server is.
pub(crate) fn announce(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{address}")?;
    out.flush()
}

/// Waits until the parent says that the server may end, by closing its standard input.
pub(crate) fn wait_until_told() -> io::Result<()> {
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// [`wait_until_told`] on a runtime.
pub(crate) async fn until_told() -> io::Result<()> {
    tokio::io::stdin()
        .read_to_end(&mut Vec::new())
        .await
        .map(drop)
}

/// Keeps this process on one CPU.
pub(crate) fn pin(cpu: usize) -> Outcome<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
