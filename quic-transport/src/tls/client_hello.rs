//! Reads a ClientHello before TLS sees it: a server chooses its configuration by what it says, and rustls wants our
//! transport parameters up front ([RFC 8446, section 4.1.2](https://www.rfc-editor.org/rfc/rfc8446#section-4.1.2)).
//!
//! The message may be spread over several packets; what has arrived from offset 0 on is looked at again each time, so
//! that nothing has to be kept between. Only the outer form is judged; the rest is TLS' to judge.

use quic_common::{Reader, Truncated};

use crate::error::Error;
use crate::limits::MAX_CLIENT_HELLO;
use crate::wire::TransportErrorCode;

/// The type of the CRYPTO frame.
const CRYPTO: u64 = 0x06;

/// TLS alerts.
const UNEXPECTED_MESSAGE: u8 = 10;
const DECODE_ERROR: u8 = 50;

const HEADER_LENGTH: usize = 4;
const CLIENT_HELLO: u8 = 1;
const CHACHA20_POLY1305: u16 = 0x1303;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const TRANSPORT_PARAMETERS: u16 = 57;

/// What a server needs to know before it starts TLS, borrowed from the bytes received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientHello<'a> {
    /// The name that the client wants to reach (SNI).
    pub(crate) server_name: Option<&'a str>,
    /// The application protocols, as they are on the wire.
    alpn: &'a [u8],
    /// The transport parameters, not decoded.
    pub(crate) transport_parameters: Option<&'a [u8]>,
    /// The first identity of a session to resume: our ticket.
    pub(crate) psk_identity: Option<&'a [u8]>,
    /// Whether early data is offered.
    pub(crate) early_data: bool,
    /// Whether ChaCha20-Poly1305 is the suite wanted most: the client has no AES instructions.
    pub(crate) prefers_chacha20: bool,
}

impl<'a> ClientHello<'a> {
    /// Reads the bytes of the Initial level's CRYPTO stream from offset 0; `None` while the message isn't complete.
    ///
    /// # Errors
    ///
    /// CRYPTO_ERROR for another message or a malformed one, CRYPTO_BUFFER_EXCEEDED for one longer than
    /// [`MAX_CLIENT_HELLO`].
    pub(crate) fn parse(crypto: &'a [u8]) -> Result<Option<Self>, Error> {
        let Some((&kind, _)) = crypto.split_first() else {
            return Ok(None);
        };
        if kind != CLIENT_HELLO {
            return Err(crypto_error(UNEXPECTED_MESSAGE, "not a ClientHello"));
        }
        let Some((header, rest)) = crypto.split_first_chunk::<HEADER_LENGTH>() else {
            return Ok(None);
        };
        let [_, a, b, c] = *header;
        let length = usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX);
        if length > MAX_CLIENT_HELLO {
            return Err(Error::new(
                TransportErrorCode::CRYPTO_BUFFER_EXCEEDED,
                CRYPTO,
                "the ClientHello is too long",
            ));
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        Self::read(&mut Reader::new(body))
            .map(Some)
            .map_err(|_malformed| crypto_error(DECODE_ERROR, "the ClientHello is malformed"))
    }

    /// The application protocols that the client offers, most wanted first.
    pub(crate) fn alpn(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut names = Reader::new(self.alpn);
        std::iter::from_fn(move || vector8(&mut names).ok())
    }

    fn read(body: &mut Reader<'a>) -> Result<Self, Truncated> {
        let mut hello = Self::default();
        let _legacy_version = body.u16()?;
        let _random = body.array::<32>()?;
        let _session_id = vector8(body)?;
        hello.prefers_chacha20 = starts_with_chacha20(vector16(body)?)?;
        let _compression = vector8(body)?;
        let mut extensions = Reader::new(vector16(body)?);
        if !body.is_empty() {
            return Err(Truncated);
        }
        while !extensions.is_empty() {
            let kind = extensions.u16()?;
            let data = vector16(&mut extensions)?;
            hello.extension(kind, data)?;
        }
        Ok(hello)
    }

