//! s2n-quic with its defaults, s2n-tls among them, on a runtime of one thread.
//!
//! Large datagrams: two of them make one system call; with more than 32 768 bytes it comes to a stop unless its own buffers
//! are enlarged as well, which made it no faster.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use s2n_quic::{
    Connection, Server,
    client::Connect,
    connection::Handle,
    provider::{
        io::tokio::Provider as Io,
        limits::Limits,
        tls::s2n_tls::{self, security::Policy},
    },
    stream::{ReceiveStream, SendStream},
};

use super::{Datagrams, SOCKET_BUFFER};
use crate::{
    Outcome,
    asynchronous::{self, Client, Receiver, Sender, runtime},
    measure::say,
    work::{Ask, Job},
};

const ALPN: [&str; 1] = ["compare"];

/// A set of its TLS settings that is like its own, but for X25519 first and TLS 1.3 alone.
const POLICY: &str = "CloudFront-TLS-1-3-2025-no-pq";

/// Bytes of a large datagram with its headers.
const LARGE: u16 = 32_000;

fn limits(job: &Job) -> Outcome<Limits> {
    let streams = job.work.parallel.max(100);
    Ok(Limits::default()
        .with_max_open_remote_bidirectional_streams(streams)?
        .with_max_open_local_bidirectional_streams(streams)?)
}

fn io(datagrams: Datagrams) -> Outcome<Io> {
    let builder = Io::builder()
        .with_receive_address((Ipv4Addr::LOCALHOST, 0).into())?
        .with_recv_buffer_size(SOCKET_BUFFER)?
        .with_send_buffer_size(SOCKET_BUFFER)?;
    let builder = match datagrams {
        Datagrams::Usual => builder,
        Datagrams::Large => builder.with_max_mtu(LARGE)?,
    };
    Ok(builder.build()?)
}

pub(crate) fn serve(job: &Job, datagrams: Datagrams) -> Outcome<()> {
    runtime()?.block_on(async {
        let mut tls = s2n_tls::Server::builder()
            .with_certificate(&*job.file("cert.pem"), &*job.file("key.pem"))?
            .with_application_protocols(ALPN)?;
        tls.config_mut()
            .set_security_policy(&Policy::from_version(POLICY)?)?;
        let mut server = Server::builder()
            .with_tls(tls.build()?)?
            .with_limits(limits(job)?)?
            .with_io(io(datagrams)?)?
            .start()?;
        let address = server.local_addr()?;
        let accept = async {
            while let Some(connection) = server.accept().await {
                tokio::spawn(serve_connection(connection));
            }
        };
        asynchronous::serve(address, accept).await
    })
}

async fn serve_connection(mut connection: Connection) -> Outcome<()> {
    while let Some(stream) = connection.accept_bidirectional_stream().await? {
        let (receive, send) = stream.split();
        tokio::spawn(asynchronous::answer(send, Ending::new(receive)));
    }
    Ok(())
}

pub(crate) fn run(job: &Job, address: SocketAddr, datagrams: Datagrams) -> Outcome<()> {
    runtime()?.block_on(async {
        let mut tls = s2n_tls::Client::builder()
            .with_certificate(&*job.file("cert.pem"))?
            .with_application_protocols(ALPN)?;
        tls.config_mut()
            .set_security_policy(&Policy::from_version(POLICY)?)?;
        let client = s2n_quic::Client::builder()
            .with_tls(tls.build()?)?
            .with_limits(limits(job)?)?
            .with_io(io(datagrams)?)?
            .start()?;
        let dialer = Dialer { client, address };
        Ok(say(asynchronous::work(&dialer, job.work).await?)?)
    })
}

struct Dialer {
    client: s2n_quic::Client,
    address: SocketAddr,
}

impl Client for Dialer {
    type Connection = Connection;
    type Handle = Handle;

    async fn connect(&self) -> Outcome<Connection> {
        let connect = Connect::new(self.address).with_server_name("localhost");
        Ok(self.client.connect(connect).await?)
    }

    fn handle(connection: &Connection) -> Handle {
        connection.handle()
    }

    async fn ask(mut connection: Handle, ask: Ask) -> Outcome<()> {
        let stream = connection.open_bidirectional_stream().await?;
        let (receive, send) = stream.split();
        asynchronous::request(send, Ending::new(receive), ask).await
    }

    fn close(connection: Connection) {
        connection.close(0_u32.into());
    }
}

impl Sender for SendStream {
    async fn send(&mut self, piece: Bytes) -> Outcome<()> {
        Ok(Self::send(self, piece).await?)
    }

    async fn finish(&mut self) -> Outcome<()> {
        Ok(Self::finish(self)?)
    }
}

/// A stream that says with its last pieces that they are.
struct Ending {
    stream: ReceiveStream,
    is_open: bool,
}

impl Ending {
    const fn new(stream: ReceiveStream) -> Self {
        Self {
            stream,
            is_open: true,
        }
    }
}

impl Receiver for Ending {
    async fn receive(&mut self, pieces: &mut [Bytes]) -> Outcome<Option<usize>> {
        if !self.is_open {
            return Ok(None);
        }
        // It refuses to write over anything.
        pieces.fill(Bytes::new());
        let (count, is_open) = self.stream.receive_vectored(pieces).await?;
        self.is_open = is_open;
        Ok(Some(count))
    }
}
