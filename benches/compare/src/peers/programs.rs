//! Programs that were built elsewhere, and what they have to be like to be compared.
//!
//! A folder for each stack, with three files:
//!
//! - `server HOST PORT CERTS WORK AMOUNT PARALLEL` serves there until it is sent SIGTERM, and writes the line `ready` once it
//!   listens. CERTS is a folder with `cert.pem` and `key.pem`, for the name `localhost`; the rest is what will be asked for.
//! - `client HOST PORT CERTS WORK AMOUNT PARALLEL` does the work once, and exits with 0 only if every byte has come. A line
//!   `seconds S` says how long the work took, if that is to count and not the time of the whole program.
//! - `works` names the kinds of work that they do, one on a line.
//!
//! Scripts are fine, as long as they `exec` the program: what children use counts once their parent has waited for them.
//! `outside/msquic` is an example.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use clap::ValueEnum as _;
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use crate::{
    Outcome,
    measure::{Meter, say, wait_until_told},
    port,
    work::{Job, Kind},
};

/// A folder with programs.
#[derive(Clone, Debug)]
pub(crate) struct Programs(PathBuf);

impl Programs {
    pub(crate) fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Those in this folder.
    pub(crate) fn all(folder: &Path) -> Outcome<Vec<Self>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = fs::canonicalize(entry?.path())?;
            if path.join("works").exists() {
                all.push(Self(path));
            }
        }
        all.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(all)
    }

    pub(crate) fn does(&self, work: Kind) -> bool {
        let works = fs::read_to_string(self.0.join("works")).unwrap_or_default();
        let name = work.to_possible_value();
        let name = name.as_ref().map(clap::builder::PossibleValue::get_name);
        works.lines().any(|line| Some(line.trim()) == name)
    }

    pub(crate) fn name(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    pub(crate) fn folder(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }

    /// The program `server` or `client`.
    pub(crate) fn command(&self, name: &str, job: &Job, port: u16) -> Command {
        let mut command = Command::new(self.0.join(name));
        command
            .args(["127.0.0.1", &port.to_string()])
            .arg(&job.directory)
            .args(job.work.arguments());
        command
    }
}

/// Serves by the command for a port, which says when it is ready.
pub(crate) fn serve(command: impl FnOnce(u16) -> Outcome<Command>) -> Outcome<()> {
    // Free for both, whichever it is to use.
    let address = port::bind()?.1.local_addr()?;
    let mut server = Server::start(&mut command(address.port())?)?;
    server.wait_until_ready()?;
    let meter = Meter::of_children()?;
    say(address)?;
    wait_until_told()?;
    drop(server);
    Ok(say(meter.figures()?)?)
}

/// A server and its children, in a process group of their own.
struct Server(Child);

impl Server {
    fn start(command: &mut Command) -> Outcome<Self> {
        Ok(Self(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .process_group(0)
                .spawn()?,
        ))
    }

    fn wait_until_ready(&mut self) -> Outcome<()> {
        let out = self.0.stdout.take().ok_or("no pipe")?;
        let mut lines = BufReader::new(out).lines();
        for line in lines.by_ref() {
            if line?.trim() == "ready" {
                // What it says later is nobody's business, but has to go somewhere.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(());
            }
        }
        Err("the server has ended before it was ready".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(id) = i32::try_from(self.0.id()) {
            // It may have ended already.
            let _ = killpg(Pid::from_raw(id), Signal::SIGTERM);
        }
        drop(self.0.wait());
    }
}

/// Runs a client and says what it used; returns what it wrote.
pub(crate) fn run(command: &mut Command) -> Outcome<String> {
    let meter = Meter::of_children()?;
    let output = command.stderr(Stdio::inherit()).output()?;
    let mut figures = meter.figures()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("the client: {}: {text}", output.status).into());
    }
    let seconds = text.lines().find_map(|line| line.strip_prefix("seconds "));
    if let Some(seconds) = seconds {
        figures.wall = seconds.trim().parse()?;
    }
    say(figures)?;
    Ok(text)
}
