//! From a traffic secret to keys: HKDF-Expand-Label with the version's labels
//! ([RFC 9001, sections 5.1 and 5.2](https://www.rfc-editor.org/rfc/rfc9001#section-5.1)).
//!
//! The keys are derived here and not by rustls, so that one schedule serves every version, both roles and key updates.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::crypto::aead::{LessSafeKey, UnboundKey};
use super::crypto::hkdf::{self, KeyType, Okm, Prk, Salt};
use super::labels::{Labels, labels};
use super::protect::{HeaderKey, LevelKeys, LocalKeys, OpenKey, RemoteKeys, SealKey};
use super::suite::CipherSuite;
use crate::wire::{ConnectionId, Side, Version};

/// The longest traffic secret: one hash of SHA-384.
const MAX_SECRET: usize = 48;

/// A traffic secret of one direction; wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Secret {
    bytes: [u8; MAX_SECRET],
    length: usize,
}

impl Secret {
    /// A copy of `secret`; `None` when it is longer than any traffic secret.
    pub(super) fn new(secret: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_SECRET];
        bytes.get_mut(..secret.len())?.copy_from_slice(secret);
        Some(Self {
            bytes,
            length: secret.len(),
        })
    }

    /// Zeros to be filled in, as many as a hash has bytes.
    pub(super) const fn zeros(length: usize) -> Self {
        Self {
            bytes: [0; MAX_SECRET],
            length,
        }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.length).unwrap_or_default()
    }
}

/// A traffic secret with all that is needed to derive keys from it.
pub(super) struct TrafficSecret {
    suite: CipherSuite,
    version: Version,
    secret: Secret,
}

impl TrafficSecret {
    pub(super) const fn new(suite: CipherSuite, version: Version, secret: Secret) -> Self {
        Self {
            suite,
            version,
            secret,
        }
    }

    pub(super) const fn suite(&self) -> CipherSuite {
        self.suite
    }

    /// The keys for what we send, when this is our secret.
    pub(super) fn local_keys(&self) -> LocalKeys {
        let prk = self.prk();
        LocalKeys {
            packet: self.seal_key_from(&prk),
            header: self.header_key_from(&prk),
        }
    }

    /// The keys for what we receive, when this is the peer's secret.
    pub(super) fn remote_keys(&self) -> RemoteKeys {
        let prk = self.prk();
        RemoteKeys {
            packet: self.open_key_from(&prk),
            header: self.header_key_from(&prk),
        }
    }

    pub(super) fn seal_key(&self) -> SealKey {
        self.seal_key_from(&self.prk())
    }

    pub(super) fn open_key(&self) -> OpenKey {
        self.open_key_from(&self.prk())
    }

    /// The key for headers, if this is the first secret of its direction.
    pub(super) fn header_key(&self) -> HeaderKey {
        self.header_key_from(&self.prk())
    }

    /// The secret that follows after a key update; the header key stays (RFC 9001, 6.1).
    pub(super) fn next(&self) -> Self {
        let mut secret = Secret::zeros(self.suite.secret_length());
        fill(&self.prk(), self.labels().update, secret.as_mut_slice());
        Self {
            suite: self.suite,
            version: self.version,
            secret,
        }
    }

    fn seal_key_from(&self, prk: &Prk) -> SealKey {
        let (key, iv) = self.packet_key_from(prk);
        SealKey::new(key, iv)
    }

    fn open_key_from(&self, prk: &Prk) -> OpenKey {
        let (key, iv) = self.packet_key_from(prk);
        OpenKey::new(key, iv)
    }

    fn packet_key_from(&self, prk: &Prk) -> (LessSafeKey, [u8; 12]) {
        let labels = self.labels();
        let key: UnboundKey = expand_key(prk, labels.key, self.suite.aead(), |okm| okm.into());
        let mut iv = [0; 12];
        fill(prk, labels.iv, &mut iv);
        (LessSafeKey::new(key), iv)
    }

    fn header_key_from(&self, prk: &Prk) -> HeaderKey {
        let algorithm = self.suite.header_protection();
        HeaderKey::new(expand_key(prk, self.labels().header, algorithm, |okm| {
            okm.into()
        }))
    }

    fn prk(&self) -> Prk {
        Prk::new_less_safe(self.suite.hkdf(), self.secret.as_slice())
    }

    const fn labels(&self) -> &'static Labels {
        labels(self.version)
    }
}

