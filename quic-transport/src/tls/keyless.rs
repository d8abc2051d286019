//! rustls' cipher suites without the keys that it would make for itself.
//!
//! rustls sets up keys of two kinds: those of TLS records, which QUIC doesn't have (RFC 9001, 4), and QUIC packet keys at
//! each [`KeyChange`](rustls::quic::KeyChange). Nobody uses either: packets are protected with keys that are derived here
//! from the traffic secrets. So the suites that rustls gets have keys that hold nothing, and what such keys would be
//! made from isn't computed. All else is what the suite itself computes: secrets, Finished, tickets, exported ones.
//!
//! Why this is safe: what isn't computed goes to an [`AeadKey`] or an [`Iv`], and both end here, where they are dropped. A
//! key of this module refuses to protect and to open anything, so nothing can be sealed with zeros by mistake. And what
//! isn't computed is told by its whole name with an empty context, which an exported secret, whose name an application
//! chooses, never has: its context is a hash.

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    OutboundOpaqueMessage, OutboundPlainMessage, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{ActiveKeyExchange, CipherSuiteCommon, hmac};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{ConnectionTrafficSecrets, Error, SupportedCipherSuite, Tls13CipherSuite};

use super::crypto::provider::cipher_suite as real;

/// What keys that nobody uses would be made from: those of records (RFC 8446, 7.3) and of packets (RFC 9001, 5.1). The
/// names of QUIC version 2 aren't here, since rustls is always told version 1.
const UNUSED: [&[u8]; 5] = [b"key", b"iv", b"quic key", b"quic iv", b"quic hp"];

static AES_128_GCM: Keyless = Keyless::of(real::TLS13_AES_128_GCM_SHA256);
static AES_256_GCM: Keyless = Keyless::of(real::TLS13_AES_256_GCM_SHA384);
static CHACHA20_POLY1305: Keyless = Keyless::of(real::TLS13_CHACHA20_POLY1305_SHA256);

pub(super) static TLS13_AES_128_GCM_SHA256: Tls13CipherSuite = AES_128_GCM.suite();
pub(super) static TLS13_AES_256_GCM_SHA384: Tls13CipherSuite = AES_256_GCM.suite();
pub(super) static TLS13_CHACHA20_POLY1305_SHA256: Tls13CipherSuite = CHACHA20_POLY1305.suite();

/// A cipher suite of the cryptographic library, for a handshake alone.
pub(super) struct Keyless(pub(super) &'static Tls13CipherSuite);

impl Keyless {
    #[expect(
        clippy::expect_used,
        reason = "evaluated when this is compiled, for suites of TLS 1.3"
    )]
    const fn of(suite: SupportedCipherSuite) -> Self {
        Self(suite.tls13().expect("a suite of TLS 1.3"))
    }

    /// The suite that rustls gets.
    pub(super) const fn suite(&'static self) -> Tls13CipherSuite {
        let common = &self.0.common;
        Tls13CipherSuite {
            common: CipherSuiteCommon {
                suite: common.suite,
                hash_provider: common.hash_provider,
                confidentiality_limit: common.confidentiality_limit,
            },
            hkdf_provider: self,
            aead_alg: self,
            quic: Some(self),
        }
    }

    fn hkdf(&self) -> &'static dyn Hkdf {
        self.0.hkdf_provider
    }
}

impl Hkdf for Keyless {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.hkdf().extract_from_zero_ikm(salt)
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        self.hkdf().extract_from_secret(salt, secret)
    }

    fn extract_from_kx_shared_secret(
        &self,
        salt: Option<&[u8]>,
        exchange: Box<dyn ActiveKeyExchange>,
        share: &[u8],
    ) -> Result<Box<dyn HkdfExpander>, Error> {
        self.hkdf()
            .extract_from_kx_shared_secret(salt, exchange, share)
    }

    /// Keys come from such a secret, and never from one that was extracted (RFC 8446, 7.3).
    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(Expander {
            hkdf: self.hkdf(),
            length: self.0.common.hash_provider.output_len(),
            secret: okm.clone(),
        })
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> hmac::Tag {
        self.hkdf().hmac_sign(key, message)
    }

    fn fips(&self) -> bool {
        self.hkdf().fips()
    }
}

/// A secret whose HMAC key is set up when something is asked for that is used: that happens once for each, or never.
struct Expander {
    hkdf: &'static dyn Hkdf,
    length: usize,
    secret: OkmBlock,
}

