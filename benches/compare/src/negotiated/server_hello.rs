//! What a server has chosen (RFC 8446, 4.1.3).

use std::fmt;

/// The random value of a server that asks for another ClientHello begins so.
const RETRY: [u8; 4] = [0xcf, 0x21, 0xad, 0x74];

const KEY_SHARE: u16 = 51;
const PRE_SHARED_KEY: u16 = 41;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerHello {
    suite: u16,
    group: u16,
    is_resumed: bool,
}

/// Takes `length` bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}

fn number(bytes: &mut &[u8], length: usize) -> Option<usize> {
    let digits = take(bytes, length)?.iter();
    Some(digits.fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

fn short(bytes: &mut &[u8]) -> Option<u16> {
    u16::try_from(number(bytes, 2)?).ok()
}

impl ServerHello {
    /// Reads it from the start of a server's messages, if it is whole. One that asks for another ClientHello is passed
    /// over.
    pub(super) fn read(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        loop {
            let kind = number(bytes, 1)?;
            let length = number(bytes, 3)?;
            let mut body = take(bytes, length)?;
            let random = body.get(2..6)?;
            if kind == 2 && random != RETRY {
                return Self::read_body(&mut body);
            }
        }
    }

    fn read_body(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes, 34)?;
        let session = number(bytes, 1)?;
        take(bytes, session)?;
        let mut hello = Self {
            suite: short(bytes)?,
            group: 0,
            is_resumed: false,
        };
        take(bytes, 3)?;
        while !bytes.is_empty() {
            let kind = short(bytes)?;
            let length = number(bytes, 2)?;
            let mut extension = take(bytes, length)?;
            match kind {
                KEY_SHARE => hello.group = short(&mut extension)?,
                PRE_SHARED_KEY => hello.is_resumed = true,
                _ => {}
            }
        }
        Some(hello)
    }
}

impl fmt::Display for ServerHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.suite {
            0x1301 => write!(f, "TLS_AES_128_GCM_SHA256")?,
            0x1302 => write!(f, "TLS_AES_256_GCM_SHA384")?,
            0x1303 => write!(f, "TLS_CHACHA20_POLY1305_SHA256")?,
            other => write!(f, "cipher suite {other:#06x}")?,
        }
        match self.group {
            0x001d => write!(f, ", X25519")?,
            0x0017 => write!(f, ", secp256r1")?,
            0x11ec => write!(f, ", X25519MLKEM768")?,
            other => write!(f, ", group {other:#06x}")?,
        }
        if self.is_resumed {
            write!(f, ", resumed")?;
        }
        Ok(())
    }
}
