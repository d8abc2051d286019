//! Connection IDs that a load balancer can read, [draft-ietf-quic-load-balancers-21].
//!
//! An ID says which configuration it is of, which server it leads to, and a nonce that is never used twice. With a key both
//! are encrypted, in one block of AES if they fill it, else by a Feistel network of four rounds over two halves.
//!
//! [draft-ietf-quic-load-balancers-21]: https://datatracker.ietf.org/doc/html/draft-ietf-quic-load-balancers-21

use aes::{
    Aes128,
    cipher::{BlockDecrypt as _, BlockEncrypt as _, KeyInit as _},
};

use crate::{
    error::ApiError,
    wire::{ConnectionId, MAX_CID_LENGTH},
};

/// The most bytes that server ID and nonce have together.
const MAX_PLAINTEXT: usize = MAX_CID_LENGTH - 1;

/// The least bytes of a nonce.
const MIN_NONCE: usize = 4;

/// The configuration bits of IDs that no load balancer can read.
const UNROUTABLE: u8 = 0b111;

/// Bytes of a block of AES, which server ID and nonce may fill.
const BLOCK: usize = 16;

/// The longest half.
const MAX_HALF: usize = MAX_PLAINTEXT.div_ceil(2);

/// How connection IDs tell a load balancer which server they lead to.
#[derive(Clone)]
pub struct Routing {
    /// Of the configuration, 0 to 6.
    rotation: u8,
    server_id: Vec<u8>,
    nonce_length: usize,
    key: Option<Aes128>,
}

impl std::fmt::Debug for Routing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Routing")
            .field("rotation", &self.rotation)
            .field("server_id", &self.server_id)
            .field("nonce_length", &self.nonce_length)
            .finish_non_exhaustive()
    }
}

impl Routing {
    /// Configuration `rotation` (0 to 6) of the load balancer, in which this server is `server_id`: at least a byte, and
    /// at most 19 with the at least 4 of the nonce. Without a `key` everyone can read the ID.
    ///
    /// # Errors
    ///
    /// When one of them is out of range.
    pub fn new(
        rotation: u8,
        server_id: &[u8],
        nonce_length: usize,
        key: Option<&[u8; BLOCK]>,
    ) -> Result<Self, ApiError> {
        let fits = server_id
            .len()
            .checked_add(nonce_length)
            .is_some_and(|length| length <= MAX_PLAINTEXT);
        if rotation >= UNROUTABLE || server_id.is_empty() || nonce_length < MIN_NONCE || !fits {
            return Err(ApiError::Config("routing of connection IDs"));
        }
        Ok(Self {
            rotation,
            server_id: server_id.to_vec(),
            nonce_length,
            key: key.map(|key| Aes128::new(key.into())),
        })
    }

    /// Bytes of an ID.
    #[must_use]
    pub const fn cid_length(&self) -> usize {
        1 + self.plaintext_length()
    }

    /// The server that an ID of this configuration leads to, as a load balancer finds it; `None` for another ID.
    #[must_use]
    pub fn server_id_of(&self, cid: &[u8]) -> Option<Vec<u8>> {
        let (first, rest) = cid.split_first()?;
        if first >> 5 != self.rotation {
            return None;
        }
        let mut text = rest.get(..self.plaintext_length())?.to_vec();
        if let Some(key) = &self.key {
            decrypt(key, &mut text);
        }
        text.truncate(self.server_id.len());
        Some(text)
    }

    /// The ID with this nonce, of which as many bytes count as it has.
    pub(crate) fn cid(&self, nonce: &[u8]) -> Option<ConnectionId> {
        let length = u8::try_from(self.plaintext_length()).ok()?;
        let mut text = self.server_id.clone();
        text.extend_from_slice(nonce.get(..self.nonce_length)?);
        if let Some(key) = &self.key {
            encrypt(key, &mut text);
        }
        text.insert(0, self.rotation << 5 | length);
        ConnectionId::new(&text)
    }

    const fn plaintext_length(&self) -> usize {
        self.server_id.len() + self.nonce_length
    }
}

/// Encrypts server ID and nonce (section 5.4).
fn encrypt(key: &Aes128, text: &mut [u8]) {
    if let Ok(block) = <&mut [u8; BLOCK]>::try_from(&mut *text) {
        key.encrypt_block(block.into());
        return;
    }
    let mut halves = Halves::of(text);
    for pass in 1..=4 {
        halves.pass(key, pass);
    }
    halves.join(text);
}

/// Undoes [`encrypt`] (section 5.5).
fn decrypt(key: &Aes128, text: &mut [u8]) {
    if let Ok(block) = <&mut [u8; BLOCK]>::try_from(&mut *text) {
        key.decrypt_block(block.into());
        return;
    }
    let mut halves = Halves::of(text);
    for pass in (1..=4).rev() {
        halves.pass(key, pass);
    }
    halves.join(text);
}

/// The two halves of a text; where its length is odd, each has four bits of the byte in the middle.
struct Halves {
    left: [u8; MAX_HALF],
    right: [u8; MAX_HALF],
    /// Of the whole text.
    length: usize,
}

impl Halves {
    fn of(text: &[u8]) -> Self {
        let mut halves = Self {
            left: [0; MAX_HALF],
            right: [0; MAX_HALF],
            length: text.len(),
        };
        let half = halves.half();
        for (to, from) in halves.left.iter_mut().zip(text).take(half) {
            *to = *from;
        }
        for (to, from) in halves
            .right
            .iter_mut()
            .zip(text.iter().skip(text.len() - half))
        {
            *to = *from;
        }
        halves.clear();
        halves
    }

    /// Bytes of a half.
    const fn half(&self) -> usize {
        self.length.div_ceil(2)
    }

