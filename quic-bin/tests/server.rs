//! `quic-server` as a person, and an attacker, uses it.
#![expect(clippy::unwrap_used, reason = "test code")]

mod programs;

use std::{
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use programs::{Directory, Running, Server, failing_server};
use quic_bin::{
    certificate::{Fingerprint, Identity},
    download::{Download, Timing},
    event_loop::EventLoop,
    exchange::Exchange,
    failure::Failure,
    files::Root,
    server::{ALPN, Shared},
    signals::Termination,
    site::Site,
    threads,
};
use quic_transport::tls;
use quic_udp::Socket;

/// A request exactly as a test wants it, and what came back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Raw {
    method: &'static str,
    path: String,
    status: u16,
    length: Option<u64>,
    body: Vec<u8>,
}

impl Exchange for Raw {
    fn method(&self) -> &'static str {
        self.method
    }

    fn authority(&self) -> &'static str {
        "localhost"
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn on_response(&mut self, status: u16, length: Option<u64>) {
        (self.status, self.length) = (status, length);
    }

    fn on_body(&mut self, data: &[u8], _: Instant) -> Result<(), Failure> {
        self.body.extend_from_slice(data);
        Ok(())
    }

    fn on_end(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn name(&self) -> String {
        self.path.clone()
    }
}

