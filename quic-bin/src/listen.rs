//! `quic-server` from its command line on: what it serves, where it listens, and what it says about itself.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    time::SystemTime,
};

use quic_udp::Socket;

use crate::{
    certificate::{Fingerprint, Identity},
    cli,
    failure::Failure,
    files::Root,
    secrets::Secrets,
    server::{Settings, Shared},
    signals::Termination,
    site::Site,
    threads,
};

/// Runs `quic-server` until it is ended from outside, which is no failure.
///
/// # Errors
///
/// When it can't start.
pub fn run(arguments: &cli::Server) -> Result<(), Failure> {
    allow_files();
    let site = Site {
        root: arguments.dir.as_deref().map(Root::new).transpose()?,
        test_resources: arguments.test_resources,
        ..Site::default()
    };
    let identity = match arguments.identity_files() {
        Some((certificate, key)) => Identity::load(certificate, key)?,
        None => Identity::self_signed(&arguments.names(), SystemTime::now())?,
    };
    let fingerprint = identity.fingerprint();
    let termination = Termination::default();
    let bind = |address: &SocketAddr| threads::bind(*address, arguments.threads());
    let address_of = |sockets: &Vec<Socket>| sockets.first().map(Socket::local_address);
    let sockets = bind(&arguments.listen)?;
    let address = address_of(&sockets).unwrap_or(arguments.listen);
    let others: Vec<_> = arguments
        .preferred_address
        .iter()
        .map(bind)
        .collect::<Result<_, _>>()?;
    let mut settings = Settings::try_from(arguments)?;
    settings.secrets = arguments
        .secrets
        .as_deref()
        .map(Secrets::load)
        .transpose()?;
    let secrets = settings.secrets.clone();
    settings.preferred = others.iter().filter_map(address_of).collect();
    let preferred = settings.preferred.clone();
    let shared = Shared::with_settings(identity, site, settings, termination.clone())?;
    termination
        .on_signals()
        .and_then(|()| secrets.map_or(Ok(()), |secrets| secrets.reload_on_signals(&termination)))
        .map_err(|error| Failure::new(format!("can't watch for signals: {error}")))?;

    let is_self_signed = arguments.identity_files().is_none();
    // Nobody may be reading; the server works all the same.
    drop(greet(
        address,
        &preferred,
        fingerprint,
        is_self_signed,
        arguments.test_resources,
    ));
    threads::serve(&shared, sockets, others)
}

/// A file is open for each request that is being answered: as many as the system lets us have, instead of the usual 1024.
#[cfg(unix)]
fn allow_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, requests are put off sooner.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(not(unix))]
const fn allow_files() {}

/// Says where the server is, what it shows, and how to try it.
fn greet(
    address: SocketAddr,
    preferred: &[SocketAddr],
    fingerprint: Option<Fingerprint>,
    is_self_signed: bool,
    has_test_resources: bool,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on {address}")?;
    if let Some(fingerprint) = fingerprint {
        writeln!(out, "certificate SHA-256 {fingerprint}")?;
        if is_self_signed {
            let path = if has_test_resources { "1000000" } else { "" };
            let server = reachable_as(address);
            writeln!(
                out,
                "try: quic-client --pin-sha256 {fingerprint} https://{server}/{path}"
            )?;
        }
    }
    for preferred in preferred {
        writeln!(out, "preferred address {preferred}")?;
    }
    out.flush()
}

/// Host and port under which a client on this machine reaches a server that listens on `address`.
fn reachable_as(address: SocketAddr) -> String {
    let ip = address.ip().to_canonical();
    if ip.is_unspecified() || ip.is_loopback() {
        format!("localhost:{}", address.port())
    } else {
        SocketAddr::new(ip, address.port()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::reachable_as;

    #[test]
    fn the_client_command_names_the_server_as_its_certificate_does() {
        for (address, expected) in [
            ("[::]:4433", "localhost:4433"),
            ("0.0.0.0:1", "localhost:1"),
            ("127.0.0.1:2", "localhost:2"),
            ("[::1]:3", "localhost:3"),
            ("192.0.2.1:4", "192.0.2.1:4"),
            ("[2001:db8::1]:5", "[2001:db8::1]:5"),
        ] {
            assert_eq!(reachable_as(address.parse().unwrap()), expected);
        }
    }
}
