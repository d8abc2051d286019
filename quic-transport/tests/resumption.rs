//! What a client remembers of a server, and a server of its clients, RFC 9001, 4.5.

use std::time::Duration;

use quic_transport::{Version, Versions, tls};
use test_fixture::ends::Settings;
use test_fixture::network::Link;
use test_fixture::visit::{Bulks, DELAY, Visit, client, settings};

const SECOND: Duration = Duration::from_secs(1);

/// RFC 9001, 4.6.2: a server that has forgotten the session makes a full handshake.
#[test]
fn a_session_that_the_server_has_forgotten_means_a_full_handshake() {
    let mut visit = Visit::new(&settings());
    let tls = visit.pair.server.tls.clone();
    visit.pair.server.tls = tls.sessions(std::sync::Arc::new(tls::SessionCache::default()));
    visit.come_back();
    visit.request(3000, 20_000);
    visit.finish(1, 20_008);
    assert!(!visit.client().is_resumed());
    assert!(!visit.client().is_early_data_accepted());
}

/// RFC 8446, 8.1: of two connections with the same session only one gets it.
#[test]
fn a_store_gives_a_session_out_once() {
    #[derive(Debug, Default)]
    struct Twice(tls::SessionCache);
    impl tls::ServerSessions for Twice {
        fn put(&self, identity: Vec<u8>, session: Vec<u8>) -> bool {
            self.0.put(identity, session)
        }
        fn take(&self, identity: &[u8]) -> Option<Vec<u8>> {
            self.0.take(identity)
        }
    }
    let mut visit = Visit::new(&settings());
    let tls = visit.pair.server.tls.clone();
    visit.pair.server.tls = tls.sessions(std::sync::Arc::new(Twice::default()));
    for is_resumed in [false, true, true] {
        visit.come_back();
        visit.pair.handshake();
        assert_eq!(visit.client().is_resumed(), is_resumed);
        visit.leave();
    }
}

/// What the application wants to know next time comes back with the session.
#[test]
fn settings_are_recalled() {
    let settings = settings();
    let mut pair = Bulks::new(&settings, Link::delayed(DELAY));
    let tls = settings.client_tls();
    pair.client = client(&pair, &tls, &settings.client, 0);
    assert_eq!(pair.client.connection.recalled(), None);
    pair.handshake();
    pair.run(SECOND);
    pair.client
        .connection
        .remember(b"later than the tickets")
        .unwrap();
    assert!(pair.client.connection.remember(&[0; 1025]).is_err());
    pair.client = client(&pair, &tls, &settings.client, 1);
    let recalled = pair.client.connection.recalled();
    assert_eq!(recalled, Some(&b"later than the tickets"[..]));
}

/// The round-trip time of the last visit is assumed at first.
#[test]
fn the_round_trip_time_is_remembered() {
    let mut visit = Visit::new(&settings());
    visit.come_back();
    let assumed = visit.client().stats().smoothed_rtt;
    assert!(assumed >= DELAY * 2 && assumed < DELAY * 3, "{assumed:?}");
}

/// A session that was resumed under one version isn't offered with another, nor one of other TLS settings.
#[test]
fn a_session_is_for_its_tls_settings() {
    let mut visit = Visit::new(&settings());
    let sessions = tls::SessionStore::new();
    let [one, other] = [1, 2].map(|_| settings().client_tls().sessions(sessions.clone()));
    for (tls, is_resumed) in [(&one, false), (&other, false), (&one, true)] {
        visit.tls = tls.clone();
        visit.come_back();
        visit.pair.handshake();
        assert_eq!(visit.client().is_resumed(), is_resumed);
        visit.leave();
    }
}

/// Tickets that hold their session need no store, and permit no early data.
#[test]
fn tickets_of_shared_secrets_resume_at_another_server() {
    let mut visit = Visit::new(&settings());
    let secrets = |text: &str| tls::ServerSecrets::parse(text).unwrap().ticket_key();
    let (old, new) = ("11".repeat(32), "22".repeat(32));
    let both = format!("{new}\n{old}");
    visit.tls = settings().client_tls();
    for (text, is_resumed) in [(&old, false), (&both, true), (&new, true), (&old, false)] {
        // A server that knows nothing but the secrets.
        let tls = visit.pair.server.tls.clone();
        let store = std::sync::Arc::new(tls::SessionCache::default());
        visit.pair.server.tls = tls.sessions(store).tickets(secrets(text));
        visit.come_back();
        assert!(!visit.client().is_sending_early_data());
        visit.pair.handshake();
        assert_eq!(visit.client().is_resumed(), is_resumed, "{text}");
        visit.leave();
    }
}

/// RFC 9368, 2.1: the server speaks another version by now; what was sent early is sent in that one.
#[test]
fn early_data_in_a_version_that_is_gone_is_sent_again() {
    let mut first = Visit::new(&settings());
    let settings = Settings {
        versions: Versions::new(&[Version::V2]).unwrap(),
        ..settings()
    };
    let mut visit = Visit {
        pair: Bulks::new(&settings, Link::delayed(DELAY)),
        tls: first.tls.clone(),
        visits: 1,
    };
    visit.come_back();
    assert!(visit.client().is_sending_early_data());
    visit.request(3000, 6_000);
    visit.finish(1, 6008);
    assert_eq!(visit.client().version(), Version::V2);
    assert!(!visit.client().is_resumed() && !visit.client().is_early_data_accepted());
    // RFC 9369, 5: the session of the first visit isn't for this version, nor the other way round.
    first.come_back();
    first.pair.handshake();
    assert_eq!(first.client().version(), Version::V1);
    assert!(first.client().is_resumed());
}

/// RFC 9369, 4.1 and 5: a server that would rather have another version leaves a client that resumes a session in its own.
#[test]
fn a_session_keeps_its_version() {
    let mut visit = Visit::new(&settings());
    let other = Settings {
        versions: Versions::new(&[Version::V2, Version::V1]).unwrap(),
        ..settings()
    };
    let tls = visit.pair.server.tls.clone();
    visit.pair = Bulks::new(&other, Link::delayed(DELAY));
    visit.pair.server.tls = tls;
    visit.come_back();
    assert!(visit.client().is_sending_early_data());
    visit.request(3000, 6_000);
    visit.finish(1, 6008);
    assert_eq!(visit.client().version(), Version::V1);
    assert!(visit.client().is_resumed() && visit.client().is_early_data_accepted());
}

/// RFC 9369, 5: where a server has changed to another version, the sessions that it gives are for that one; a client
/// that comes back begins with it, and resumes.
#[test]
fn a_client_begins_with_the_version_of_its_session() {
    let settings = Settings {
        versions: Versions::new(&[Version::V2, Version::V1]).unwrap(),
        ..settings()
    };
    let mut visit = Visit::new(&settings);
    assert_eq!(visit.client().version(), Version::V2);
    for _ in 0..2 {
        visit.come_back();
        assert!(visit.client().is_sending_early_data());
        visit.pair.handshake();
        assert_eq!(visit.client().version(), Version::V2);
        assert!(visit.client().is_resumed() && visit.client().is_early_data_accepted());
        visit.leave();
    }
}