    fn extension(&mut self, kind: u16, data: &'a [u8]) -> Result<(), Truncated> {
        match kind {
            SERVER_NAME => self.server_name = host_name(data)?,
            ALPN => self.alpn = protocol_names(data)?,
            TRANSPORT_PARAMETERS => self.transport_parameters = Some(data),
            PRE_SHARED_KEY => self.psk_identity = first_identity(data)?,
            EARLY_DATA => self.early_data = true,
            _ => {}
        }
        Ok(())
    }
}

/// Whether the first suite that isn't a reserved one (RFC 8701) is ChaCha20-Poly1305.
fn starts_with_chacha20(suites: &[u8]) -> Result<bool, Truncated> {
    let mut suites = Reader::new(suites);
    while !suites.is_empty() {
        let suite = suites.u16()?;
        if suite & 0x0f0f != 0x0a0a {
            return Ok(suite == CHACHA20_POLY1305);
        }
    }
    Ok(false)
}

/// The first host name of a server name list (RFC 6066, 3); one that can't be a DNS name is left to TLS.
fn host_name(data: &[u8]) -> Result<Option<&str>, Truncated> {
    let mut names = Reader::new(whole_vector16(data)?);
    while !names.is_empty() {
        let kind = names.u8()?;
        let name = vector16(&mut names)?;
        if kind == 0 {
            let name = std::str::from_utf8(name).ok();
            return Ok(name.filter(|n| n.len() <= 255 && n.bytes().all(|b| b.is_ascii_graphic())));
        }
    }
    Ok(None)
}

/// A protocol name list (RFC 7301, 3.1), with every name found whole and not empty.
fn protocol_names(data: &[u8]) -> Result<&[u8], Truncated> {
    let list = whole_vector16(data)?;
    let mut names = Reader::new(list);
    while !names.is_empty() {
        if vector8(&mut names)?.is_empty() {
            return Err(Truncated);
        }
    }
    Ok(list)
}

/// The first identity that a pre_shared_key extension offers (RFC 8446, 4.2.11).
fn first_identity(data: &[u8]) -> Result<Option<&[u8]>, Truncated> {
    let mut data = Reader::new(data);
    let mut identities = Reader::new(vector16(&mut data)?);
    let identity = vector16(&mut identities)?;
    let _age = identities.u32()?;
    Ok(Some(identity))
}

fn vector8<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let length = reader.u8()?;
    reader.bytes(usize::from(length))
}

fn vector16<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let length = reader.u16()?;
    reader.bytes(usize::from(length))
}

/// The content of a vector that must fill `data`.
fn whole_vector16(data: &[u8]) -> Result<&[u8], Truncated> {
    let mut reader = Reader::new(data);
    let content = vector16(&mut reader)?;
    if reader.is_empty() {
        Ok(content)
    } else {
        Err(Truncated)
    }
}

