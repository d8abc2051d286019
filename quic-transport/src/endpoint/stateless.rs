//! Replies that belong to no connection: Version Negotiation, Retry, refusals and stateless resets.
//!
//! Each costs no state and is smaller than what it answers, so it can neither amplify nor bounce between two servers
//! for ever. The queue is bounded: under a flood the answers are dropped, not stored.

use std::{collections::VecDeque, net::SocketAddr, time::Instant};

use quic_common::{BatchHead, Ecn, Random, Writer};

use crate::{
    limits::{RESET_INTERVAL, STATELESS_REPLIES, STATELESS_REPLIES_PER_SECOND},
    tls::{self, LevelKeys, TAG_LENGTH},
    wire::{
        Close, CloseCode, ConnectionId, Encode as _, LongHeader, PacketKind, PacketNumber,
        ResetToken, RetryHeader, Side, TransportErrorCode, Version, VersionNegotiation, Versions,
        write_length,
    },
};

/// The smallest stateless reset that is sent: smaller packets than that one would answer hardly come from a peer, and
/// two endpoints that have both lost their state answer each other only once (RFC 9000, 10.3.3).
const MIN_RESET: usize = 41;

/// The longest reset that is sent: enough to look like any short packet.
const MAX_RESET: usize = 42;

/// Bytes of the packet number of a refusal.
const NUMBER_LENGTH: usize = 4;

/// Where a reply goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyPath {
    pub(super) remote: SocketAddr,
    pub(super) local: Option<SocketAddr>,
}

/// Ports, in order, of services that answer any datagram, or are abused as if they did
/// ([RFC 9308, section 8.1](https://www.rfc-editor.org/rfc/rfc9308#section-8.1)). No client uses them.
const REFLECTIVE_PORTS: [u16; 19] = [
    0, 7, 13, 17, 19, 37, 53, 69, 111, 123, 137, 138, 161, 389, 500, 520, 1900, 5353, 11_211,
];

impl ReplyPath {
    /// Whether a reply would go to a service that answers it in turn: its datagram was forged.
    pub(super) fn is_reflective(&self) -> bool {
        REFLECTIVE_PORTS.binary_search(&self.remote.port()).is_ok()
    }
}

/// The queue of replies, and how many more may be sent now.
#[derive(Debug)]
pub(super) struct Replies {
    queue: VecDeque<(ReplyPath, Vec<u8>)>,
    allowance: u32,
    /// The time up to which the allowance has been refilled.
    refilled: Option<Instant>,
    last_reset: Option<Instant>,
    resets: usize,
}

impl Default for Replies {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            allowance: STATELESS_REPLIES_PER_SECOND,
            refilled: None,
            last_reset: None,
            resets: 0,
        }
    }
}