    /// One half, expanded to a block and encrypted, changes the other: the left the right one in odd passes.
    fn pass(&mut self, key: &Aes128, pass: u8) {
        let half = self.half();
        let (from, to) = if pass % 2 == 1 {
            (&self.left, &mut self.right)
        } else {
            (&self.right, &mut self.left)
        };
        let mut block = [0; BLOCK];
        for (to, from) in block.iter_mut().zip(from).take(half) {
            *to = *from;
        }
        let [.., length, number] = &mut block;
        *length = u8::try_from(self.length).unwrap_or(u8::MAX);
        *number = pass;
        key.encrypt_block((&mut block).into());
        for (to, from) in to.iter_mut().zip(block).take(half) {
            *to ^= from;
        }
        self.clear();
    }

    /// The bits of the byte in the middle that are the other half's are zero.
    fn clear(&mut self) {
        if self.length.is_multiple_of(2) {
            return;
        }
        let last = self.half() - 1;
        if let Some(byte) = self.left.get_mut(last) {
            *byte &= 0xf0;
        }
        if let Some(byte) = self.right.first_mut() {
            *byte &= 0x0f;
        }
    }

    fn join(&self, text: &mut [u8]) {
        let half = self.half();
        let skip = self.length - half;
        text.fill(0);
        for (to, from) in text.iter_mut().zip(&self.left).take(half) {
            *to = *from;
        }
        for (to, from) in text.iter_mut().skip(skip).zip(&self.right) {
            *to |= *from;
        }
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::{MAX_PLAINTEXT, MIN_NONCE, Routing};

    const KEY: [u8; 16] = [
        0x8f, 0x95, 0xf0, 0x92, 0x45, 0x76, 0x5f, 0x80, 0x25, 0x69, 0x34, 0xe5, 0x0c, 0x66, 0x20,
        0x7f,
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        let pairs = hex.as_bytes().chunks(2);
        let pairs = pairs.map(|pair| std::str::from_utf8(pair).unwrap());
        pairs
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect()
    }

    fn check(key: Option<&[u8; 16]>, rotation: u8, server: &str, nonce: &str, expected: &str) {
        let (server, nonce) = (bytes(server), bytes(nonce));
        let routing = Routing::new(rotation, &server, nonce.len(), key).unwrap();
        let cid = routing.cid(&nonce).unwrap();
        assert_eq!(cid.as_slice(), bytes(expected));
        assert_eq!(cid.len(), routing.cid_length());
        assert_eq!(routing.server_id_of(cid.as_slice()), Some(server));
    }

    /// draft-ietf-quic-load-balancers-21, B.1.
    #[test]
    fn ids_without_a_key_are_those_of_the_draft() {
        check(None, 0, "c4605e", "4504cc4f", "07c4605e4504cc4f");
        let (server, nonce) = ("350d28b420", "3487d970");
        check(None, 1, server, nonce, "29350d28b4203487d970");
    }

    /// draft-ietf-quic-load-balancers-21, B.2.
    #[test]
    fn encrypted_ids_are_those_of_the_draft() {
        let key = Some(&KEY);
        check(key, 0, "ed793a", "ee080dbf", "0720b1d07b359d3c");
        let (server, nonce) = ("ed793a51d49b8f5fab65", "ee080dbf48");
        check(key, 1, server, nonce, "2fcc381bc74cb4fbad2823a3d1f8fed2");
        let (server, nonce) = ("ed793a51d49b8f5f", "ee080dbf48c0d1e5");
        check(key, 2, server, nonce, "504dd2d05a7b0de9b2b9907afb5ecf8cc3");
        let (server, nonce) = ("ed793a51d49b8f5fab", "ee080dbf48c0d1e55d");
        let cid = "725779c9cc86beb3a3a4a3ca96fce4bfe0cdbc";
        check(key, 3, server, nonce, cid);
    }

    /// draft-ietf-quic-load-balancers-21, 5.4.2.4, but for a digit that the text has wrong.
    #[test]
    fn the_example_of_the_text() {
        let key = <[u8; 16]>::try_from(bytes("fdf726a9893ec05c0632d3956680baf0")).unwrap();
        check(Some(&key), 0, "31441a", "9c69c275", "0767947d29be054a");
    }

    /// Every length that there can be leads back to the server.
    #[test]
    fn every_id_leads_to_its_server() {
        let mut random = Random::from_seed([8; 32]);
        for server_length in 1..=MAX_PLAINTEXT - MIN_NONCE {
            for nonce_length in MIN_NONCE..=MAX_PLAINTEXT - server_length {
                for key in [None, Some(&KEY)] {
                    let server = &random.array::<19>()[..server_length];
                    let routing = Routing::new(5, server, nonce_length, key).unwrap();
                    let cid = routing.cid(&random.array::<19>()).unwrap();
                    let found = routing.server_id_of(cid.as_slice());
                    assert_eq!(found.as_deref(), Some(server));
                    let other = Routing::new(4, server, nonce_length, key).unwrap();
                    assert_eq!(other.server_id_of(cid.as_slice()), None);
                }
            }
        }
    }

    /// draft-ietf-quic-load-balancers-21, 3.1 and 5.3: rotation below 7, a byte of server ID, 4 of nonce, 19 in all.
    #[test]
    fn the_lengths_have_their_bounds() {
        let is_ok = |rotation, server: usize, nonce| {
            Routing::new(rotation, &vec![1; server], nonce, None).is_ok()
        };
        assert!(is_ok(6, 1, 4) && is_ok(0, 15, 4) && is_ok(0, 1, 18));
        assert!(!is_ok(7, 1, 4) && !is_ok(0, 0, 4) && !is_ok(0, 1, 3));
        assert!(!is_ok(0, 16, 4) && !is_ok(0, 1, 19) && !is_ok(0, 1, usize::MAX));
    }
}
