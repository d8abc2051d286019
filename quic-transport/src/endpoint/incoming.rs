//! A client that knocks: its first datagrams, kept as they came until the ClientHello is whole and someone decides.
//!
//! No TLS state exists yet. The ClientHello may span several Initial packets that arrive in any order; they are opened
//! in a copy, so that the connection that is made later processes the originals.

use std::time::Instant;

use quic_common::{Datagram, Ecn};

use super::stateless::ReplyPath;
use crate::{
    buffer::{ChunkPool, ReceiveBuffer},
    limits::{CLIENT_HELLO, COALESCED_PACKETS, INCOMING_BYTES, INCOMING_DATAGRAMS},
    observe::Observer,
    tls::{self, ClientHello, LevelKeys},
    token::{Presented, RetryToken},
    wire::{
        ConnectionId, Frame, Frames, PacketKind, PacketNumber, Side, TransportParameters, Version,
        Versions, parse_header, wide,
    },
};

/// A datagram as it arrived.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) ecn: Ecn,
    pub(super) payload: Vec<u8>,
}

/// A connection attempt that waits for a decision: accept it, refuse it, send it a Retry or ignore it.
#[derive(Debug)]
pub struct Incoming {
    pub(super) path: ReplyPath,
    pub(super) version: Version,
    /// The destination of the client's Initial, that its keys come from.
    pub(super) dcid: ConnectionId,
    pub(super) client_cid: ConnectionId,
    pub(super) token: Presented,
    pub(super) datagrams: Vec<Kept>,
    pub(super) since: Instant,
    /// The ClientHello is whole: nothing more is read before someone decides.
    pub(super) is_ready: bool,
    /// An Initial packet could be opened, so someone means it.
    is_authentic: bool,
    /// Of the client's Initials, until the connection takes them over.
    pub(super) keys: Option<Box<LevelKeys>>,
    crypto: ReceiveBuffer,
    pool: ChunkPool,
    /// The versions that the first flight can be taken for.
    offered: Versions,
    server_name: Option<String>,
    alpn: Vec<Vec<u8>>,
    pub(super) prefers_chacha20: bool,
    pub(super) observer: Option<Box<dyn Observer>>,
    /// The session that the client offers early data with.
    pub(super) psk_identity: Option<Vec<u8>>,
}

/// How far the ClientHello has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    NeedMore,
    Ready,
    /// Not worth an answer.
    Drop,
}

/// What an Initial packet's header says of a new client.
#[derive(Debug)]
pub(super) struct Introduction {
    pub(super) path: ReplyPath,
    pub(super) version: Version,
    pub(super) dcid: ConnectionId,
    pub(super) client_cid: ConnectionId,
    pub(super) token: Presented,
}

impl Incoming {
    pub(super) fn new(introduction: &Introduction, now: Instant) -> Self {
        let Introduction {
            path,
            version,
            dcid,
            client_cid,
            token,
        } = *introduction;
        Self {
            path,
            version,
            dcid,
            client_cid,
            token,
            datagrams: Vec::new(),
            since: now,
            is_ready: false,
            is_authentic: false,
            keys: Some(Box::new(tls::initial_keys(version, &dcid, Side::Server))),
            crypto: ReceiveBuffer::default(),
            pool: ChunkPool::default(),
            offered: Versions::known([version]),
            server_name: None,
            alpn: Vec::new(),
            prefers_chacha20: false,
            observer: None,
            psk_identity: None,
        }
    }

    /// The client's address.
    #[must_use]
    pub const fn remote(&self) -> std::net::SocketAddr {
        self.path.remote
    }

    /// Shows `observer` all that happens on the connection, if it is accepted.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// The destination of the client's very first packet, before any Retry: logs are named after it.
    #[must_use]
    pub fn original_dcid(&self) -> ConnectionId {
        self.retry().map_or(self.dcid, |token| token.original_dcid)
    }

    /// Whether a token has shown that the client receives what is sent to its address: that of a Retry, or one that
    /// it was given on an earlier connection.
    #[must_use]
    pub const fn is_validated(&self) -> bool {
        matches!(self.token, Presented::Retry(_) | Presented::Known(_))
    }

    /// What the Retry token says, if there was a Retry.
    pub(super) const fn retry(&self) -> Option<RetryToken> {
        match self.token {
            Presented::Retry(token) => Some(token),
            Presented::Nothing | Presented::InvalidRetry | Presented::Known(_) => None,
        }
    }

    /// The QUIC version that the client chose.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The version for the connection, of those in `ours`.
    pub(super) fn choose(&self, ours: &Versions) -> Version {
        ours.choose(&self.offered).unwrap_or(self.version)
    }

