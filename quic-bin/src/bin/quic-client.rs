//! `quic-client`: fetches over HTTP/3, or shows what this QUIC stack can do.

use std::process::ExitCode;

use quic_bin::{cli, client, demo};

fn main() -> ExitCode {
    let arguments = cli::Client::from_arguments();
    let result = if arguments.urls.is_empty() {
        demo::run(&arguments)
    } else {
        client::run(&arguments)
    };
    cli::finish("quic-client", result)
}
