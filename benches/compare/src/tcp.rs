//! Kernel TCP and TLS 1.3 by rustls, blocking: what QUIC replaces. A connection carries one request.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustls::{ClientConnection, ServerConnection, StreamOwned, pki_types::ServerName};

use crate::{
    Outcome,
    measure::{Figures, announce, wait_until_told},
    tls,
    work::{Ask, Kind, Work},
};

/// Bytes handed over at a time.
const PIECE: usize = 1 << 17;

pub(crate) fn serve(directory: &Path) -> Outcome<()> {
    let config = Arc::new(tls::server(directory)?);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    announce(listener.local_addr()?)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            // A client that goes away is no failure.
            thread::spawn(move || answer(stream, config).ok());
        }
    });
    wait_until_told()?;
    Figures::of_self(Duration::ZERO)?.print();
    Ok(())
}

fn answer(stream: TcpStream, config: Arc<rustls::ServerConfig>) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, stream);
    let mut ask = [0; Ask::SIZE];
    stream.read_exact(&mut ask)?;
    let ask = Ask::decode(ask);
    count(&mut stream, ask.up)?;
    write(&mut stream, ask.down)?;
    stream.conn.send_close_notify();
    Ok(stream.flush()?)
}

fn write(to: &mut impl Write, length: u64) -> Outcome<()> {
    let piece = vec![7; PIECE.min(length as usize)];
    let mut left = length;
    while left > 0 {
        let length = left.min(PIECE as u64);
        to.write_all(&piece[..length as usize])?;
        left -= length;
    }
    Ok(to.flush()?)
}

fn count(from: &mut impl Read, length: u64) -> Outcome<()> {
    let mut piece = vec![0; PIECE];
    let mut left = length;
    while left > 0 {
        let wanted = left.min(PIECE as u64) as usize;
        match from.read(&mut piece[..wanted])? {
            0 => return Err("the stream ended early".into()),
            read => left -= read as u64,
        }
    }
    Ok(())
}

pub(crate) fn run(directory: &Path, address: SocketAddr, work: Work) -> Outcome<()> {
    let config = Arc::new(tls::client(directory)?);
    let count = match work.kind {
        Kind::Download | Kind::Upload => 1,
        Kind::Connections => work.amount,
        Kind::Requests => return Err("a connection carries one request".into()),
    };
    let start = Instant::now();
    for _ in 0..count {
        ask(Arc::clone(&config), address, Ask::of(work))?;
    }
    Figures::of_self(start.elapsed())?.print();
    Ok(())
}

fn ask(config: Arc<rustls::ClientConfig>, address: SocketAddr, ask: Ask) -> Outcome<()> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost")?;
    let mut stream = StreamOwned::new(ClientConnection::new(config, name)?, stream);
    stream.write_all(&ask.encode())?;
    write(&mut stream, ask.up)?;
    count(&mut stream, ask.down)
}
