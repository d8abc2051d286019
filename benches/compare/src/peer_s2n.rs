//! s2n-quic with its defaults, s2n-tls among them, on a runtime of one thread.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use s2n_quic::{
    Client, Connection, Server,
    client::Connect,
    connection::Handle,
    provider::{limits::Limits, tls::s2n_tls},
    stream::{BidirectionalStream, ReceiveStream, SendStream},
};
use tokio::task::JoinSet;

use crate::{
    Outcome,
    measure::{Figures, announce, until_told},
    work::{Ask, Kind, Work},
};

/// Bytes handed over at a time, without a copy.
const PIECE: usize = 1 << 20;

/// Streams that a client may have open.
const STREAMS: u64 = 1000;

fn limits() -> Outcome<Limits> {
    Ok(Limits::default()
        .with_max_open_remote_bidirectional_streams(STREAMS)?
        .with_max_open_local_bidirectional_streams(STREAMS)?)
}

pub(crate) fn serve(directory: &Path) -> Outcome<()> {
    runtime()?.block_on(async {
        let tls = s2n_tls::Server::builder()
            .with_certificate(&*directory.join("cert.pem"), &*directory.join("key.pem"))?
            .with_application_protocols(["compare"])?
            .build()?;
        let mut server = Server::builder()
            .with_tls(tls)?
            .with_limits(limits()?)?
            .with_io(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?
            .start()?;
        announce(server.local_addr()?)?;
        let accept = async {
            while let Some(connection) = server.accept().await {
                tokio::spawn(serve_connection(connection));
            }
        };
        tokio::select! {
            () = accept => {}
            told = until_told() => told?,
        }
        Figures::of_self(Duration::ZERO)?.print();
        // The thread that reads stdin would be waited for.
        std::process::exit(0)
    })
}

async fn serve_connection(mut connection: Connection) -> Outcome<()> {
    while let Some(stream) = connection.accept_bidirectional_stream().await? {
        tokio::spawn(answer(stream));
    }
    Ok(())
}

async fn answer(stream: BidirectionalStream) -> Outcome<()> {
    let (mut receive, mut send) = stream.split();
    let mut first = Vec::new();
    while first.len() < Ask::SIZE {
        let piece = receive.receive().await?.ok_or("the request is not whole")?;
        first.extend_from_slice(&piece);
    }
    let (ask, rest) = first.split_first_chunk().ok_or("too short")?;
    let ask = Ask::decode(*ask);
    if rest.len() as u64 + count(&mut receive).await? != ask.up {
        return Err("the upload is not whole".into());
    }
    write(&mut send, ask.down).await
}

async fn write(send: &mut SendStream, length: u64) -> Outcome<()> {
    let piece = Bytes::from(vec![7; PIECE.min(length as usize)]);
    let mut left = length;
    while left > 0 {
        let length = left.min(PIECE as u64);
        send.send(piece.slice(..length as usize)).await?;
        left -= length;
    }
    send.finish()?;
    Ok(())
}

async fn count(receive: &mut ReceiveStream) -> Outcome<u64> {
    let mut received = 0;
    loop {
        let mut pieces: [Bytes; 32] = std::array::from_fn(|_| Bytes::new());
        let (count, is_open) = receive.receive_vectored(&mut pieces).await?;
        let lengths = pieces.iter().take(count).map(|piece| piece.len() as u64);
        received += lengths.sum::<u64>();
        if !is_open {
            return Ok(received);
        }
    }
}

pub(crate) fn run(directory: &Path, address: SocketAddr, work: Work) -> Outcome<()> {
    runtime()?.block_on(async {
        let tls = s2n_tls::Client::builder()
            .with_certificate(&*directory.join("cert.pem"))?
            .with_application_protocols(["compare"])?
            .build()?;
        let client = Client::builder()
            .with_tls(tls)?
            .with_limits(limits()?)?
            .with_io(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?
            .start()?;
        let connect = || client.connect(Connect::new(address).with_server_name("localhost"));
        let mut connection = connect().await?;
        let start = Instant::now();
        match work.kind {
            Kind::Download | Kind::Upload => ask(connection.handle(), Ask::of(work)).await?,
            Kind::Requests => {
                let mut streams = JoinSet::new();
                for _ in 0..work.amount {
                    streams.spawn(ask(connection.handle(), Ask::BYTE));
                }
                while let Some(done) = streams.join_next().await {
                    done??;
                }
            }
            Kind::Connections => {
                for _ in 0..work.amount {
                    connection.close(0_u32.into());
                    connection = connect().await?;
                    ask(connection.handle(), Ask::BYTE).await?;
                }
            }
        }
        Figures::of_self(start.elapsed())?.print();
        Ok(())
    })
}

/// One stream, from its first byte to the last of the answer.
async fn ask(mut connection: Handle, ask: Ask) -> Outcome<()> {
    let stream = connection.open_bidirectional_stream().await?;
    let (mut receive, mut send) = stream.split();
    send.send(Bytes::copy_from_slice(&ask.encode())).await?;
    write(&mut send, ask.up).await?;
    if count(&mut receive).await? != ask.down {
        return Err("the answer is not whole".into());
    }
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
