//! Tokens that spare a client the Retry, RFC 9000, 8.1.3.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_transport::{ApiError, RetryPolicy};
use test_fixture::Pair;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, frames};

type Logs = Pair<Client<Log>, Server<Log>>;

fn settings() -> Settings {
    Settings {
        retry: RetryPolicy::Always,
        ..Settings::default()
    }
}

/// The server's keys come from the seed, so a second server with the same one knows the first one's tokens.
fn token_of_a_connection(link: Link) -> Box<[u8]> {
    let mut pair = Logs::new(&settings(), link);
    pair.handshake();
    pair.run(Duration::from_secs(3));
    assert_eq!(pair.server.endpoint.stats().retries, 1);
    pair.client.connection.take_token().unwrap()
}

#[test]
fn a_token_of_an_earlier_connection_spares_the_retry() {
    let token = token_of_a_connection(Link::delayed(Duration::from_millis(5)));
    let mut pair = Logs::new(&settings(), Link::delayed(Duration::from_millis(5)));
    pair.client.connection.use_token(&token).unwrap();
    pair.handshake();
    assert_eq!(pair.server.endpoint.stats().retries, 0);
}

/// RFC 9000, 13.3: NEW_TOKEN is sent again when it is lost.
#[test]
fn a_lost_token_is_sent_again() {
    for seed in 1..20 {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let link = Link {
            loss: Chance::percent(40),
            ..Link::delayed(Duration::from_millis(5))
        };
        let mut pair = Logs::new(&settings, link);
        pair.run_until(|pair| {
            pair.client.connection.take_token().is_some() || pair.client.connection.is_closing()
        });
    }
}

/// RFC 9000, 8.1.3: an invalid token is as good as none.
#[test]
fn a_token_that_means_nothing_is_answered_with_a_retry() {
    let mut pair = Logs::new(&settings(), Link::delayed(Duration::from_millis(5)));
    pair.client
        .connection
        .use_token(b"\x02 of another server")
        .unwrap();
    pair.handshake();
    assert_eq!(pair.server.endpoint.stats().retries, 1);
}

/// RFC 9000, 8.1.2: an invalid Retry token closes the connection with INVALID_TOKEN.
#[test]
fn an_invalid_retry_token_is_refused() {
    let mut pair = Logs::new(&settings(), Link::delayed(Duration::from_millis(5)));
    pair.client.connection.use_token(b"\x01 made up").unwrap();
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.server.endpoint.stats().refused, 1);
    let events = &pair.client.application.events;
    assert!(
        format!("{events:?}").contains("INVALID_TOKEN"),
        "{events:?}"
    );
}

#[test]
fn a_token_comes_before_everything_else() {
    let mut pair = Logs::new(&settings(), Link::delayed(Duration::from_millis(5)));
    assert_eq!(
        pair.client.connection.use_token(&[0; 1025]),
        Err(ApiError::TooLarge)
    );
    pair.handshake();
    assert_eq!(
        pair.client.connection.use_token(b"late"),
        Err(ApiError::Started)
    );
}

/// A server that gives tokens without end makes its client keep eight of 1 KiB, the last ones; longer ones are left out.
#[test]
fn a_flood_of_tokens_is_bounded() {
    let link = Link::delayed(Duration::from_millis(1));
    let mut pair = Pair::<Client<Log>, ScriptedPeer>::scripted_server(
        &Settings::default(),
        Parameters::generous(),
        link,
    );
    pair.handshake();
    for number in 0..2000_u32 {
        let mut token = number.to_be_bytes().to_vec();
        token.resize(if number % 10 == 9 { 1025 } else { 1024 }, 7);
        pair.server.send(Level::OneRtt, &frames::new_token(&token));
        if number % 100 == 99 {
            pair.run(Duration::from_millis(10));
        }
    }
    pair.run(Duration::from_secs(1));
    assert!(!pair.client.connection.is_closing());
    let kept: Vec<_> = std::iter::from_fn(|| pair.client.connection.take_token()).collect();
    let number = |token: &[u8]| u32::from_be_bytes(*token.first_chunk().unwrap());
    let numbers: Vec<_> = kept.iter().map(|token| number(token)).collect();
    let expected: Vec<_> = (1991..1999).collect();
    assert_eq!(numbers, expected);
    assert!(kept.iter().all(|token| token.len() == 1024));
}
