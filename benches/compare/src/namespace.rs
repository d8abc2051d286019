//! This program again, where loopback has another MTU.

use std::process::Command;

use nix::unistd::geteuid;

use crate::{Outcome, measure::say};

/// The option that asks for it.
const OPTION: &str = "--mtu";

/// Runs this program with its other arguments in a network namespace of its own: a user's, or root's, in which perf may
/// count what it likes.
pub(crate) fn again(mtu: u32) -> Outcome<()> {
    let mut rest: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = rest.iter().position(|argument| argument == OPTION) {
        rest.drain(at..(at + 2).min(rest.len()));
    }
    rest.retain(|argument| !argument.starts_with(&format!("{OPTION}=")));
    say(format_args!("loopback MTU {mtu}"))?;
    let status = Command::new("unshare")
        .arg(if geteuid().is_root() { "-n" } else { "-rn" })
        .args(["sh", "-c", "ip link set lo up mtu \"$0\" && exec \"$@\""])
        .arg(mtu.to_string())
        .arg(std::env::current_exe()?)
        .args(rest)
        .args(["--within-mtu", &mtu.to_string()])
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err("the comparison failed".into())
    }
}
