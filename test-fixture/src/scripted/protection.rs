//! Packet protection by rustls' own QUIC keys, which the code under test doesn't use.

use std::fmt;

use quic_transport::tls::crypto_provider;
use rustls::quic::{HeaderProtectionKey, KeyChange, Keys, PacketKeySet, Secrets, Version};
use rustls::{CipherSuite, Side};

/// QUIC version 2, RFC 9369.
pub const VERSION_2: u32 = 0x6b33_43cf;

/// Bytes of an AEAD tag.
const TAG: usize = 16;

/// Where the sample for header protection begins after the start of the packet number, RFC 9001, 5.4.2.
const SAMPLE_OFFSET: usize = 4;

/// The keys of one level, both directions, with those of later key phases.
pub(super) struct Protection {
    local_header: Box<dyn HeaderProtectionKey>,
    remote_header: Box<dyn HeaderProtectionKey>,
    /// Packet keys by key phase, counted from 0; more are made when they are asked for.
    phases: Vec<PacketKeySet>,
    secrets: Option<Secrets>,
}

/// An opened packet.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) first: u8,
    pub(super) number: u64,
    pub(super) payload: Vec<u8>,
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protection").finish_non_exhaustive()
    }
}

impl Protection {
    /// The keys that anyone can derive from the client's first destination connection ID.
    pub(super) fn initial(version: u32, cid: &[u8], side: Side) -> Self {
        let provider = crypto_provider();
        let is_initial = |suite: &&rustls::SupportedCipherSuite| {
            suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256
        };
        let suite = provider.cipher_suites.iter().find(is_initial);
        let suite = suite.and_then(rustls::SupportedCipherSuite::tls13).unwrap();
        let keys = Keys::initial(
            rustls_version(version),
            suite,
            suite.quic.unwrap(),
            cid,
            side,
        );
        Self::new(keys, None)
    }

    /// The keys that TLS has come to.
    pub(super) fn from_tls(change: KeyChange) -> Self {
        match change {
            KeyChange::Handshake { keys } => Self::new(keys, None),
            KeyChange::OneRtt { keys, next } => Self::new(keys, Some(next)),
        }
    }

    fn new(keys: Keys, secrets: Option<Secrets>) -> Self {
        let Keys { local, remote } = keys;
        Self {
            local_header: local.header,
            remote_header: remote.header,
            phases: vec![PacketKeySet {
                local: local.packet,
                remote: remote.packet,
            }],
            secrets,
        }
    }

    fn make_phase(&mut self, phase: usize) {
        while self.phases.len() <= phase {
            let secrets = self.secrets.as_mut().unwrap();
            self.phases.push(secrets.next_packet_keys());
        }
    }

    /// Seals `header`, which ends with `number_length` bytes of packet number, and `payload`.
    pub(super) fn seal(
        &mut self,
        phase: usize,
        number: u64,
        (header, number_length): (&[u8], usize),
        payload: &[u8],
    ) -> Vec<u8> {
        self.make_phase(phase);
        let mut sealed = payload.to_vec();
        let key = &self.phases[phase].local;
        let tag = key.encrypt_in_place(number, header, &mut sealed).unwrap();
        let mut packet = [header, &sealed, tag.as_ref()].concat();
        let number_at = header.len() - number_length;
        let sample = packet[number_at + SAMPLE_OFFSET..][..TAG].to_vec();
        let (first, rest) = packet.split_first_mut().unwrap();
        let truncated = &mut rest[number_at - 1..][..number_length];
        self.local_header
            .encrypt_in_place(&sample, first, truncated)
            .unwrap();
        packet
    }

    /// Opens a packet whose number begins at `number_at`, in the key phase that its header asks for.
    ///
    /// `phase` tells, from the packet's first byte, which phases to try.
    pub(super) fn open(
        &mut self,
        packet: &[u8],
        number_at: usize,
        expected: u64,
        phase: impl FnOnce(u8) -> usize,
    ) -> Option<Opened> {
        let mut packet = packet.to_vec();
        let sample = packet
            .get(number_at + SAMPLE_OFFSET..)?
            .get(..TAG)?
            .to_vec();
        let (first, rest) = packet.split_first_mut()?;
        let truncated = &mut rest[number_at - 1..][..4];
        self.remote_header
            .decrypt_in_place(&sample, first, truncated)
            .unwrap();
        let first = *first;
        let number_length = usize::from(first & 3) + 1;
        let number = decode(&packet[number_at..][..number_length], expected);
        let phase = phase(first);
        self.make_phase(phase);
        let (header, body) = packet.split_at_mut(number_at + number_length);
        let key = &self.phases[phase].remote;
        let payload = key.decrypt_in_place(number, header, body).ok()?;
        Some(Opened {
            first,
            number,
            payload: payload.to_vec(),
        })
    }
}

/// The version whose labels rustls is to use.
pub(super) const fn rustls_version(version: u32) -> Version {
    match version {
        VERSION_2 => Version::V2,
        _ => Version::V1,
    }
}

/// The number closest to the expected one that ends with these bytes, RFC 9000, A.3.
fn decode(truncated: &[u8], expected: u64) -> u64 {
    let window = 1_u64 << (8 * truncated.len());
    let low = truncated
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    let candidate = expected / window * window + low;
    let candidates = [
        candidate.saturating_sub(window),
        candidate,
        candidate + window,
    ];
    let near = |candidate: &u64| candidate.abs_diff(expected);
    let fits = |candidate: &u64| candidate % window == low;
    candidates
        .into_iter()
        .filter(fits)
        .min_by_key(near)
        .unwrap()
}

#[cfg(test)]
mod tests {
    use super::decode;

    /// RFC 9000, A.3.
    #[test]
    fn numbers_decode_as_in_the_rfc() {
        assert_eq!(decode(&[0x9b, 0x32], 0xa82f_30eb), 0xa82f_9b32);
        assert_eq!(decode(&[0], 0), 0);
        assert_eq!(decode(&[1], 0), 1);
    }
}
