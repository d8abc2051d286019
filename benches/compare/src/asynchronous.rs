//! What the asynchronous stacks have in common: the order of the work, the bytes of a stream, and a runtime of one thread.

use std::{future::Future, net::SocketAddr};

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::{
    Outcome,
    measure::{Figures, Meter, announce, say, until_told},
    number::{at_most, count as length},
    work::{Ask, Work},
};

/// Bytes handed over at a time, without a copy.
const PIECE: usize = 1 << 20;

/// Something that makes connections, and requests on them.
pub(crate) trait Client {
    /// A connection, open for as long as this lives.
    type Connection;
    /// What can make requests on it.
    type Handle: Clone;

    /// Completes a handshake.
    fn connect(&self) -> impl Future<Output = Outcome<Self::Connection>>;

    fn handle(connection: &Self::Connection) -> Self::Handle;

    /// One request, from its first byte to the last of the answer, which is checked to be whole.
    fn ask(handle: Self::Handle, ask: Ask) -> impl Future<Output = Outcome<()>> + Send + 'static;

    /// Says goodbye.
    fn close(connection: Self::Connection);
}

/// Does the work once.
#[expect(clippy::future_not_send, reason = "the runtime has one thread")]
pub(crate) async fn work<C: Client>(client: &C, work: Work) -> Outcome<Figures> {
    let mut meter = Meter::start()?;
    for _ in 0..work.connections() {
        let connection = client.connect().await?;
        if work.connections() == 1 {
            meter = Meter::start()?;
        }
        requests::<C>(&connection, work).await?;
        C::close(connection);
    }
    meter.figures()
}

#[expect(clippy::future_not_send, reason = "the runtime has one thread")]
async fn requests<C: Client>(connection: &C::Connection, work: Work) -> Outcome<()> {
    let ask = || C::ask(C::handle(connection), work.ask());
    if work.parallel == 1 || work.requests() == 1 {
        for _ in 0..work.requests() {
            ask().await?;
        }
        return Ok(());
    }
    let mut waiting = work.requests();
    let mut running = JoinSet::new();
    while waiting > 0 || !running.is_empty() {
        while waiting > 0 && length(running.len()) < work.parallel {
            running.spawn(ask());
            waiting -= 1;
        }
        if let Some(done) = running.join_next().await {
            done??;
        }
    }
    Ok(())
}

/// Serves with `accept` until the parent has enough, and says what that took.
pub(crate) async fn serve(address: SocketAddr, accept: impl Future<Output = ()>) -> Outcome<()> {
    let meter = announce(address)?;
    tokio::select! {
        () = accept => {}
        told = until_told() => told?,
    }
    say(meter.figures()?)?;
    // The thread that reads stdin would be waited for.
    std::process::exit(0)
}

/// Half of a stream.
pub(crate) trait Sender: Send {
    fn send(&mut self, piece: Bytes) -> impl Future<Output = Outcome<()>> + Send;

    fn finish(&mut self) -> impl Future<Output = Outcome<()>> + Send;
}

/// The other half.
pub(crate) trait Receiver: Send {
    /// How many pieces have come, or that none will.
    fn receive(
        &mut self,
        pieces: &mut [Bytes],
    ) -> impl Future<Output = Outcome<Option<usize>>> + Send;
}

/// A stream without HTTP at the server.
pub(crate) async fn answer(mut send: impl Sender, mut receive: impl Receiver) -> Outcome<()> {
    let mut first = Vec::new();
    while first.len() < Ask::SIZE {
        let mut pieces = [Bytes::new()];
        if receive.receive(&mut pieces).await?.is_none() {
            return Err("the request is not whole".into());
        }
        let [piece] = pieces;
        first.extend_from_slice(&piece);
    }
    let (ask, rest) = first.split_first_chunk().ok_or("too short")?;
    let ask = Ask::decode(*ask);
    if length(rest.len()) + count(&mut receive).await? != ask.up {
        return Err("the upload is not whole".into());
    }
    write(&mut send, ask.down).await?;
    send.finish().await
}

/// And at the client.
pub(crate) async fn request(
    mut send: impl Sender,
    mut receive: impl Receiver,
    ask: Ask,
) -> Outcome<()> {
    send.send(Bytes::copy_from_slice(&ask.encode())).await?;
    write(&mut send, ask.up).await?;
    send.finish().await?;
    if count(&mut receive).await? != ask.down {
        return Err("the answer is not whole".into());
    }
    Ok(())
}

/// Sends so many bytes.
pub(crate) async fn write(send: &mut impl Sender, bytes: u64) -> Outcome<()> {
    let piece = Bytes::from(vec![7; at_most(PIECE, bytes)]);
    let mut left = bytes;
    while left > 0 {
        let size = at_most(PIECE, left);
        send.send(piece.slice(..size)).await?;
        left -= length(size);
    }
    Ok(())
}

/// Counts bytes up to the end.
async fn count(receive: &mut impl Receiver) -> Outcome<u64> {
    let mut received = 0;
    let mut pieces: [Bytes; 32] = std::array::from_fn(|_| Bytes::new());
    while let Some(count) = receive.receive(&mut pieces).await? {
        let lengths = pieces.iter().take(count).map(|piece| length(piece.len()));
        received += lengths.sum::<u64>();
    }
    Ok(received)
}

/// A runtime of one thread.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
