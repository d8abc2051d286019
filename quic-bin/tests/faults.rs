//! Errors of the system while both ends work: they are put in front of the real socket.
#![expect(clippy::unwrap_used, reason = "test code")]

mod requests;

use std::{
    net::SocketAddr,
    sync::mpsc::channel,
    thread,
    time::{Instant, SystemTime},
};

use quic_bin::{
    certificate::Identity,
    download::Download,
    event_loop::{EventLoop, Output, Protocol, SocketId},
    post::Post,
    server::{ALPN, Shared},
    signals::Termination,
    site::Site,
};
use quic_common::{BatchBuffer, BatchHead};
use quic_transport::tls;
use quic_udp::{Datagrams, Fault, IcmpError, IcmpKind, Socket};

use requests::Get;

/// What sending may meet, whatever is sent. (A datagram that is too large is refused for itself.)
const FAULTS: [Fault; 4] = [
    Fault::Unreachable,
    Fault::NotPermitted,
    Fault::NoBuffers,
    Fault::Other(5),
];

/// Loses every third batch to a fault, and reports an ICMP error with each; before the handshake of a client is complete
/// only if it is to.
struct Faulty<P> {
    inner: P,
    is_open: fn(&P) -> bool,
    batches: usize,
    met: usize,
}

impl<P: Protocol> Protocol for Faulty<P> {
    fn input(&mut self, socket: SocketId, datagrams: Datagrams<'_>, now: Instant) {
        self.inner.input(socket, datagrams, now);
    }

    fn process(&mut self, now: Instant) {
        self.inner.process(now);
    }

    fn output(&mut self, now: Instant, buffer: &mut BatchBuffer) -> Output {
        loop {
            let output = self.inner.output(now, buffer);
            let Output::Batch(head) = output else {
                return output;
            };
            self.batches += 1;
            if !self.batches.is_multiple_of(3) || !(self.is_open)(&self.inner) {
                return output;
            }
            let fault = *FAULTS.iter().cycle().nth(self.met % FAULTS.len()).unwrap();
            self.met += 1;
            self.on_fault(0, head, fault);
            let error = IcmpError::new(None, IcmpKind::Unreachable, 111);
            self.inner.on_icmp_error(0, error);
        }
    }

    fn is_done(&self) -> bool {
        self.inner.is_done()
    }

    fn on_fault(&mut self, socket: SocketId, head: BatchHead, fault: Fault) {
        self.inner.on_fault(socket, head, fault);
    }
}

/// Bytes that are asked for.
const LENGTH: usize = 3_000_000;

fn client(address: SocketAddr, pin: [u8; 32]) -> Download<Get> {
    let tls = tls::ClientConfig::with_pin(pin, &[ALPN]).unwrap();
    requests::download((address, "127.0.0.1"), &tls, LENGTH)
}

/// Downloads from a server; both meet faults. Returns how many they met.
fn download() -> (usize, usize) {
    let identity = Identity::self_signed(&["127.0.0.1".to_owned()], SystemTime::now()).unwrap();
    let pin = identity.fingerprint().unwrap().0;
    let site = Site {
        test_resources: true,
        ..Site::default()
    };
    let termination = Termination::default();
    let shared = Shared::new(identity, site, termination.clone()).unwrap();
    let (said, address) = channel();
    let server = thread::spawn({
        let termination = termination.clone();
        move || {
            let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let address = socket.local_address();
            let mut events = EventLoop::new().unwrap();
            events.add(socket).unwrap();
            termination.wakes(events.waker());
            let mut server = Faulty {
                inner: shared.server(Post::alone(), events.waker()).unwrap(),
                is_open: |_server| true,
                batches: 0,
                met: 0,
            };
            said.send(address).unwrap();
            events.run(&mut server).unwrap();
            server.met
        }
    });
    let address = address.recv().unwrap();
    let mut client = Faulty {
        inner: client(address, pin),
        is_open: Download::has_connected,
        batches: 0,
        met: 0,
    };
    let mut events = EventLoop::new().unwrap();
    events.add(Socket::bind_for(address).unwrap()).unwrap();
    events.run(&mut client).unwrap();
    client.inner.result().unwrap();
    termination.request();
    (client.met, server.join().unwrap())
}

/// Nothing that sending meets ends a server, nor a client once its handshake is complete: anyone could have caused it.
#[test]
fn faults_in_the_middle_of_a_download_are_losses() {
    let (at_the_client, at_the_server) = download();
    assert!(at_the_client > 0 && at_the_server > 0);
}

/// Before that, a client needn't wait for an answer that can't come.
#[test]
fn a_client_that_cannot_send_its_first_packet_says_so_at_once() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let remote = silent.local_addr().unwrap();
    for fault in FAULTS {
        let mut client = client(remote, [0; 32]);
        let mut buffer = BatchBuffer::new();
        let Output::Batch(head) = client.output(Instant::now(), &mut buffer) else {
            continue;
        };
        client.on_fault(0, head, fault);
        let is_final = matches!(fault, Fault::Unreachable | Fault::NotPermitted);
        assert_eq!(client.is_done(), is_final, "{fault:?}");
    }
}
