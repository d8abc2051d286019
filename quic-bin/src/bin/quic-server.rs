//! `quic-server`: serves files over HTTP/3.

use std::process::ExitCode;

use quic_bin::{cli, server};

fn main() -> ExitCode {
    let arguments = cli::Server::from_arguments();
    cli::finish("quic-server", server::run(&arguments))
}
