//! What no stack on UDP can beat here: datagrams that are copied, sealed and sent in full batches, received joined, opened
//! and copied, by AES-128-GCM and with header protection. No streams, no recovery; the receiver says with a
//! datagram for each read how far it has come, so that the sender doesn't run away. What is lost counts as received.

use std::{
    io::IoSliceMut,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
};

use nix::sys::socket::{getsockopt, sockopt};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::{
    Outcome,
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey, quic},
    measure::{Meter, announce, say},
    number::count,
    peers::SOCKET_BUFFER,
    work::{Ask, Job},
};

/// A first byte, a connection ID, a packet number.
const HEADER: usize = 13;
const TAG: usize = 16;
/// The part of a block that is left over costs a tenth of all sealing and opening, so there is none.
const BLOCK: usize = 16;

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
        let unbound = UnboundKey::new(&AES_128_GCM, &key).map_err(|_unspecified| "no key")?;
        let header = quic::HeaderProtectionKey::new(&quic::AES_128, &key)
            .map_err(|_unspecified| "no key")?;
        Ok(Self {
            packet: LessSafeKey::new(unbound),
            header,
        })
    }

    fn seal(&self, number: u32, packet: &mut [u8], body: &[u8]) -> Outcome<()> {
        let (header, rest) = packet.split_at_mut(HEADER);
        write(header, number);
        let (plain, tag) = rest.split_at_mut(body.len());
        plain.copy_from_slice(body);
        let sealed = self
            .packet
            .seal_in_place_separate_tag(nonce(number), Aad::from(&*header), plain)
            .map_err(|_unspecified| "not sealed")?;
        tag.copy_from_slice(sealed.as_ref());
        self.mask(packet)
    }

    /// The packet's number and what is in it.
    fn open<'a>(&self, packet: &'a mut [u8]) -> Outcome<(u32, &'a [u8])> {
        self.mask(packet)?;
        let (header, sealed) = packet.split_at_mut(HEADER);
        let number = u32::from_be_bytes(*header.last_chunk().ok_or("too short")?);
        let plain = self
            .packet
            .open_in_place(nonce(number), Aad::from(&*header), sealed)
            .map_err(|_unspecified| "not authentic")?;
        Ok((number, plain))
    }

    fn mask(&self, packet: &mut [u8]) -> Outcome<()> {
        let (header, sealed) = packet.split_at_mut(HEADER);
        let sample = sealed.first_chunk::<16>().ok_or("too short")?;
        let mask = self.header.new_mask(sample);
        let [first_mask, mask @ ..] = mask.map_err(|_unspecified| "no sample")?;
        if let Some((first, rest)) = header.split_first_mut() {
            *first ^= first_mask & 0x1f;
            for (byte, mask) in rest.iter_mut().rev().zip(mask) {
                *byte ^= mask;
            }
        }
        Ok(())
    }
}

const fn write(header: &mut [u8], number: u32) {
    if let Some(first) = header.first_mut() {
        *first = 0x43;
    }
    if let Some(last) = header.last_chunk_mut() {
        *last = number.to_be_bytes();
    }
}

fn nonce(number: u32) -> Nonce {
    let mut nonce = [9; 12];
    if let Some(last) = nonce.last_chunk_mut() {
        *last = number.to_be_bytes();
    }
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
        options.set_recv_buffer_size(SOCKET_BUFFER)?;
        options.set_send_buffer_size(SOCKET_BUFFER)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        socket.set_nonblocking(false)?;
        Ok(Self { socket, state })
    }
}

/// The sender: waits for a datagram that says how much is wanted. Which way it goes is all the same.
pub(crate) fn serve(_: &Job) -> Outcome<()> {
    let Socket { socket, state } = Socket::bind()?;
    let meter = announce(socket.local_addr()?)?;
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
            sent += count(body.len());
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
    Ok(say(meter.figures()?)?)
}

/// The receiver.
pub(crate) fn run(job: &Job, address: SocketAddr) -> Outcome<()> {
    let amount = job.work.amount;
    let Socket { socket, state } = Socket::bind()?;
    let ask = Ask {
        down: amount,
        up: 0,
    };
    let meter = Meter::start()?;
    socket.send_to(&ask.encode(), address)?;
    let keys = Keys::new()?;
    let (mut buffer, mut body) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut received = 0;
    while received < amount {
        let mut meta = [RecvMeta::default()];
        let mut slices = [IoSliceMut::new(&mut buffer)];
        state.recv(UdpSockRef::from(&socket), &mut slices, &mut meta)?;
        let [meta] = meta;
        let arrived = buffer.get_mut(..meta.len).unwrap_or_default();
        for packet in arrived.chunks_mut(meta.stride.max(1)) {
            let (number, plain) = keys.open(packet)?;
            if let Some(room) = body.get_mut(..plain.len()) {
                room.copy_from_slice(plain);
            }
            received = received.max((u64::from(number) + 1) * count(plain.len()));
        }
        std::hint::black_box(&body);
        socket.send_to(&received.to_be_bytes(), address)?;
    }
    Ok(say(meter.figures()?)?)
}

/// Bytes of a datagram: what the path carries, less 48 for the headers of IPv6 and UDP, and less what there is beyond whole
/// blocks of the cipher.
fn segment(socket: &UdpSocket, client: SocketAddr) -> Outcome<usize> {
    let probe = socket.try_clone()?;
    probe.connect(client)?;
    let mtu = getsockopt(&probe, sockopt::IpMtu)?;
    let most = usize::try_from(mtu - 48)?.clamp(1200, BATCH);
    Ok(most - (most - HEADER - TAG) % BLOCK)
}
