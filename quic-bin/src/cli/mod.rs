//! The command lines.
//!
//! A command line that makes no sense ends the program with code 2 and says why; all other failures end it with 1.

mod command;
mod extensions;
mod client;
mod server;
mod values;

use std::{io::Write as _, process::ExitCode};

pub use client::{Client, Trust};
pub use extensions::Extensions;
pub use server::{Server, generated_length};
pub use values::{Cipher, Group, Upload};

use crate::failure::Failure;

/// Ends `main`: says on stderr what went wrong, if anything did.
#[must_use]
pub fn finish(program: &str, result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else {
        return ExitCode::SUCCESS;
    };
    // With stderr gone there is nobody to tell.
    drop(writeln!(std::io::stderr(), "{program}: {failure}"));
    ExitCode::FAILURE
}
