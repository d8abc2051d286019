//! A server's Initial packets, opened by who looks on (RFC 9001, 5; RFC 9369, 3).

use std::collections::BTreeMap;

use ring::{
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey, quic},
    hkdf::{HKDF_SHA256, KeyType, Prk, Salt},
};

use super::server_hello::ServerHello;

/// A QUIC version: its number, what keys are made with, and the bits of an Initial packet's type.
struct Version {
    number: u32,
    salt: [u8; 20],
    labels: [&'static str; 3],
    initial: u8,
}

const VERSIONS: [Version; 2] = [
    Version {
        number: 1,
        salt: [
            0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
            0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
        ],
        labels: ["quic key", "quic iv", "quic hp"],
        initial: 0b00,
    },
    Version {
        number: 0x6b33_43cf,
        salt: [
            0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
            0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
        ],
        labels: ["quicv2 key", "quicv2 iv", "quicv2 hp"],
        initial: 0b01,
    },
];

/// One client's connections.
#[derive(Default)]
pub(super) struct Initials {
    /// By the connection ID that the client began with: what the server has said, by its offset.
    said: BTreeMap<Vec<u8>, BTreeMap<u64, Vec<u8>>>,
}

impl Initials {
    /// A client's datagram: the destination of an Initial packet may be the one that keys are made of.
    pub(super) fn on_client(&mut self, datagram: &[u8]) {
        if let Some(packet) = Packet::read(datagram) {
            self.said.entry(packet.dcid.to_vec()).or_default();
        }
    }

    /// A server's datagram. Returns the ServerHello that it completes.
    pub(super) fn on_server(&mut self, mut datagram: &[u8]) -> Option<ServerHello> {
        while let Some(packet) = Packet::read(datagram) {
            for (first, said) in &mut self.said {
                let Some(plain) = packet.open(first) else {
                    continue;
                };
                read_crypto(&plain, said);
                let stream: Vec<u8> = said.values().flatten().copied().collect();
                if let Some(hello) = ServerHello::read(&stream) {
                    self.said.clear();
                    return Some(hello);
                }
            }
            datagram = datagram.get(packet.length..)?;
        }
        None
    }
}

/// An Initial packet.
struct Packet<'a> {
    version: &'static Version,
    dcid: &'a [u8],
    /// All of it.
    bytes: &'a [u8],
    /// Where the packet's number begins.
    number_at: usize,
    length: usize,
}

impl<'a> Packet<'a> {
    /// The one at the start of a datagram.
    fn read(datagram: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(datagram);
        let first = reader.byte()?;
        let number = u32::from_be_bytes(*reader.take(4)?.first_chunk()?);
        let version = VERSIONS.iter().find(|version| version.number == number)?;
        if first >> 7 == 0 || first >> 4 & 0b11 != version.initial {
            return None;
        }
        let length = reader.byte()?;
        let dcid = reader.take(length.into())?;
        let length = reader.byte()?;
        reader.take(length.into())?;
        let token = reader.varint()?;
        reader.take(usize::try_from(token).ok()?)?;
        let rest = usize::try_from(reader.varint()?).ok()?;
        let number_at = datagram.len() - reader.0.len();
        let length = number_at.checked_add(rest)?;
        Some(Self {
            version,
            dcid,
            bytes: datagram.get(..length)?,
            number_at,
            length,
        })
    }

    /// Its frames, if the server made it for a client that began with this connection ID.
    fn open(&self, first: &[u8]) -> Option<Vec<u8>> {
        let salt = Salt::new(HKDF_SHA256, &self.version.salt);
        let secret: [u8; 32] = expand(&salt.extract(first), "server in")?;
        let secret = Prk::new_less_safe(HKDF_SHA256, &secret);
        let [key, iv, hp] = self.version.labels;
        let (key, hp): ([u8; 16], [u8; 16]) = (expand(&secret, key)?, expand(&secret, hp)?);
        let mut nonce: [u8; 12] = expand(&secret, iv)?;
        let mut bytes = self.bytes.to_vec();
        let sample = bytes.get(self.number_at + 4..self.number_at + 20)?;
        let hp = quic::HeaderProtectionKey::new(&quic::AES_128, &hp).ok()?;
        let [first_mask, mask @ ..] = hp.new_mask(sample).ok()?;
        let first = bytes.first_mut()?;
        *first ^= first_mask & 0x0f;
        let length = usize::from(*first & 3) + 1;
        let number = bytes.get_mut(self.number_at..self.number_at + length)?;
        for (byte, mask) in number.iter_mut().zip(mask) {
            *byte ^= mask;
        }
        for (byte, digit) in nonce.iter_mut().rev().zip(number.iter().rev()) {
            *byte ^= digit;
        }
        let (header, sealed) = bytes.split_at_mut_checked(self.number_at + length)?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = key.open_in_place(nonce, Aad::from(&*header), sealed).ok()?;
        Some(plain.to_vec())
    }
}

/// Keeps the CRYPTO frames among these.
fn read_crypto(frames: &[u8], said: &mut BTreeMap<u64, Vec<u8>>) -> Option<()> {
    let mut reader = Reader(frames);
    loop {
        match reader.varint()? {
            0 | 1 => {}
            kind @ (2 | 3) => {
                reader.varint()?;
                reader.varint()?;
                let ranges = reader.varint()?;
                let counts = if kind == 3 { 3 } else { 0 };
                // The first range, then two numbers for each further one.
                for _ in 0..=2 * ranges + counts {
                    reader.varint()?;
                }
            }
            6 => {
                let offset = reader.varint()?;
                let length = reader.varint()?;
                let data = reader.take(usize::try_from(length).ok()?)?;
                said.insert(offset, data.to_vec());
            }
            _ => return None,
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let rest = self.take((1 << (first >> 6)) - 1)?.iter();
        Some(rest.fold(u64::from(first & 0x3f), |number, byte| {
            number << 8 | u64::from(*byte)
        }))
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label of TLS 1.3, without a context.
fn expand<const SIZE: usize>(secret: &Prk, label: &str) -> Option<[u8; SIZE]> {
    let length = u16::try_from(SIZE).ok()?.to_be_bytes();
    let label = [b"tls13 ", label.as_bytes()].concat();
    let label_length = [u8::try_from(label.len()).ok()?];
    let info: [&[u8]; 4] = [&length, &label_length, &label, &[0]];
    let mut out = [0; SIZE];
    secret
        .expand(&info, Length(SIZE))
        .and_then(|expanded| expanded.fill(&mut out))
        .ok()?;
    Some(out)
}