impl std::fmt::Debug for TrafficSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrafficSecret")
            .field("suite", &self.suite)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// The keys of Initial packets, which anyone who saw the client's first Destination Connection ID can derive.
///
/// `client_dcid` is that of the client's first Initial, or of the first one after a Retry.
pub(crate) fn initial_keys(version: Version, client_dcid: &ConnectionId, side: Side) -> LevelKeys {
    let (client, server) = initial_secrets(version, client_dcid);
    let (local, remote) = match side {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    LevelKeys::new(&local, &remote)
}

/// The client's and the server's secret.
fn initial_secrets(version: Version, client_dcid: &ConnectionId) -> (TrafficSecret, TrafficSecret) {
    let salt = Salt::new(hkdf::HKDF_SHA256, &labels(version).initial_salt);
    let initial = salt.extract(client_dcid.as_slice());
    let secret = |label| {
        let suite = CipherSuite::Aes128Gcm;
        let mut secret = Secret::zeros(suite.secret_length());
        fill(&initial, label, secret.as_mut_slice());
        TrafficSecret::new(suite, version, secret)
    };
    (secret(b"client in"), secret(b"server in"))
}

/// HKDF-Expand-Label with an empty context into `out`, which is short (RFC 8446, 7.1).
pub(super) fn fill(prk: &Prk, label: &[u8], out: &mut [u8]) {
    let filled = try_fill(prk, label, &[], out);
    debug_assert!(filled.is_some(), "an output of more than 255 hashes");
}

/// HKDF-Expand-Label into `out`; `None` when it, the label or the context is too long (RFC 8446, 7.1).
pub(super) fn try_fill(prk: &Prk, label: &[u8], context: &[u8], out: &mut [u8]) -> Option<()> {
    let length = Length(out.len());
    expand_label(prk, label, context, length, |okm| okm.fill(out).ok()).flatten()
}

/// HKDF-Expand-Label with an empty context for a key (RFC 8446, 7.1).
#[expect(
    clippy::expect_used,
    reason = "fails only for an output of more than 255 hashes; no key is longer than one"
)]
fn expand_key<L: KeyType, T>(
    prk: &Prk,
    label: &[u8],
    length: L,
    take: impl FnOnce(Okm<'_, L>) -> T,
) -> T {
    expand_label(prk, label, &[], length, take).expect("a key is short")
}

fn expand_label<L: KeyType, T>(
    prk: &Prk,
    label: &[u8],
    context: &[u8],
    length: L,
    take: impl FnOnce(Okm<'_, L>) -> T,
) -> Option<T> {
    const PREFIX: &[u8] = b"tls13 ";
    let output = u16::try_from(length.len()).ok()?.to_be_bytes();
    let name = [u8::try_from(PREFIX.len() + label.len()).ok()?];
    let context_length = [u8::try_from(context.len()).ok()?];
    let info: [&[u8]; 6] = [&output, &name, PREFIX, label, &context_length, context];
    prk.expand(&info, length).ok().map(take)
}

#[derive(Clone, Copy, Debug)]
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::hex;
    use super::{
        CipherSuite, ConnectionId, Prk, Secret, TrafficSecret, Version, fill, hkdf,
        initial_secrets, labels,
    };

    /// The key, IV and header key, which the real keys hide.
    fn expanded(secret: &TrafficSecret, key: usize) -> [Vec<u8>; 3] {
        let labels = secret.labels();
        [(labels.key, key), (labels.iv, 12), (labels.header, key)].map(|(label, length)| {
            let mut out = vec![0; length];
            fill(&secret.prk(), label, &mut out);
            out
        })
    }

    fn sample_cid() -> ConnectionId {
        ConnectionId::new(&hex("8394c8f03e515708")).unwrap()
    }

    /// RFC 9001, A.1.
    #[test]
    fn initial_keys_of_the_rfc() {
        let (client, server) = initial_secrets(Version::V1, &sample_cid());
        assert_eq!(
            client.secret.as_slice(),
            hex("c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea")
        );
        assert_eq!(
            expanded(&client, 16),
            [
                hex("1f369613dd76d5467730efcbe3b1a22d"),
                hex("fa044b2f42a3fd3b46fb255c"),
                hex("9f50449e04a0e810283a1e9933adedd2"),
            ]
        );
        assert_eq!(
            server.secret.as_slice(),
            hex("3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b")
        );
        assert_eq!(
            expanded(&server, 16),
            [
                hex("cf3a5331653c364c88f0f379b6067e37"),
                hex("0ac1493ca1905853b0bba03e"),
                hex("c206b8d9b9f0f37644430b490eeaa314"),
            ]
        );
    }

    /// RFC 9369, A.1.
    #[test]
    fn initial_keys_of_version_2() {
        let (client, server) = initial_secrets(Version::V2, &sample_cid());
        assert_eq!(
            server.secret.as_slice(),
            hex("0263db1782731bf4588e7e4d93b7463907cb8cd8200b5da55a8bd488eafc37c1")
        );
        assert_eq!(
            expanded(&server, 16),
            [
                hex("82db637861d55e1d011f19ea71d5d2a7"),
                hex("dd13c276499c0249d3310652"),
                hex("edf6d05c83121201b436e16877593c3a"),
            ]
        );
        assert_eq!(
            client.secret.as_slice(),
            hex("14ec9d6eb9fd7af83bf5a668bc17a7e283766aade7ecd0891f70f9ff7f4bf47b")
        );
        assert_eq!(
            expanded(&client, 16),
            [
                hex("8b1a0bc121284290a29e0971b5cd045d"),
                hex("91f73e2351d8fa91660e909f"),
                hex("45b95e15235d6f45a6b19cbcb0294ba9"),
            ]
        );
    }

    /// RFC 9001, A.5.
    #[test]
    fn chacha20_keys_and_the_key_update_of_the_rfc() {
        let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        let secret = TrafficSecret::new(
            CipherSuite::ChaCha20Poly1305,
            Version::V1,
            Secret::new(&secret).unwrap(),
        );
        assert_eq!(
            expanded(&secret, 32),
            [
                hex("c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8"),
                hex("e0459b3474bdd0e44a41c144"),
                hex("25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4"),
            ]
        );
        assert_eq!(
            secret.next().secret.as_slice(),
            hex("1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9")
        );
    }

    /// RFC 9369, A.5.
    #[test]
    fn chacha20_keys_and_the_key_update_of_version_2() {
        let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        let secret = TrafficSecret::new(
            CipherSuite::ChaCha20Poly1305,
            Version::V2,
            Secret::new(&secret).unwrap(),
        );
        assert_eq!(
            expanded(&secret, 32),
            [
                hex("3bfcddd72bcf02541d7fa0dd1f5f9eeea817e09a6963a0e6c7df0f9a1bab90f2"),
                hex("a6b5bc6ab7dafce30ffff5dd"),
                hex("d659760d2ba434a226fd37b35c69e2da8211d10c4f12538787d65645d5d1b8e2"),
            ]
        );
        assert_eq!(
            secret.next().secret.as_slice(),
            hex("c69374c49e3d2a9466fa689e49d476db5d0dfbc87d32ceeaa6343fd0ae4c7d88")
        );
    }

    /// RFC 9001, 5.8 and RFC 9369, 3.3.3: the constants come from a secret of their own.
    #[test]
    fn retry_keys_follow_from_their_secrets() {
        let secrets = [
            "d9c9943e6101fd200021506bcc02814c73030f25c79d71ce876eca876e6fca8e",
            "c4dd2484d681aefa4ff4d69c2c20299984a765a5d3c31982f38fc74162155e9f",
        ];
        for (version, secret) in [Version::V1, Version::V2].into_iter().zip(secrets) {
            let labels = labels(version);
            let prk = Prk::new_less_safe(hkdf::HKDF_SHA256, &hex(secret));
            let (mut key, mut nonce) = ([0; 16], [0; 12]);
            fill(&prk, labels.key, &mut key);
            fill(&prk, labels.iv, &mut nonce);
            assert_eq!((key, nonce), (labels.retry_key, labels.retry_nonce));
        }
    }

    #[test]
    fn a_secret_of_48_bytes_fits_and_one_of_49_does_not() {
        assert_eq!(Secret::new(&[7; 48]).unwrap().as_slice(), [7; 48]);
        assert!(Secret::new(&[7; 49]).is_none());
    }

    #[test]
    fn a_secret_is_never_printed() {
        let secret = TrafficSecret::new(
            CipherSuite::Aes128Gcm,
            Version::V1,
            Secret::new(&[0xab; 32]).unwrap(),
        );
        assert!(!format!("{secret:?}").contains("171"));
    }
}
