//! The scripted peer itself: how it is made, what it says, and what it is asked about what it heard.

mod hear;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use quic_common::{BatchBuffer, BatchHead, Ecn, Random};
use rustls::Side;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection};

use super::packet::{Addressing, Draft, header};
use super::parameters::{INITIAL_SOURCE_CID, Parameters};
use super::protection::{Protection, rustls_version};
use super::seen::{Level, SeenClose, SeenFrame, SeenPacket};
use super::space::Space;
use crate::network::{Arrivals, Party, Transmit};

/// Bytes of the connection IDs that the scripted peer chooses.
const CID_LENGTH: usize = 8;

/// A peer that does the handshake by itself and then says what it is told to.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent settings and facts"
)]
pub struct ScriptedPeer {
    /// Whether TLS bytes and HANDSHAKE_DONE are sent without being asked for.
    pub is_automatic: bool,
    /// Whether what arrives is acknowledged without being asked for.
    pub acknowledges: bool,
    side: Side,
    server: Option<Arc<rustls::ServerConfig>>,
    parameters: Parameters,
    session: Option<Connection>,
    /// The version of the handshake, and of packets that are sent.
    chosen: u32,
    version: u32,
    /// The destination that the keys of Initial packets come from.
    initial_dcid: Vec<u8>,
    write_level: Level,
    spaces: [Space; 3],
    /// The key phases of packets that are sent and received.
    phases: (usize, usize),
    local_cid: Vec<u8>,
    remote_cid: Vec<u8>,
    remote: Option<SocketAddr>,
    local: Option<SocketAddr>,
    token: Vec<u8>,
    has_spoken: bool,
    is_done_sent: bool,
    outbox: VecDeque<Vec<u8>>,
    ecn: Ecn,
    /// The addresses of the datagram that is being looked at.
    arrival: (Option<SocketAddr>, Option<SocketAddr>),
    datagrams: usize,
    packets: Vec<SeenPacket>,
    unreadable: Vec<Vec<u8>>,
    retries: usize,
    versions: Vec<u32>,
    tls_error: Option<rustls::Error>,
}

impl fmt::Debug for ScriptedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedPeer")
            .field("side", &self.side)
            .field("packets", &self.packets)
            .field("tls_error", &self.tls_error)
            .finish_non_exhaustive()
    }
}

impl ScriptedPeer {
    /// A client of the server at `remote`. Its first flight leaves when it gets its first turn to send.
    ///
    /// # Panics
    ///
    /// If `name` is neither a DNS name nor an address.
    #[must_use]
    pub fn client(
        config: rustls::ClientConfig,
        name: &str,
        parameters: Parameters,
        remote: SocketAddr,
        seed: u8,
    ) -> Self {
        Self::client_of_versions((1, 1), config, name, parameters, remote, seed)
    }

    /// A client that begins with one version and, once a server answers in the other, goes on with that.
    ///
    /// # Panics
    ///
    /// If `name` is neither a DNS name nor an address.
    #[must_use]
    pub fn client_of_versions(
        (first, chosen): (u32, u32),
        config: rustls::ClientConfig,
        name: &str,
        mut parameters: Parameters,
        remote: SocketAddr,
        seed: u8,
    ) -> Self {
        let mut random = Random::from_seed([seed; 32]);
        let local_cid = random.array::<CID_LENGTH>().to_vec();
        let remote_cid = random.array::<CID_LENGTH>().to_vec();
        parameters.fill_in(INITIAL_SOURCE_CID, &local_cid);
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let labels = rustls_version(chosen);
        let session = ClientConnection::new(Arc::new(config), labels, name, parameters.encode());
        let mut peer = Self::new(Side::Client, parameters, local_cid);
        peer.remote = Some(remote);
        (peer.version, peer.chosen) = (first, chosen);
        peer.derive_initial_keys(&remote_cid);
        peer.remote_cid = remote_cid;
        peer.session = Some(session.unwrap().into());
        peer.pump();
        peer
    }

    /// A server that waits for one client.
    #[must_use]
    pub fn server(config: rustls::ServerConfig, parameters: Parameters, seed: u8) -> Self {
        let mut random = Random::from_seed([seed; 32]);
        let local_cid = random.array::<CID_LENGTH>().to_vec();
        let mut peer = Self::new(Side::Server, parameters, local_cid);
        peer.server = Some(Arc::new(config));
        peer
    }

    /// The version that a server answers in, whatever the client's.
    pub const fn set_version(&mut self, version: u32) {
        (self.version, self.chosen) = (version, version);
    }

