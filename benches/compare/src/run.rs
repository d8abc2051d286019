//! One run of one stack: this program again for each end, pinned to a CPU.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use crate::{Outcome, measure::Figures, negotiated::Relay, stack::Contestant, work::Job};

/// How long a server may take to end once it was told to.
const GOODBYE: Duration = Duration::from_secs(5);

/// Both ends' figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pair {
    pub(crate) client: Figures,
    pub(crate) server: Figures,
}

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) contestant: &'a Contestant,
    pub(crate) job: &'a Job,
    /// Whether both ends are on one CPU.
    pub(crate) is_one_cpu: bool,
}

impl Run<'_> {
    /// What it takes.
    pub(crate) fn figures(&self) -> Outcome<Pair> {
        self.both(|_| self.program(), Ok)
    }

    /// The system calls of both ends, the handful of starting and ending among them; `None` where perf may not count them.
    pub(crate) fn system_calls(&self) -> Outcome<Option<u64>> {
        let files = ["client.calls", "server.calls"].map(|name| self.job.file(name));
        let [client, server] = &files;
        self.both(
            |end| {
                let file = match end {
                    End::Client => client,
                    End::Server => server,
                };
                self.under_perf(file)
            },
            Ok,
        )?;
        let mut all = 0;
        for file in files {
            let text = fs::read_to_string(file)?;
            let line = text.lines().find(|line| line.contains("sys_enter"));
            let count = line.and_then(|line| line.split(',').next());
            let Some(count) = count.and_then(|count| count.parse::<u64>().ok()) else {
                return Ok(None);
            };
            all += count;
        }
        Ok(Some(all).filter(|all| *all > 0))
    }

    /// What TLS agrees on, as the network sees it.
    pub(crate) fn negotiated(&self) -> Outcome<String> {
        let mut relay = None;
        self.both(
            |_| self.program(),
            |server| Ok(relay.insert(Relay::start(server)?).address()),
        )?;
        Ok(relay.ok_or("no relay")?.negotiated())
    }

    /// Runs both ends by these programs, the client against the address that is made of the server's.
    fn both(
        &self,
        program: impl Fn(End) -> Outcome<Command>,
        address: impl FnOnce(SocketAddr) -> Outcome<SocketAddr>,
    ) -> Outcome<Pair> {
        let title = self.contestant.title();
        let client_cpu = if self.is_one_cpu { "0" } else { "1" };
        let mut server = Server::start(self.end(program(End::Server)?, "server", "0"))?;
        let address = address(server.address()?)?;
        let client = self
            .end(program(End::Client)?, "client", client_cpu)
            .arg(address.to_string())
            .output()?;
        if !client.status.success() {
            let error = String::from_utf8_lossy(&client.stderr).into_owned();
            return Err(format!("{title}: {error}").into());
        }
        Ok(Pair {
            client: String::from_utf8_lossy(&client.stdout).parse()?,
            server: server.end()?.parse()?,
        })
    }

    fn program(&self) -> Outcome<Command> {
        Ok(Command::new(self.contestant.program()?))
    }

    fn under_perf(&self, file: &Path) -> Outcome<Command> {
        let mut command = Command::new("perf");
        command
            .args(["stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-o"])
            .arg(file)
            .arg(self.contestant.program()?);
        Ok(command)
    }

    fn end(&self, mut program: Command, role: &str, cpu: &str) -> Command {
        program
            .args([role, &self.contestant.argument(), cpu])
            .arg(&self.job.directory)
            .args(self.job.work.arguments());
        program
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Client,
    Server,
}

/// A server that doesn't outlive us.
struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Server {
    fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(Self { child, out })
    }

    fn address(&mut self) -> Outcome<SocketAddr> {
        let mut line = String::new();
        self.out.read_line(&mut line)?;
        Ok(line.trim().parse()?)
    }

    /// Has it end; what it says then is its figures.
    fn end(mut self) -> Outcome<String> {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.out.read_to_string(&mut said)?;
        self.child.wait()?;
        Ok(said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let step = Duration::from_millis(10);
        let mut waited = Duration::ZERO;
        while waited < GOODBYE && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(step);
            waited += step;
        }
        // It has ended already, or it has to.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