impl HkdfExpander for Expander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        if is_unused(info) {
            output.fill(0);
            return Ok(());
        }
        let expander = self.hkdf.expander_for_okm(&self.secret);
        expander.expand_slice(info, output)
    }

    /// A whole block is a secret, and no key.
    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        self.hkdf.expander_for_okm(&self.secret).expand_block(info)
    }

    fn hash_len(&self) -> usize {
        self.length
    }
}

/// Whether this is the HkdfLabel of what is in [`UNUSED`], as rustls hands it over: length, length of the name, prefix,
/// name, length of the context, context (RFC 8446, 7.1).
fn is_unused(info: &[&[u8]]) -> bool {
    matches!(info, [_, _, b"tls13 ", name, [0], []] if UNUSED.contains(name))
}

impl Tls13AeadAlgorithm for Keyless {
    fn encrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Refusal)
    }

    fn decrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Refusal)
    }

    fn key_len(&self) -> usize {
        self.0.aead_alg.key_len()
    }

    fn extract_keys(
        &self,
        _: AeadKey,
        _: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }

    fn fips(&self) -> bool {
        self.0.aead_alg.fips()
    }
}

impl Algorithm for Keyless {
    fn packet_key(&self, _: AeadKey, _: Iv) -> Box<dyn PacketKey> {
        Box::new(Refusal)
    }

    fn header_protection_key(&self, _: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(Refusal)
    }

    fn aead_key_len(&self) -> usize {
        self.0.aead_alg.key_len()
    }

    fn fips(&self) -> bool {
        self.0.quic.is_some_and(Algorithm::fips)
    }
}

/// What rustls may ask the length of, of keys that there aren't.
const SAMPLE_LENGTH: usize = 16;
const TAG_LENGTH: usize = 16;

/// In the place of a key: protects nothing and opens nothing.
struct Refusal;

impl MessageEncrypter for Refusal {
    fn encrypt(
        &mut self,
        _: OutboundPlainMessage<'_>,
        _: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        Err(Error::EncryptError)
    }

    fn encrypted_payload_len(&self, payload: usize) -> usize {
        payload + 1 + TAG_LENGTH
    }
}

impl MessageDecrypter for Refusal {
    fn decrypt<'a>(
        &mut self,
        _: InboundOpaqueMessage<'a>,
        _: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        Err(Error::DecryptError)
    }
}

impl PacketKey for Refusal {
    fn encrypt_in_place(&self, _: u64, _: &[u8], _: &mut [u8]) -> Result<Tag, Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place<'a>(&self, _: u64, _: &[u8], _: &'a mut [u8]) -> Result<&'a [u8], Error> {
        Err(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        TAG_LENGTH
    }

    fn confidentiality_limit(&self) -> u64 {
        0
    }

    fn integrity_limit(&self) -> u64 {
        0
    }
}

