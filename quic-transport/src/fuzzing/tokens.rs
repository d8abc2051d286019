//! Address validation tokens.

use std::{net::SocketAddr, time::Duration};

use quic_common::{Random, Reader};

use super::{byte, short, wide};
use crate::tls::TokenKey;
use crate::token::{NEW_TOKEN_LIFETIME, Presented, RETRY_LIFETIME, RetryToken, Tokens};
use crate::wire::{ConnectionId, Version};

/// Opens the bytes as a token, which nobody can have sealed; then seals tokens, lets time pass, turns bits over as the
/// bytes say, and compares what is found with what must be.
pub fn tokens(bytes: &[u8]) {
    let key = TokenKey::new([9; 32]);
    let sealed_at = Duration::from_hours(100);
    let tokens = Tokens {
        key: &key,
        remote: SocketAddr::from(([192, 0, 2, 1], 4433)),
        version: Version::V1,
        now: sealed_at,
    };
    let forged = tokens.open(bytes, &ConnectionId::EMPTY);
    assert!(matches!(
        forged,
        Presented::Nothing | Presented::InvalidRetry
    ));
    let _done = made(bytes, tokens, sealed_at);
}

fn made(bytes: &[u8], tokens: Tokens<'_>, sealed_at: Duration) -> Option<()> {
    let mut input = Reader::new(bytes);
    let mut random = Random::from_seed([3; 32]);
    loop {
        let mut cid = || ConnectionId::new(&[7; 20][..byte(&mut input)? % 21]);
        let said = RetryToken {
            original_dcid: cid()?,
            retry_scid: cid()?,
        };
        let is_retry = byte(&mut input)? % 2 == 0;
        let mut token = if is_retry {
            tokens.retry(&said, &mut random)
        } else {
            tokens.new_token(&mut random)
        };
        let age = Duration::from_secs(wide(short(&mut input)?) * 2);
        let place = short(&mut input)?;
        let flip = u8::try_from(byte(&mut input)?).unwrap();
        // The first byte isn't sealed: it says which kind it is.
        let at = 1 + place % (token.len() - 1);
        token[at] ^= flip;
        let later = Tokens {
            now: sealed_at + age,
            ..tokens
        };
        let lifetime = if is_retry {
            RETRY_LIFETIME
        } else {
            NEW_TOKEN_LIFETIME
        };
        let is_good = flip == 0 && age <= lifetime;
        let opened = later.open(&token, &said.retry_scid);
        let is_expected = match (is_retry, is_good) {
            (true, true) => opened == Presented::Retry(said),
            (true, false) => opened == Presented::InvalidRetry,
            (false, true) => matches!(opened, Presented::Known(_)),
            (false, false) => opened == Presented::Nothing,
        };
        assert!(is_expected, "{opened:?}");
        let cut = place % token.len();
        let opened = later.open(&token[..cut], &said.retry_scid);
        assert!(matches!(
            opened,
            Presented::Nothing | Presented::InvalidRetry
        ));
    }
}
