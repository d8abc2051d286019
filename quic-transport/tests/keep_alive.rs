//! What keeps a connection alive: PINGs after silence, and only then (RFC 9000, 10.1.2), and waiting for credit (4.1).
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_transport::{CloseReason, Direction, Event};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Link, Verdict};
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, SeenFrame, parameters};
use test_fixture::{CLIENT, Pair, SERVER};

const SECOND: Duration = Duration::from_secs(1);

type Own = Pair<Client<Log>, Server<Log>>;

/// A pair that has been quiet for a while; what breaks the silence for the first time brings connection IDs with it, and
/// that is over.
fn pair(settings: &Settings) -> Own {
    let mut pair = Own::new(settings, Link::delayed(Duration::from_millis(10)));
    pair.handshake();
    pair.run(SECOND * 15);
    pair
}

fn by_client(after: Duration) -> Settings {
    let mut settings = Settings::default();
    settings.client.keep_alive = Some(after);
    settings
}

fn sent(pair: &Own) -> [u64; 2] {
    [(CLIENT, SERVER), (SERVER, CLIENT)].map(|(from, to)| pair.network.passed(from, to).sent)
}

#[test]
fn silence_is_broken_by_one_ping_each_time() {
    let by_server = {
        let mut settings = Settings::default();
        settings.server.keep_alive = Some(SECOND * 10);
        settings
    };
    for settings in [by_client(SECOND * 10), by_server] {
        let mut pair = pair(&settings);
        let before = sent(&pair);
        let (client, server) = pair.turns(SECOND * 100);
        // A PING and its acknowledgment.
        for (now, before) in sent(&pair).into_iter().zip(before) {
            assert!((9..=10).contains(&(now - before)), "{}", now - before);
        }
        assert!(client < 100 && server < 100, "{client} and {server} turns");
        assert!(!pair.client.connection.is_closing());
        assert_eq!(pair.server.endpoint.len(), 1);
    }
}

#[test]
fn nothing_is_sent_to_break_no_silence() {
    let mut pair = pair(&by_client(SECOND * 2));
    let before = pair.client.connection.stats().packets_sent;
    for _ in 0..20 {
        let (connection, _) = pair.server.connection(0).unwrap();
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.stream_send(id, b"news").unwrap();
        connection.finish(id).unwrap();
        pair.run(SECOND);
    }
    // Acknowledgments, and one PING at the most among them.
    let sent = pair.client.connection.stats().packets_sent - before;
    assert!(sent <= 21, "{sent}");
}

/// A client that its peer's `limit` stops, and that has said so.
fn blocked(limit: u64) -> Pair<Client<Log>, ScriptedPeer> {
    let mut parameters = Parameters::generous();
    parameters.set(limit, 10);
    let link = Link::delayed(Duration::from_millis(10));
    let mut pair =
        Pair::<Client<Log>, ScriptedPeer>::scripted_server(&Settings::default(), parameters, link);
    pair.handshake();
    let connection = &mut pair.client.connection;
    for _ in 0..3 {
        let id = connection.open(Direction::Unidirectional).unwrap();
        assert_eq!(connection.stream_send(id, &[1; 100]), Ok(100));
    }
    pair.run(SECOND);
    pair.server.forget();
    pair
}

/// RFC 9000, 4.1: a sender without credit says so again, once each time, before the silence ends the connection.
#[test]
fn a_sender_without_credit_breaks_the_silence() {
    let is_blocked = |frame: &&SeenFrame| {
        matches!(
            frame,
            SeenFrame::DataBlocked { limit: 10 } | SeenFrame::StreamDataBlocked { limit: 10, .. }
        )
    };
    for limit in [
        parameters::INITIAL_MAX_DATA,
        parameters::INITIAL_MAX_STREAM_DATA_UNI,
    ] {
        let mut pair = blocked(limit);
        let (turns, _) = pair.turns(SECOND * 150);
        assert!(turns < 170, "{turns}");
        assert!(!pair.client.connection.is_closing());
        let frames = pair.server.frames(Level::OneRtt);
        let said = frames.filter(is_blocked).count();
        assert!((9..=10).contains(&said), "{said}");
        // A peer that is gone is given up all the same.
        pair.server.acknowledges = false;
        pair.run(SECOND * 50);
        assert!(pair.client.connection.is_closed());
    }
}

/// RFC 9000, 10.1: PINGs that nobody answers keep nothing alive.
#[test]
fn a_peer_that_is_gone_is_given_up() {
    let mut pair = pair(&by_client(SECOND));
    for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
        pair.network
            .set_filter(from, to, Box::new(|_, _| Verdict::Drop));
    }
    pair.run(SECOND * 35);
    assert_eq!(
        pair.client.application.events.last(),
        Some(&Event::Closed(CloseReason::IdleTimeout))
    );
    assert!(pair.client.connection.is_closed());
}

/// Our own keep-alive is what we choose; that of the peer alone doesn't make us send any.
#[test]
fn an_end_without_it_sends_acknowledgments_only() {
    let mut pair = pair(&by_client(SECOND * 10));
    let before = pair.server.connection(0).unwrap().0.stats();
    pair.run(SECOND * 100);
    let after = pair.server.connection(0).unwrap().0.stats();
    assert_eq!(
        after.packets_sent - before.packets_sent,
        after.acks_sent - before.acks_sent
    );
}
