//! A server that goes away in the middle, RFC 9114, 5.2: what it has taken it answers.
#![expect(clippy::unwrap_used, reason = "test code")]

mod programs;

use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use programs::Directory;
use quic_common::{BatchBuffer, Datagram, Random};
use quic_http3::{Code, Field, ServerEvent, ServerSession};
use quic_transport::{
    Application, Config, Connection, Endpoint, EndpointConfig, Event, Output, StreamId, tls,
};

/// Says that it goes away when it has taken two requests, and answers them afterwards; one that came too is rejected.
struct Leaving {
    session: ServerSession,
    taken: Vec<StreamId>,
}

impl Application for Leaving {
    fn process(&mut self, connection: &mut Connection, now: Instant) {
        while let Some(event) = connection.next_event() {
            if let Event::Stream(event) = event {
                self.session.on_event(connection, event);
            }
        }
        while let Some(event) = self.session.next_event(connection, now) {
            if let ServerEvent::Request { id, .. } = event {
                self.taken.push(id);
            }
        }
        if self.taken.len() >= 2 {
            self.session.shutdown(connection).unwrap();
            for id in self.taken.drain(2..) {
                let code = Code::REQUEST_REJECTED;
                self.session.cancel(connection, id, code).unwrap();
            }
            let status = [Field::new(":status", "200")];
            for id in self.taken.drain(..) {
                let answered = self.session.respond_with(connection, id, &status, b"whole");
                assert_eq!(answered, Ok(5));
            }
        }
    }
}

/// Serves until it is told to stop.
fn serve(socket: &UdpSocket, streams: u64, stop: &AtomicBool) {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = certificate.signing_key.serialize_der().try_into().unwrap();
    let tls = tls::ServerConfig::new(vec![certificate.cert.into()], key, &[b"h3"]).unwrap();
    let config = Config {
        max_streams_bidirectional: streams,
        ..Config::default()
    };
    let mut random = Random::from_seed([7; 32]);
    let mut endpoint = Endpoint::new(EndpointConfig::new(&mut random), random);
    let (mut batch, mut space) = (BatchBuffer::new(), [0; 2048]);
    while !stop.load(Ordering::Relaxed) {
        let output = endpoint.process_output(Instant::now(), &mut batch);
        if let Output::Datagrams(batch) = output {
            for datagram in batch.segments() {
                socket.send_to(datagram, batch.head().remote).unwrap();
            }
            continue;
        }
        let most = Duration::from_millis(20);
        let wait = output.timeout().map_or(most, |timeout| timeout.min(most));
        let wait = wait.max(Duration::from_micros(1));
        socket.set_read_timeout(Some(wait)).unwrap();
        if let Ok((length, remote)) = socket.recv_from(&mut space) {
            let payload = space.get_mut(..length).unwrap();
            endpoint.input(Datagram::new(remote, payload), Instant::now());
        }
        while let Some(incoming) = endpoint.next_incoming() {
            let leaving = Leaving {
                session: ServerSession::new(),
                taken: Vec::new(),
            };
            endpoint
                .accept(incoming, &config, &tls, leaving, Instant::now())
                .unwrap();
        }
    }
}

/// A client that asks for three files at once gets the two that were taken, and says what is missing: the third waits for
/// its turn, or is rejected.
#[test]
fn what_was_taken_is_answered() {
    for streams in [2, 100] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address: SocketAddr = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let server = thread::spawn({
            let stop = Arc::clone(&stop);
            move || serve(&socket, streams, &stop)
        });
        let directory = Directory::new();
        let url = format!("https://{address}/file");
        let files = ["a", "b", "c"].map(|name| directory.file(name));
        let mut arguments = vec!["--insecure"];
        for file in &files {
            arguments.extend([&url, "-o", file]);
        }
        let outcome = programs::client(&arguments);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let last = outcome.stderr.lines().last();
        assert_eq!(last, Some("quic-client: the server takes no more requests"));
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap();
        let got = files.map(|file| fs::read(file).unwrap_or_default());
        assert_eq!(got, [&b"whole"[..], b"whole", b""], "{streams}");
    }
}
