//! What no stack on UDP can beat here: datagrams that are copied, sealed and sent in full batches, received joined, opened
//! and copied, by AES-128-GCM of ring and with header protection. No streams, no recovery; the receiver says with a
//! datagram for each read how far it has come, so that the sender doesn't run away. What is lost counts as received.

use std::{
    io::IoSliceMut,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::Path,
    time::{Duration, Instant},
};

use nix::sys::socket::{getsockopt, sockopt};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey, quic};

use crate::{
    Outcome,
    measure::{Figures, announce},
    work::{Ask, Kind, Work},
};

/// A first byte, a connection ID, a packet number.
const HEADER: usize = 13;
const TAG: usize = 16;

/// Bytes under way.
const WINDOW: u64 = 2 << 20;

/// Bytes of one batch.
const BATCH: usize = 65_000;

struct Keys {
    packet: LessSafeKey,
    header: quic::HeaderProtectionKey,
}

impl Keys {
    fn new() -> Outcome<Self> {
        let key = [7; 16];
        let unbound = UnboundKey::new(&AES_128_GCM, &key).map_err(|_| "no key")?;
        let header = quic::HeaderProtectionKey::new(&quic::AES_128, &key).map_err(|_| "no key")?;
        Ok(Self {
            packet: LessSafeKey::new(unbound),
            header,
        })
    }

    fn seal(&self, number: u32, packet: &mut [u8], body: &[u8]) -> Outcome<()> {
        let (header, rest) = packet.split_at_mut(HEADER);
        header[0] = 0x43;
        header[9..].copy_from_slice(&number.to_be_bytes());
        let (plain, tag) = rest.split_at_mut(body.len());
        plain.copy_from_slice(body);
        let sealed = self
            .packet
            .seal_in_place_separate_tag(nonce(number), Aad::from(&*header), plain)
            .map_err(|_| "not sealed")?;
        tag.copy_from_slice(sealed.as_ref());
        self.mask(packet)
    }

    fn open(&self, packet: &mut [u8]) -> Outcome<()> {
        self.mask(packet)?;
        let (header, sealed) = packet.split_at_mut(HEADER);
        let number = u32::from_be_bytes(header[9..].try_into()?);
        self.packet
            .open_in_place(nonce(number), Aad::from(&*header), sealed)
            .map_err(|_| "not authentic")?;
        Ok(())
    }

    fn mask(&self, packet: &mut [u8]) -> Outcome<()> {
        let (header, sample) = packet.split_at_mut(HEADER);
        let mask = self
            .header
            .new_mask(&sample[..16])
            .map_err(|_| "no sample")?;
        header[0] ^= mask[0] & 0x1f;
        for (byte, mask) in header[9..].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        Ok(())
    }
}

fn nonce(number: u32) -> Nonce {
    let mut nonce = [9; 12];
    nonce[8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    fn bind() -> Outcome<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let options = socket2::SockRef::from(&socket);
        options.set_recv_buffer_size(4 << 20)?;
        options.set_send_buffer_size(4 << 20)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        socket.set_nonblocking(false)?;
        Ok(Self { socket, state })
    }
}

/// The sender: waits for a datagram that says how much is wanted.
pub(crate) fn serve(_: &Path) -> Outcome<()> {
    let Socket { socket, state } = Socket::bind()?;
    announce(socket.local_addr()?)?;
    let mut ask = [0; Ask::SIZE];
    let (_, client) = socket.recv_from(&mut ask)?;
    let total = Ask::decode(ask).down;
    let keys = Keys::new()?;
    let segment = segment(&socket, client)?;
    let mut batch = vec![0; BATCH / segment * segment];
    let body = vec![3; segment - HEADER - TAG];
    let (mut number, mut sent, mut received) = (0, 0, 0);
    while sent < total {
        while sent - received > WINDOW {
            let mut report = [0; 8];
            socket.recv_from(&mut report)?;
            received = received.max(u64::from_be_bytes(report));
        }
        for packet in batch.chunks_mut(segment) {
            keys.seal(number, packet, &body)?;
            number += 1;
            sent += body.len() as u64;
        }
        let transmit = Transmit {
            destination: client,
            ecn: None,
            contents: &batch,
            segment_size: Some(segment).filter(|segment| *segment < batch.len()),
            src_ip: None,
        };
        state.try_send(UdpSockRef::from(&socket), &transmit)?;
    }
    Figures::of_self(Duration::ZERO)?.print();
    Ok(())
}

/// The receiver.
pub(crate) fn run(_: &Path, address: SocketAddr, work: Work) -> Outcome<()> {
    if !matches!(work.kind, Kind::Download | Kind::Upload) {
        return Err("the bound is one for bytes".into());
    }
    let Socket { socket, state } = Socket::bind()?;
    let ask = Ask {
        down: work.amount,
        up: 0,
    };
    let start = Instant::now();
    socket.send_to(&ask.encode(), address)?;
    let keys = Keys::new()?;
    let (mut buffer, mut body) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut received = 0;
    while received < work.amount {
        let mut meta = [RecvMeta::default()];
        state.recv(
            UdpSockRef::from(&socket),
            &mut [IoSliceMut::new(&mut buffer)],
            &mut meta,
        )?;
        let [meta] = meta;
        for packet in buffer[..meta.len].chunks_mut(meta.stride) {
            keys.open(packet)?;
            let plain = &packet[HEADER..packet.len() - TAG];
            body[..plain.len()].copy_from_slice(plain);
            let number = u32::from_be_bytes(packet[9..HEADER].try_into()?);
            received = received.max((u64::from(number) + 1) * plain.len() as u64);
        }
        std::hint::black_box(&body);
        socket.send_to(&received.to_be_bytes(), address)?;
    }
    Figures::of_self(start.elapsed())?.print();
    Ok(())
}

/// Bytes of a datagram, as other stacks make them: what the path carries, less 48 for the headers of IPv6 and UDP.
fn segment(socket: &UdpSocket, client: SocketAddr) -> Outcome<usize> {
    let probe = socket.try_clone()?;
    probe.connect(client)?;
    let mtu = getsockopt(&probe, sockopt::IpMtu)?;
    Ok(usize::try_from(mtu - 48)?.clamp(1200, BATCH))
}
