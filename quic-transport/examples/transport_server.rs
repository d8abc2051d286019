//! Echoes streams over a plain socket: takes a file for its certificate, and prints its address.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program")]

use std::{env, error::Error, fs, net::UdpSocket, time::Instant};

use quic_common::{BatchBuffer, Datagram, Random};
use quic_transport::{Application, Config, Connection, Endpoint, EndpointConfig};
use quic_transport::{Event, Output, StreamEvent, tls};

struct Echo;

impl Application for Echo {
    fn process(&mut self, connection: &mut Connection, _now: Instant) {
        while let Some(event) = connection.next_event() {
            if let Event::Stream(StreamEvent::Readable(id)) = event {
                let mut line = [0; 1024]; // what is longer would have to wait for Writable events
                let read = connection.stream_read(id, &mut line).unwrap_or_default();
                let _taken = connection.stream_send(id, line.get(..read.length).unwrap_or(&[]));
                let _may_be_stopped = read.fin.then(|| connection.finish(id));
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let file = env::args().nth(1).ok_or("which file?")?;
    fs::write(file, certificate.cert.der())?;
    let key = certificate.signing_key.serialize_der().try_into()?;
    let tls = tls::ServerConfig::new(vec![certificate.cert.into()], key, &[b"echo"])?;
    let (config, mut seed) = (Config::default(), [0; 32]);
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
            endpoint.accept(incoming, &config, &tls, Echo, Instant::now())?;
        }
    }
}
