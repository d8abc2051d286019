//! Address validation tokens, [RFC 9000, section 8.1](https://www.rfc-editor.org/rfc/rfc9000#section-8.1).
//!
//! A Retry token says which connection ID the client first chose, and is good for a moment, for one address and port.
//! A token of NEW_TOKEN says only that the address was once shown to be the client's, and is good for a day. Both are
//! sealed and bound to the address: anywhere else they open to nothing. The first byte, which isn't sealed, tells them
//! apart, because a bad Retry token is an error and a bad other one means nothing (RFC 9000, 8.1.3).

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use quic_common::{Random, Reader};

use crate::{
    tls::TokenKey,
    wire::{ConnectionId, Version},
};

/// How long a Retry token is good for.
pub(crate) const RETRY_LIFETIME: Duration = Duration::from_secs(15);

/// How long a token of NEW_TOKEN is good for.
pub(crate) const NEW_TOKEN_LIFETIME: Duration = Duration::from_hours(24);

const RETRY: u8 = 1;
const NEW: u8 = 2;

/// Room for what a token is bound to: its kind, an address and a port, a version.
const CONTEXT: usize = 1 + 16 + 2 + 4;

/// What a Retry token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryToken {
    /// The destination of the client's first Initial.
    pub(crate) original_dcid: ConnectionId,
    /// The source of the Retry, and so the destination of the client's next Initial.
    pub(crate) retry_scid: ConnectionId,
}

/// A token of NEW_TOKEN, as it is told from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewToken {
    /// When, in wall-clock time.
    pub(crate) issued: Duration,
    /// Its nonce.
    pub(crate) id: [u8; 12],
}

/// What a client's token turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presented {
    /// None, or one that means nothing to us.
    Nothing,
    /// It answers our Retry.
    Retry(RetryToken),
    /// It answers a Retry, but not one of ours to this client at this time.
    InvalidRetry,
    /// The address was validated on an earlier connection.
    Known(NewToken),
}

/// Seals and opens tokens for one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'k> {
    pub(crate) key: &'k TokenKey,
    pub(crate) remote: SocketAddr,
    pub(crate) version: Version,
    /// Wall-clock time.
    pub(crate) now: Duration,
}

