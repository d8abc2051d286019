//! Answers requests over a plain socket: takes a file for its certificate, and prints its address.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program")]

use std::{env, error::Error, fs, net::UdpSocket, time::Instant};

use quic_common::{BatchBuffer, Datagram, Random};
use quic_http3::{Field, ServerEvent, ServerSession};
use quic_transport::{Application, Connection, Endpoint, EndpointConfig, Event, Output, tls};

struct Hello(ServerSession);

impl Application for Hello {
    fn process(&mut self, connection: &mut Connection, now: Instant) {
        while let Some(event) = connection.next_event() {
            if let Event::Stream(event) = event {
                self.0.on_event(connection, event);
            }
        }
        while let Some(event) = self.0.next_event(connection, now) {
            if let ServerEvent::Request { id, .. } = event {
                let status = [Field::new(":status", "200")];
                let _gone = self.0.respond_with(connection, id, &status, b"hello");
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let file = env::args().nth(1).ok_or("which file?")?;
    fs::write(file, certificate.cert.der())?;
    let key = certificate.signing_key.serialize_der().try_into()?;
    let tls = tls::ServerConfig::new(vec![certificate.cert.into()], key, &[b"h3"])?;
    let (config, mut seed) = (quic_transport::Config::default(), [0; 32]);
    getrandom::fill(&mut seed)?;
    let mut random = Random::from_seed(seed);
    let mut endpoint = Endpoint::new(EndpointConfig::new(&mut random), random);
    let (mut batch, mut space) = (BatchBuffer::new(), [0; 2048]);
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    println!("{}", socket.local_addr()?);
    loop {
        let output = endpoint.process_output(Instant::now(), &mut batch);
        if let Output::Datagrams(batch) = output {
            for datagram in batch.segments() {
                socket.send_to(datagram, batch.head().remote)?;
            }
            continue;
        }
        socket.set_read_timeout(output.timeout())?;
        if let Ok((length, remote)) = socket.recv_from(&mut space) {
            let payload = space.get_mut(..length).unwrap_or_default();
            endpoint.input(Datagram::new(remote, payload), Instant::now());
        }
        while let Some(incoming) = endpoint.next_incoming() {
            let hello = Hello(ServerSession::new());
            endpoint.accept(incoming, &config, &tls, hello, Instant::now())?;
        }
    }
}