impl Replies {
    /// Lets time give new allowance.
    pub(super) fn refill(&mut self, now: Instant) {
        if self.allowance == STATELESS_REPLIES_PER_SECOND {
            self.refilled = Some(now);
            return;
        }
        let since = *self.refilled.get_or_insert(now);
        let elapsed = now.saturating_duration_since(since).as_micros();
        let earned = elapsed.saturating_mul(STATELESS_REPLIES_PER_SECOND.into()) / 1_000_000;
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.allowance = self
                .allowance
                .saturating_add(earned)
                .min(STATELESS_REPLIES_PER_SECOND);
            self.refilled = Some(now);
        }
    }

    /// Whether a reply would be sent: look before working one out.
    pub(super) fn has_room(&self) -> bool {
        self.allowance > 0 && self.queue.len() < STATELESS_REPLIES
    }

    /// Moves the oldest reply to the start of `buffer`.
    pub(super) fn take(&mut self, buffer: &mut [u8]) -> Option<BatchHead> {
        let (path, reply) = self.queue.pop_front()?;
        buffer.get_mut(..reply.len())?.copy_from_slice(&reply);
        Some(BatchHead {
            remote: path.remote,
            local: path.local,
            ecn: Ecn::NotEct,
            length: reply.len(),
            segment: reply.len(),
        })
    }

    /// Answers an unknown version with the list of ours (RFC 9000, 6.1).
    pub(super) fn version_negotiation(
        &mut self,
        path: ReplyPath,
        (dcid, scid): (&[u8], &[u8]),
        versions: &Versions,
        random: &mut Random,
    ) {
        if !self.has_room() {
            return;
        }
        let mut buffer = [0; 1200];
        let mut writer = Writer::new(&mut buffer);
        // The two IDs change places: what the client calls its own is where the answer goes.
        let answer = VersionNegotiation {
            dcid: scid,
            scid: dcid,
            versions,
        };
        if answer.write(&mut writer, random.u64()) {
            self.push(path, writer.written());
        }
    }

    /// Asks the client to come back with `token` (RFC 9000, 17.2.5); `original_dcid` is where its Initial went.
    pub(super) fn retry(
        &mut self,
        path: ReplyPath,
        header: &RetryHeader,
        original_dcid: &ConnectionId,
        token: &[u8],
    ) {
        let mut buffer = [0; 1200];
        let mut writer = Writer::new(&mut buffer);
        if header.write(&mut writer, 0, token) {
            let tag = tls::retry_tag(header.version, original_dcid, writer.written());
            if writer.bytes(&tag) {
                self.push(path, writer.written());
            }
        }
    }

    /// Closes a connection that was never made, with an Initial packet (RFC 9000, 10.2.3).
    pub(super) fn refuse(
        &mut self,
        path: ReplyPath,
        version: Version,
        dcid: &ConnectionId,
        client_cid: &ConnectionId,
        code: TransportErrorCode,
    ) {
        if !self.has_room() {
            return;
        }
        let keys = tls::initial_keys(version, dcid, Side::Server);
        let mut buffer = [0; 256];
        if let Some(length) = initial_close(&mut buffer, version, dcid, client_cid, code, &keys) {
            self.push(path, buffer.get(..length).unwrap_or_default());
        }
    }

    /// Tells a peer that its connection is gone (RFC 9000, 10.3), with the token of the ID that it used, which may differ
    /// with how many were sent before: at most one each [`RESET_INTERVAL`], always smaller than the `trigger` bytes that it
    /// answers. No token is worked out for more of them.
    pub(super) fn reset(
        &mut self,
        path: ReplyPath,
        trigger: usize,
        token: impl FnOnce(usize) -> ResetToken,
        random: &mut Random,
        now: Instant,
    ) {
        let size = MAX_RESET.min(trigger.saturating_sub(1));
        let too_soon = |last: Instant| now.saturating_duration_since(last) < RESET_INTERVAL;
        if size < MIN_RESET || self.last_reset.is_some_and(too_soon) {
            return;
        }
        self.last_reset = Some(now);
        let token = token(self.resets);
        self.resets = self.resets.wrapping_add(1);
        let mut reply = [0; MAX_RESET];
        random.fill(&mut reply);
        // A short header: the first bit clear, the fixed bit set.
        let [first, ..] = &mut reply;
        *first = (*first & 0x3f) | 0x40;
        let Some(reply) = reply.get_mut(..size) else {
            return;
        };
        if let Some(tail) = reply.last_chunk_mut() {
            *tail = token.0;
        }
        self.push(path, reply);
    }

    fn push(&mut self, path: ReplyPath, reply: &[u8]) {
        if self.has_room() {
            self.allowance -= 1;
            self.queue.push_back((path, reply.to_vec()));
        }
    }
}

