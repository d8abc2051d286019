//! The qlog files of both programs.

mod programs;

use std::{collections::BTreeSet, fs};

use programs::{Directory, Server};

#[test]
fn each_connection_has_a_file_at_each_end() {
    let (logs, content) = (Directory::new(), Directory::new());
    content.write("file", "content");
    let server = Server::start(&[
        "--dir",
        content.text(),
        "--listen",
        "127.0.0.1:0",
        "--retry",
        "--qlog-dir",
        logs.text(),
    ]);
    let url = server.url("/file");
    for _ in 0..2 {
        let out = server.client(&[&url, "--qlog-dir", logs.text()]);
        assert_eq!(out.succeeded(), b"content");
    }
    programs::signal("TERM", server.id());
    assert_eq!(server.end(), Some(0));
    let names: BTreeSet<String> = fs::read_dir(logs.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for name in names {
        let (dcid, end) = name.split_once('_').unwrap();
        let other = if end == "client.sqlog" {
            "server.sqlog"
        } else {
            "client.sqlog"
        };
        assert!(logs.path().join(format!("{dcid}_{other}")).exists());
        let text = fs::read_to_string(logs.path().join(&name)).unwrap();
        for part in [
            dcid,
            "quic:connection_started",
            "quic:connection_closed",
            "\"h3\"",
        ] {
            assert!(text.contains(part), "{part} in {name}");
        }
        let has_retry = text.contains("\"packet_type\":\"retry\"");
        assert_eq!(has_retry, end == "client.sqlog", "{name}");
    }
}

#[test]
fn a_directory_that_can_t_be_made_is_told_of() {
    let directory = Directory::new();
    let file = directory.write("file", "");
    let inside = format!("{file}/logs");
    programs::failing_server(&["--test-resources", "--qlog-dir", &inside]).failed(&inside);
    let client = ["https://127.0.0.1:1/", "--insecure", "--qlog-dir", &inside];
    assert_eq!(programs::client(&client).code, Some(1));
}
