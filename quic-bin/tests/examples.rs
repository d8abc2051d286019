//! The examples that newcomers start from, as programs: a server and its client over plain sockets.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// Ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _may_have_ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Where `cargo test` has put an example of any crate, if it built the examples.
fn example(name: &str) -> Option<PathBuf> {
    let tests = env::current_exe().unwrap();
    let path = tests.ancestors().nth(2)?.join("examples").join(name);
    let path = path.with_extension(env::consts::EXE_EXTENSION);
    path.exists().then_some(path)
}

/// What the client of this name prints when it has talked to the server.
fn talk(name: &str) -> Option<String> {
    let (server, client) = (
        example(&format!("{name}_server"))?,
        example(&format!("{name}_client"))?,
    );
    let certificate = env::temp_dir().join(format!("{name}-{}.der", std::process::id()));
    let mut server = Server(
        Command::new(server)
            .arg(&certificate)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut address = String::new();
    BufReader::new(server.0.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    let output = Command::new(client)
        .args([address.trim().as_ref(), certificate.as_os_str()])
        .output()
        .unwrap();
    std::fs::remove_file(certificate).unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_examples_talk_to_each_other() {
    for name in ["transport", "http3"] {
        match talk(name) {
            Some(answer) => assert_eq!(answer.trim(), "hello"),
            None => println!("skipped: the examples aren't built for a test alone"),
        }
    }
}
