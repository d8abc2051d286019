//! quiche with the settings of its own programs, on one thread that waits for its socket; sends whole batches where the
//! kernel segments them. A stream is asked for bytes, without HTTP.

use std::{
    collections::HashMap,
    io::{self, IoSliceMut},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::Path,
    time::{Duration, Instant},
};

use quiche::{Config, Connection, ConnectionId, RecvInfo};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::{
    Outcome,
    measure::{Figures, announce, wait_until_told},
    work::{Ask, Kind, Work},
};

/// Bytes handed over at a time.
const PIECE: usize = 1 << 17;

/// Bytes of a datagram.
const DATAGRAM: usize = 1452;

/// Streams that a client may have open.
const STREAMS: u64 = 1000;

fn config() -> Outcome<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[b"compare"])?;
    config.set_max_idle_timeout(30_000);
    config.set_max_recv_udp_payload_size(DATAGRAM);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(10 << 20);
    config.set_initial_max_stream_data_bidi_local(1 << 20);
    config.set_initial_max_stream_data_bidi_remote(1 << 20);
    config.set_initial_max_streams_bidi(STREAMS);
    Ok(config)
}

/// A socket, and what is kept between two uses of it.
struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    address: SocketAddr,
    received: Vec<u8>,
    batch: Vec<u8>,
}

