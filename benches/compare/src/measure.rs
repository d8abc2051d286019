//! What a process used, as the operating system accounts for it.

use std::time::Duration;

use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::resource::{UsageWho, getrusage},
    unistd::Pid,
};

use crate::Outcome;

/// The figures of one end of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Seconds of the transfer; the client's alone.
    pub(crate) wall: f64,
    /// Seconds of CPU, user and system.
    pub(crate) cpu: f64,
    /// Peak memory in MiB.
    pub(crate) memory: f64,
    /// Bytes in each send call.
    pub(crate) bytes_per_send: f64,
}

impl Figures {
    /// Of this process, so far.
    pub(crate) fn of_self(wall: Duration, bytes_per_send: f64) -> Outcome<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let seconds =
            |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        Ok(Self {
            wall: wall.as_secs_f64(),
            cpu: seconds(usage.user_time()) + seconds(usage.system_time()),
            memory: usage.max_rss() as f64 / 1024.0,
            bytes_per_send,
        })
    }

    /// One line for the parent.
    pub(crate) fn print(&self) {
        println!(
            "{} {} {} {}",
            self.wall, self.cpu, self.memory, self.bytes_per_send
        );
    }

    /// Reads that line.
    pub(crate) fn parse(line: &str) -> Outcome<Self> {
        let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers?.as_slice() {
            [wall, cpu, memory, bytes_per_send] => Ok(Self {
                wall: *wall,
                cpu: *cpu,
                memory: *memory,
                bytes_per_send: *bytes_per_send,
            }),
            _ => Err(format!("unexpected figures: {line}").into()),
        }
    }
}

/// Keeps this process on one CPU.
pub(crate) fn pin(cpu: usize) -> Outcome<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
