//! A relay between client and server that reads what TLS agrees on out of the ServerHello, which nobody can hide: over TCP
//! it is in the clear, over QUIC its key is made of the connection ID that the client began with (RFC 9001, 5.2).

mod initial;
mod server_hello;

use std::{
    collections::{HashMap, hash_map::Entry},
    io::{Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream, UdpSocket},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use self::{initial::Initials, server_hello::ServerHello};
use crate::{Outcome, port};

/// What was seen.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<ServerHello>>>);

impl Seen {
    fn add(&self, hello: ServerHello) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(hello);
    }
}

/// Passes everything on, over UDP and TCP, for as long as the process lives.
pub(crate) struct Relay {
    address: SocketAddr,
    seen: Seen,
}

impl Relay {
    pub(crate) fn start(server: SocketAddr) -> Outcome<Self> {
        let (listener, socket) = port::bind()?;
        let address = socket.local_addr()?;
        let seen = Seen::default();
        let tcp = seen.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Either end may go away.
                drop(relay_stream(client, server, &tcp));
            }
        });
        let udp = seen.clone();
        thread::spawn(move || relay_datagrams(&socket, server, &udp));
        Ok(Self { address, seen })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The last handshake's choices.
    pub(crate) fn negotiated(&self) -> String {
        let all = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.last()
            .map_or_else(|| "not seen".to_owned(), ToString::to_string)
    }
}

fn relay_stream(client: TcpStream, server: SocketAddr, seen: &Seen) -> Outcome<()> {
    let server = TcpStream::connect(server)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        drop(std::io::copy(&mut from, &mut to));
        to.shutdown(Shutdown::Write)
    });
    let (mut from, mut to, seen) = (server, client, seen.clone());
    thread::spawn(move || -> Outcome<()> {
        let (mut start, mut buffer, mut is_seen) = (Vec::new(), vec![0; 1 << 16], false);
        loop {
            let length = from.read(&mut buffer)?;
            let data = buffer.get(..length).unwrap_or_default();
            if data.is_empty() {
                return Ok(to.shutdown(Shutdown::Write)?);
            }
            if !is_seen {
                start.extend_from_slice(data);
                // Behind the header of the first record.
                if let Some(hello) = start.get(5..).and_then(ServerHello::read) {
                    seen.add(hello);
                    is_seen = true;
                }
            }
            to.write_all(data)?;
        }
    });
    Ok(())
}

fn relay_datagrams(socket: &UdpSocket, server: SocketAddr, seen: &Seen) -> Outcome<()> {
    let mut clients: HashMap<SocketAddr, (UdpSocket, Arc<Mutex<Initials>>)> = HashMap::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        let datagram = buffer.get(..length).unwrap_or_default();
        let client = match clients.entry(from) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let upstream = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                upstream.connect(server)?;
                let initials: Arc<Mutex<Initials>> = Arc::default();
                let answers = (upstream.try_clone()?, socket.try_clone()?, seen.clone());
                let back = Arc::clone(&initials);
                thread::spawn(move || relay_answers(&answers, from, &back));
                place.insert((upstream, initials))
            }
        };
        let (upstream, initials) = client;
        initials
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .on_client(datagram);
        // What is lost comes again.
        drop(upstream.send(datagram));
    }
}

fn relay_answers(
    (upstream, socket, seen): &(UdpSocket, UdpSocket, Seen),
    client: SocketAddr,
    initials: &Mutex<Initials>,
) -> Outcome<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = upstream.recv(&mut buffer)?;
        let datagram = buffer.get(..length).unwrap_or_default();
        let mut known = initials.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hello) = known.on_server(datagram) {
            seen.add(hello);
        }
        drop(known);
        socket.send_to(datagram, client)?;
    }
}