    /// Sends long headers of this version from now on, with Initial keys to go with it.
    pub fn change_version(&mut self, version: u32) {
        self.version = version;
        let destination = self.initial_dcid.clone();
        self.derive_initial_keys(&destination);
    }

    fn new(side: Side, parameters: Parameters, local_cid: Vec<u8>) -> Self {
        Self {
            is_automatic: true,
            acknowledges: true,
            side,
            server: None,
            parameters,
            session: None,
            chosen: 1,
            version: 1,
            initial_dcid: Vec::new(),
            write_level: Level::Initial,
            spaces: Default::default(),
            phases: (0, 0),
            local_cid,
            remote_cid: Vec::new(),
            remote: None,
            local: None,
            token: Vec::new(),
            has_spoken: false,
            is_done_sent: false,
            outbox: VecDeque::new(),
            ecn: Ecn::NotEct,
            arrival: (None, None),
            datagrams: 0,
            packets: Vec::new(),
            unreadable: Vec::new(),
            retries: 0,
            versions: Vec::new(),
            tls_error: None,
        }
    }

    /// Whether the handshake is complete on this side.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let has_keys = self.space(Level::OneRtt).protection.is_some();
        let is_over = |session: &Connection| !session.is_handshaking();
        has_keys && self.session.as_ref().is_some_and(is_over)
    }

    /// Whether a server's HANDSHAKE_DONE has been sent or has arrived, RFC 9001, 4.1.2.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        let mut frames = self.frames(Level::OneRtt);
        self.is_done_sent || frames.any(|frame| *frame == SeenFrame::HandshakeDone)
    }

    /// Sends frames in a packet of their own.
    pub fn send(&mut self, level: Level, frames: &[u8]) {
        let packet = self.seal(&Draft::new(level, frames));
        self.send_datagram(packet);
    }

    /// Makes a packet.
    ///
    /// # Panics
    ///
    /// If there are no keys for its level yet.
    pub fn seal(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        let key_phase = if draft.level == Level::OneRtt {
            self.phases.0
        } else {
            0
        };
        let space = &mut self.spaces[index(draft.level)];
        let number = draft.number.unwrap_or(space.next_number);
        space.next_number = space.next_number.max(number + 1);
        let to = Addressing {
            version: self.version,
            destination: &self.remote_cid,
            source: &self.local_cid,
            token: &self.token,
            key_phase: key_phase % 2 == 1,
            number,
        };
        let unpadded = header(draft, &to, draft.frames.len()).len() + draft.frames.len() + 16;
        let padding = draft.size.saturating_sub(unpadded);
        let payload = [draft.frames, &vec![0; padding]].concat();
        let header = header(draft, &to, payload.len());
        let protection = space.protection.as_mut().unwrap();
        let header = (header.as_slice(), draft.number_length);
        protection.seal(key_phase, number, header, &payload)
    }

    /// Sends any bytes.
    pub fn send_datagram(&mut self, bytes: Vec<u8>) {
        self.outbox.push_back(bytes);
    }

    /// The ECN mark of datagrams from now on.
    pub const fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    /// Sends to another address from now on.
    pub const fn set_remote(&mut self, remote: SocketAddr) {
        self.remote = Some(remote);
    }

    /// Sends from another address of its own from now on.
    pub const fn set_local(&mut self, local: SocketAddr) {
        self.local = Some(local);
    }

    /// Seals 1-RTT packets with the keys of the next key phase from now on.
    pub const fn update_keys(&mut self) {
        self.phases.0 += 1;
    }

    /// The key phases, counted from 0, of packets sent and received.
    #[must_use]
    pub const fn phases(&self) -> (usize, usize) {
        self.phases
    }

    /// All TLS bytes of a level so far. The script sends them itself, also those that were due.
    pub fn take_crypto(&mut self, level: Level) -> Vec<u8> {
        let space = &mut self.spaces[index(level)];
        space.skip_crypto();
        space.all_crypto().to_vec()
    }

    /// The connection ID that the other end has to use.
    #[must_use]
    pub fn local_cid(&self) -> &[u8] {
        &self.local_cid
    }

    /// The connection ID of the other end.
    #[must_use]
    pub fn remote_cid(&self) -> &[u8] {
        &self.remote_cid
    }

    /// Changes the destination of packets from now on.
    pub fn set_remote_cid(&mut self, cid: &[u8]) {
        self.remote_cid = cid.to_vec();
    }

    /// The token that Initial packets carry, which a Retry sets.
    #[must_use]
    pub fn token(&self) -> &[u8] {
        &self.token
    }

    /// Changes the token.
    pub fn set_token(&mut self, token: &[u8]) {
        self.token = token.to_vec();
    }

    /// The number of the next packet of a level.
    #[must_use]
    pub const fn next_number(&self, level: Level) -> u64 {
        self.space(level).next_number
    }

    /// All packets that arrived, in order.
    #[must_use]
    pub fn packets(&self) -> &[SeenPacket] {
        &self.packets
    }

    /// All frames of a level that arrived, in order.
    pub fn frames(&self, level: Level) -> impl Iterator<Item = &SeenFrame> {
        let of_level = self
            .packets
            .iter()
            .filter(move |packet| packet.level == level);
        of_level.flat_map(|packet| &packet.frames)
    }

    /// Forgets the packets that arrived so far.
    pub fn forget(&mut self) {
        self.packets = Vec::new();
    }

    /// The first CONNECTION_CLOSE frame that arrived.
    #[must_use]
    pub fn close(&self) -> Option<&SeenClose> {
        let mut frames = self.packets.iter().flat_map(|packet| &packet.frames);
        frames.find_map(SeenFrame::as_close)
    }

    /// The code of the first CONNECTION_CLOSE frame.
    #[must_use]
    pub fn close_code(&self) -> Option<u64> {
        self.close().map(|close| close.code)
    }

    /// Packets that could not be opened: stateless resets, and what came before its keys.
    #[must_use]
    pub fn unreadable(&self) -> &[Vec<u8>] {
        &self.unreadable
    }

    /// How many datagrams have arrived.
    #[must_use]
    pub const fn datagrams(&self) -> usize {
        self.datagrams
    }

    /// How many Retry packets have arrived. The next flight has the token of the last, and keys to go with it.
    #[must_use]
    pub const fn retries(&self) -> usize {
        self.retries
    }

    /// The versions of the last Version Negotiation packet.
    #[must_use]
    pub fn versions(&self) -> &[u32] {
        &self.versions
    }

    /// The other end's transport parameters, as TLS has given them.
    #[must_use]
    pub fn remote_parameters(&self) -> Option<&[u8]> {
        let session = self.session.as_ref()?;
        session.quic_transport_parameters()
    }

    /// What TLS found wrong with the other end.
    #[must_use]
    pub const fn tls_error(&self) -> Option<&rustls::Error> {
        self.tls_error.as_ref()
    }

    const fn space(&self, level: Level) -> &Space {
        &self.spaces[index(level)]
    }

    const fn initial_space(&mut self) -> &mut Space {
        &mut self.spaces[0]
    }

    /// Takes what TLS has to say, and the keys that it has come to.
    fn pump(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        loop {
            let mut bytes = Vec::new();
            let change = session.write_hs(&mut bytes);
            self.spaces[index(self.write_level)].write_crypto(&bytes);
            let Some(change) = change else {
                if bytes.is_empty() {
                    return;
                }
                continue;
            };
            self.write_level = match change {
                rustls::quic::KeyChange::Handshake { .. } => Level::Handshake,
                rustls::quic::KeyChange::OneRtt { .. } => Level::OneRtt,
            };
            let protection = Protection::from_tls(change);
            self.spaces[index(self.write_level)].protection = Some(protection);
        }
    }

    /// Puts what is due into datagrams.
    fn flush(&mut self) {
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            let space = &mut self.spaces[index(level)];
            if space.protection.is_none() {
                return;
            }
            if !self.acknowledges {
                space.owes_ack = false;
            }
            loop {
                let mut due = self.spaces[index(level)].take_due();
                let is_server = self.side == Side::Server && self.is_complete();
                if level == Level::OneRtt && is_server && !self.is_done_sent {
                    self.is_done_sent = true;
                    due.extend(super::frames::handshake_done());
                }
                if due.is_empty() {
                    break;
                }
                self.send(level, &due);
            }
        }
    }
}

impl Party for ScriptedPeer {
    fn receive(&mut self, datagrams: Arrivals<'_>, now: Instant) {
        for datagram in datagrams {
            self.remote.get_or_insert(datagram.remote);
            self.arrival = (Some(datagram.remote), datagram.local);
            self.on_datagram(datagram.payload, now);
        }
    }

    fn transmit(&mut self, _: Instant, buffer: &mut BatchBuffer) -> Transmit {
        if self.is_automatic {
            self.flush();
        }
        let (Some(remote), Some(bytes)) = (self.remote, self.outbox.pop_front()) else {
            return Transmit::Nothing;
        };
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        Transmit::Batch(BatchHead {
            remote,
            local: self.local,
            ecn: self.ecn,
            length: bytes.len(),
            segment: bytes.len(),
        })
    }
}

const fn index(level: Level) -> usize {
    match level {
        Level::Initial => 0,
        Level::Handshake => 1,
        Level::OneRtt => 2,
    }
}