/// Sends requests as they are, over one connection.
fn raw(server: &Server, requests: &[(&'static str, &str)]) -> Vec<Raw> {
    let pin: Fingerprint = server.pin.parse().unwrap();
    let tls = tls::ClientConfig::with_pin(pin.0, &[ALPN]).unwrap();
    let time = Duration::from_secs(30);
    let timing = Timing {
        handshake: time,
        silence: time,
    };
    let exchanges = requests.iter().map(|&(method, path)| Raw {
        method,
        path: path.to_owned(),
        status: 0,
        length: None,
        body: Vec::new(),
    });
    let mut download = Download::new(
        server.address,
        "localhost",
        &tls,
        timing,
        Termination::default(),
        exchanges,
    )
    .unwrap();
    let mut events = EventLoop::new().unwrap();
    let socket = Socket::bind_for(server.address).unwrap();
    events.add(socket).unwrap();
    events.run(&mut download).unwrap();
    download.result().unwrap();
    download.into_finished()
}

/// A site, and a secret beside it.
fn site() -> (Directory, Server) {
    let directory = Directory::new();
    directory.write("secret", "secret");
    directory.write("root/index.html", "home");
    directory.write("root/sub/page.html", "page");
    directory.write("root/.hidden", "hidden");
    #[cfg(unix)]
    std::os::unix::fs::symlink(directory.file("secret"), directory.file("root/link")).unwrap();
    let root = directory.file("root");
    let server = Server::start(&["--dir", &root, "--listen", "127.0.0.1:0"]);
    (directory, server)
}

#[test]
fn nothing_outside_the_directory_is_served() {
    let (_directory, server) = site();
    let long = format!("/{}", "x".repeat(10_000));
    let paths = [
        "/../secret",
        "/%2e%2e/secret",
        "/%2E%2E%2Fsecret",
        "/sub/../../secret",
        "/..%5csecret",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/etc/passwd",
        "/%00",
        "/index.html%00",
        "/.hidden",
        "/link",
        "/sub",
        "/index.html/",
        "/%",
        &long,
    ];
    let requests: Vec<_> = paths.iter().map(|path| ("GET", *path)).collect();
    let answers = raw(&server, &requests);
    assert_eq!(answers.len(), paths.len());
    for answer in answers {
        assert!(matches!(answer.status, 400 | 404), "{answer:?}");
        assert!(answer.body.starts_with(b"40"), "{answer:?}");
    }
}

#[test]
fn head_has_a_length_and_no_body() {
    let (_directory, server) = site();
    let answers = raw(&server, &[("HEAD", "/"), ("HEAD", "/missing")]);
    for answer in answers {
        let expected = if answer.path == "/" {
            (200, Some(4))
        } else {
            (404, Some(14))
        };
        assert_eq!((answer.status, answer.length), expected);
        assert_eq!(answer.body, b"");
    }
}

#[test]
fn other_methods_are_refused() {
    let (_directory, server) = site();
    let requests = ["DELETE", "POST", "PUT", "OPTIONS", "get"].map(|method| (method, "/"));
    for answer in raw(&server, &requests) {
        assert_eq!(answer.status, 405, "{answer:?}");
    }
}

#[test]
fn what_it_cannot_start_with_is_said() {
    let directory = Directory::new();
    let mut pems = Vec::new();
    for name in ["one", "two"] {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        pems.push((
            directory.write(&format!("{name}.pem"), certificate.pem()),
            directory.write(&format!("{name}.key"), key.serialize_pem()),
        ));
    }
    let (cert, key) = &pems[0];
    let empty = directory.write("empty.pem", "");
    let missing = directory.file("missing.pem");
    let locked = directory.write(
        "locked.key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    for (cert, key, expected) in [
        (cert, &pems[1].1, "does not belong"),
        (&empty, key, "no certificate in it"),
        (cert, &empty, "no private key in it"),
        (cert, &locked, "encrypted"),
        (&missing, key, "missing.pem"),
        (cert, &missing, "missing.pem"),
    ] {
        let listen = ["--test-resources", "--listen", "127.0.0.1:0"];
        let files = ["--cert", cert.as_str(), "--key", key.as_str()];
        failing_server(&[&listen[..], &files[..]].concat()).failed(expected);
    }
    failing_server(&["--dir", &missing]).failed("missing.pem");
    failing_server(&["--dir", &empty]).failed("empty.pem");
    let name = ["--test-resources", "--name", "no name"];
    failing_server(&name).failed("no name");
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    failing_server(&["--test-resources", "--listen", &address]).failed(&address);
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let wrong: [&[&str]; 3] = [
        &[],
        &["--dir", ".", "--cert", "x"],
        &["--test-resources", "--listen", "localhost"],
    ];
    for arguments in wrong {
        let outcome = failing_server(arguments);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
    }
}

#[cfg(unix)]
#[test]
fn it_says_goodbye_when_it_is_told_to_end() {
    for signal in ["TERM", "INT"] {
        let server = Server::generating();
        let clients = [server.busy_client(), server.busy_client()];
        let start = Instant::now();
        programs::signal(signal, server.id());
        assert_eq!(server.end(), Some(0));
        for client in clients {
            client.end().failed("the server ends");
        }
        // Far less than the timeouts.
        assert!(start.elapsed() < Duration::from_secs(8));
    }
}

#[test]
fn a_killed_client_harms_nobody() {
    let server = Server::generating();
    // Ends without a word.
    drop(server.busy_client());
    assert_eq!(
        server.client(&[&server.url("/1000")]).succeeded().len(),
        1000
    );
}

#[test]
fn a_transfer_survives_a_flood_of_garbage() {
    let server = Server::generating();
    let address = server.address;
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&stop);
    let flood = thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut datagram = [0xc0_u8; 1200];
        let mut sent = 0_u64;
        while !is_over.load(Ordering::Relaxed) {
            // Long and short headers, known and unknown versions, all sizes.
            let shape = sent.to_le_bytes()[0];
            datagram[0] = shape;
            datagram[4] = shape & 1;
            datagram[5] = shape;
            let size = 1 + usize::from(shape) * 4;
            // A full queue is as good.
            sent += u64::from(socket.send_to(&datagram[..size], address).is_ok());
        }
        sent
    });
    let out = server.client(&[&server.url("/20000000")]);
    stop.store(true, Ordering::Relaxed);
    let sent = flood.join().unwrap();
    assert_eq!(out.succeeded().len(), 20_000_000, "{sent} datagrams");
    assert!(sent > 1000);
    assert_eq!(server.client(&[&server.url("/1")]).succeeded(), b"\0");
}

