//! `quic-client` as a person uses it: what it writes, what it says, and the code that it ends with.
#![expect(clippy::unwrap_used, reason = "test code")]

mod programs;

use std::{fs, net::UdpSocket, process::Command, time::Duration};

use programs::{Directory, Running, Server, client};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

/// A server whose certificate is for `name` until `year`, and the file with that certificate.
fn certified(directory: &Directory, name: &str, year: i32) -> (Server, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(year, 1, 1);
    let certificate = params.self_signed(&key).unwrap();
    let chain = directory.write("chain.pem", certificate.pem());
    let key = directory.write("key.pem", key.serialize_pem());
    let server = Server::start(&[
        "--test-resources",
        "--listen",
        "127.0.0.1:0",
        "--cert",
        &chain,
        "--key",
        &key,
    ]);
    (server, chain)
}

#[test]
fn bodies_go_to_stdout_or_to_files() {
    let directory = Directory::new();
    let content: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    directory.write("large.bin", &content);
    directory.write("index.html", "home");
    directory.write("empty", "");
    let server = Server::of(&directory);
    assert_eq!(server.client(&[&server.url("")]).succeeded(), b"home");
    assert_eq!(server.client(&[&server.url("/empty")]).succeeded(), b"");
    let large = server.url("/large.bin");
    assert!(server.client(&[&large]).succeeded() == content);
    let (one, two) = (directory.file("one"), directory.file("two"));
    let empty = server.url("/empty");
    let outcome = server.client(&[&large, &empty, "-o", &one, "-o", &two]);
    assert_eq!(outcome.succeeded(), b"");
    assert!(fs::read(one).unwrap() == content);
    assert_eq!(fs::read(two).unwrap(), b"");
}

#[test]
fn bodies_on_stdout_come_one_after_the_other() {
    let directory = Directory::new();
    let large = "large".repeat(100_000);
    directory.write("large", &large);
    directory.write("small", "small");
    let server = Server::of(&directory);
    let (large_url, small_url) = (server.url("/large"), server.url("/small"));
    let out = server
        .client(&[&large_url, &small_url, &large_url, &small_url])
        .succeeded();
    assert!(out == format!("{large}small").repeat(2).into_bytes());
}

#[test]
fn a_thousand_urls_take_one_connection() {
    let server = Server::generating();
    let urls: Vec<String> = (0..1000).map(|n| server.url(&format!("/{n}"))).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let out = server.client(&urls).succeeded();
    assert_eq!(out.len(), (0..1000).sum::<usize>());
}

#[test]
fn uploads_are_counted() {
    let directory = Directory::new();
    let file = format!("@{}", directory.write("file", vec![7; 3_000_000]));
    let empty = format!("@{}", directory.write("empty", ""));
    let server = Server::generating();
    let url = server.url("/upload");
    for (data, expected) in [
        (file.as_str(), "3000000\n"),
        (&empty, "0\n"),
        ("", "0\n"),
        ("abc", "3\n"),
    ] {
        let out = server.client(&["-d", data, &url]).succeeded();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    let out = server.client(&["-d", "abc", &url, &url]).succeeded();
    assert_eq!(out, b"3\n3\n");
}

#[test]
fn ipv6_works_as_well() {
    if UdpSocket::bind("[::1]:0").is_err() {
        return println!("skipped: no IPv6 here");
    }
    let server = Server::start(&["--test-resources", "--listen", "[::1]:0"]);
    assert_eq!(
        server.client(&[&server.url("/5000")]).succeeded().len(),
        5000
    );
    // The wildcard takes both.
    let server = Server::start(&["--test-resources", "--listen", "[::]:0"]);
    let port = server.address.port();
    for host in ["[::1]", "127.0.0.1", "localhost"] {
        let url = format!("https://{host}:{port}/7");
        assert_eq!(server.client(&[&url]).succeeded().len(), 7);
    }
}

#[test]
fn an_http_error_has_a_body_a_line_and_a_code() {
    let directory = Directory::new();
    directory.write("file", "content");
    let server = Server::of(&directory);
    let missing = server.url("/missing");
    let out = server.client(&[&missing]).failed("HTTP status 404");
    assert_eq!(out, b"404 Not Found\n");
    let out = server.client(&[&missing, &server.url("/file")]);
    assert_eq!(out.failed("404"), b"404 Not Found\ncontent");
    let out = server.client(&["-d", "x", &server.url("/file")]);
    assert_eq!(out.failed("405"), b"405 Method Not Allowed\n");
    let saved = directory.file("saved");
    server.client(&[&missing, "-o", &saved]).failed("404");
    assert_eq!(fs::read(saved).unwrap(), b"404 Not Found\n");
}

#[test]
fn a_certificate_has_to_be_trusted() {
    let directory = Directory::new();
    let (server, chain) = certified(&directory, "localhost", 2900);
    let url = format!("https://localhost:{}/1", server.address.port());
    assert_eq!(client(&["--ca", &chain, &url]).succeeded(), b"\0");
    assert_eq!(server.client(&[&url]).succeeded(), b"\0");
    client(&[&url]).failed("issuer is not trusted");
    let other = Server::generating();
    other.client(&[&url]).failed("not the pinned one");
    // Another name than the certificate's.
    let by_address = server.url("/1");
    client(&["--ca", &chain, &by_address]).failed("another name");
    server.client(&[&by_address]).failed("another name");

    let outcome = client(&["--insecure", &by_address]);
    assert_eq!(
        (outcome.code, outcome.stdout.as_slice()),
        (Some(0), &b"\0"[..])
    );
    assert!(outcome.stderr.starts_with("warning: --insecure"));
}

#[test]
fn a_certificate_expires() {
    let directory = Directory::new();
    let (server, chain) = certified(&directory, "127.0.0.1", 2001);
    let url = server.url("/1");
    client(&["--ca", &chain, &url]).failed("expired");
    server.client(&[&url]).failed("expired");
}

#[test]
fn nobody_at_a_port_is_told_at_once() {
    // No program listens on this one.
    let outcome = client(&["https://127.0.0.1:1/", "--timeout", "20"]);
    if cfg!(target_os = "linux") {
        assert!(outcome.elapsed < Duration::from_secs(10), "{outcome:?}");
        outcome.failed("nobody listens there");
    }
}

#[test]
fn silence_is_waited_for_only_so_long() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let outcome = client(&[&format!("https://{address}/"), "--timeout", "0.5"]);
    assert!(outcome.elapsed >= Duration::from_millis(500));
    assert!(outcome.elapsed < Duration::from_secs(10), "{outcome:?}");
    outcome.failed(&format!("no answer from {address} within 0.5 s"));
}

