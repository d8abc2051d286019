//! Runs the same work through this stack and through others, in turns, and prints medians and ranges.
//!
//! Each round runs every stack once, client and server as processes of their own, pinned to a CPU each, so that a
//! machine that gets slower gets slower for all. Where a stack lets us choose, only TLS_AES_128_GCM_SHA256 and X25519 are
//! offered.

mod work;
mod measure;
mod tls;
mod bound;
mod ours;
mod peer_quiche;
mod peer_quinn;
mod peer_s2n;
mod tcp;
mod table;

use std::{
    error::Error,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::SystemTime,
};

use clap::{Parser, Subcommand, ValueEnum};
use quic_bin::certificate::Identity;

use crate::{
    measure::Figures,
    table::Row,
    work::{Kind, Work},
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
    /// Bytes of the body, or how many requests or connections [default: 1 GiB, 10000, 1000].
    #[arg(long)]
    amount: Option<u64>,
    /// Rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// The stacks, in the table's order [default: all that can do the work].
    #[arg(long, value_enum, value_delimiter = ',')]
    stacks: Option<Vec<Stack>>,
    /// Run in a network namespace whose loopback has this MTU (needs unprivileged user namespaces).
    #[arg(long)]
    mtu: Option<u32>,
    /// Run client and server on one CPU.
    #[arg(long)]
    one_cpu: bool,
    /// Count the system calls of one more run of each, with perf.
    #[arg(long)]
    system_calls: bool,
    /// Write a chart of the CPU times to this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Arguments {
    fn work(&self) -> Work {
        let usual = match self.work {
            Kind::Download | Kind::Upload => 1 << 30,
            Kind::Requests => 10_000,
            Kind::Connections => 1000,
        };
        Work {
            kind: self.work,
            amount: self.amount.unwrap_or(usual),
        }
    }

    fn stacks(&self) -> Vec<Stack> {
        let all = || Stack::ALL.into_iter().filter(|stack| stack.does(self.work));
        self.stacks.clone().unwrap_or_else(|| all().collect())
    }
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
    /// Does the work once (used by the comparison itself).
    #[command(hide = true)]
    Client {
        stack: Stack,
        directory: PathBuf,
        cpu: usize,
        address: SocketAddr,
        work: Kind,
        amount: u64,
    },
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stack {
    /// This one, HTTP/3.
    Ours,
    /// quinn, raw streams.
    Quinn,
    /// s2n-quic, raw streams.
    S2n,
    /// quiche, raw streams.
    Quiche,
    /// Kernel TCP and TLS 1.3 by rustls.
    Tcp,
    /// What no stack can beat: batches and AES-128-GCM, nothing else.
    Bound,
}

impl Stack {
    const ALL: [Self; 6] = [
        Self::Ours,
        Self::Quinn,
        Self::S2n,
        Self::Quiche,
        Self::Tcp,
        Self::Bound,
    ];

    /// Whether it can do that at all.
    const fn does(self, work: Kind) -> bool {
        match self {
            Self::Ours | Self::Quinn | Self::S2n | Self::Quiche => true,
            Self::Tcp => !matches!(work, Kind::Requests),
            Self::Bound => matches!(work, Kind::Download | Kind::Upload),
        }
    }

    fn argument(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Ours => "this stack, HTTP/3",
            Self::Quinn => "quinn, raw stream",
            Self::S2n => "s2n-quic, raw stream",
            Self::Quiche => "quiche, raw stream",
            Self::Tcp => "TCP, TLS 1.3 by rustls",
            Self::Bound => "the bound",
        }
    }

    fn serve(self, directory: &Path) -> Outcome<()> {
        match self {
            Self::Ours => ours::serve(directory),
            Self::Quinn => peer_quinn::serve(directory),
            Self::S2n => peer_s2n::serve(directory),
            Self::Quiche => peer_quiche::serve(directory),
            Self::Tcp => tcp::serve(directory),
            Self::Bound => bound::serve(directory),
        }
    }

    fn run(self, directory: &Path, address: SocketAddr, work: Work) -> Outcome<()> {
        match self {
            Self::Ours => ours::run(directory, address, work),
            Self::Quinn => peer_quinn::run(directory, address, work),
            Self::S2n => peer_s2n::run(directory, address, work),
            Self::Quiche => peer_quiche::run(directory, address, work),
            Self::Tcp => tcp::run(directory, address, work),
            Self::Bound => bound::run(directory, address, work),
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
            stack.serve(directory)
        }
        Some(Role::Client {
            stack,
            directory,
            cpu,
            address,
            work,
            amount,
        }) => {
            measure::pin(*cpu)?;
            let work = Work {
                kind: *work,
                amount: *amount,
            };
            stack.run(directory, *address, work)
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
    fs::create_dir_all(&directory)?;
    write_identity(&directory)?;
    let (work, stacks) = (arguments.work(), arguments.stacks());
    let mut rows: Vec<Row> = stacks.iter().map(|stack| Row::new(stack.title())).collect();
    for _ in 0..arguments.rounds {
        for (stack, row) in stacks.iter().zip(&mut rows) {
            let run = Run::new(*stack, &directory, arguments);
            row.runs.push(run.figures()?);
        }
    }
    if arguments.system_calls {
        for (stack, row) in stacks.iter().zip(&mut rows) {
            let run = Run::new(*stack, &directory, arguments);
            row.calls = run.system_calls()?;
        }
    }
    fs::remove_dir_all(&directory)?;
    println!("{}", table::table(&rows, work));
    if let Some(file) = &arguments.svg {
        fs::write(file, table::chart(&rows, work))?;
    }
    Ok(())
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

/// One run of one stack.
struct Run<'a> {
    stack: Stack,
    directory: &'a Path,
    arguments: &'a Arguments,
    /// Where the system calls are counted, if they are.
    counts: Option<[PathBuf; 2]>,
}

impl<'a> Run<'a> {
    const fn new(stack: Stack, directory: &'a Path, arguments: &'a Arguments) -> Self {
        Self {
            stack,
            directory,
            arguments,
            counts: None,
        }
    }

    /// One end: this program again, under perf if its system calls are counted.
    fn command(&self, end: usize) -> Outcome<Command> {
        let program = std::env::current_exe()?;
        Ok(match &self.counts {
            None => Command::new(program),
            Some(files) => {
                let mut command = Command::new("perf");
                command
                    .args(["stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-o"])
                    .arg(&files[end])
                    .arg(program);
                command
            }
        })
    }

    /// The client's and the server's figures.
    fn figures(&self) -> Outcome<[Figures; 2]> {
        let stack = self.stack.argument();
        let client_cpu = usize::from(!self.arguments.one_cpu).to_string();
        let mut server = Ends(
            self.command(1)?
                .args(["server", &stack])
                .arg(self.directory)
                .arg("0")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?,
        );
        let mut from_server = BufReader::new(server.0.stdout.take().ok_or("no pipe")?);
        let mut address = String::new();
        from_server.read_line(&mut address)?;
        let client = self
            .command(0)?
            .args(["client", &stack])
            .arg(self.directory)
            .args([&client_cpu, address.trim()])
            .args(self.arguments.work().arguments())
            .output()?;
        if !client.status.success() {
            let error = String::from_utf8_lossy(&client.stderr).into_owned();
            return Err(format!("{}: {error}", self.stack.title()).into());
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

    /// The system calls of both ends, the handful of starting and ending among them; `None` where perf may not count them,
    /// as in a namespace.
    fn system_calls(mut self) -> Outcome<Option<f64>> {
        let files = ["client.calls", "server.calls"].map(|name| self.directory.join(name));
        self.counts = Some(files.clone());
        self.figures()?;
        let mut all = 0.0;
        for file in files {
            let text = fs::read_to_string(file)?;
            let line = text.lines().find(|line| line.contains("sys_enter"));
            let count = line.and_then(|line| line.split(',').next());
            all += count.ok_or("perf has counted nothing")?.parse::<f64>()?;
        }
        Ok(Some(all).filter(|all| *all > 0.0))
    }
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
