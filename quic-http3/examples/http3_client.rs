//! Gets a path of `http3_server` over a plain socket: takes its address, and the file with its certificate.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program")]

use std::{env, error::Error, fs, net::UdpSocket, time::Instant};

use quic_common::{BatchBuffer, Datagram, Random};
use quic_http3::{ClientEvent, ClientSession, Code};
use quic_transport::{Config, Connection, Event, Output, tls};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let server = arguments.next().ok_or("which server?")?.parse()?;
    let certificate = fs::read(arguments.next().ok_or("which certificate?")?)?;
    let tls = tls::ClientConfig::with_roots([certificate.into()], &[b"h3"])?;
    let (config, mut seed) = (Config::default(), [0; 32]);
    getrandom::fill(&mut seed)?;
    let (random, start) = (Random::from_seed(seed), Instant::now());
    let mut connection = Connection::client(&config, &tls, "localhost", server, random, start)?;
    let (mut session, mut body) = (ClientSession::new(), Vec::new());
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let (mut batch, mut space) = (BatchBuffer::new(), [0; 2048]);
    loop {
        while let Some(event) = connection.next_event() {
            if event == Event::Connected {
                let request = http::Request::get("https://localhost/hello").body(())?;
                session.send_request(&mut connection, &request, true)?;
            } else if let Event::Stream(event) = event {
                session.on_event(&mut connection, event);
            }
        }
        while let Some(event) = session.next_event(&mut connection, Instant::now()) {
            if let ClientEvent::Data { id } = event {
                while let Ok(data @ [_, ..]) = session.fill(&mut connection, id) {
                    body.extend_from_slice(data);
                    let length = data.len();
                    session.consume(&mut connection, id, length)?;
                }
            } else if let ClientEvent::Finished { .. } = event {
                connection.close(Code::NO_ERROR.value(), b"done");
            }
        }
        let output = connection.process_output(Instant::now(), &mut batch);
        if let Output::Datagrams(batch) = output {
            for datagram in batch.segments() {
                socket.send_to(datagram, batch.head().remote)?;
            }
            continue;
        } else if connection.is_closed() {
            println!("{}", String::from_utf8(body)?);
            return Ok(());
        }
        socket.set_read_timeout(output.timeout())?;
        if let Ok((length, remote)) = socket.recv_from(&mut space) {
            let payload = space.get_mut(..length).unwrap_or_default();
            connection.input(Datagram::new(remote, payload), Instant::now());
        }
    }
}
