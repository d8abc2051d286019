//! Sessions that are resumed, and requests in 0-RTT packets, from the outside.
#![expect(clippy::unwrap_used, reason = "test code")]

mod programs;
mod requests;

use std::{
    fs,
    time::{Duration, Instant},
};

use programs::{Directory, Outcome, Server};
use quic_bin::{certificate::Fingerprint, event_loop::EventLoop, server::ALPN};
use quic_transport::tls;
use quic_udp::Socket;

/// A server of a file, and what its client says of a second connection.
fn visit(server: &[&str], client: &[&str]) -> Outcome {
    let directory = Directory::new();
    directory.write("one", "first");
    directory.write("two", "second");
    let arguments = ["--dir", directory.text(), "--listen", "127.0.0.1:0"];
    let server = Server::start(&[&arguments[..], server].concat());
    let urls = [server.url("/one"), server.url("/two"), server.url("/two")];
    let files = ["a", "b", "c"].map(|name| directory.file(name));
    let mut all = client.to_vec();
    for (url, file) in urls.iter().zip(&files) {
        all.extend([url.as_str(), "-o", file]);
    }
    let outcome = server.client(&all);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let bodies = files.map(|file| fs::read(file).unwrap());
    assert_eq!(bodies, [&b"first"[..], b"second", b"second"]);
    outcome
}

#[test]
fn a_second_connection_resumes_the_first_ones_session() {
    let both = ["--alpn", "h3,hq-interop"];
    for alpn in ["h3", "hq-interop"] {
        let outcome = visit(&both, &["--alpn", alpn, "--resume"]);
        assert_eq!(outcome.stderr, "session resumed\n");
        let outcome = visit(&both, &["--alpn", alpn, "--0rtt"]);
        assert_eq!(outcome.stderr, "session resumed, early data accepted\n");
    }
}

/// Tickets of shared secrets resume a session at another server, but permit no early data.
#[test]
fn tickets_outlive_the_server() {
    let directory = Directory::new();
    let secrets = directory.write("secrets", format!("# mine\n{}\n", "5a".repeat(32)));
    let server = ["--secrets", &secrets, "--shared-tickets"];
    let outcome = visit(&server, &["--0rtt"]);
    assert_eq!(outcome.stderr, "session resumed, early data not accepted\n");
    directory.write("secrets", "no secret");
    let root = directory.text();
    let arguments = [
        "--dir",
        root,
        "--listen",
        "127.0.0.1:0",
        "--secrets",
        &secrets,
    ];
    let outcome = programs::failing_server(&arguments);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("line 1"), "{}", outcome.stderr);
}

#[test]
fn a_server_may_reject_early_data() {
    let outcome = visit(&["--no-0rtt"], &["--0rtt"]);
    assert_eq!(outcome.stderr, "session resumed, early data not accepted\n");
}

/// RFC 8470, 5.2: requests that are refused because they came early are made again, and nobody sees a difference.
#[test]
fn requests_that_came_too_early_are_made_again() {
    let outcome = visit(&["--too-early"], &["--0rtt"]);
    assert_eq!(outcome.stderr, "session resumed, early data accepted\n");
}

/// Makes a request; whether a session of an earlier one was resumed for it.
fn resumes(server: &Server, tls: &tls::ClientConfig) -> bool {
    let mut download = requests::download((server.address, "localhost"), tls, 1);
    let mut events = EventLoop::new().unwrap();
    let socket = Socket::bind_for(server.address).unwrap();
    events.add(socket).unwrap();
    events.run(&mut download).unwrap();
    download.result().unwrap();
    download.connection().is_resumed()
}

/// A server that is told to read its secrets again goes over to those, and keeps what it has where they can't be read.
#[cfg(unix)]
#[test]
fn secrets_are_read_again_while_the_server_runs() {
    let directory = Directory::new();
    let secrets = directory.write("secrets", "5a".repeat(32));
    let server = Server::start(&[
        "--test-resources",
        "--listen",
        "127.0.0.1:0",
        "--secrets",
        &secrets,
        "--shared-tickets",
    ]);
    let pin: Fingerprint = server.pin.parse().unwrap();
    let tls = tls::ClientConfig::with_pin(pin.0, &[ALPN]).unwrap();
    assert!(!resumes(&server, &tls));
    assert!(resumes(&server, &tls));

    directory.write("secrets", "nothing of use");
    programs::signal("HUP", server.id());
    for _ in 0..3 {
        assert!(resumes(&server, &tls), "it has kept what it had");
    }
    directory.write("secrets", "a5".repeat(32));
    programs::signal("HUP", server.id());
    let deadline = Instant::now() + Duration::from_mins(1);
    while resumes(&server, &tls) {
        assert!(Instant::now() < deadline, "the old tickets are still good");
    }
    assert!(resumes(&server, &tls), "the new ones are");
}
