//! Runs the same download through this stack and through others, in turns, and prints medians and ranges.
//!
//! Each round runs every stack once, client and server as processes of their own, pinned to a CPU each, so that a
//! machine that gets slower gets slower for all. Only TLS_AES_128_GCM_SHA256 and X25519 are offered.

mod measure;
mod ours;
mod peer_quinn;
mod table;

use std::{
    error::Error,
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use clap::{Parser, Subcommand, ValueEnum};
use quic_bin::certificate::Identity;

use crate::{
    measure::Figures,
    table::{Row, print},
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Compares QUIC stacks on this machine's loopback.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// Rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Bytes of each download.
    #[arg(long, default_value_t = 1 << 30)]
    size: u64,
    /// Run in a network namespace whose loopback has this MTU (needs unprivileged user namespaces).
    #[arg(long)]
    mtu: Option<u32>,
    /// Run client and server on one CPU.
    #[arg(long)]
    one_cpu: bool,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Serves until its standard input ends (used by the comparison itself).
    #[command(hide = true)]
    Server {
        stack: Stack,
        directory: PathBuf,
        cpu: usize,
    },
    /// Downloads once (used by the comparison itself).
    #[command(hide = true)]
    Client {
        stack: Stack,
        directory: PathBuf,
        cpu: usize,
        address: SocketAddr,
        size: u64,
    },
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stack {
    /// This one, HTTP/3.
    Ours,
    /// quinn, a raw stream.
    Quinn,
}

impl Stack {
    const ALL: [Self; 2] = [Self::Ours, Self::Quinn];

    const fn argument(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Quinn => "quinn",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Ours => "this stack, HTTP/3",
            Self::Quinn => "quinn, raw stream",
        }
    }
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    match &arguments.role {
        Some(Role::Server {
            stack,
            directory,
            cpu,
        }) => {
            measure::pin(*cpu)?;
            match stack {
                Stack::Ours => ours::serve(directory),
                Stack::Quinn => peer_quinn::serve(directory),
            }
        }
        Some(Role::Client {
            stack,
            directory,
            cpu,
            address,
            size,
        }) => {
            measure::pin(*cpu)?;
            match stack {
                Stack::Ours => ours::fetch(directory, *address, *size),
                Stack::Quinn => peer_quinn::fetch(directory, *address, *size),
            }
        }
        None => match arguments.mtu {
            Some(mtu) => in_namespace(mtu),
            None => compare(&arguments),
        },
    }
}

/// Runs this program again where loopback has another MTU.
fn in_namespace(mtu: u32) -> Outcome<()> {
    let program = std::env::current_exe()?;
    let mut rest: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = rest.iter().position(|argument| argument == "--mtu") {
        rest.drain(at..(at + 2).min(rest.len()));
    }
    rest.retain(|argument| !argument.starts_with("--mtu="));
    println!("loopback MTU {mtu}");
    let status = Command::new("unshare")
        .args([
            "-rn",
            "sh",
            "-c",
            "ip link set lo up mtu \"$0\" && exec \"$@\"",
        ])
        .arg(mtu.to_string())
        .arg(program)
        .args(rest)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err("the comparison failed".into())
    }
}

fn compare(arguments: &Arguments) -> Outcome<()> {
    let directory = std::env::temp_dir().join(format!("compare-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let identity = Identity::self_signed(&["localhost".to_owned()], std::time::SystemTime::now())?;
    std::fs::write(
        directory.join("cert.der"),
        identity.chain.first().ok_or("no certificate")?,
    )?;
    std::fs::write(directory.join("key.der"), identity.key.secret_der())?;
    let mut rows = Stack::ALL.map(|stack| Row::new(stack.title()));
    for _ in 0..arguments.rounds {
        for (stack, row) in Stack::ALL.into_iter().zip(&mut rows) {
            row.runs.push(run(stack, &directory, arguments)?);
        }
    }
    std::fs::remove_dir_all(&directory)?;
    print(&rows, arguments.size);
    Ok(())
}

/// One download through one stack: the client's and the server's figures.
fn run(stack: Stack, directory: &std::path::Path, arguments: &Arguments) -> Outcome<[Figures; 2]> {
    let program = std::env::current_exe()?;
    let client_cpu = usize::from(!arguments.one_cpu);
    let mut server = Ends(
        Command::new(&program)
            .args(["server", stack.argument()])
            .arg(directory)
            .arg("0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let mut from_server = BufReader::new(server.0.stdout.take().ok_or("no pipe")?);
    let mut address = String::new();
    from_server.read_line(&mut address)?;
    let client = Command::new(&program)
        .args(["client", stack.argument()])
        .arg(directory)
        .args([
            &client_cpu.to_string(),
            address.trim(),
            &arguments.size.to_string(),
        ])
        .output()?;
    if !client.status.success() {
        let error = String::from_utf8_lossy(&client.stderr).into_owned();
        return Err(format!("{}: {error}", stack.title()).into());
    }
    drop(server.0.stdin.take());
    let mut said = String::new();
    from_server.read_to_string(&mut said)?;
    server.0.wait()?;
    Ok([
        Figures::parse(&String::from_utf8_lossy(&client.stdout))?,
        Figures::parse(&said)?,
    ])
}

/// A child that doesn't outlive us.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // It has ended already, or it has to.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
