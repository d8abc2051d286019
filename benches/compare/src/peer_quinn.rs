//! quinn with its defaults, on a runtime of one thread.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Connection, Endpoint, RecvStream, SendStream, TransportConfig, VarInt};
use tokio::task::JoinSet;

use crate::{
    Outcome,
    measure::{Figures, announce, until_told},
    tls,
    work::{Ask, Kind, Work},
};

/// Bytes handed over at a time, without a copy.
const PIECE: usize = 1 << 20;

/// Streams that a client may have open.
const STREAMS: u32 = 1000;

pub(crate) fn serve(directory: &Path) -> Outcome<()> {
    runtime()?.block_on(async {
        let crypto = QuicServerConfig::try_from(tls::server(directory)?)?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        transport.max_concurrent_bidi_streams(VarInt::from_u32(STREAMS));
        config.transport = Arc::new(transport);
        let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
        announce(endpoint.local_addr()?)?;
        let accept = async {
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(serve_connection(incoming));
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

async fn serve_connection(incoming: quinn::Incoming) -> Outcome<()> {
    let connection = incoming.await?;
    loop {
        // Closed by the client.
        let Ok((send, receive)) = connection.accept_bi().await else {
            return Ok(());
        };
        tokio::spawn(answer(send, receive));
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Outcome<()> {
    let mut ask = [0; Ask::SIZE];
    receive.read_exact(&mut ask).await?;
    let ask = Ask::decode(ask);
    if count(&mut receive).await? != ask.up {
        return Err("the upload is not whole".into());
    }
    write(&mut send, ask.down).await
}

async fn write(send: &mut SendStream, length: u64) -> Outcome<()> {
    let piece = Bytes::from(vec![7; PIECE.min(length as usize)]);
    let mut left = length;
    while left > 0 {
        let length = left.min(PIECE as u64);
        send.write_chunk(piece.slice(..length as usize)).await?;
        left -= length;
    }
    send.finish()?;
    Ok(())
}

async fn count(receive: &mut RecvStream) -> Outcome<u64> {
    let mut received = 0;
    let mut pieces: [Bytes; 32] = std::array::from_fn(|_| Bytes::new());
    while let Some(count) = receive.read_chunks(&mut pieces).await? {
        let lengths = pieces.iter().take(count).map(|piece| piece.len() as u64);
        received += lengths.sum::<u64>();
    }
    Ok(received)
}

pub(crate) fn run(directory: &Path, address: SocketAddr, work: Work) -> Outcome<()> {
    runtime()?.block_on(async {
        let crypto = QuicClientConfig::try_from(tls::client(directory)?)?;
        let config = quinn::ClientConfig::new(Arc::new(crypto));
        let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
        let connect = || async {
            let connecting = endpoint.connect_with(config.clone(), address, "localhost")?;
            Outcome::Ok(connecting.await?)
        };
        let mut connection = connect().await?;
        let start = Instant::now();
        match work.kind {
            Kind::Download | Kind::Upload => ask(connection.clone(), Ask::of(work)).await?,
            Kind::Requests => {
                let mut streams = JoinSet::new();
                for _ in 0..work.amount {
                    streams.spawn(ask(connection.clone(), Ask::BYTE));
                }
                while let Some(done) = streams.join_next().await {
                    done??;
                }
            }
            Kind::Connections => {
                for _ in 0..work.amount {
                    connection.close(VarInt::from_u32(0), b"");
                    connection = connect().await?;
                    ask(connection.clone(), Ask::BYTE).await?;
                }
            }
        }
        Figures::of_self(start.elapsed())?.print();
        connection.close(VarInt::from_u32(0), b"");
        endpoint.wait_idle().await;
        Ok(())
    })
}

/// One stream, from its first byte to the last of the answer.
async fn ask(connection: Connection, ask: Ask) -> Outcome<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&ask.encode()).await?;
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