#[cfg(unix)]
#[test]
fn a_server_that_falls_silent_is_given_up() {
    let server = Server::generating();
    let url = server.url("/10000000000");
    let running = Running::busy(&server.trusted(&[&url, "--timeout", "1"]));
    programs::signal("STOP", server.id());
    let outcome = running.end();
    assert!(outcome.elapsed < Duration::from_secs(20), "{outcome:?}");
    outcome.failed("has been silent for 1 s");
}

#[test]
fn a_name_that_does_not_resolve_is_said() {
    let outcome = client(&["https://no-such-name.invalid/", "--timeout", "5"]);
    outcome.failed("can't resolve no-such-name.invalid");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let directory = Directory::new();
    let empty = directory.write("empty", "");
    let missing = directory.file("missing");
    let server = Server::generating();
    let url = server.url("/1000");
    let unreadable = format!("@{missing}");
    server.client(&["-d", &unreadable, &url]).failed("missing:");
    let whole = format!("@{}", directory.text());
    server
        .client(&["-d", &whole, &url])
        .failed("not a regular file");
    server
        .client(&[&url, "-o", directory.text()])
        .failed(directory.text());
    let nowhere = directory.file("no/where");
    server.client(&[&url, "-o", &nowhere]).failed(&nowhere);
    client(&["--ca", &missing, &url]).failed("missing:");
    client(&["--ca", &empty, &url]).failed("no certificate in it");
    client(&["--ca", directory.text(), &url]).failed(directory.text());
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_not_waited_for() {
    let directory = Directory::new();
    let pipe = directory.file("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let data = format!("@{pipe}");
    client(&["-d", &data, "https://127.0.0.1:1/"]).failed("not a regular file");
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let wrong: [&[&str]; 6] = [
        &["http://localhost/"],
        &["https://a/", "https://b/"],
        &["https://a/", "-o", "x", "-o", "y"],
        &["--insecure"],
        &["https://a/", "--pin-sha256", "abc"],
        &["--size", "1X"],
    ];
    for arguments in wrong {
        let outcome = client(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}");
        let line = outcome.stderr.strip_suffix("(see quic-client --help)\n");
        assert!(
            line.is_some_and(|line| line.starts_with("quic-client: ") && !line.contains('\n')),
            "{outcome:?}"
        );
        assert_eq!(outcome.stdout, b"");
    }
    let help = client(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
}

/// As `quic-client URL | head -c 1` does.
#[test]
fn a_closed_stdout_ends_it_with_one_line() {
    let server = Server::generating();
    let url = server.url("/100000000");
    let outcome = Running::cut(&server.trusted(&[&url]), 1).end();
    outcome.failed("can't write to stdout");
}

#[cfg(unix)]
#[test]
fn an_interrupted_client_says_so() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let running = Running::client(&[&url]);
    // Its first packet shows that it is at work.
    silent.recv_from(&mut [0; 2048]).unwrap();
    programs::signal("INT", running.id());
    let outcome = running.end();
    assert!(outcome.elapsed < Duration::from_secs(8), "{outcome:?}");
    outcome.failed("interrupted");
}

/// Who reads the output may stop for longer than the timeout: the connection waits for it.
#[test]
fn a_reader_that_stops_for_a_while_gets_everything() {
    let server = Server::generating();
    let url = server.url("/20000000");
    let client = Running::slow(
        &server.trusted(&["--timeout", "1", &url]),
        Duration::from_secs(4),
    );
    let outcome = client.end();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.stdout.len(), 20_000_000);
}
