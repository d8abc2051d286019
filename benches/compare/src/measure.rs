//! What a process used, as the operating system accounts for it, and how the ends of a run talk to whoever started them.

use std::{
    fmt,
    io::{self, Read as _, Write as _},
    net::SocketAddr,
    str::FromStr,
    time::Instant,
};

use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::{
        resource::{Usage, UsageWho, getrusage},
        time::TimeVal,
    },
    unistd::Pid,
};
use tokio::io::AsyncReadExt as _;

use crate::{Outcome, number::Real as _};

/// The figures of one end of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Seconds of the work; the client's count.
    pub(crate) wall: f64,
    /// Seconds of CPU, user and system.
    pub(crate) cpu: f64,
    /// Peak memory in MiB.
    pub(crate) memory: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.wall, self.cpu, self.memory)
    }
}

impl FromStr for Figures {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(line: &str) -> Outcome<Self> {
        let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers?.as_slice() {
            &[wall, cpu, memory] => Ok(Self { wall, cpu, memory }),
            _ => Err(format!("unexpected figures: {line}").into()),
        }
    }
}

/// Counts from when the work begins, so that starting a program costs nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    start: Instant,
    /// Seconds of CPU that were used before.
    before: f64,
    who: UsageWho,
}

impl Meter {
    /// What this process uses from now on.
    pub(crate) fn start() -> Outcome<Self> {
        Self::of(UsageWho::RUSAGE_SELF)
    }

    /// What the children of this process have used in all, once they have ended.
    pub(crate) fn of_children() -> Outcome<Self> {
        Self::of(UsageWho::RUSAGE_CHILDREN)
    }

    fn of(who: UsageWho) -> Outcome<Self> {
        Ok(Self {
            start: Instant::now(),
            before: cpu(&getrusage(who)?),
            who,
        })
    }

    /// So far.
    pub(crate) fn figures(&self) -> Outcome<Figures> {
        let wall = self.start.elapsed().as_secs_f64();
        let usage = getrusage(self.who)?;
        Ok(Figures {
            wall,
            cpu: cpu(&usage) - self.before,
            memory: usage.max_rss().real() / 1024.0,
        })
    }
}

fn cpu(usage: &Usage) -> f64 {
    let seconds = |time: TimeVal| time.tv_sec().real() + time.tv_usec().real() / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Tells the parent something, on a line.
pub(crate) fn say(line: impl fmt::Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// A server's meter, from when the parent knows where the server is.
pub(crate) fn announce(address: SocketAddr) -> Outcome<Meter> {
    let meter = Meter::start()?;
    say(address)?;
    Ok(meter)
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

/// [`wait_until_told`] in a thread, for a server that is never done: the process ends there, with the figures said.
pub(crate) fn end_when_told(meter: Meter) {
    std::thread::spawn(move || {
        // Told or not, it ends.
        drop(wait_until_told());
        if let Ok(figures) = meter.figures() {
            drop(say(figures));
        }
        std::process::exit(0)
    });
}

/// Keeps this process, and its threads and children from now on, on one CPU.
pub(crate) fn pin(cpu: usize) -> Outcome<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