impl HeaderProtectionKey for Refusal {
    fn encrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::DecryptError)
    }

    fn sample_len(&self) -> usize {
        SAMPLE_LENGTH
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::cipher::{AeadKey, InboundOpaqueMessage, Iv, OutboundPlainMessage};
    use rustls::crypto::tls13::OkmBlock;
    use rustls::quic::{DirectionalKeys, Version};
    use rustls::{ContentType, Error, ProtocolVersion, Side};

    use super::super::CipherSuite;
    use super::{OutputLengthError, Tls13CipherSuite, UNUSED, real};

    fn suites() -> [&'static Tls13CipherSuite; 3] {
        CipherSuite::ALL.map(|suite| suite.rustls().tls13().unwrap())
    }

    fn real_ones() -> [&'static Tls13CipherSuite; 3] {
        [
            real::TLS13_AES_128_GCM_SHA256,
            real::TLS13_AES_256_GCM_SHA384,
            real::TLS13_CHACHA20_POLY1305_SHA256,
        ]
        .map(|suite| suite.tls13().unwrap())
    }

    /// What there is of each label, for the secret of all sevens.
    fn expanded(
        suite: &Tls13CipherSuite,
        label: &[u8],
        context: &[u8],
    ) -> Result<Vec<u8>, OutputLengthError> {
        let secret = OkmBlock::new(&[7; 48][..suite.common.hash_provider.output_len()]);
        let expander = suite.hkdf_provider.expander_for_okm(&secret);
        let info = [
            &[0, 32][..],
            &[u8::try_from(6 + label.len()).unwrap()],
            b"tls13 ",
            label,
            &[u8::try_from(context.len()).unwrap()],
            context,
        ];
        let mut out = vec![0xee; 32];
        expander.expand_slice(&info, &mut out)?;
        out.extend_from_slice(expander.expand_block(&info).as_ref());
        Ok(out)
    }

    #[test]
    fn the_suites_are_those_of_the_library_but_for_their_keys() {
        for (suite, real) in suites().into_iter().zip(real_ones()) {
            assert_eq!(suite, real);
            assert_eq!(suite.fips(), real.fips());
            assert_eq!(suite.aead_alg.key_len(), real.aead_alg.key_len());
            let lengths = [suite, real].map(|suite| suite.quic.unwrap().aead_key_len());
            assert_eq!(lengths[0], lengths[1]);
            let hash = suite.common.hash_provider;
            assert_eq!(hash.algorithm(), real.common.hash_provider.algorithm());
        }
    }

    #[test]
    fn only_what_makes_a_key_is_not_computed() {
        for (suite, real) in suites().into_iter().zip(real_ones()) {
            for label in UNUSED {
                let ours = expanded(suite, label, &[]).unwrap();
                let theirs = expanded(real, label, &[]).unwrap();
                assert_eq!(ours[..32], [0; 32]);
                assert_eq!(ours[32..], theirs[32..], "a block is a secret");
                for context in [&[0][..], &[9; 32], &[0; 48]] {
                    let ours = expanded(suite, label, context).unwrap();
                    assert_eq!(ours, expanded(real, label, context).unwrap());
                }
            }
            for label in [
                &b"finished"[..],
                b"derived",
                b"resumption",
                b"exporter",
                b"quic ku",
                b"traffic upd",
                b"",
                b"ke",
                b"keys",
                b"quic",
                b"quicv2 key",
            ] {
                let ours = expanded(suite, label, &[]).unwrap();
                assert_eq!(ours, expanded(real, label, &[]).unwrap());
            }
        }
    }

    #[test]
    fn packets_are_neither_protected_nor_opened() {
        for suite in suites() {
            let keys = suite.quic_suite().unwrap();
            let keys = keys.keys(b"destination", Side::Client, Version::V1);
            for DirectionalKeys { header, packet } in [keys.local, keys.remote] {
                let mut payload = [5; 40];
                let refused = packet.encrypt_in_place(0, b"header", &mut payload);
                assert!(matches!(refused, Err(Error::EncryptError)));
                let refused = packet.encrypt_in_place_for_path(0, 0, b"header", &mut payload);
                assert!(matches!(refused, Err(Error::EncryptError)));
                let refused = packet.decrypt_in_place(0, b"header", &mut payload);
                assert_eq!(refused, Err(Error::DecryptError));
                assert_eq!(payload, [5; 40], "nor changed");
                let (mut first, mut number) = (0x43, [1, 2]);
                let sample = [0; 16];
                let refused = header.encrypt_in_place(&sample, &mut first, &mut number);
                assert_eq!(refused, Err(Error::EncryptError));
                let refused = header.decrypt_in_place(&sample, &mut first, &mut number);
                assert_eq!(refused, Err(Error::DecryptError));
                assert_eq!((first, number), (0x43, [1, 2]));
                assert_eq!((header.sample_len(), packet.tag_len()), (16, 16));
                let limits = (packet.confidentiality_limit(), packet.integrity_limit());
                assert_eq!(limits, (0, 0));
            }
        }
    }

    #[test]
    fn records_are_neither_protected_nor_opened() {
        let material = || (AeadKey::from([0; 32]), Iv::from([0; 12]));
        for suite in suites() {
            let (key, iv) = material();
            let mut encrypter = suite.aead_alg.encrypter(key, iv);
            let plain = OutboundPlainMessage {
                typ: ContentType::ApplicationData,
                version: ProtocolVersion::TLSv1_3,
                payload: (&b"payload"[..]).into(),
            };
            let refused = encrypter.encrypt(plain, 0).err();
            assert_eq!(refused, Some(Error::EncryptError));
            assert_eq!(encrypter.encrypted_payload_len(7), 24);
            let (key, iv) = material();
            let mut decrypter = suite.aead_alg.decrypter(key, iv);
            let mut sealed = [0; 24];
            let sealed = InboundOpaqueMessage::new(
                ContentType::ApplicationData,
                ProtocolVersion::TLSv1_2,
                &mut sealed,
            );
            let refused = decrypter.decrypt(sealed, 0).err();
            assert_eq!(refused, Some(Error::DecryptError));
            let (key, iv) = material();
            assert!(suite.aead_alg.extract_keys(key, iv).is_err());
        }
    }
}
