//! `quic-server`: serves files over HTTP/3.

use std::process::ExitCode;

use quic_bin::{cli, listen};

fn main() -> ExitCode {
    let arguments = cli::Server::from_arguments();
    cli::finish("quic-server", listen::run(&arguments))
}
