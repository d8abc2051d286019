//! Where qlog goes: one file for each connection, named by the ID that both ends know it by, and the end that writes it.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::BufWriter,
    path::{Path, PathBuf},
    time::SystemTime,
};

use quic_transport::{ConnectionId, Observer, Side, qlog::Qlog};

use crate::failure::Failure;

/// The variable that names the directory where no option does.
const VARIABLE: &str = "QLOGDIR";

/// A directory for qlog files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QlogFiles(PathBuf);

impl QlogFiles {
    /// Files in the directory that `option` names, or else the environment; `None` where neither does.
    ///
    /// # Errors
    ///
    /// When there is no such directory, and it can't be made.
    pub fn new(option: Option<&Path>) -> Result<Option<Self>, Failure> {
        let variable = || std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let named = option.map_or_else(variable, |path| Some(OsString::from(path)));
        let Some(directory) = named.map(PathBuf::from) else {
            return Ok(None);
        };
        fs::create_dir_all(&directory).map_err(|error| Failure::with_file(&directory, &error))?;
        Ok(Some(Self(directory)))
    }

    /// Something that writes the log of one connection; `None` when its file can't be made, which is no reason not to
    /// serve anyone.
    #[must_use]
    pub fn observer(&self, original_dcid: ConnectionId, side: Side) -> Option<Box<dyn Observer>> {
        let (end, program) = match side {
            Side::Client => ("client", "quic-client"),
            Side::Server => ("server", "quic-server"),
        };
        let file = File::create(self.0.join(format!("{}_{end}.sqlog", Hex(original_dcid)))).ok()?;
        let writer = Box::new(BufWriter::new(file));
        Some(Box::new(Qlog::new(writer, program, SystemTime::now())))
    }
}

/// A connection ID as digits.
struct Hex(ConnectionId);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0
            .as_slice()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