impl Tokens<'_> {
    /// A token for a Retry packet.
    pub(crate) fn retry(&self, token: &RetryToken, random: &mut Random) -> Vec<u8> {
        let mut plain = self.now.as_secs().to_be_bytes().to_vec();
        for cid in [&token.original_dcid, &token.retry_scid] {
            plain.extend(u8::try_from(cid.len()));
            plain.extend_from_slice(cid.as_slice());
        }
        self.seal(RETRY, &plain, random)
    }

    /// A token for a NEW_TOKEN frame.
    pub(crate) fn new_token(&self, random: &mut Random) -> Vec<u8> {
        self.seal(NEW, &self.now.as_secs().to_be_bytes(), random)
    }

    /// Looks at the token of an Initial packet that was sent to `dcid`.
    pub(crate) fn open(&self, token: &[u8], dcid: &ConnectionId) -> Presented {
        match token.split_first() {
            Some((&RETRY, sealed)) => self
                .open_retry(sealed)
                .filter(|opened| opened.retry_scid == *dcid)
                .map_or(Presented::InvalidRetry, Presented::Retry),
            Some((&NEW, sealed)) => self
                .open_new(sealed)
                .map_or(Presented::Nothing, Presented::Known),
            _ => Presented::Nothing,
        }
    }

    fn seal(&self, kind: u8, plain: &[u8], random: &mut Random) -> Vec<u8> {
        let mut token = vec![kind];
        token.extend(self.key.seal(plain, &self.context(kind), random.array()));
        token
    }

    fn open_retry(&self, sealed: &[u8]) -> Option<RetryToken> {
        let plain = self.key.open(sealed, &self.context(RETRY))?;
        let mut reader = Reader::new(&plain);
        let is_fresh = self.is_fresh(reader.array().ok()?, RETRY_LIFETIME);
        let mut cid = || {
            let length = usize::from(reader.u8().ok()?);
            ConnectionId::new(reader.bytes(length).ok()?)
        };
        let (original_dcid, retry_scid) = (cid()?, cid()?);
        (is_fresh && reader.is_empty()).then_some(RetryToken {
            original_dcid,
            retry_scid,
        })
    }

    fn open_new(&self, sealed: &[u8]) -> Option<NewToken> {
        let plain = self.key.open(sealed, &self.context(NEW))?;
        let issued = plain.try_into().ok()?;
        self.is_fresh(issued, NEW_TOKEN_LIFETIME)
            .then_some(NewToken {
                issued: Duration::from_secs(u64::from_be_bytes(issued)),
                id: *sealed.first_chunk()?,
            })
    }

    fn is_fresh(&self, issued: [u8; 8], lifetime: Duration) -> bool {
        let issued = Duration::from_secs(u64::from_be_bytes(issued));
        self.now
            .checked_sub(issued)
            .is_some_and(|age| age <= lifetime)
    }

    /// What a token is bound to: the version (RFC 9369, 5) and the address, a Retry token to the port as well, which is
    /// another one next time.
    fn context(&self, kind: u8) -> Vec<u8> {
        let mut context = Vec::with_capacity(CONTEXT);
        context.push(kind);
        match self.remote.ip() {
            IpAddr::V4(ip) => context.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => context.extend_from_slice(&ip.octets()),
        }
        if kind == RETRY {
            context.extend_from_slice(&self.remote.port().to_be_bytes());
        }
        context.extend_from_slice(&self.version.0.to_be_bytes());
        context
    }
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, time::Duration};

    use quic_common::Random;

    use super::{NEW_TOKEN_LIFETIME, Presented, RETRY_LIFETIME, RetryToken, Tokens};
    use crate::{
        tls::TokenKey,
        wire::{ConnectionId, Version},
    };

    const ISSUED: Duration = Duration::from_hours(1000);
    const SECOND: Duration = Duration::from_secs(1);

    fn tokens(key: &TokenKey) -> Tokens<'_> {
        Tokens {
            key,
            remote: SocketAddr::from(([192, 0, 2, 1], 4433)),
            version: Version::V1,
            now: ISSUED,
        }
    }

    /// RFC 9000, 8.1.4: bound to the address, and good for a short time: expiry, port, address, version, original
    /// destination, a flipped bit.
    #[test]
    fn a_retry_token_is_good_only_where_and_when_it_was_meant() {
        let key = TokenKey::new([7; 32]);
        let tokens = tokens(&key);
        let [original_dcid, retry_scid] = [1, 2].map(|byte| ConnectionId::new(&[byte; 8]).unwrap());
        let said = RetryToken {
            original_dcid,
            retry_scid,
        };
        let sealed = tokens.retry(&said, &mut Random::from_seed([0; 32]));
        assert_eq!(tokens.open(&sealed, &retry_scid), Presented::Retry(said));
        let last = Tokens {
            now: ISSUED + RETRY_LIFETIME,
            ..tokens
        };
        assert_eq!(last.open(&sealed, &retry_scid), Presented::Retry(said));

        assert_eq!(
            tokens.open(&sealed, &original_dcid),
            Presented::InvalidRetry
        );
        let elsewhere = [
            Tokens {
                now: ISSUED + RETRY_LIFETIME + SECOND,
                ..tokens
            },
            Tokens {
                now: ISSUED.checked_sub(SECOND).unwrap(),
                ..tokens
            },
            Tokens {
                version: Version::V2,
                ..tokens
            },
            Tokens {
                remote: SocketAddr::from(([192, 0, 2, 1], 4434)),
                ..tokens
            },
            Tokens {
                remote: SocketAddr::from(([192, 0, 2, 2], 4433)),
                ..tokens
            },
            Tokens {
                key: &TokenKey::new([8; 32]),
                ..tokens
            },
        ];
        for elsewhere in elsewhere {
            assert_eq!(
                elsewhere.open(&sealed, &retry_scid),
                Presented::InvalidRetry
            );
        }
        for index in 1..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[index] ^= 1;
            assert_eq!(tokens.open(&flipped, &retry_scid), Presented::InvalidRetry);
        }
    }

    /// RFC 9000, 8.1.3: a token that isn't valid is treated as if there were none.
    #[test]
    fn a_bad_other_token_means_nothing() {
        let key = TokenKey::new([7; 32]);
        let tokens = tokens(&key);
        let dcid = ConnectionId::EMPTY;
        let sealed = tokens.new_token(&mut Random::from_seed([0; 32]));
        let good = [
            tokens,
            Tokens {
                now: ISSUED + NEW_TOKEN_LIFETIME,
                ..tokens
            },
            Tokens {
                remote: SocketAddr::from(([192, 0, 2, 1], 9)),
                ..tokens
            },
        ];
        for good in good {
            let known = good.open(&sealed, &dcid);
            assert!(matches!(known, Presented::Known(_)), "{known:?}");
        }
        let bad = [
            Tokens {
                version: Version::V2,
                ..tokens
            },
            Tokens {
                now: ISSUED + NEW_TOKEN_LIFETIME + SECOND,
                ..tokens
            },
            Tokens {
                remote: SocketAddr::from(([192, 0, 2, 2], 4433)),
                ..tokens
            },
            Tokens {
                key: &TokenKey::new([8; 32]),
                ..tokens
            },
        ];
        for bad in bad {
            assert_eq!(bad.open(&sealed, &dcid), Presented::Nothing);
        }
        for garbage in [&b""[..], &[0], &[2], &[9; 40], &sealed[..sealed.len() - 1]] {
            assert_eq!(tokens.open(garbage, &dcid), Presented::Nothing);
        }
    }

    /// RFC 9000, 8.1.3: each token is unique, so that nobody can tell which are one client's.
    #[test]
    fn no_two_tokens_are_alike() {
        let key = TokenKey::new([7; 32]);
        let tokens = tokens(&key);
        let mut random = Random::from_seed([0; 32]);
        let first = tokens.new_token(&mut random);
        let second = tokens.new_token(&mut random);
        assert_eq!(first.len(), second.len());
        let equal = first.iter().zip(&second).filter(|(a, b)| a == b).count();
        assert!(equal < first.len() / 4, "{equal} of {}", first.len());
    }

    /// A token of NEW_TOKEN is no Retry token.
    #[test]
    fn one_kind_does_not_pass_for_the_other() {
        let key = TokenKey::new([7; 32]);
        let tokens = tokens(&key);
        let mut sealed = tokens.new_token(&mut Random::from_seed([0; 32]));
        sealed[0] = 1;
        assert_eq!(
            tokens.open(&sealed, &ConnectionId::EMPTY),
            Presented::InvalidRetry
        );
    }
}
