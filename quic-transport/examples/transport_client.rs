//! Has `transport_server` echo a line over a plain socket: takes its address, and the file with its certificate.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program")]

use std::{env, error::Error, fs, net::UdpSocket, time::Instant};

use quic_common::{BatchBuffer, Datagram, Random};
use quic_transport::{Config, Connection, Direction, Event, Output, StreamEvent, tls};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let server = arguments.next().ok_or("which server?")?.parse()?;
    let certificate = fs::read(arguments.next().ok_or("which certificate?")?)?;
    let tls = tls::ClientConfig::with_roots([certificate.into()], &[b"echo"])?;
    let (config, mut seed) = (Config::default(), [0; 32]);
    getrandom::fill(&mut seed)?;
    let (random, start) = (Random::from_seed(seed), Instant::now());
    let mut connection = Connection::client(&config, &tls, "localhost", server, random, start)?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let (mut batch, mut space, mut answer) = (BatchBuffer::new(), [0; 2048], Vec::new());
    loop {
        while let Some(event) = connection.next_event() {
            if event == Event::Connected {
                let stream = connection.open(Direction::Bidirectional);
                let id = stream.ok_or("no stream is permitted")?;
                connection.stream_send(id, b"hello")?;
                connection.finish(id)?;
            } else if let Event::Stream(StreamEvent::Readable(id)) = event {
                let fill = connection.fill(id)?;
                answer.extend_from_slice(fill.data);
                let (length, is_end) = (fill.data.len(), fill.fin);
                connection.consume(id, length)?;
                if is_end {
                    connection.close(0, b"done");
                }
            }
        }
        let output = connection.process_output(Instant::now(), &mut batch);
        if let Output::Datagrams(batch) = output {
            for datagram in batch.segments() {
                socket.send_to(datagram, batch.head().remote)?;
            }
            continue;
        } else if connection.is_closed() {
            println!("{}", String::from_utf8(answer)?);
            return Ok(());
        }
        socket.set_read_timeout(output.timeout())?;
        if let Ok((length, remote)) = socket.recv_from(&mut space) {
            let payload = space.get_mut(..length).unwrap_or_default();
            connection.input(Datagram::new(remote, payload), Instant::now());
        }
    }
}
