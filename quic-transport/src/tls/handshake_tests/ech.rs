//! Encrypted ClientHello: what anyone can read of it, and servers that don't know it
//! ([RFC 9849](https://www.rfc-editor.org/rfc/rfc9849)).

use rustls::PeerIncompatible;
use rustls::internal::msgs::codec::Codec as _;
use rustls::internal::msgs::handshake::EchConfigPayload;

use super::super::crypto::HPKE_SUITES;
use super::super::{EchStatus, ech};
use super::*;

const PUBLIC: &str = "public.example";
const SECRET: &str = "secret.example";

/// The extension's type.
const ENCRYPTED_CLIENT_HELLO: [u8; 2] = [0xfe, 0x0d];
const ECH_REQUIRED: u8 = 121;

/// An ECHConfigList with one configuration: DHKEM(X25519, HKDF-SHA256), and HKDF-SHA256 with AES-128-GCM.
fn list(version: u16, public_name: &str) -> Vec<u8> {
    let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
    let mut contents = vec![7, 0, 0x20, 0, 32, 9];
    contents.extend([0; 31]);
    contents.extend([0, 4, 0, 1, 0, 1, 0]);
    contents.push(u8::try_from(public_name.len()).unwrap());
    contents.extend(public_name.as_bytes());
    contents.extend([0, 0]);
    let mut list = length(contents.len() + 4).to_vec();
    list.extend(version.to_be_bytes());
    list.extend(length(contents.len()));
    list.extend(contents);
    list
}

/// The list that `version` 0xfe0d has.
fn usable() -> Vec<u8> {
    list(0xfe0d, PUBLIC)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A client of the secret name and a server whose certificate is for `name`; `None` where there is no HPKE.
fn meet(
    name: &str,
    change: impl Fn(ClientConfig) -> Result<ClientConfig, ApiError>,
) -> Option<Pair> {
    let identity = self_signed(&PKCS_ED25519, &[name]);
    let client = change(identity.client());
    if HPKE_SUITES.is_empty() {
        assert!(matches!(client, Err(ApiError::Config(_))));
        return None;
    }
    Some(Pair::named(
        &client.unwrap(),
        &identity.server(),
        SECRET,
        Version::V1,
    ))
}

/// 6.1.
#[test]
fn only_the_public_name_is_in_the_clear() {
    let Some(mut pair) = meet(SECRET, |client| client.ech(&usable())) else {
        return;
    };
    let hello = pair.client.flight().remove(0).1;
    let read = ClientHello::parse(&hello).unwrap().unwrap();
    assert_eq!(read.server_name, Some(PUBLIC));
    assert!(!contains(&hello, b"secret"));
    assert!(contains(&hello, &ENCRYPTED_CLIENT_HELLO));
    assert_eq!(pair.client.session.ech_status(), EchStatus::Offered);
}

/// 6.1.6: the client goes on to the end of the handshake with the public name, and tells the server then.
#[test]
fn a_server_without_ech_is_told_when_it_has_proved_who_it_is() {
    let Some(mut pair) = meet(PUBLIC, |client| client.ech(&usable())) else {
        return;
    };
    let (side, error) = pair.run().unwrap_err();
    assert_eq!(side, Side::Client);
    assert_eq!(error.code, TransportErrorCode::crypto(ECH_REQUIRED));
    let rejected = EchStatus::Rejected {
        retry_configs: Box::default(),
    };
    assert_eq!(pair.client.session.ech_status(), rejected);
    assert_eq!(pair.server.session.server_name(), Some(PUBLIC));
}

/// 6.1.7: a failure that anyone can cause says nothing about ECH.
#[test]
fn who_rejects_ech_needs_a_certificate_for_the_public_name() {
    let Some(mut pair) = meet(SECRET, |client| client.ech(&usable())) else {
        return;
    };
    let (side, error) = pair.run().unwrap_err();
    assert_eq!(side, Side::Client);
    assert_eq!(error.reason, "the certificate is for another name");
    assert_eq!(pair.client.session.ech_status(), EchStatus::Offered);
}

/// 6.2.
#[test]
fn grease_changes_nothing_but_the_client_hello() {
    let Some(mut pair) = meet(SECRET, ClientConfig::ech_grease) else {
        return;
    };
    let hello = pair.client.flight().remove(0).1;
    assert!(contains(&hello, &ENCRYPTED_CLIENT_HELLO));
    pair.server.session.read(Level::Initial, &hello).unwrap();
    pair.run().unwrap();
    pair.check_complete(CipherSuite::Aes128Gcm);
    assert_eq!(pair.client.session.ech_status(), EchStatus::Grease);
}

#[test]
fn a_list_that_can_not_be_used_is_refused() {
    let identity = self_signed(&PKCS_ED25519, &[PUBLIC]);
    let whole = usable();
    for length in 0..whole.len() {
        assert!(identity.client().ech(&whole[..length]).is_err(), "{length}");
    }
    let refused = identity.client().ech(&list(0xfe0a, PUBLIC)).unwrap_err();
    assert!(matches!(refused, ApiError::Config(_)));
    assert!(identity.client().ech(&list(0xfe0d, "not a name")).is_err());
}

/// 5: what the server offers instead comes as the bytes that it sent.
#[test]
fn retry_configurations_are_handed_over() {
    let configs = Vec::<EchConfigPayload>::read_bytes(&usable()).unwrap();
    let failure = PeerIncompatible::ServerRejectedEncryptedClientHello(Some(configs)).into();
    let rejected = EchStatus::Rejected {
        retry_configs: usable().into(),
    };
    assert_eq!(ech::rejection(&failure), Some(rejected));
    let other = rustls::Error::DecryptError;
    assert_eq!(ech::rejection(&other), None);
}
