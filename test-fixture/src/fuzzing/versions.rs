//! What a peer says of versions ([RFC 9368, section 4](https://www.rfc-editor.org/rfc/rfc9368#section-4)), against a
//! plain reading of the rules.

use std::time::Duration;

use quic_transport::{Config, Side, Version, Versions};

use crate::SERVER;
use crate::ends::{ALPN, Client, Log, NAME, Server, Settings};
use crate::network::Link;
use crate::pair::Pair;
use crate::scripted::{Parameters, ScriptedPeer, VERSION_2, client_config, parameters};

const TRANSPORT_PARAMETER_ERROR: u64 = 0x08;
const VERSION_NEGOTIATION_ERROR: u64 = 0x11;

/// Lets a scripted client, or a server, say the bytes as its version information, in either version.
///
/// The handshake completes, or is closed with the code that the rules ask for.
pub fn version_information(bytes: &[u8]) {
    let Some((&choice, said)) = bytes.split_first() else {
        return;
    };
    // What doesn't fit a packet beside the rest would only be another test of long ClientHellos.
    let said = &said[..said.len().min(200)];
    let version = if choice & 1 == 0 { 1 } else { VERSION_2 };
    if choice & 2 == 0 {
        from_client(version, said);
    } else {
        from_server(version, said);
    }
}

fn from_client(version: u32, said: &[u8]) {
    let settings = Settings {
        versions: both(),
        ..Settings::default()
    };
    let (parameters, link) = (speaking(said), Link::delayed(Duration::from_millis(1)));
    let mut pair =
        Pair::<ScriptedPeer, Server<Log>>::scripted_client(&settings, Parameters::generous(), link);
    let tls = client_config(settings.certificate.chain.last().unwrap(), &[ALPN]);
    let remote = pair.network.address(SERVER);
    let spoken = (version, version);
    pair.client = ScriptedPeer::client_of_versions(spoken, tls, NAME, parameters, remote, 1);
    pair.run(Duration::from_secs(1));
    let expected = expected(Side::Client, version, said);
    let close = pair.client.close_code();
    if close.is_none() && expected.is_none() && !pair.client.is_confirmed() {
        // The server has chosen the other version, which this client doesn't follow.
        let (server, _) = pair.server.connection(0).unwrap();
        assert_ne!(server.version(), Version(version));
        assert!(list(said).unwrap()[1..].contains(&server.version().0));
    } else {
        assert_eq!(close, expected);
        assert_eq!(pair.client.is_confirmed(), expected.is_none());
    }
}

fn from_server(version: u32, said: &[u8]) {
    let settings = Settings {
        client: Config {
            versions: both(),
            ..Config::default()
        },
        ..Settings::default()
    };
    let link = Link::delayed(Duration::from_millis(1));
    let mut pair =
        Pair::<Client<Log>, ScriptedPeer>::scripted_server(&settings, speaking(said), link);
    pair.server.set_version(version);
    pair.run(Duration::from_secs(1));
    let expected = expected(Side::Server, version, said);
    assert_eq!(pair.server.close_code(), expected);
    let client = &pair.client.connection;
    assert_eq!(client.is_handshaking(), expected.is_some());
    assert_eq!(client.version(), Version(version));
}

fn both() -> Versions {
    Versions::new(&[Version::V1, Version::V2]).unwrap()
}

fn speaking(said: &[u8]) -> Parameters {
    let mut parameters = Parameters::generous();
    parameters.set_bytes(parameters::VERSION_INFORMATION, said);
    parameters
}

/// The versions, if the bytes are a list of them.
fn list(said: &[u8]) -> Option<Vec<u32>> {
    let (words, rest) = said.as_chunks::<4>();
    let list: Vec<u32> = words.iter().map(|word| u32::from_be_bytes(*word)).collect();
    (rest.is_empty() && !list.is_empty() && !list.contains(&0)).then_some(list)
}

/// The code that the connection must be closed with.
fn expected(sender: Side, version: u32, said: &[u8]) -> Option<u64> {
    let Some(list) = list(said) else {
        return Some(TRANSPORT_PARAMETER_ERROR);
    };
    if sender == Side::Client && !list[1..].contains(&list[0]) {
        return Some(TRANSPORT_PARAMETER_ERROR);
    }
    (list[0] != version).then_some(VERSION_NEGOTIATION_ERROR)
}
