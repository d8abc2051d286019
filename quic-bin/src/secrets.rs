//! The secrets that a server has in a file, which is read again when someone says so: with SIGHUP, as servers have their
//! files read since ever.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use quic_transport::tls::ServerSecrets;

use crate::{failure::Failure, signals::Termination};

/// Secrets as they were last read; clones share them.
#[derive(Clone, Debug)]
pub struct Secrets(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: PathBuf,
    current: Mutex<ServerSecrets>,
    /// How often they have changed.
    version: AtomicU64,
}

impl Secrets {
    /// Reads the secrets in a file.
    ///
    /// # Errors
    ///
    /// When it can't be read, or the line that is wrong.
    pub fn load(file: &Path) -> Result<Self, Failure> {
        Ok(Self(Arc::new(Inner {
            file: file.to_owned(),
            current: Mutex::new(read(file)?),
            version: AtomicU64::new(0),
        })))
    }

    /// What they are now.
    #[must_use]
    pub fn current(&self) -> ServerSecrets {
        let current = self.0.current.lock();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often they have changed; who has seen another number should look again.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Reads the file again.
    ///
    /// # Errors
    ///
    /// As [`Secrets::load`]; the earlier ones stay.
    pub fn reload(&self) -> Result<(), Failure> {
        let new = read(&self.0.file)?;
        *self
            .0
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = new;
        self.0.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Has SIGHUP read the file again, and wake the loops up that `termination` wakes; where the system has no such signal,
    /// nothing does.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    #[cfg(unix)]
    pub fn reload_on_signals(&self, termination: &Termination) -> std::io::Result<()> {
        use std::io::Write as _;

        use signal_hook::{consts::SIGHUP, iterator::Signals};

        let mut signals = Signals::new([SIGHUP])?;
        let (secrets, termination) = (self.clone(), termination.clone());
        std::thread::Builder::new()
            .name("secrets".to_owned())
            .spawn(move || {
                for _ in signals.forever() {
                    let said = secrets.reload().err().map_or_else(
                        || "quic-server: the secrets were read again".to_owned(),
                        |failure| format!("quic-server: the secrets stay as they were: {failure}"),
                    );
                    termination.wake();
                    // Nobody to tell is no reason to stop.
                    drop(writeln!(std::io::stderr(), "{said}"));
                }
            })?;
        Ok(())
    }

    /// Has SIGHUP read the file again; where the system has no such signal, nothing does.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    #[cfg(not(unix))]
    pub const fn reload_on_signals(&self, _: &Termination) -> std::io::Result<()> {
        let _ = self;
        Ok(())
    }
}

fn read(file: &Path) -> Result<ServerSecrets, Failure> {
    let text = fs::read_to_string(file).map_err(|error| Failure::with_file(file, &error))?;
    ServerSecrets::parse(&text)
        .map_err(|(line, what)| Failure::with_file(file, &format!("line {line}: {what}")))
}
