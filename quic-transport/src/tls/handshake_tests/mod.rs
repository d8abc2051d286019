//! Whole handshakes between two sessions, with the CRYPTO bytes carried by hand, level by level.

mod certificates;
mod ech;
mod handshakes;
mod keyless;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    SignatureAlgorithm,
};
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ED25519, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{KeyLog, RootCertStore};

use super::{
    CipherSuite, ClientConfig, ClientHello, KeyExchange, LevelKeys, NewKeys, OneRttKeys, Phase,
    ServerConfig, Session, TAG_LENGTH, Terms, WallClock, pin_of,
};
use crate::error::{ApiError, Error};
use crate::wire::{Level, Side, TransportErrorCode, Version};

const ALPN: &[&[u8]] = &[b"h3"];
const CLIENT_PARAMETERS: &[u8] = b"client parameters";
const SERVER_PARAMETERS: &[u8] = b"server parameters";

/// The middle of the certificates' validity: July 2026.
const NOW: Duration = Duration::from_secs(1_783_000_000);

/// A self-signed certificate, or one with the authority that signed it.
struct Identity {
    certificate: CertificateDer<'static>,
    root: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// Parameters of a certificate that is issued to this key.
fn parameters(names: &[&str], key: &KeyPair) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names).unwrap();
    parameters.not_before = date_time_ymd(2026, 1, 1);
    parameters.not_after = date_time_ymd(2027, 1, 1);
    let subject = format!("{:02x?}", &key.public_key_raw()[1..9]);
    parameters
        .distinguished_name
        .push(DnType::CommonName, subject);
    parameters
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(key.serialize_der().into())
}

fn self_signed(algorithm: &'static SignatureAlgorithm, names: &[&str]) -> Identity {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let certificate = parameters(names, &key).self_signed(&key).unwrap();
    Identity {
        certificate: certificate.der().clone(),
        root: certificate.der().clone(),
        key: private(&key),
    }
}

fn issued(algorithm: &'static SignatureAlgorithm, names: &[&str]) -> Identity {
    let authority_key = KeyPair::generate_for(algorithm).unwrap();
    let mut authority = parameters(&[], &authority_key);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).unwrap();
    let key = KeyPair::generate_for(algorithm).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let certificate = parameters(names, &key).signed_by(&key, &issuer).unwrap();
    Identity {
        certificate: certificate.der().clone(),
        root: root.der().clone(),
        key: private(&key),
    }
}

impl Identity {
    fn server(&self) -> ServerConfig {
        let chain = vec![self.certificate.clone()];
        ServerConfig::new(chain, self.key.clone_key(), ALPN).unwrap()
    }

    fn client(&self) -> ClientConfig {
        ClientConfig::with_roots([self.root.clone()], ALPN)
            .unwrap()
            .wall_clock(WallClock::manual(NOW))
    }

    fn pin(&self) -> [u8; 32] {
        pin_of(&self.certificate)
    }

    fn pinning_client(&self) -> ClientConfig {
        ClientConfig::with_pin(self.pin(), ALPN)
            .unwrap()
            .wall_clock(WallClock::manual(NOW))
    }
}

/// One end, with the keys that it got.
struct End {
    session: Session,
    level: Level,
    handshake: Option<Box<LevelKeys>>,
    one_rtt: Option<Box<OneRttKeys>>,
}

impl End {
    const fn new(session: Session) -> Self {
        Self {
            session,
            level: Level::Initial,
            handshake: None,
            one_rtt: None,
        }
    }

    /// Everything to be sent, with its levels.
    fn flight(&mut self) -> Vec<(Level, Vec<u8>)> {
        let mut flight = Vec::new();
        loop {
            let mut bytes = Vec::new();
            let keys = self.session.write(&mut bytes);
            let is_idle = bytes.is_empty() && keys.is_none();
            if !bytes.is_empty() {
                flight.push((self.level, bytes));
            }
            match keys {
                Some(NewKeys::Handshake(keys)) => {
                    self.level = Level::Handshake;
                    self.handshake = Some(keys);
                }
                Some(NewKeys::OneRtt(keys)) => {
                    self.level = Level::OneRtt;
                    self.one_rtt = Some(keys);
                }
                None if is_idle => return flight,
                None | Some(NewKeys::ZeroRtt(_)) => {}
            }
        }
    }
}

struct Pair {
    client: End,
    server: End,
}

/// A server's terms, without early data.
fn terms(version: Version) -> Terms<'static> {
    Terms {
        first: version,
        version,
        parameters: SERVER_PARAMETERS,
        settings: &[],
        early_data: false,
        psk_identity: None,
        accepts: &|_| true,
    }
}

/// Which end refused, and why.
type Refusal = (Side, Error);

impl Pair {
    fn new(client: &ClientConfig, server: &ServerConfig) -> Self {
        Self::named(client, server, "example.com", Version::V1)
    }

