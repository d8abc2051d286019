//! What the messages of TLS have to say when they travel over QUIC, and what they may not say.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::Reader;
use test_fixture::scripted::{Level, SeenFrame, frames};
use test_fixture::scripted_pairs::{ROUND_TRIP, to_client, to_server};

const SECOND: Duration = Duration::from_secs(1);
const PROTOCOL: u64 = 10;

/// A ClientHello in parts.
struct Hello {
    session_id: Vec<u8>,
    suites: Vec<u8>,
    extensions: Vec<(u16, Vec<u8>)>,
    random: Vec<u8>,
}

impl Hello {
    fn read(hello: &[u8]) -> Self {
        let mut reader = Reader::new(hello);
        let mut vector = |skipped, width| {
            reader.bytes(skipped).unwrap();
            let mut length = 0;
            for _ in 0..width {
                length = length << 8 | usize::from(reader.u8().unwrap());
            }
            reader.bytes(length).unwrap().to_vec()
        };
        let session_id = vector(4 + 2 + 32, 1);
        let suites = vector(0, 2);
        let compression = vector(0, 1);
        assert_eq!(compression, [0]);
        let extensions = vector(0, 2);
        let mut reader = Reader::new(&extensions);
        let mut found = Vec::new();
        while !reader.is_empty() {
            let id = reader.u16().unwrap();
            let length = reader.u16().unwrap();
            found.push((id, reader.bytes(length.into()).unwrap().to_vec()));
        }
        Self {
            session_id,
            suites,
            extensions: found,
            random: hello.get(6..38).unwrap().to_vec(),
        }
    }

    fn extension(&self, id: u16) -> Option<&[u8]> {
        let mut extensions = self.extensions.iter();
        let found = extensions.find(|(known, _)| *known == id);
        found.map(|(_, value)| value.as_slice())
    }

    fn write(&self) -> Vec<u8> {
        let vector = |width: usize, bytes: &[u8]| {
            let length = bytes.len().to_be_bytes();
            [length.get(8 - width..).unwrap(), bytes].concat()
        };
        let mut extensions = Vec::new();
        for (id, value) in &self.extensions {
            extensions.extend(id.to_be_bytes());
            extensions.extend(vector(2, value));
        }
        let body = [
            vec![3, 3],
            self.random.clone(),
            vector(1, &self.session_id),
            vector(2, &self.suites),
            vec![1, 0],
            vector(2, &extensions),
        ];
        [vec![1], vector(3, &body.concat())].concat()
    }
}

/// What a server says to a ClientHello that was changed, and whether it goes on with TLS.
fn server_says(change: impl FnOnce(&mut Hello)) -> (Option<u64>, bool) {
    let mut pair = to_server();
    pair.client.is_automatic = false;
    let bytes = pair.client.take_crypto(Level::Initial);
    let mut hello = Hello::read(&bytes);
    assert_eq!(hello.write(), bytes);
    change(&mut hello);
    let frame = frames::crypto(0, &hello.write());
    pair.client.send(Level::Initial, &frame);
    pair.run(ROUND_TRIP);
    let mut frames = pair.client.frames(Level::Initial);
    let is_answered = frames.any(|frame| matches!(frame, SeenFrame::Crypto { .. }));
    (pair.client.close_code(), is_answered)
}

/// RFC 9001, 4.2, 8.2 and 8.4: TLS 1.3 and nothing older, with transport parameters and without compatibility mode.
#[test]
fn a_client_hello_is_one_of_quic() {
    let mut pair = to_client();
    pair.handshake();
    let mut bytes = Vec::new();
    for frame in pair.server.frames(Level::Initial) {
        if let SeenFrame::Crypto { data, .. } = frame {
            bytes.extend(data);
        }
    }
    let hello = Hello::read(&bytes);
    assert_eq!(hello.extension(43), Some(&[2, 3, 4][..]), "versions");
    assert!(hello.extension(16).is_some(), "protocols");
    assert!(hello.extension(57).is_some(), "transport parameters");
    assert_eq!(hello.extension(42), None, "no early data");
    assert!(hello.session_id.is_empty());
}

/// RFC 9001, 8.4: a session ID asks for what QUIC doesn't have.
#[test]
fn compatibility_mode_is_an_error() {
    let says = server_says(|hello| hello.session_id = vec![7; 32]);
    assert_eq!(says, (Some(PROTOCOL), false));
}

/// RFC 9001, 5.3: suites that nobody knows are passed over.
#[test]
fn unknown_suites_are_no_reason_to_refuse() {
    let says = server_says(|hello| {
        hello.suites.splice(0..0, [0xfa, 0xfb, 0x13, 0x05]);
    });
    assert_eq!(says, (None, true));
}

/// RFC 9001, 4.2: the alert protocol_version, as an error code.
#[test]
fn older_versions_of_tls_are_refused() {
    const PROTOCOL_VERSION: u64 = 0x146;
    let says = server_says(|hello| hello.extensions.retain(|(id, _)| *id != 43));
    assert_eq!(says, (Some(PROTOCOL_VERSION), false));
}

/// RFC 9001, 8.2: the alert missing_extension, as an error code; 8.1: no_application_protocol likewise.
#[test]
fn a_client_hello_needs_its_extensions() {
    for (extension, code) in [(57, 0x16d), (16, 0x178)] {
        let says = server_says(|hello| hello.extensions.retain(|(id, _)| *id != extension));
        assert_eq!(says, (Some(code), false), "{extension}");
    }
}

/// What a client says to a message of TLS after the handshake.
fn client_says(message: &[u8]) -> Option<u64> {
    let mut pair = to_client();
    pair.handshake();
    let end: usize = pair.server.take_crypto(Level::OneRtt).len();
    let offset = u64::try_from(end).unwrap();
    pair.server
        .send(Level::OneRtt, &frames::crypto(offset, message));
    pair.run(SECOND);
    pair.server.close_code()
}

/// RFC 9001, 4.4, 4.6.1 and 6: what a server doesn't say after the handshake.
#[test]
fn messages_after_the_handshake_are_tickets_only() {
    const UNEXPECTED_MESSAGE: u64 = 0x10a;
    let request = [13, 0, 0, 11, 0, 0, 8, 0, 13, 0, 4, 0, 2, 8, 4];
    assert_eq!(client_says(&request), Some(PROTOCOL));
    let key_update = [24, 0, 0, 1, 0];
    assert_eq!(client_says(&key_update), Some(UNEXPECTED_MESSAGE));
    let ticket = |most: u32| {
        let head = [
            4, 0, 0, 22, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 7, 0, 8, 0, 42, 0, 4,
        ];
        [&head[..], &most.to_be_bytes()].concat()
    };
    assert_eq!(client_says(&ticket(1000)), Some(PROTOCOL));
    assert_eq!(client_says(&ticket(u32::MAX)), None);
}
