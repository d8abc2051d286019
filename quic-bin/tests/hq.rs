//! HTTP/0.9 of both programs, beside HTTP/3 on one port.

mod programs;

use std::fs;

use programs::{Directory, Server};

fn both(directory: &Directory) -> Server {
    let arguments = ["--dir", directory.text(), "--listen", "127.0.0.1:0"];
    Server::start(&[&arguments[..], &["--alpn", "h3,hq-interop"]].concat())
}

#[test]
fn one_port_serves_both_protocols() {
    let directory = Directory::new();
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    directory.write("large", &content);
    directory.write("empty", "");
    let server = both(&directory);
    let (large, empty) = (server.url("/large"), server.url("/empty"));
    for alpn in ["h3", "hq-interop"] {
        let (one, two) = (directory.file("one"), directory.file("two"));
        let urls = ["--alpn", alpn, &large, &empty, "-o", &one, "-o", &two];
        assert_eq!(server.client(&urls).succeeded(), b"");
        assert!(fs::read(&one).unwrap() == content, "{alpn}");
        assert_eq!(fs::read(&two).unwrap(), b"");
    }
}

#[test]
fn a_thousand_files_take_one_connection() {
    let directory = Directory::new();
    directory.write("file", "content");
    let server = both(&directory);
    let url = server.url("/file");
    let mut arguments = vec!["--alpn", "hq-interop"];
    arguments.resize(1002, &url);
    let out = server.client(&arguments).succeeded();
    assert!(out == "content".repeat(1000).into_bytes());
}

#[test]
fn what_can_t_be_had_is_a_stream_that_is_reset() {
    let directory = Directory::new();
    let server = both(&directory);
    let urls = ["--alpn", "hq-interop", &server.url("/missing")];
    server.client(&urls).failed("the server gave up");
    let long = server.url(&format!("/{}", "x".repeat(5000)));
    let outcome = server.client(&["--alpn", "hq-interop", &long]);
    assert_eq!(outcome.code, Some(1));
}

#[test]
fn a_protocol_must_be_common() {
    let directory = Directory::new();
    let server = Server::of(&directory);
    let urls = ["--alpn", "hq-interop", &server.url("/")];
    server.client(&urls).failed("TLS alert 120");
}

#[test]
fn retry_ciphers_and_key_updates_are_a_flag_each() {
    let directory = Directory::new();
    directory.write("file", "content");
    let start = |more: &[&str]| {
        let arguments = ["--dir", directory.text(), "--listen", "127.0.0.1:0"];
        Server::start(&[&arguments[..], more].concat())
    };
    for (server, client) in [
        (&["--retry"][..], &[][..]),
        (&["--cipher", "chacha20"], &[]),
        (&[], &["--cipher", "chacha20"]),
        (&[], &["--key-update"]),
    ] {
        let server = start(server);
        let url = server.url("/file");
        let out = server.client(&[client, &[&url]].concat()).succeeded();
        assert_eq!(out, b"content");
    }
    let server = start(&["--cipher", "aes128"]);
    let urls = ["--cipher", "chacha20", &server.url("/file")];
    server.client(&urls).failed("TLS");
}

#[test]
fn datagrams_come_back_where_the_server_returns_them() {
    let directory = Directory::new();
    directory.write("file", "content");
    let start = |more: &[&str]| {
        let arguments = ["--dir", directory.text(), "--listen", "127.0.0.1:0"];
        Server::start(&[&arguments[..], &["--alpn", "h3,hq-interop"], more].concat())
    };
    let server = start(&["--datagram-echo"]);
    let url = server.url("/file");
    let arguments = ["--alpn", "hq-interop", "--datagrams", "100", &url];
    let outcome = server.client(&arguments);
    assert_eq!(
        (outcome.code, &outcome.stdout[..]),
        (Some(0), &b"content"[..])
    );
    let said = "datagrams: 100 sent, 100 acknowledged, 0 lost, 100 came back\n";
    assert_eq!(outcome.stderr, said);

    let server = start(&[]);
    let url = server.url("/file");
    let arguments = ["--alpn", "hq-interop", "--datagrams", "100", &url];
    let outcome = server.client(&arguments);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("takes no datagrams"), "{outcome:?}");
}
