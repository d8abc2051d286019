//! Packet and header protection, in place
//! ([RFC 9001, sections 5.3 and 5.4](https://www.rfc-editor.org/rfc/rfc9001#section-5.3)).
//!
//! This runs for every packet: the cryptographic library is called directly, nothing is allocated, and no step depends on what an
//! unauthenticated packet number holds. A packet that fails to authenticate is destroyed, so that exactly one key is
//! tried on it.

use super::crypto::aead::quic::HeaderProtectionKey;
use super::crypto::aead::{Aad, LessSafeKey, Nonce};
use super::schedule::TrafficSecret;
use super::suite::CipherSuite;

/// Bytes that sealing adds at the end of a packet, with every suite.
pub(crate) const TAG_LENGTH: usize = 16;

/// Bytes that header protection samples.
pub(crate) const SAMPLE_LENGTH: usize = 16;

/// Where the sample begins after the start of the packet number: as if that were 4 bytes long.
const SAMPLE_OFFSET: usize = 4;

/// The nonce for packet number 0, as an integer.
#[derive(Clone, Copy)]
struct Iv(u128);

impl Iv {
    fn new(iv: [u8; 12]) -> Self {
        Self(
            iv.into_iter()
                .fold(0, |iv, byte| iv << 8 | u128::from(byte)),
        )
    }

    #[inline]
    fn nonce(self, number: u64) -> Nonce {
        let [_, _, _, _, nonce @ ..] = (self.0 ^ u128::from(number)).to_be_bytes();
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Protects the packets that we send.
pub(crate) struct SealKey {
    key: LessSafeKey,
    iv: Iv,
}

impl SealKey {
    pub(super) fn new(key: LessSafeKey, iv: [u8; 12]) -> Self {
        Self {
            key,
            iv: Iv::new(iv),
        }
    }

    /// Encrypts a packet in place: `header_length` bytes of header, the payload, and [`TAG_LENGTH`] bytes of any
    /// content where the tag is put.
    ///
    /// `number` must never be used again with this key.
    #[inline]
    pub(crate) fn seal(&self, number: u64, header_length: usize, packet: &mut [u8]) {
        if self.try_seal(number, header_length, packet).is_none() {
            debug_assert!(false, "no room for the tag, or a payload beyond all limits");
            // What can't be sealed must not leave in the clear.
            packet.fill(0);
        }
    }

    #[inline]
    fn try_seal(&self, number: u64, header_length: usize, packet: &mut [u8]) -> Option<()> {
        let (header, rest) = packet.split_at_mut_checked(header_length)?;
        let (payload, space) = rest.split_last_chunk_mut::<TAG_LENGTH>()?;
        let tag = self
            .key
            .seal_in_place_separate_tag(self.iv.nonce(number), Aad::from(&*header), payload)
            .ok()?;
        space.copy_from_slice(tag.as_ref());
        Some(())
    }
}

/// Opens the packets that we receive.
pub(crate) struct OpenKey {
    key: LessSafeKey,
    iv: Iv,
}

impl OpenKey {
    pub(super) fn new(key: LessSafeKey, iv: [u8; 12]) -> Self {
        Self {
            key,
            iv: Iv::new(iv),
        }
    }

    /// Decrypts a packet in place and returns its payload; `None`, and the payload is destroyed, when it isn't authentic.
    ///
    /// The header must be without protection already.
    #[inline]
    pub(crate) fn open<'p>(
        &self,
        number: u64,
        header_length: usize,
        packet: &'p mut [u8],
    ) -> Option<&'p mut [u8]> {
        let (header, payload) = packet.split_at_mut_checked(header_length)?;
        self.key
            .open_in_place(self.iv.nonce(number), Aad::from(&*header), payload)
            .ok()
    }
}

/// Hides and reveals the first byte's low bits and the packet number, in one direction.
pub(crate) struct HeaderKey {
    key: HeaderProtectionKey,
}

/// What a header's protected fields say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unprotected {
    /// The first byte, without protection.
    pub(crate) first: u8,
    /// Bytes of the packet number, 1 to 4.
    pub(crate) number_length: usize,
    /// The packet number as it was sent, without its upper bits.
    pub(crate) truncated: u64,
}

impl HeaderKey {
    pub(super) const fn new(key: HeaderProtectionKey) -> Self {
        Self { key }
    }