    fn named(client: &ClientConfig, server: &ServerConfig, name: &str, version: Version) -> Self {
        let prefers_chacha20 = client.rustls().crypto_provider().cipher_suites[0].suite()
            == CipherSuite::ChaCha20Poly1305.rustls().suite();
        Self {
            client: End::new(
                Session::client(client, version, (name, 443), CLIENT_PARAMETERS, false).unwrap(),
            ),
            server: End::new(Session::server(server, &terms(version), prefers_chacha20).unwrap()),
        }
    }

    /// Carries bytes in pieces of `piece` until both ends are silent.
    fn run_in_pieces(&mut self, piece: usize) -> Result<(), Refusal> {
        loop {
            let flight = self.client.flight();
            let is_silent = flight.is_empty();
            for (level, bytes) in flight {
                for bytes in bytes.chunks(piece) {
                    let outcome = self.server.session.read(level, bytes);
                    outcome.map_err(|error| (Side::Server, error))?;
                }
            }
            let flight = self.server.flight();
            if is_silent && flight.is_empty() {
                return Ok(());
            }
            for (level, bytes) in flight {
                for bytes in bytes.chunks(piece) {
                    let outcome = self.client.session.read(level, bytes);
                    outcome.map_err(|error| (Side::Client, error))?;
                }
                // The keys of the next level are needed before its bytes can be read.
                let answer = self.client.flight();
                for (level, bytes) in answer {
                    let outcome = self.server.session.read(level, &bytes);
                    outcome.map_err(|error| (Side::Server, error))?;
                }
            }
        }
    }

    fn run(&mut self) -> Result<(), Refusal> {
        self.run_in_pieces(usize::MAX)
    }

    fn check_complete(&mut self, suite: CipherSuite) {
        for session in [&self.client.session, &self.server.session] {
            assert!(!session.is_handshaking());
            assert_eq!(session.read_level(), Level::OneRtt);
            assert_eq!(session.alpn(), Some(&b"h3"[..]));
            assert_eq!(session.suite(), Some(suite));
            assert_eq!(session.cipher_suite(), suite.name());
            assert_eq!(session.key_exchange_group(), KeyExchange::DEFAULT[0].name());
        }
        let (client, server) = (&self.client.session, &self.server.session);
        assert_eq!(client.peer_transport_parameters(), Some(SERVER_PARAMETERS));
        assert_eq!(server.peer_transport_parameters(), Some(CLIENT_PARAMETERS));
        assert_eq!(client.server_name(), None);
        self.check_keys();
    }

    /// What one end seals the other opens, at both levels and in both directions.
    fn check_keys(&mut self) {
        let (client, server) = (&mut self.client, &mut self.server);
        for (sealer, opener) in [
            (&client.handshake, &server.handshake),
            (&server.handshake, &client.handshake),
        ] {
            let (sealer, opener) = (sealer.as_ref().unwrap(), opener.as_ref().unwrap());
            let mut packet = [0xe3; 60];
            sealer.local.packet.seal(7, 10, &mut packet);
            sealer.local.header.protect(&mut packet, 6, 4);
            assert_eq!(
                opener
                    .remote
                    .header
                    .unprotect(&mut packet, 6)
                    .unwrap()
                    .first,
                0xe3
            );
            let payload = opener.remote.packet.open(7, 10, &mut packet).unwrap();
            assert_eq!(payload, [0xe3; 50 - TAG_LENGTH]);
        }
        let client = client.one_rtt.as_deref_mut().unwrap();
        let server = server.one_rtt.as_deref_mut().unwrap();
        for is_client in [true, false] {
            let (sealer, opener) = if is_client {
                (&mut *client, &mut *server)
            } else {
                (&mut *server, &mut *client)
            };
            let mut packet = [0x43; 60];
            sealer.seal(9, 10, &mut packet);
            sealer.local_header().protect(&mut packet, 6, 4);
            let found = opener.remote_header().unprotect(&mut packet, 6).unwrap();
            assert_eq!(found.first, 0x43);
            let (payload, choice) = opener.open(9, false, 10, &mut packet).unwrap();
            assert_eq!(payload, [0x43; 50 - TAG_LENGTH]);
            assert_eq!(opener.on_opened(9, choice), Ok(Phase::Current));
        }
    }
}

/// The reason and the code with which the client refuses the server.
fn client_refusal(client: &ClientConfig, server: &ServerConfig) -> (u64, &'static str) {
    let mut pair = Pair::new(client, server);
    let (side, error) = pair.run().unwrap_err();
    assert_eq!(side, Side::Client);
    assert!(pair.client.one_rtt.is_none(), "no data can be delivered");
    assert!(pair.client.session.is_handshaking());
    (error.code.value(), error.reason)
}