impl Socket {
    fn bind(address: SocketAddr) -> Outcome<Self> {
        let socket = UdpSocket::bind(address)?;
        let options = socket2::SockRef::from(&socket);
        options.set_recv_buffer_size(4 << 20)?;
        options.set_send_buffer_size(4 << 20)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        socket.set_nonblocking(false)?;
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            state,
            received: vec![0; 1 << 16],
            batch: vec![0; 64 * DATAGRAM],
        })
    }

    /// Waits for datagrams, and hands them over one by one; without any after `wait`, for none.
    fn receive(
        &mut self,
        wait: Option<Duration>,
        mut each: impl FnMut(&mut [u8], RecvInfo) -> Outcome<()>,
    ) -> Outcome<()> {
        let wait = wait.map(|wait| wait.max(Duration::from_micros(1)));
        self.socket.set_read_timeout(wait)?;
        let mut meta = [RecvMeta::default()];
        let mut slices = [IoSliceMut::new(&mut self.received)];
        match self
            .state
            .recv(UdpSockRef::from(&self.socket), &mut slices, &mut meta)
        {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            other => other?,
        };
        let [meta] = meta;
        for datagram in self.received[..meta.len].chunks_mut(meta.stride) {
            let info = RecvInfo {
                from: meta.addr,
                to: self.address,
            };
            each(datagram, info)?;
        }
        Ok(())
    }

    /// Sends all that the connection has.
    fn flush(&mut self, connection: &mut Connection) -> Outcome<()> {
        loop {
            let quantum = connection.send_quantum().min(45 * DATAGRAM).max(DATAGRAM);
            let (mut length, mut segment, mut to) = (0, 0, None);
            while length < quantum {
                match connection.send(&mut self.batch[length..length + DATAGRAM]) {
                    Ok((size, info)) => {
                        if segment == 0 {
                            (segment, to) = (size, Some(info.to));
                        }
                        length += size;
                        // A batch ends with a datagram of another size; a larger one can't happen in bulk.
                        if size != segment {
                            break;
                        }
                    }
                    Err(quiche::Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            let Some(destination) = to else {
                return Ok(());
            };
            let transmit = Transmit {
                destination,
                ecn: None,
                contents: &self.batch[..length],
                segment_size: Some(segment).filter(|segment| *segment < length),
                src_ip: None,
            };
            self.state
                .try_send(UdpSockRef::from(&self.socket), &transmit)?;
        }
    }
}

/// What is still to be written on a stream.
struct Answer {
    ask: Option<Ask>,
    counted: u64,
    left: u64,
}

struct Peer {
    connection: Connection,
    answers: HashMap<u64, Answer>,
}

pub(crate) fn serve(directory: &Path) -> Outcome<()> {
    let text = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let mut config = config()?;
    config.load_cert_chain_from_pem_file(&text("cert.pem"))?;
    config.load_priv_key_from_pem_file(&text("key.pem"))?;
    let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    announce(socket.address)?;
    std::thread::spawn(|| {
        // Told or not, it ends.
        let _ = wait_until_told();
        if let Ok(figures) = Figures::of_self(Duration::ZERO) {
            figures.print();
        }
        std::process::exit(0)
    });
    let mut peers: HashMap<Vec<u8>, Peer> = HashMap::new();
    // The destinations that clients began with.
    let mut firsts: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let (mut piece, mut next_id) = (vec![7; PIECE], 0_u64);
    loop {
        let wait = peers
            .values()
            .filter_map(|peer| peer.connection.timeout())
            .min();
        let address = socket.address;
        socket.receive(wait, |datagram, info| {
            // What is no packet is no failure.
            let Ok(header) = quiche::Header::from_slice(datagram, 8) else {
                return Ok(());
            };
            let dcid = header.dcid.to_vec();
            let mut key = firsts.get(&dcid).unwrap_or(&dcid).clone();
            if !peers.contains_key(&key) {
                if header.ty != quiche::Type::Initial {
                    return Ok(());
                }
                next_id += 1;
                key = next_id.to_be_bytes().to_vec();
                let scid = ConnectionId::from_ref(&key);
                let connection = quiche::accept(&scid, None, address, info.from, &mut config)?;
                let peer = Peer {
                    connection,
                    answers: HashMap::new(),
                };
                peers.insert(key.clone(), peer);
                firsts.insert(dcid, key.clone());
            }
            if let Some(peer) = peers.get_mut(&key) {
                // A packet that can't be used is no failure.
                let _ = peer.connection.recv(datagram, info);
            }
            Ok(())
        })?;
        for peer in peers.values_mut() {
            if peer.connection.timeout() == Some(Duration::ZERO) {
                peer.connection.on_timeout();
            }
            peer.answer(&mut piece)?;
            socket.flush(&mut peer.connection)?;
        }
        peers.retain(|_, peer| !peer.connection.is_closed());
        firsts.retain(|_, key| peers.contains_key(key));
    }
}

impl Peer {
    /// Reads what there is, and writes what there is room for.
    fn answer(&mut self, piece: &mut [u8]) -> Outcome<()> {
        let readable: Vec<u64> = self.connection.readable().collect();
        for id in readable {
            let answer = self.answers.entry(id).or_insert(Answer {
                ask: None,
                counted: 0,
                left: 0,
            });
            while let Ok((length, is_end)) = self.connection.stream_recv(id, piece) {
                let mut data = &piece[..length];
                if answer.ask.is_none()
                    && let Some((ask, rest)) = data.split_first_chunk()
                {
                    answer.ask = Some(Ask::decode(*ask));
                    data = rest;
                }
                answer.counted += data.len() as u64;
                if is_end && let Some(ask) = answer.ask {
                    answer.left = ask.down;
                }
            }
        }
        piece.fill(7);
        let connection = &mut self.connection;
        self.answers.retain(|id, answer| {
            while answer.left > 0 {
                let wanted = answer.left.min(PIECE as u64) as usize;
                let is_end = wanted as u64 == answer.left;
                match connection.stream_send(*id, &piece[..wanted], is_end) {
                    Ok(written) if written > 0 => answer.left -= written as u64,
                    Ok(_) | Err(quiche::Error::Done) => return true,
                    Err(_) => return false,
                }
            }
            answer.ask.is_none() || !connection.stream_finished(*id)
        });
        Ok(())
    }
}

pub(crate) fn run(_: &Path, address: SocketAddr, work: Work) -> Outcome<()> {
    let mut config = config()?;
    // It doesn't take a server's own certificate for a root.
    config.verify_peer(false);
    let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let mut start = None;
    let (connections, streams) = match work.kind {
        Kind::Connections => (work.amount, 1),
        Kind::Requests => (1, work.amount),
        Kind::Download | Kind::Upload => (1, 1),
    };
    for number in 0..connections {
        let scid = number.to_be_bytes();
        let scid = ConnectionId::from_ref(&scid);
        let mut connection = quiche::connect(
            Some("localhost"),
            &scid,
            socket.address,
            address,
            &mut config,
        )?;
        exchange(
            &mut socket,
            &mut connection,
            streams,
            Ask::of(work),
            &mut start,
        )?;
    }
    let elapsed = start.map(|start: Instant| start.elapsed());
    Figures::of_self(elapsed.unwrap_or_default())?.print();
    Ok(())
}

/// One connection with so many streams, each of which asks for the same. `start` is set when the first is ready.
fn exchange(
    socket: &mut Socket,
    connection: &mut Connection,
    streams: u64,
    ask: Ask,
    start: &mut Option<Instant>,
) -> Outcome<()> {
    let mut piece = vec![7; PIECE];
    let (mut opened, mut done) = (0, 0);
    let mut uploads: HashMap<u64, u64> = HashMap::new();
    let mut received = 0;
    while done < streams {
        if connection.is_established() {
            start.get_or_insert_with(Instant::now);
            while opened < streams && connection.peer_streams_left_bidi() > 0 {
                let id = opened * 4;
                let request = ask.encode();
                match connection.stream_send(id, &request, ask.up == 0) {
                    Ok(Ask::SIZE) => {}
                    Ok(_) => return Err("no room for a whole request".into()),
                    Err(quiche::Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
                if ask.up > 0 {
                    uploads.insert(id, ask.up);
                }
                opened += 1;
            }
            for (id, left) in &mut uploads {
                while *left > 0 {
                    let wanted = (*left).min(PIECE as u64) as usize;
                    let is_end = wanted as u64 == *left;
                    match connection.stream_send(*id, &piece[..wanted], is_end) {
                        Ok(written) if written > 0 => *left -= written as u64,
                        Ok(_) | Err(quiche::Error::Done) => break,
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        let readable: Vec<u64> = connection.readable().collect();
        for id in readable {
            while let Ok((length, is_end)) = connection.stream_recv(id, &mut piece) {
                received += length as u64;
                done += u64::from(is_end);
            }
        }
        if done == streams {
            break;
        }
        socket.flush(connection)?;
        if connection.is_closed() {
            return Err("the connection was closed".into());
        }
        socket.receive(connection.timeout(), |datagram, info| {
            // A packet that can't be used is no failure.
            let _ = connection.recv(datagram, info);
            Ok(())
        })?;
        if connection.timeout() == Some(Duration::ZERO) {
            connection.on_timeout();
        }
    }
    if received != ask.down * streams {
        return Err("the answer is not whole".into());
    }
    connection.close(true, 0, b"")?;
    socket.flush(connection)
}