const fn crypto_error(alert: u8, reason: &'static str) -> Error {
    Error::new(TransportErrorCode::crypto(alert), CRYPTO, reason)
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::super::{hex, vectors};
    use super::{ClientHello, MAX_CLIENT_HELLO, TransportErrorCode};

    /// The ClientHello of RFC 9001, A.2, without its frame header.
    fn sample() -> Vec<u8> {
        hex(vectors::CLIENT_FRAMES)[4..].to_vec()
    }

    /// A message with these suites and extensions.
    fn message(suites: &[u16], extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap().to_be_bytes();
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        let suites: Vec<u8> = suites
            .iter()
            .flat_map(|suite| suite.to_be_bytes())
            .collect();
        body.extend(length(&suites));
        body.extend(suites);
        body.extend([1, 0]);
        let mut list = Vec::new();
        for (kind, data) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend(length(data));
            list.extend(*data);
        }
        body.extend(length(&list));
        body.extend(list);
        let mut message = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
        message[0] = 1;
        message.extend(body);
        message
    }

    #[test]
    fn the_message_of_the_rfc() {
        let message = sample();
        let hello = ClientHello::parse(&message).unwrap().unwrap();
        assert_eq!(hello.server_name, Some("example.com"));
        assert!(hello.alpn().eq([b"alpn"]));
        let parameters = hello.transport_parameters.unwrap();
        assert_eq!(parameters.len(), 0x32);
        assert_eq!(parameters[..2], [0x04, 0x08]);
        assert_eq!(hello.psk_identity, None);
        assert!(!hello.prefers_chacha20 && !hello.early_data);
    }

    #[test]
    fn every_prefix_is_incomplete_and_what_follows_is_ignored() {
        let mut message = sample();
        for length in 0..message.len() {
            assert_eq!(ClientHello::parse(&message[..length]), Ok(None));
        }
        message.extend([0xff; 50]);
        assert!(ClientHello::parse(&message).unwrap().is_some());
    }

    #[test]
    fn chacha20_first_is_seen_behind_reserved_suites() {
        for (suites, first) in [
            (&[0x1303, 0x1301][..], true),
            (&[0x3a3a, 0x1303, 0x1301], true),
            (&[0x1301, 0x1303], false),
            (&[0x3a3a], false),
            (&[], false),
        ] {
            let message = message(suites, &[]);
            let hello = ClientHello::parse(&message).unwrap().unwrap();
            assert_eq!(hello.prefers_chacha20, first);
        }
    }

    #[test]
    fn extensions_are_read() {
        let message = message(
            &[0x1301],
            &[
                (16, &[0, 6, 2, b'h', b'3', 2, b'h', b'q']),
                (42, &[]),
                (41, &[0, 9, 0, 3, 7, 8, 9, 0, 0, 0, 1, 0, 2, 1, 5]),
            ],
        );
        let hello = ClientHello::parse(&message).unwrap().unwrap();
        assert!(hello.alpn().eq([b"h3", b"hq"]));
        assert!(hello.early_data);
        assert_eq!(hello.psk_identity, Some(&[7, 8, 9][..]));
        assert_eq!(hello.server_name, None);
        assert_eq!(hello.transport_parameters, None);
    }

    #[test]
    fn a_name_that_can_not_be_one_is_left_to_tls() {
        for name in [&b"a b"[..], b"\xff\xfe", b"n\0"] {
            let mut data = vec![0, u8::try_from(name.len() + 3).unwrap(), 0, 0];
            data.push(u8::try_from(name.len()).unwrap());
            data.extend(name);
            let message = message(&[0x1301], &[(0, &data)]);
            let hello = ClientHello::parse(&message).unwrap().unwrap();
            assert_eq!(hello.server_name, None);
        }
    }

    #[test]
    fn malformed_extensions_are_decode_errors() {
        let extensions: [(u16, &[u8]); 8] = [
            (0, &[]),
            (0, &[0, 9, 0, 0, 1, b'a']),
            (0, &[0, 4, 0, 0, 1, b'a', 0]),
            (16, &[0, 2, 5, b'h']),
            (16, &[0, 1, 0]),
            (16, &[0]),
            (41, &[0, 2, 0, 5]),
            (41, &[0, 3, 0, 1, 7]),
        ];
        for extension in extensions {
            let message = message(&[0x1301], &[extension]);
            let error = ClientHello::parse(&message).unwrap_err();
            assert_eq!(error.code, TransportErrorCode::crypto(50), "{extension:?}");
        }
    }

    #[test]
    fn another_message_is_unexpected() {
        for kind in [0, 2, 22, 255] {
            let error = ClientHello::parse(&[kind]).unwrap_err();
            assert_eq!(error.code, TransportErrorCode::crypto(10));
        }
    }

    #[test]
    fn the_length_is_bounded_before_the_message_is_there() {
        let header = |length: usize| {
            let mut header = u32::try_from(length).unwrap().to_be_bytes();
            header[0] = 1;
            header
        };
        assert_eq!(ClientHello::parse(&header(MAX_CLIENT_HELLO)), Ok(None));
        let error = ClientHello::parse(&header(MAX_CLIENT_HELLO + 1)).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
    }

    #[test]
    fn changed_and_random_bytes_never_panic() {
        let mut random = Random::from_seed([3; 32]);
        let message = sample();
        for _ in 0..20_000 {
            let mut changed = message.clone();
            for _ in 0..=random.below(3) {
                let place = 4 + usize::from(random.array::<1>()[0] % 200);
                changed[place] = random.array::<1>()[0];
            }
            if let Ok(Some(hello)) = ClientHello::parse(&changed) {
                assert!(hello.alpn().count() < 300);
            }
            let mut noise = random.array::<64>();
            noise[..4].copy_from_slice(&[1, 0, 0, 60]);
            let _outcome = ClientHello::parse(&noise);
        }
    }
}
