//! quinn with its defaults, on a runtime of one thread.
//!
//! Large datagrams: what its documentation says for paths that carry more. Ten of them are the most that it hands over at
//! a time and 65 507 bytes the most that the system takes, so they are a tenth of that: larger ones are refused.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Incoming, MtuDiscoveryConfig, RecvStream,
    SendStream, ServerConfig, TokioRuntime, TransportConfig, VarInt,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use socket2::SockRef;

use super::{Datagrams, SOCKET_BUFFER};
use crate::{
    Outcome,
    asynchronous::{self, Client, Receiver, Sender, runtime},
    measure::say,
    tls,
    work::{Ask, Job},
};

const ALPN: &str = "compare";

/// Bytes of a large datagram.
const LARGE: u16 = 6550;

fn transport(job: &Job, datagrams: Datagrams) -> Outcome<Arc<TransportConfig>> {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(VarInt::from_u64(job.work.parallel.max(100))?);
    if datagrams == Datagrams::Large {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(LARGE);
        transport.mtu_discovery_config(Some(discovery));
    }
    Ok(Arc::new(transport))
}

fn endpoint(datagrams: Datagrams, server: Option<ServerConfig>) -> Outcome<Endpoint> {
    let mut config = EndpointConfig::default();
    if datagrams == Datagrams::Large {
        config.max_udp_payload_size(LARGE)?;
    }
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let options = SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_BUFFER)?;
    options.set_send_buffer_size(SOCKET_BUFFER)?;
    Ok(Endpoint::new(
        config,
        server,
        socket,
        Arc::new(TokioRuntime),
    )?)
}

/// A server's endpoint.
pub(crate) fn server(job: &Job, alpn: &str, datagrams: Datagrams) -> Outcome<Endpoint> {
    let crypto = QuicServerConfig::try_from(tls::server(job, alpn)?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport = transport(job, datagrams)?;
    endpoint(datagrams, Some(config))
}

/// A client's, and where it connects to.
pub(crate) struct Dialer {
    endpoint: Endpoint,
    address: SocketAddr,
}

impl Dialer {
    pub(crate) fn new(
        job: &Job,
        address: SocketAddr,
        alpn: &str,
        datagrams: Datagrams,
    ) -> Outcome<Self> {
        let crypto = QuicClientConfig::try_from(tls::client(job, alpn)?)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport(job, datagrams)?);
        let mut endpoint = endpoint(datagrams, None)?;
        endpoint.set_default_client_config(config);
        Ok(Self { endpoint, address })
    }

    pub(crate) async fn dial(&self) -> Outcome<Connection> {
        Ok(self.endpoint.connect(self.address, "localhost")?.await?)
    }

    /// Until everything has been said.
    pub(crate) async fn wait(&self) {
        self.endpoint.wait_idle().await;
    }
}

pub(crate) fn serve(job: &Job, datagrams: Datagrams) -> Outcome<()> {
    runtime()?.block_on(async {
        let endpoint = server(job, ALPN, datagrams)?;
        let accept = async {
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(serve_connection(incoming));
            }
        };
        asynchronous::serve(endpoint.local_addr()?, accept).await
    })
}

async fn serve_connection(incoming: Incoming) -> Outcome<()> {
    let connection = incoming.await?;
    // Until it is closed by the client.
    while let Ok((send, receive)) = connection.accept_bi().await {
        tokio::spawn(asynchronous::answer(send, receive));
    }
    Ok(())
}

pub(crate) fn run(job: &Job, address: SocketAddr, datagrams: Datagrams) -> Outcome<()> {
    runtime()?.block_on(async {
        let dialer = Dialer::new(job, address, ALPN, datagrams)?;
        say(asynchronous::work(&dialer, job.work).await?)?;
        dialer.wait().await;
        Ok(())
    })
}

impl Client for Dialer {
    type Connection = Connection;
    type Handle = Connection;

    async fn connect(&self) -> Outcome<Connection> {
        self.dial().await
    }

    fn handle(connection: &Connection) -> Connection {
        connection.clone()
    }

    async fn ask(connection: Connection, ask: Ask) -> Outcome<()> {
        let (send, receive) = connection.open_bi().await?;
        asynchronous::request(send, receive, ask).await
    }

    fn close(connection: Connection) {
        connection.close(VarInt::from_u32(0), b"");
    }
}

impl Sender for SendStream {
    async fn send(&mut self, piece: Bytes) -> Outcome<()> {
        Ok(self.write_chunk(piece).await?)
    }

    async fn finish(&mut self) -> Outcome<()> {
        Ok(Self::finish(self)?)
    }
}

impl Receiver for RecvStream {
    async fn receive(&mut self, pieces: &mut [Bytes]) -> Outcome<Option<usize>> {
        Ok(self.read_chunks(pieces).await?)
    }
}