    /// The server name that the client asks for (SNI).
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The application protocols that the client offers, in its order.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        self.alpn.iter().map(Vec::as_slice)
    }

    /// Keeps a datagram and reads the Initial packets in it.
    pub(super) fn on_datagram(&mut self, datagram: &Datagram<'_>) -> Progress {
        let kept: usize = self.datagrams.iter().map(|kept| kept.payload.len()).sum();
        let is_full = self.datagrams.len() >= INCOMING_DATAGRAMS
            || kept.saturating_add(datagram.payload.len()) > INCOMING_BYTES;
        if is_full {
            // What is too much for one that is ready is lost, and nothing else.
            return if self.is_ready {
                Progress::NeedMore
            } else {
                Progress::Drop
            };
        }
        self.datagrams.push(Kept {
            ecn: datagram.ecn,
            payload: datagram.payload.to_vec(),
        });
        if self.is_ready {
            return Progress::NeedMore;
        }
        let mut copy = datagram.payload.to_vec();
        let mut rest = copy.as_mut_slice();
        let mut progress = Progress::NeedMore;
        for _ in 0..COALESCED_PACKETS {
            let Some((packet, tail)) = first_initial(rest, &self.dcid) else {
                break;
            };
            rest = tail;
            progress = self.on_packet(packet);
            if progress != Progress::NeedMore {
                break;
            }
        }
        if !self.is_authentic {
            return Progress::Drop;
        }
        self.is_ready = progress == Progress::Ready;
        progress
    }

    /// Reads a packet, if it can be opened.
    fn on_packet(&mut self, packet: InitialPacket<'_>) -> Progress {
        let InitialPacket {
            bytes,
            number_offset,
        } = packet;
        let keys = self.keys.as_deref();
        let Some(payload) = keys.and_then(|keys| open_initial(keys, bytes, number_offset)) else {
            return Progress::NeedMore;
        };
        self.is_authentic = true;
        for frame in Frames::new(payload).into_iter().flatten() {
            let Ok(Frame::Crypto { offset, data }) = frame else {
                continue;
            };
            let end = offset.saturating_add(wide(data.len()));
            if end > CLIENT_HELLO || self.crypto.insert(offset, data, &mut self.pool).is_err() {
                return Progress::Drop;
            }
        }
        self.read_client_hello()
    }

    fn read_client_hello(&mut self) -> Progress {
        match ClientHello::parse(self.crypto.fill()) {
            Ok(None) => Progress::NeedMore,
            Ok(Some(hello)) => {
                self.server_name = hello.server_name.map(str::to_owned);
                self.alpn = hello.alpn().map(<[u8]>::to_vec).collect();
                self.prefers_chacha20 = hello.prefers_chacha20;
                if let Some(versions) = offered(&hello, self.version) {
                    self.offered = versions;
                }
                let identity = hello.psk_identity.filter(|_| hello.early_data);
                self.psk_identity = identity.map(<[u8]>::to_vec);
                Progress::Ready
            }
            // TLS says what is wrong with it, with the right alert.
            Err(_) => Progress::Ready,
        }
    }
}

/// The versions that a first flight of `version` can be taken for, if the client says so in the right form. A session
/// belongs to a version: one that is to be resumed keeps the connection to its own (RFC 9369, 5).
fn offered(hello: &ClientHello<'_>, version: Version) -> Option<Versions> {
    let parameters = hello
        .transport_parameters
        .filter(|_| hello.psk_identity.is_none())?;
    let parameters = TransportParameters::parse(parameters, Side::Client).ok()?;
    let information = parameters.version_information?;
    (information.chosen == version).then(|| information.available())
}

/// Opens an Initial packet of the client, of which none was opened before.
fn open_initial<'p>(
    keys: &LevelKeys,
    packet: &'p mut [u8],
    number_offset: usize,
) -> Option<&'p [u8]> {
    let unprotected = keys.remote.header.unprotect(packet, number_offset)?;
    let number = PacketNumber::decode(unprotected.truncated, unprotected.number_length, None);
    let header_length = number_offset + unprotected.number_length;
    keys.remote
        .packet
        .open(number.value(), header_length, packet)
        .map(|payload| &*payload)
}

struct InitialPacket<'p> {
    bytes: &'p mut [u8],
    number_offset: usize,
}

/// Splits off the first packet if it is an Initial sent to `dcid`.
fn first_initial<'p>(
    datagram: &'p mut [u8],
    dcid: &ConnectionId,
) -> Option<(InitialPacket<'p>, &'p mut [u8])> {
    let header = parse_header(datagram, 0).ok()?;
    if header.kind != PacketKind::Initial || header.dcid != *dcid {
        return None;
    }
    let (bytes, rest) = datagram.split_at_mut_checked(header.end)?;
    let packet = InitialPacket {
        bytes,
        number_offset: header.number_offset,
    };
    Some((packet, rest))
}
