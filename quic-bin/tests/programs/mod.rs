//! The real programs, run on free loopback ports. Every child ends with the value that holds it.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code, of which each file uses a part"
)]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, copy, sink},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
    time::{Duration, Instant},
};

pub const CLIENT: &str = env!("CARGO_BIN_EXE_quic-client");
pub const SERVER: &str = env!("CARGO_BIN_EXE_quic-server");

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running program, killed when dropped.
pub struct Running {
    child: Child,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    start: Instant,
}

/// How a program ended.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub elapsed: Duration,
}

impl Running {
    /// Starts a program; `consume` does with its output as it likes, in a thread.
    fn start(
        command: &mut Command,
        consume: impl FnOnce(ChildStdout) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let start = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        Self {
            child,
            stdout: spawn(move || consume(stdout)),
            stderr: spawn(move || {
                let mut all = Vec::new();
                stderr.read_to_end(&mut all).unwrap();
                all
            }),
            start,
        }
    }

    fn of(command: &mut Command) -> Self {
        Self::start(command, |mut stdout| {
            let mut all = Vec::new();
            stdout.read_to_end(&mut all).unwrap();
            all
        })
    }

    /// A client with these arguments.
    pub fn client(arguments: &[&str]) -> Self {
        Self::of(Command::new(CLIENT).args(arguments))
    }

    /// A client whose output is closed after so many bytes.
    pub fn cut(arguments: &[&str], bytes: usize) -> Self {
        Self::start(Command::new(CLIENT).args(arguments), move |mut stdout| {
            let mut all = vec![0; bytes];
            stdout.read_exact(&mut all).unwrap();
            all
        })
    }

    /// A client whose output is read a little, and then not for some time.
    pub fn slow(arguments: &[&str], pause: Duration) -> Self {
        Self::start(Command::new(CLIENT).args(arguments), move |mut stdout| {
            let mut all = vec![0; 1000];
            stdout.read_exact(&mut all).unwrap();
            thread::sleep(pause);
            stdout.read_to_end(&mut all).unwrap();
            all
        })
    }

    /// A client in the middle of a large body that nobody looks at.
    pub fn busy(arguments: &[&str]) -> Self {
        let (sender, first) = channel();
        let running = Self::start(Command::new(CLIENT).args(arguments), move |mut stdout| {
            stdout.read_exact(&mut [0]).unwrap();
            sender.send(()).unwrap();
            copy(&mut stdout, &mut sink()).unwrap();
            Vec::new()
        });
        first.recv_timeout(PATIENCE).unwrap();
        running
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Outcome {
        // A program that ends closes both.
        let stdout = self.stdout.recv_timeout(PATIENCE).expect("it ends in time");
        let stderr = self.stderr.recv_timeout(PATIENCE).expect("it ends in time");
        let code = self.child.wait().unwrap().code();
        Outcome {
            code,
            stdout,
            stderr: String::from_utf8(stderr).unwrap(),
            elapsed: self.start.elapsed(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

impl Outcome {
    /// All went well, and nobody was told anything.
    pub fn succeeded(self) -> Vec<u8> {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self.stdout
    }

    /// It failed with code 1 and one line that contains `part`.
    pub fn failed(self, part: &str) -> Vec<u8> {
        let lines: Vec<&str> = self.stderr.lines().collect();
        assert_eq!(self.code, Some(1), "{self:?}");
        assert_eq!(lines.len(), 1, "{self:?}");
        assert!(lines[0].starts_with("quic-"), "{self:?}");
        assert!(lines[0].contains(part), "{part:?} in {self:?}");
        self.stdout
    }
}

/// Works in a thread, and tells the result.
fn spawn(work: impl FnOnce() -> Vec<u8> + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    // The test may have failed already.
    thread::spawn(move || drop(sender.send(work())));
    receiver
}

fn kill(child: &mut Child) {
    // It may have ended.
    drop(child.kill());
    drop(child.wait());
}

/// Runs a client to its end.
pub fn client(arguments: &[&str]) -> Outcome {
    Running::client(arguments).end()
}

/// Runs a server that is expected to end by itself.
pub fn failing_server(arguments: &[&str]) -> Outcome {
    Running::of(Command::new(SERVER).args(arguments)).end()
}

/// A running server that has said where it listens.
pub struct Server {
    child: Child,
    /// Kept open: a server that says more must not fail.
    _stdout: BufReader<ChildStdout>,
    pub address: SocketAddr,
    pub pin: String,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Self {
        Self::run(Command::new(SERVER).args(arguments))
    }

    /// One that may have so many descriptors.
    #[cfg(unix)]
    pub fn with_descriptors(count: u32, arguments: &[&str]) -> Self {
        let script = format!("ulimit -n {count}; exec \"$@\"");
        let shell = ["-c", &script, "sh", SERVER];
        Self::run(Command::new("sh").args(shell).args(arguments))
    }

    fn run(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut value = |name: &str| {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            let value = line.trim_end().strip_prefix(name);
            value.unwrap_or_else(|| panic!("{line:?}")).to_owned()
        };
        let address = value("listening on ").parse().unwrap();
        let pin = value("certificate SHA-256 ");
        Self {
            child,
            _stdout: stdout,
            address,
            pin,
        }
    }

    /// One that generates what it serves.
    pub fn generating() -> Self {
        Self::start(&["--test-resources", "--listen", "127.0.0.1:0"])
    }

    /// One that serves files.
    pub fn of(directory: &Directory) -> Self {
        Self::start(&["--dir", directory.text(), "--listen", "127.0.0.1:0"])
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Runs a client that trusts this server.
    pub fn client(&self, arguments: &[&str]) -> Outcome {
        self.start_client(arguments).end()
    }

    pub fn start_client(&self, arguments: &[&str]) -> Running {
        Running::client(&self.trusted(arguments))
    }

    /// The arguments of a client that trusts this server.
    pub fn trusted<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec!["--pin-sha256", &self.pin];
        all.extend(arguments);
        all
    }

    /// A client in the middle of a large body that nobody looks at.
    pub fn busy_client(&self) -> Running {
        Running::busy(&self.trusted(&[&self.url("/10000000000")]))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

/// Sends a signal as a shell would.
#[cfg(unix)]
pub fn signal(name: &str, process: u32) {
    let status = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// A directory that goes with the test.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("quic-programs-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// The path of a file in it, which may not exist.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let file = self.file(name);
        fs::create_dir_all(Path::new(&file).parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        file
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
