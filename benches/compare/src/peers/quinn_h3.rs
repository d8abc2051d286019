//! The crate h3 over quinn.

use std::{future::poll_fn, net::SocketAddr};

use bytes::{Buf as _, Bytes};
use h3::{client::SendRequest, server::RequestResolver};
use h3_quinn::{BidiStream, OpenStreams};
use http::{Method, Request, Response};
use quinn::{Connection, Incoming};

use super::{
    Datagrams,
    quinn::{Dialer, server},
};
use crate::{
    Outcome,
    asynchronous::{self, Client, Sender, runtime},
    measure::say,
    number::count,
    work::{Ask, Job},
};

const ALPN: &str = "h3";

pub(crate) fn serve(job: &Job) -> Outcome<()> {
    runtime()?.block_on(async {
        let endpoint = server(job, ALPN, Datagrams::Usual)?;
        let accept = async {
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(serve_connection(incoming));
            }
        };
        asynchronous::serve(endpoint.local_addr()?, accept).await
    })
}

async fn serve_connection(incoming: Incoming) -> Outcome<()> {
    let connection = h3_quinn::Connection::new(incoming.await?);
    let mut connection = h3::server::builder().build(connection).await?;
    while let Some(request) = connection.accept().await? {
        tokio::spawn(answer(request));
    }
    Ok(())
}

/// What the path says is how many bytes are wanted; what comes is to be as much as was said.
async fn answer(request: RequestResolver<h3_quinn::Connection, Bytes>) -> Outcome<()> {
    let (request, mut stream) = request.resolve_request().await?;
    let down: u64 = request.uri().path().trim_start_matches('/').parse()?;
    let said = request.headers().get("content-length");
    let up: u64 = said.map_or(Ok("0"), |said| said.to_str())?.parse()?;
    let mut received = 0;
    while let Some(piece) = stream.recv_data().await? {
        received += count(piece.remaining());
    }
    if received != up {
        return Err("the upload is not whole".into());
    }
    let response = Response::builder().header("content-length", down);
    stream.send_response(response.body(())?).await?;
    asynchronous::write(&mut stream, down).await?;
    Sender::finish(&mut stream).await
}

pub(crate) fn run(job: &Job, address: SocketAddr) -> Outcome<()> {
    runtime()?.block_on(async {
        let client = Http3(Dialer::new(job, address, ALPN, Datagrams::Usual)?);
        say(asynchronous::work(&client, job.work).await?)?;
        client.0.wait().await;
        Ok(())
    })
}

struct Http3(Dialer);

type Requests = SendRequest<OpenStreams, Bytes>;

impl Client for Http3 {
    type Connection = (Connection, Requests);
    type Handle = Requests;

    async fn connect(&self) -> Outcome<(Connection, Requests)> {
        let connection = self.0.dial().await?;
        let (mut driver, requests) =
            h3::client::new(h3_quinn::Connection::new(connection.clone())).await?;
        tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
        Ok((connection, requests))
    }

    fn handle((_, requests): &(Connection, Requests)) -> Requests {
        requests.clone()
    }

    async fn ask(mut requests: Requests, Ask { down, up }: Ask) -> Outcome<()> {
        let mut request = Request::builder().uri(format!("https://localhost/{down}"));
        if up > 0 {
            request = request.method(Method::POST).header("content-length", up);
        }
        let mut stream = requests.send_request(request.body(())?).await?;
        asynchronous::write(&mut stream, up).await?;
        Sender::finish(&mut stream).await?;
        if !stream.recv_response().await?.status().is_success() {
            return Err("the request was refused".into());
        }
        let mut received = 0;
        while let Some(piece) = stream.recv_data().await? {
            received += count(piece.remaining());
        }
        if received != down {
            return Err("the answer is not whole".into());
        }
        Ok(())
    }

    fn close((connection, _): (Connection, Requests)) {
        connection.close(0x100_u32.into(), b"");
    }
}

impl Sender for h3::client::RequestStream<BidiStream<Bytes>, Bytes> {
    async fn send(&mut self, piece: Bytes) -> Outcome<()> {
        Ok(self.send_data(piece).await?)
    }

    async fn finish(&mut self) -> Outcome<()> {
        Ok(Self::finish(self).await?)
    }
}

impl Sender for h3::server::RequestStream<BidiStream<Bytes>, Bytes> {
    async fn send(&mut self, piece: Bytes) -> Outcome<()> {
        Ok(self.send_data(piece).await?)
    }

    async fn finish(&mut self) -> Outcome<()> {
        Ok(Self::finish(self).await?)
    }
}
