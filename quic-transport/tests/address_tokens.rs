//! Tokens that spare a client the Retry, RFC 9000, 8.1.3.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_common::Random;
use quic_transport::{Config, RetryPolicy, tls};
use test_fixture::ends::{ALPN, Client, Log, NAME, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, frames};
use test_fixture::{Pair, SERVER};

type Logs = Pair<Client<Log>, Server<Log>>;

const SECOND: Duration = Duration::from_secs(1);

fn settings() -> Settings {
    Settings {
        retry: RetryPolicy::Always,
        ..Settings::default()
    }
}

fn pair() -> Logs {
    Logs::new(&settings(), Link::delayed(Duration::from_millis(5)))
}

/// Connects and leaves; returns how many Retry packets that took.
fn visit(pair: &mut Logs, tls: &tls::ClientConfig, visit: u8) -> u64 {
    let before = pair.server.endpoint.stats().retries;
    let remote = (NAME, pair.network.address(SERVER));
    let random = Random::from_seed([visit; 32]);
    let now = pair.network.now();
    pair.client = Client::with_tls(tls, &Config::default(), remote, random, now);
    pair.handshake();
    pair.run(SECOND);
    pair.client.connection.close(0, b"");
    pair.run(SECOND * 10);
    pair.server.handles.clear();
    pair.server.endpoint.stats().retries - before
}

/// What an earlier connection could have left, as a store exports it: a name, a port, protocols, a version, and tokens.
fn sessions(token: &[u8]) -> tls::SessionStore {
    let mut bytes = vec![1, u8::try_from(NAME.len()).unwrap()];
    bytes.extend(NAME.as_bytes());
    bytes.extend(0x4000_u16.wrapping_add(443).to_be_bytes());
    bytes.push(u8::try_from(ALPN.len() + 1).unwrap());
    bytes.push(u8::try_from(ALPN.len()).unwrap());
    bytes.extend(ALPN);
    bytes.extend([1, 0, 1, u8::try_from(token.len()).unwrap()]);
    bytes.extend(token);
    let sessions = tls::SessionStore::new();
    assert!(sessions.import(&bytes));
    sessions
}

#[test]
fn a_token_of_an_earlier_connection_spares_the_retry() {
    let mut pair = pair();
    let tls = settings().client_tls();
    assert_eq!(visit(&mut pair, &tls, 1), 1);
    for again in 2..5 {
        assert_eq!(visit(&mut pair, &tls, again), 0);
    }
    let forgetful = tls.without_resumption();
    assert_eq!(visit(&mut pair, &forgetful, 5), 1);
}

/// A token may outlive the client's process.
#[test]
fn an_exported_token_spares_the_retry() {
    let mut pair = pair();
    let sessions = tls::SessionStore::new();
    let tls = settings().client_tls().sessions(sessions.clone());
    assert_eq!(visit(&mut pair, &tls, 1), 1);
    let other = tls::SessionStore::new();
    assert!(other.import(&sessions.export()));
    let tls = settings().client_tls().sessions(other);
    assert_eq!(visit(&mut pair, &tls, 2), 0);
}

/// RFC 9000, 13.3: NEW_TOKEN is sent again when it is lost.
#[test]
fn a_lost_token_is_sent_again() {
    for seed in 1..20 {
        let link = Link {
            loss: Chance::percent(40),
            ..Link::delayed(Duration::from_millis(5))
        };
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let mut pair = Logs::new(&settings, link);
        let sessions = tls::SessionStore::new();
        let tls = settings.client_tls().sessions(sessions.clone());
        let remote = (NAME, pair.network.address(SERVER));
        let random = Random::from_seed([seed; 32]);
        let now = pair.network.now();
        pair.client = Client::with_tls(&tls, &settings.client, remote, random, now);
        pair.run_until(|pair| {
            // A name, a port and so on take fewer bytes than a token does.
            sessions.export().len() > 50 || pair.client.connection.is_closing()
        });
    }
}

/// RFC 9000, 8.1.3: an invalid token is as good as none.
#[test]
fn a_token_that_means_nothing_is_answered_with_a_retry() {
    let tls = settings().client_tls();
    let tls = tls.sessions(sessions(b"\x02 of another server"));
    assert_eq!(visit(&mut pair(), &tls, 1), 1);
}

/// RFC 9000, 8.1.2: an invalid Retry token closes the connection with INVALID_TOKEN.
#[test]
fn an_invalid_retry_token_is_refused() {
    let mut pair = pair();
    let tls = settings().client_tls();
    let tls = tls.sessions(sessions(b"\x01 made up"));
    let remote = (NAME, pair.network.address(SERVER));
    let (random, now) = (Random::from_seed([1; 32]), pair.network.now());
    pair.client = Client::with_tls(&tls, &Config::default(), remote, random, now);
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.server.endpoint.stats().refused, 1);
    let events = &pair.client.application.events;
    assert!(
        format!("{events:?}").contains("INVALID_TOKEN"),
        "{events:?}"
    );
}

/// RFC 9000, 8.1.3: a token that the client was given goes into all of its Initials.
#[test]
fn a_token_is_in_every_initial() {
    let link = Link::delayed(Duration::from_millis(5));
    let mut pair = Pair::<Client<Log>, ScriptedPeer>::scripted_server(
        &settings(),
        Parameters::generous(),
        link,
    );
    let tls = settings().client_tls().sessions(sessions(b"token"));
    let remote = (NAME, pair.network.address(SERVER));
    let (random, now) = (Random::from_seed([1; 32]), pair.network.now());
    pair.client = Client::with_tls(&tls, &Config::default(), remote, random, now);
    pair.server.is_automatic = false;
    pair.run(SECOND * 4);
    pair.server.is_automatic = true;
    pair.handshake();
    let initials = pair.server.packets().iter();
    let initials = initials.filter(|packet| packet.level == Level::Initial);
    assert!(initials.clone().count() > 3);
    assert!(initials.clone().all(|packet| packet.token == b"token"));
}

/// RFC 9000, 8.1.4: a token of NEW_TOKEN is good once.
#[test]
fn a_token_is_good_once() {
    let mut pair = pair();
    let sessions = tls::SessionStore::new();
    let tls = settings().client_tls().sessions(sessions.clone());
    assert_eq!(visit(&mut pair, &tls, 1), 1);
    let bytes = sessions.export();
    for (again, retries) in [(2, 0), (3, 1), (4, 1)] {
        let copy = tls::SessionStore::new();
        assert!(copy.import(&bytes));
        let tls = settings().client_tls().sessions(copy);
        assert_eq!(visit(&mut pair, &tls, again), retries);
    }
}

/// A server that gives tokens without end makes its client keep eight of 1 KiB, the last ones; longer ones are left out.
#[test]
fn a_flood_of_tokens_is_bounded() {
    let link = Link::delayed(Duration::from_millis(1));
    let (settings, sessions) = (Settings::default(), tls::SessionStore::new());
    let parameters = Parameters::generous();
    let mut pair = Pair::<Client<Log>, ScriptedPeer>::scripted_server(&settings, parameters, link);
    let tls = settings.client_tls().sessions(sessions.clone());
    let remote = (NAME, pair.network.address(SERVER));
    let (random, now) = (Random::from_seed([1; 32]), pair.network.now());
    pair.client = Client::with_tls(&tls, &Config::default(), remote, random, now);
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
    let kept = sessions.export().len();
    assert!((8 * 1024..9 * 1024).contains(&kept), "{kept} bytes");
}
