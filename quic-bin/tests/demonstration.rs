//! `quic-client` without a URL.

mod programs;

#[cfg(target_os = "linux")]
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
use programs::CLIENT;
use programs::client;

#[test]
fn in_a_pipe_there_is_only_the_summary() {
    for (size, row) in [
        ("0", "bytes                0 (0 B), all verified"),
        ("1", "bytes                1 (1 B), all verified"),
        (
            "3M",
            "bytes                3 145 728 (3.00 MiB), all verified",
        ),
    ] {
        let out = String::from_utf8(client(&["--size", size]).succeeded()).unwrap();
        assert_eq!(out.lines().next(), Some(row));
        for name in [
            "time",
            "rate",
            "handshake",
            "smoothed RTT",
            "packets",
            "datagrams per call",
            "path MTU",
            "socket buffers",
            "cipher",
            "key exchange",
            "congestion control",
        ] {
            let rows = out.lines().filter(|line| line.starts_with(name));
            assert_eq!(rows.count(), 1, "{name} in\n{out}");
        }
        assert!(!out.contains(['\r', '%']), "{out}");
    }
}

/// `script` makes a terminal for it.
#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_there_is_a_bar() {
    let command = format!("{CLIENT} --size 16M");
    let Ok(output) = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null())
        .output()
    else {
        return println!("skipped: no script here");
    };
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}");
    assert!(
        out.contains(" %  ") && out.contains("of 16.00 MiB"),
        "{out}"
    );
    // The bar's line is taken away again.
    let (_, summary) = out.rsplit_once("\rbytes ").unwrap();
    assert!(!summary.contains('%'), "{summary}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_summary_that_nobody_gets_is_a_failure() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Command::new(CLIENT)
        .args(["--size", "1K"])
        .stdout(full)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("quic-client: can't write to stdout"));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}