/// Writes an Initial packet with a CONNECTION_CLOSE and returns its length.
fn initial_close(
    buffer: &mut [u8],
    version: Version,
    scid: &ConnectionId,
    dcid: &ConnectionId,
    code: TransportErrorCode,
    keys: &LevelKeys,
) -> Option<usize> {
    let close = Close {
        code: CloseCode::Transport {
            code,
            frame_type: 0,
        },
        reason: b"",
    };
    let header = LongHeader {
        kind: PacketKind::Initial,
        version,
        dcid: *dcid,
        scid: *scid,
        token: &[],
    };
    let mut writer = Writer::new(buffer);
    let offsets = header.write(&mut writer, PacketNumber(0), NUMBER_LENGTH)?;
    let header_length = writer.len();
    close.encode(&mut writer);
    let length = writer.len() + TAG_LENGTH;
    let packet = buffer.get_mut(..length)?;
    write_length(packet, offsets.length, length - offsets.number);
    keys.local.packet.seal(0, header_length, packet);
    keys.local
        .header
        .protect(packet, offsets.number, NUMBER_LENGTH);
    Some(length)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use quic_common::Random;

    use super::{MIN_RESET, REFLECTIVE_PORTS, Replies, ReplyPath};
    use crate::{
        limits::{RESET_INTERVAL, STATELESS_REPLIES, STATELESS_REPLIES_PER_SECOND},
        tls::ResetKey,
        wire::{ConnectionId, Versions},
    };

    const CIDS: (&[u8], &[u8]) = (&[1; 8], &[2; 8]);

    #[expect(clippy::disallowed_methods, reason = "any instant will do as an epoch")]
    fn epoch() -> Instant {
        Instant::now()
    }

    const fn path() -> ReplyPath {
        ReplyPath {
            remote: std::net::SocketAddr::new(
                std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
                1,
            ),
            local: None,
        }
    }

    /// RFC 9000, 10.3.3: a reset is smaller than the packet that it responds to.
    #[test]
    fn a_reset_is_smaller_than_its_trigger_and_rare() {
        let mut replies = Replies::default();
        let mut random = Random::from_seed([0; 32]);
        let key = ResetKey::new([1; 32]);
        let cid = ConnectionId::new(&[1; 8]).unwrap();
        let mut now = epoch();
        for (trigger, sent) in [
            (MIN_RESET, None),
            (MIN_RESET + 1, Some(MIN_RESET)),
            (1200, Some(42)),
        ] {
            replies.reset(path(), trigger, |_| key.token(&cid), &mut random, now);
            replies.reset(path(), trigger, |_| key.token(&cid), &mut random, now);
            let mut buffer = [0; 1200];
            assert_eq!(replies.take(&mut buffer).map(|head| head.length), sent);
            assert_eq!(replies.take(&mut buffer), None, "only one in an interval");
            if let Some(length) = sent {
                assert_eq!(buffer[length - 16..length], key.token(&cid).0);
                assert_eq!(buffer[0] & 0xc0, 0x40);
            }
            now += RESET_INTERVAL;
        }
    }

    #[test]
    fn a_flood_fills_the_queue_and_no_more() {
        let mut replies = Replies::default();
        let mut random = Random::from_seed([0; 32]);
        for _ in 0..=STATELESS_REPLIES {
            replies.version_negotiation(path(), CIDS, &Versions::DEFAULT, &mut random);
        }
        assert_eq!(replies.queue.len(), STATELESS_REPLIES);
    }

    #[test]
    fn replies_are_sent_at_a_rate() {
        let mut replies = Replies::default();
        let mut random = Random::from_seed([0; 32]);
        let mut buffer = [0; 1200];
        let mut now = epoch();
        let mut sent_at = |replies: &mut Replies, now| {
            replies.refill(now);
            let mut sent = 0;
            for _ in 0..=STATELESS_REPLIES_PER_SECOND {
                replies.version_negotiation(path(), CIDS, &Versions::DEFAULT, &mut random);
                sent += u32::from(replies.take(&mut buffer).is_some());
            }
            sent
        };
        assert_eq!(sent_at(&mut replies, now), STATELESS_REPLIES_PER_SECOND);
        assert!(!replies.has_room());
        assert_eq!(sent_at(&mut replies, now), 0);
        now += Duration::from_millis(100);
        let share = STATELESS_REPLIES_PER_SECOND / 10;
        assert_eq!(sent_at(&mut replies, now), share);
        // Often looked at, it earns no less; long silence, no more.
        for _ in 0..1000 {
            now += Duration::from_micros(100);
            replies.refill(now);
        }
        assert_eq!(sent_at(&mut replies, now), share);
        now += Duration::from_hours(1);
        assert_eq!(sent_at(&mut replies, now), STATELESS_REPLIES_PER_SECOND);
    }

    #[test]
    fn reflective_ports_are_found() {
        assert!(REFLECTIVE_PORTS.is_sorted());
        for port in 0..=u16::MAX {
            let mut path = path();
            path.remote.set_port(port);
            assert_eq!(path.is_reflective(), REFLECTIVE_PORTS.contains(&port));
        }
    }
}
