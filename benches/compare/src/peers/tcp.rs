//! Kernel TCP and TLS 1.3 by rustls, blocking: what QUIC replaces. Requests come one after the other.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use rustls::{ClientConnection, ServerConnection, StreamOwned, pki_types::ServerName};

use crate::{
    Outcome,
    measure::{Meter, announce, say, wait_until_told},
    number::{at_most, count as length_of},
    tls,
    work::{Ask, Job},
};

const ALPN: &str = "compare";

/// Bytes handed over at a time.
const PIECE: usize = 1 << 17;

pub(crate) fn serve(job: &Job) -> Outcome<()> {
    let config = Arc::new(tls::server(job, ALPN)?);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let meter = announce(listener.local_addr()?)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            // A client that goes away is no failure.
            thread::spawn(move || answer(stream, config).ok());
        }
    });
    wait_until_told()?;
    Ok(say(meter.figures()?)?)
}

fn answer(stream: TcpStream, config: Arc<rustls::ServerConfig>) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, stream);
    // Until the client goes away.
    loop {
        let mut ask = [0; Ask::SIZE];
        stream.read_exact(&mut ask)?;
        let ask = Ask::decode(ask);
        count(&mut stream, ask.up)?;
        write(&mut stream, ask.down)?;
    }
}

fn write(to: &mut impl Write, bytes: u64) -> Outcome<()> {
    let piece = vec![7; at_most(PIECE, bytes)];
    let mut left = bytes;
    while left > 0 {
        let written = to.write(piece.get(..at_most(PIECE, left)).unwrap_or(&piece))?;
        left -= length_of(written);
    }
    Ok(to.flush()?)
}

fn count(from: &mut impl Read, bytes: u64) -> Outcome<()> {
    let mut piece = vec![0; at_most(PIECE, bytes)];
    let mut left = bytes;
    while left > 0 {
        let wanted = at_most(PIECE, left);
        let room = piece.get_mut(..wanted).unwrap_or_default();
        match from.read(room)? {
            0 => return Err("the stream ended early".into()),
            read => left -= length_of(read),
        }
    }
    Ok(())
}

pub(crate) fn run(job: &Job, address: SocketAddr) -> Outcome<()> {
    let config = Arc::new(tls::client(job, ALPN)?);
    let meter = Meter::start()?;
    for _ in 0..job.work.connections() {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let mut stream =
            StreamOwned::new(ClientConnection::new(Arc::clone(&config), name)?, stream);
        for _ in 0..job.work.requests() {
            ask(&mut stream, job.work.ask())?;
        }
    }
    Ok(say(meter.figures()?)?)
}

fn ask(stream: &mut (impl Read + Write), ask: Ask) -> Outcome<()> {
    stream.write_all(&ask.encode())?;
    write(stream, ask.up)?;
    count(stream, ask.down)
}