    /// Protects the header of a sealed packet whose packet number of `number_length` bytes, 1 to 4, lies at
    /// `number_offset`.
    ///
    /// The payload with its tag must be at least 4 - `number_length` + 16 bytes long.
    #[inline]
    pub(crate) fn protect(&self, packet: &mut [u8], number_offset: usize, number_length: usize) {
        let Some((first, number, mask)) = self.parts(packet, number_offset) else {
            debug_assert!(false, "the packet is too short to be sampled");
            return;
        };
        let [first_mask, number_mask @ ..] = mask;
        *first ^= first_mask & protected_bits(*first);
        let kept = leading_bytes(number_length);
        let word = u32::from_be_bytes(*number) ^ (u32::from_be_bytes(number_mask) & kept);
        *number = word.to_be_bytes();
    }

    /// Removes the protection in place; `None`, and nothing changes, when the packet is too short to hold a sample.
    #[inline]
    pub(crate) fn unprotect(&self, packet: &mut [u8], number_offset: usize) -> Option<Unprotected> {
        let (first, number, mask) = self.parts(packet, number_offset)?;
        let [first_mask, number_mask @ ..] = mask;
        *first ^= first_mask & protected_bits(*first);
        let number_length = usize::from(*first & 0x03) + 1;
        let kept = leading_bytes(number_length);
        let word = u32::from_be_bytes(*number) ^ (u32::from_be_bytes(number_mask) & kept);
        *number = word.to_be_bytes();
        Some(Unprotected {
            first: *first,
            number_length,
            truncated: u64::from((word & kept) >> (8 * (SAMPLE_OFFSET - number_length))),
        })
    }

    /// The mask for a sample.
    #[inline]
    pub(crate) fn mask(&self, sample: &[u8; SAMPLE_LENGTH]) -> [u8; 5] {
        // Fails only for a sample of another length.
        self.key.new_mask(sample).unwrap_or_default()
    }

    /// The first byte, the 4 bytes from the packet number on, and the mask.
    #[inline]
    fn parts<'p>(
        &self,
        packet: &'p mut [u8],
        number_offset: usize,
    ) -> Option<(&'p mut u8, &'p mut [u8; SAMPLE_OFFSET], [u8; 5])> {
        let (head, rest) = packet.split_at_mut_checked(number_offset)?;
        let (number, rest) = rest.split_first_chunk_mut()?;
        let mask = self.mask(rest.first_chunk()?);
        Some((head.first_mut()?, number, mask))
    }
}

/// The bits of the first byte that are protected: 4 of a long header, 5 of a short one.
const fn protected_bits(first: u8) -> u8 {
    if first & 0x80 == 0 { 0x1f } else { 0x0f }
}

/// Ones in the first `count` bytes of a word, `count` from 1 to 4.
const fn leading_bytes(count: usize) -> u32 {
    match count {
        1 => 0xff00_0000,
        2 => 0xffff_0000,
        3 => 0xffff_ff00,
        _ => u32::MAX,
    }
}

/// The keys that protect what we send.
pub(crate) struct LocalKeys {
    /// For the payload.
    pub(crate) packet: SealKey,
    /// For the header.
    pub(crate) header: HeaderKey,
}

/// The keys that open what we receive.
pub(crate) struct RemoteKeys {
    /// For the payload.
    pub(crate) packet: OpenKey,
    /// For the header.
    pub(crate) header: HeaderKey,
}

/// The keys of a level in both directions; those of 1-RTT packets change, see [`super::OneRttKeys`].
///
/// These are never updated, so that the packet number alone bounds their use: it must stay below
/// [`CipherSuite::confidentiality_limit`].
pub(crate) struct LevelKeys {
    /// What we send.
    pub(crate) local: LocalKeys,
    /// What we receive.
    pub(crate) remote: RemoteKeys,
    suite: CipherSuite,
}

impl LevelKeys {
    pub(super) fn new(local: &TrafficSecret, remote: &TrafficSecret) -> Self {
        Self {
            local: local.local_keys(),
            remote: remote.remote_keys(),
            suite: local.suite(),
        }
    }

    /// The suite, which sets the limits.
    #[must_use]
    pub(crate) const fn suite(&self) -> CipherSuite {
        self.suite
    }
}