/// Neither a server without clients nor one with a client that does nothing wakes up again and again.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_server_sleeps() {
    let server = Server::generating();
    let wakes = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
        let line = |name| status.lines().find_map(|line| line.strip_prefix(name));
        line("voluntary_ctxt_switches:")
            .unwrap()
            .trim()
            .parse::<u64>()
            .unwrap()
    };
    let rest = |time| {
        let before = wakes();
        thread::sleep(Duration::from_millis(time));
        wakes() - before
    };
    assert!(rest(500) <= 3);
    // A client that is stopped in the middle of a body: nothing arrives, nothing may be sent.
    let client = server.busy_client();
    programs::signal("STOP", client.id());
    // Until the window is full and the probes have become rare.
    thread::sleep(Duration::from_millis(500));
    let woken = rest(1000);
    assert!(woken <= 20, "woken {woken} times");
}

fn several_clients_are_served(url: &str, pin: &str, body: &[u8]) {
    let clients: Vec<_> = (0..9)
        .map(|_| Running::client(&["--pin-sha256", pin, url]))
        .collect();
    for client in clients {
        assert!(client.end().succeeded() == body);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn several_threads_serve_one_port() {
    let directory = Directory::new();
    directory.write("file", [7; 10_000]);
    let listen = ["--listen", "127.0.0.1:0", "--threads", "3"];
    let server = Server::start(&[&["--dir", directory.text()][..], &listen].concat());
    several_clients_are_served(&server.url("/file"), &server.pin, &[7; 10_000]);
}

/// The file is not in memory, so the loop must not read it.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_the_disk_has_to_deliver_comes_whole() {
    use rustix::fs::{Advice, fadvise, fsync};

    let directory = Directory::new();
    let content: Vec<u8> = (0..2_000_000_u32)
        .map(|at| (at / 251).to_le_bytes()[0])
        .collect();
    directory.write("file", &content);
    let file = std::fs::File::open(directory.file("file")).unwrap();
    fsync(&file).unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    let server = Server::of(&directory);
    several_clients_are_served(&server.url("/file"), &server.pin, &content);
}

/// The kernel is misled: every datagram reaches the wrong thread, and is passed on.
#[cfg(target_os = "linux")]
#[test]
fn threads_pass_on_what_is_for_others() {
    let identity = Identity::self_signed(&["127.0.0.1".to_owned()], SystemTime::now()).unwrap();
    let pin = identity.fingerprint().unwrap().to_string();
    let directory = Directory::new();
    directory.write("file", [7; 10_000]);
    let site = Site {
        root: Some(Root::new(directory.path()).unwrap()),
        ..Site::default()
    };
    let termination = Termination::default();
    let shared = Shared::new(identity, site, termination.clone()).unwrap();
    let mut sockets = threads::bind("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let url = format!("https://{}/file", sockets[0].local_address());
    sockets.reverse();
    let server = thread::spawn(move || threads::serve(&shared, sockets, Vec::new()));
    several_clients_are_served(&url, &pin, &[7; 10_000]);
    termination.request();
    server.join().unwrap().unwrap();
}

/// One address gets no more connections than it is granted, and hears why.
#[test]
fn an_address_has_so_many_connections() {
    let server = Server::start(&[
        "--test-resources",
        "--listen",
        "127.0.0.1:0",
        "--connections-per-address",
        "1",
    ]);
    let busy = server.busy_client();
    let refused = server.client(&[&server.url("/3")]);
    refused.failed("CONNECTION_REFUSED");
    drop(busy);
}

/// The files that the requests of one connection have open are bounded: with fewer descriptors than requests all are answered.
#[cfg(unix)]
#[test]
fn more_requests_than_descriptors_are_answered() {
    let directory = Directory::new();
    let content: Vec<u8> = (0..2_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    directory.write("file", &content);
    let place = ["--dir", directory.text(), "--listen", "127.0.0.1:0"];
    let arguments = [&place[..], &["--alpn", "h3,hq-interop"]].concat();
    let server = Server::with_descriptors(100, &arguments);
    let url = server.url("/file");
    let outputs: Vec<String> = (0..150)
        .map(|n| directory.file(&format!("out-{n}")))
        .collect();
    for alpn in ["h3", "hq-interop"] {
        let mut client = vec!["--alpn", alpn];
        for output in &outputs {
            client.extend([&url, "-o", output]);
        }
        server.client(&client).succeeded();
        for output in &outputs {
            assert!(std::fs::read(output).unwrap() == content, "{alpn}");
            std::fs::remove_file(output).unwrap();
        }
    }
}
