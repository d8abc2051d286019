//! quiche with the settings of its own programs, on one thread that waits for its socket; sends whole batches where the
//! kernel segments them.
//!
//! Large datagrams: its programs' option for the most that they send and take, as large as lets a batch carry four. (With
//! larger ones it gives the connection up.)

mod socket;
mod connections;
mod raw;
mod http3;

use std::net::{Ipv4Addr, SocketAddr};

use quiche::{Config, Connection, ConnectionId};

use self::{connections::Connections, socket::Socket};
use super::Datagrams;
use crate::{
    Outcome,
    measure::{Meter, announce, end_when_told, say},
    work::{Job, Kind, Work},
};

/// Bytes handed over at a time.
const PIECE: usize = 1 << 17;

impl Datagrams {
    const fn size(self) -> usize {
        match self {
            Self::Usual => 1452,
            Self::Large => 16_000,
        }
    }
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// A stream begins with what is asked for.
    Raw,
    Http3,
}

impl Language {
    const fn alpn(self) -> &'static [u8] {
        match self {
            Self::Raw => b"compare",
            Self::Http3 => b"h3",
        }
    }

    fn server(self) -> Box<dyn Talk> {
        match self {
            Self::Raw => Box::<raw::Server>::default(),
            Self::Http3 => Box::<http3::Server>::default(),
        }
    }

    fn client(self, work: Work) -> Box<dyn Talk> {
        match self {
            Self::Raw => Box::new(raw::Client::new(work)),
            Self::Http3 => Box::new(http3::Client::new(work)),
        }
    }
}

/// One end's application on a connection.
trait Talk {
    /// Reads what there is, and writes what there is room for. `piece` is there to be used.
    fn turn(&mut self, connection: &mut Connection, piece: &mut [u8]) -> Outcome<()>;

    /// Whether everything has been answered; bytes are missing if that isn't so at the end.
    fn is_done(&self) -> bool {
        false
    }
}

fn config(job: &Job, language: Language, datagrams: Datagrams) -> Outcome<Config> {
    let streams = job.work.parallel.max(100);
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[language.alpn()])?;
    config.set_curves_list("X25519")?;
    config.set_max_idle_timeout(30_000);
    config.set_max_recv_udp_payload_size(datagrams.size());
    config.set_max_send_udp_payload_size(datagrams.size());
    config.set_initial_max_data(10 << 20);
    config.set_initial_max_stream_data_bidi_local(1 << 20);
    config.set_initial_max_stream_data_bidi_remote(1 << 20);
    config.set_initial_max_stream_data_uni(1 << 20);
    config.set_initial_max_streams_bidi(streams);
    config.set_initial_max_streams_uni(100);
    Ok(config)
}

pub(crate) fn serve(job: &Job, language: Language, datagrams: Datagrams) -> Outcome<()> {
    let text = |name: &str| job.file(name).to_string_lossy().into_owned();
    let mut config = config(job, language, datagrams)?;
    config.load_cert_chain_from_pem_file(&text("cert.pem"))?;
    config.load_priv_key_from_pem_file(&text("key.pem"))?;
    let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), datagrams.size())?;
    end_when_told(announce(socket.address())?);
    let mut connections = Connections::new(config, socket.address());
    let mut piece = vec![7; PIECE];
    loop {
        socket.receive(connections.timeout(), |datagram, info| {
            connections.input(datagram, info, || language.server())
        })?;
        connections.turn(&mut socket, &mut piece)?;
    }
}

pub(crate) fn run(
    job: &Job,
    address: SocketAddr,
    language: Language,
    datagrams: Datagrams,
) -> Outcome<()> {
    let work = job.work;
    let mut config = config(job, language, datagrams)?;
    // It doesn't take a server's own certificate for a root.
    config.verify_peer(false);
    let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), datagrams.size())?;
    let mut meter = Meter::start()?;
    let (mut session, mut piece) = (None::<Vec<u8>>, vec![7; PIECE]);
    for number in 0..work.connections() {
        let scid = number.to_be_bytes();
        let scid = ConnectionId::from_ref(&scid);
        let (name, local) = (Some("localhost"), socket.address());
        let mut connection = quiche::connect(name, &scid, local, address, &mut config)?;
        if let Some(session) = &session {
            connection.set_session(session)?;
        }
        while !connection.is_established() {
            wait(&mut socket, &mut connection)?;
        }
        if work.connections() == 1 {
            meter = Meter::start()?;
        }
        let mut talk = language.client(work);
        loop {
            talk.turn(&mut connection, &mut piece)?;
            if talk.is_done() {
                break;
            }
            wait(&mut socket, &mut connection)?;
        }
        if work.kind == Kind::Resumed {
            session = connection.session().map(<[u8]>::to_vec);
        }
        connection.close(true, 0, b"")?;
        socket.flush(&mut connection)?;
    }
    Ok(say(meter.figures()?)?)
}

/// Sends what there is and waits for what comes.
fn wait(socket: &mut Socket, connection: &mut Connection) -> Outcome<()> {
    socket.flush(connection)?;
    if connection.is_closed() {
        return Err("the connection was closed".into());
    }
    socket.receive(connection.timeout(), |datagram, info| {
        // A packet that can't be used is no failure.
        let _ = connection.recv(datagram, info);
        Ok(())
    })?;
    if connection.timeout().is_some_and(|wait| wait.is_zero()) {
        connection.on_timeout();
    }
    Ok(())
}
