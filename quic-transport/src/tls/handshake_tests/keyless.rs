//! What rustls asks its key schedule for, and what of it is computed: [`super::super::keyless`] leaves out what keys would be
//! made from, and a handshake comes to its end without.

use std::collections::BTreeSet;

use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{CipherSuiteCommon, CryptoProvider, hmac};
use rustls::{SupportedCipherSuite, Tls13CipherSuite};

use super::super::crypto::provider::{cipher_suite, default_provider};
use super::super::keyless::Keyless;
use super::*;

/// A server's transport parameters: two empty connection IDs.
const PARAMETERS: [u8; 4] = [0x00, 0, 0x0f, 0];

/// Names of what was asked for.
type Names = Arc<Mutex<BTreeSet<String>>>;

/// A suite that writes down what it is asked for.
struct Watched {
    suite: &'static Tls13CipherSuite,
    asked: Names,
}

struct WatchedExpander(Box<dyn HkdfExpander>, Names);

impl Watched {
    fn suite(suite: &'static Tls13CipherSuite, asked: &Names) -> &'static Tls13CipherSuite {
        let watched: &'static Self = Box::leak(Box::new(Self {
            suite,
            asked: Arc::clone(asked),
        }));
        Box::leak(Box::new(Tls13CipherSuite {
            common: CipherSuiteCommon {
                suite: suite.common.suite,
                hash_provider: suite.common.hash_provider,
                confidentiality_limit: suite.common.confidentiality_limit,
            },
            hkdf_provider: watched,
            ..*suite
        }))
    }

    fn watch(&self, expander: Box<dyn HkdfExpander>) -> Box<dyn HkdfExpander> {
        Box::new(WatchedExpander(expander, Arc::clone(&self.asked)))
    }
}

impl Hkdf for Watched {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.watch(self.suite.hkdf_provider.extract_from_zero_ikm(salt))
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        self.watch(self.suite.hkdf_provider.extract_from_secret(salt, secret))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        self.watch(self.suite.hkdf_provider.expander_for_okm(okm))
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> hmac::Tag {
        self.suite.hkdf_provider.hmac_sign(key, message)
    }
}

impl WatchedExpander {
    fn write_down(&self, info: &[&[u8]]) {
        let name = String::from_utf8(info[3].to_vec()).unwrap();
        self.1.lock().unwrap().insert(name);
    }
}

impl HkdfExpander for WatchedExpander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        self.write_down(info);
        self.0.expand_slice(info, output)
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        self.write_down(info);
        self.0.expand_block(info)
    }

    fn hash_len(&self) -> usize {
        self.0.hash_len()
    }
}

/// Configurations with the suite alone, watched before and behind what leaves keys out.
struct Watch {
    client: ClientConfig,
    server: ServerConfig,
    asked: Names,
    computed: Names,
}

impl Watch {
    fn new(suite: SupportedCipherSuite) -> Self {
        let (asked, computed) = (Names::default(), Names::default());
        let inner = Watched::suite(suite.tls13().unwrap(), &computed);
        let keyless: &'static Keyless = Box::leak(Box::new(Keyless(inner)));
        let outer = Watched::suite(Box::leak(Box::new(keyless.suite())), &asked);
        let provider = Arc::new(CryptoProvider {
            cipher_suites: vec![SupportedCipherSuite::Tls13(outer)],
            ..default_provider()
        });
        let identity = self_signed(&PKCS_ED25519, &["example.com"]);
        let mut roots = RootCertStore::empty();
        roots.add(identity.root.clone()).unwrap();
        let time = Arc::new(WallClock::manual(NOW));
        let alpn: Vec<_> = ALPN.iter().map(|name| name.to_vec()).collect();
        let mut client = rustls::ClientConfig::builder_with_details(
            Arc::clone(&provider),
            Arc::<WallClock>::clone(&time),
        )
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
        client.alpn_protocols.clone_from(&alpn);
        let mut server = rustls::ServerConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate], identity.key)
            .unwrap();
        server.alpn_protocols = alpn;
        Self {
            client: ClientConfig::from_rustls(client).unwrap(),
            server: ServerConfig::from_rustls(server).unwrap(),
            asked,
            computed,
        }
    }

    /// A handshake that offers early data when there is a session to be resumed.
    fn connect(&self) -> Pair {
        let client = ("example.com", 443);
        let client = Session::client(&self.client, Version::V1, client, &[], true).unwrap();
        let mut client = End::new(client);
        let (level, hello) = client.flight().remove(0);
        let read = ClientHello::parse(&hello).unwrap().unwrap();
        let terms = Terms {
            parameters: &PARAMETERS,
            early_data: true,
            psk_identity: read.psk_identity,
            ..terms(Version::V1)
        };
        let mut server = End::new(Session::server(&self.server, &terms, false).unwrap());
        server.session.read(level, &hello).unwrap();
        let mut pair = Pair { client, server };
        pair.run().unwrap();
        pair.check_keys();
        pair
    }
}

/// RFC 9001, 4: TLS records aren't used, and rustls' packet keys neither.
#[test]
fn a_handshake_needs_none_of_what_is_left_out() {
    for suite in [
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ] {
        let watch = Watch::new(suite);
        for is_resumed in [false, true] {
            let pair = watch.connect();
            for session in [&pair.client.session, &pair.server.session] {
                assert_eq!(session.is_resumed(), is_resumed);
                assert_eq!(session.is_early_data_accepted(), is_resumed);
            }
        }
        let (asked, computed) = (watch.asked.lock().unwrap(), watch.computed.lock().unwrap());
        let left_out: Vec<_> = asked.difference(&computed).collect();
        assert_eq!(left_out, ["iv", "key", "quic hp", "quic iv", "quic key"]);
        let rest: Vec<_> = asked.intersection(&computed).collect();
        assert_eq!(
            rest,
            [
                "c ap traffic",
                "c e traffic",
                "c hs traffic",
                "derived",
                "exp master",
                "finished",
                "quic ku",
                "res binder",
                "res master",
                "resumption",
                "s ap traffic",
                "s hs traffic",
            ]
        );
        assert_eq!(rest.len(), computed.len());
        drop((asked, computed));
    }
}

/// RFC 8446, 7.5: an application may choose any name.
#[test]
fn an_exported_secret_may_have_the_name_of_a_key() {
    let identity = self_signed(&PKCS_ED25519, &["example.com"]);
    let mut pair = Pair::new(&identity.client(), &identity.server());
    pair.run().unwrap();
    let mut secrets = BTreeSet::new();
    for label in [&b"key"[..], b"iv", b"quic key", b"quic iv", b"quic hp"] {
        let [client, server] = [&pair.client, &pair.server].map(|end| {
            let mut out = [0; 32];
            end.session.export(&mut out, label, None).unwrap();
            out
        });
        assert_eq!(client, server);
        secrets.insert(client);
    }
    assert_eq!(secrets.len(), 5, "none of them is zeros");
    assert!(!secrets.contains(&[0; 32]));
}