impl std::fmt::Debug for LevelKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LevelKeys")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::{Secret, TrafficSecret, initial_keys};
    use super::super::{hex, vectors};
    use super::{HeaderKey, LevelKeys, OpenKey, TAG_LENGTH, Unprotected};
    use crate::tls::CipherSuite;
    use crate::wire::{ConnectionId, Side, Version};

    fn sample_keys(version: Version, side: Side) -> LevelKeys {
        let cid = ConnectionId::new(&hex("8394c8f03e515708")).unwrap();
        initial_keys(version, &cid, side)
    }

    fn chacha20() -> TrafficSecret {
        chacha20_of(Version::V1)
    }

    fn chacha20_of(version: Version) -> TrafficSecret {
        let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        TrafficSecret::new(
            CipherSuite::ChaCha20Poly1305,
            version,
            Secret::new(&secret).unwrap(),
        )
    }

    /// Header and payload with room for the tag.
    fn packet(header: &str, payload: &[u8]) -> (usize, Vec<u8>) {
        let mut packet = hex(header);
        let header_length = packet.len();
        packet.extend_from_slice(payload);
        packet.extend_from_slice(&[0; TAG_LENGTH]);
        (header_length, packet)
    }

    fn reveal<'p>(
        header: &HeaderKey,
        key: &OpenKey,
        packet: &'p mut [u8],
        number_offset: usize,
    ) -> (Unprotected, &'p mut [u8]) {
        let found = header.unprotect(packet, number_offset).unwrap();
        let payload = key
            .open(found.truncated, number_offset + found.number_length, packet)
            .unwrap();
        (found, payload)
    }

    /// RFC 9001, A.2.
    #[test]
    fn client_initial_of_the_rfc() {
        let keys = sample_keys(Version::V1, Side::Client);
        let mut frames = hex(vectors::CLIENT_FRAMES);
        frames.resize(1162, 0);
        let (header, mut packet) = packet("c300000001088394c8f03e5157080000449e00000002", &frames);
        keys.local.packet.seal(2, header, &mut packet);
        assert_eq!(packet[22..38], hex("d1b1c98dd7689fb8ec11d242b123dc9b"));
        let sample: &[u8; 16] = packet[22..38].try_into().unwrap();
        assert_eq!(keys.local.header.mask(sample)[..], hex("437b9aec36"));
        keys.local.header.protect(&mut packet, 18, 4);
        assert_eq!(packet, hex(vectors::CLIENT_INITIAL));

        let keys = sample_keys(Version::V1, Side::Server);
        let (found, payload) = reveal(&keys.remote.header, &keys.remote.packet, &mut packet, 18);
        assert_eq!(
            found,
            Unprotected {
                first: 0xc3,
                number_length: 4,
                truncated: 2,
            }
        );
        assert_eq!(payload, frames);
    }

    /// RFC 9001, A.3.
    #[test]
    fn server_initial_of_the_rfc() {
        let keys = sample_keys(Version::V1, Side::Server);
        let frames = hex(vectors::SERVER_FRAMES);
        let (header, mut packet) = packet("c1000000010008f067a5502a4262b50040750001", &frames);
        keys.local.packet.seal(1, header, &mut packet);
        let sample: &[u8; 16] = packet[22..38].try_into().unwrap();
        assert_eq!(sample[..], hex("2cd0991cd25b0aac406a5816b6394100"));
        assert_eq!(keys.local.header.mask(sample)[..], hex("2ec0d8356a"));
        keys.local.header.protect(&mut packet, 18, 2);
        assert_eq!(packet, hex(vectors::SERVER_INITIAL));

        let keys = sample_keys(Version::V1, Side::Client);
        let (found, payload) = reveal(&keys.remote.header, &keys.remote.packet, &mut packet, 18);
        assert_eq!((found.first, found.number_length), (0xc1, 2));
        assert_eq!(payload, frames);
    }

    /// RFC 9001, A.5: the smallest packet there is.
    #[test]
    fn chacha20_short_packet_of_the_rfc() {
        let secret = chacha20();
        let (header, mut packet) = packet("4200bff4", &[0x01]);
        secret.seal_key().seal(654_360_564, header, &mut packet);
        assert_eq!(packet[4..], hex("655e5cd55c41f69080575d7999c25a5bfb"));
        secret.local_keys().header.protect(&mut packet, 1, 3);
        assert_eq!(packet, hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb"));

        let found = secret
            .remote_keys()
            .header
            .unprotect(&mut packet, 1)
            .unwrap();
        assert_eq!(
            found,
            Unprotected {
                first: 0x42,
                number_length: 3,
                truncated: 49_140,
            }
        );
        let payload = secret.open_key().open(654_360_564, 4, &mut packet);
        assert_eq!(payload.unwrap(), [0x01]);
    }

    /// RFC 9369, A.2 and A.3.
    #[test]
    fn initials_of_version_2() {
        let mut by_client = hex(vectors::CLIENT_FRAMES);
        by_client.resize(1162, 0);
        let by_server = hex(vectors::SERVER_FRAMES);
        let client = "d36b3343cf088394c8f03e5157080000449e00000002";
        let server = "d16b3343cf0008f067a5502a4262b50040750001";
        let cases = [
            (
                Side::Client,
                client,
                by_client,
                (2, 4),
                vectors::CLIENT_INITIAL_V2,
            ),
            (
                Side::Server,
                server,
                by_server,
                (1, 2),
                vectors::SERVER_INITIAL_V2,
            ),
        ];
        for (side, header, frames, (number, length), expected) in cases {
            let keys = sample_keys(Version::V2, side);
            let (header, mut packet) = packet(header, &frames);
            keys.local.packet.seal(number, header, &mut packet);
            keys.local.header.protect(&mut packet, 18, length);
            assert_eq!(packet, hex(expected));
            let keys = sample_keys(Version::V2, side.peer());
            let (_, payload) = reveal(&keys.remote.header, &keys.remote.packet, &mut packet, 18);
            assert_eq!(payload, frames);
        }
    }

    /// RFC 9369, A.5.
    #[test]
    fn chacha20_short_packet_of_version_2() {
        let secret = chacha20_of(Version::V2);
        let (header, mut packet) = packet("4200bff4", &[0x01]);
        secret.seal_key().seal(654_360_564, header, &mut packet);
        secret.local_keys().header.protect(&mut packet, 1, 3);
        assert_eq!(packet, hex("5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba"));
    }

    #[test]
    fn header_protection_round_trips_for_every_length_and_form() {
        let key = chacha20().local_keys().header;
        for form in [0x40, 0xc0] {
            for length in 1..=4_u8 {
                let mut packet: Vec<u8> = (100..140).collect();
                packet[0] = form | (length - 1);
                let before = packet.clone();
                key.protect(&mut packet, 7, usize::from(length));
                assert_eq!(packet[1..7], before[1..7]);
                assert_eq!(
                    packet[7 + usize::from(length)..],
                    before[7 + usize::from(length)..]
                );
                assert_ne!(packet, before);
                let found = key.unprotect(&mut packet, 7).unwrap();
                assert_eq!(packet, before);
                let number = before[7..7 + usize::from(length)]
                    .iter()
                    .fold(0, |number, byte| (number << 8) | u64::from(*byte));
                assert_eq!(found.truncated, number);
                assert_eq!(found.number_length, usize::from(length));
            }
        }
    }

    /// RFC 9001, 5.4.2: a packet without 4 + 16 bytes from the packet number on is dropped.
    #[test]
    fn a_packet_too_short_to_be_sampled_is_untouched() {
        let key = chacha20().local_keys().header;
        for length in 0..21 {
            let mut packet = vec![0x55; length];
            assert_eq!(key.unprotect(&mut packet, 1), None);
            assert_eq!(packet, vec![0x55; length]);
        }
        assert!(key.unprotect(&mut [0x55; 21], 1).is_some());
        assert_eq!(key.unprotect(&mut [0x55; 64], usize::MAX), None);
        assert_eq!(key.unprotect(&mut [0x55; 64], 0), None);
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let keys = sample_keys(Version::V1, Side::Client);
        let opener = sample_keys(Version::V1, Side::Server);
        let (header, mut sealed) = packet("c30000000108", b"frames");
        keys.local.packet.seal(9, header, &mut sealed);
        assert!(
            opener
                .remote
                .packet
                .open(9, header, &mut sealed.clone())
                .is_some()
        );
        assert!(
            opener
                .remote
                .packet
                .open(8, header, &mut sealed.clone())
                .is_none()
        );
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(opener.remote.packet.open(9, header, &mut forged).is_none());
        }
        for length in 0..header + TAG_LENGTH {
            assert!(
                opener
                    .remote
                    .packet
                    .open(9, header, &mut sealed[..length].to_vec())
                    .is_none()
            );
        }
    }
}
