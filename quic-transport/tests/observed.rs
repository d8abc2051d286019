//! An observer is shown each packet once, in order, and how the connection begins and ends.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "test code"
)]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use quic_transport::{Observation, Observer, Side};
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::{Bulk, Pair};

type Bulks = Pair<Client<Bulk>, Server<Bulk>>;

/// What was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    sent: Vec<u64>,
    received: u64,
    dropped: u64,
    lost: u64,
    parameters: Vec<Side>,
    updates: Vec<Side>,
    is_first_the_start: bool,
    is_over: bool,
    time: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<Seen>>);

impl Observer for Notes {
    fn observe(&mut self, observation: &Observation<'_>, now: Instant) {
        let mut seen = self.0.lock().unwrap();
        let is_first = seen.time.is_none();
        assert!(seen.time <= Some(now), "time goes on");
        assert!(
            !seen.is_over
                || matches!(
                    observation,
                    Observation::PacketSent(_) | Observation::Standing(_)
                )
        );
        seen.time = Some(now);
        match observation {
            Observation::Started(start) => {
                seen.is_first_the_start = is_first && start.side == Side::Client;
            }
            Observation::Parameters { of, .. } => seen.parameters.push(*of),
            Observation::PacketSent(packet) => {
                assert!(!packet.frames.is_empty() && packet.size > packet.frames.len());
                seen.sent.extend(packet.number);
            }
            Observation::PacketReceived(packet) => {
                assert!(!packet.frames.is_empty());
                seen.received += 1;
            }
            Observation::PacketDropped { .. } => seen.dropped += 1,
            Observation::PacketLost { .. } => seen.lost += 1,
            Observation::KeysUpdated { by, .. } => seen.updates.push(*by),
            Observation::Closed(_) => seen.is_over = true,
            _ => {}
        }
    }
}

#[test]
fn what_is_shown_is_what_is_counted() {
    let link = Link {
        loss: Chance::percent(2),
        duplicate: Chance::percent(2),
        ..Link::delayed(Duration::from_millis(10))
    };
    let mut pair = Bulks::new(&Settings::default(), link);
    let notes = Notes::default();
    let now = pair.network.now();
    let observer = Box::new(notes.clone());
    pair.client.connection.observe(observer, now);
    pair.handshake();
    pair.run(Duration::from_secs(1));
    pair.client.connection.update_keys().unwrap();
    pair.client.request(300_000, 300_000).unwrap();
    pair.run_until(|pair| pair.client.application.complete == 1);
    let (server, _) = pair.server.connection(0).unwrap();
    server.update_keys().unwrap();
    pair.client.request(1000, 1000).unwrap();
    pair.run_until(|pair| pair.client.application.complete == 2);
    pair.client.connection.close(0, b"done");
    pair.run(Duration::from_secs(5));

    let stats = pair.client.connection.stats();
    let seen = notes.0.lock().unwrap().clone();
    assert!(seen.is_first_the_start && seen.is_over);
    assert_eq!(seen.parameters, [Side::Client, Side::Server]);
    assert_eq!(seen.updates, [Side::Client, Side::Server]);
    assert_eq!(u64::try_from(seen.sent.len()).unwrap(), stats.packets_sent);
    assert_eq!(
        (seen.received, seen.dropped, seen.lost),
        (
            stats.packets_received,
            stats.packets_dropped,
            stats.packets_lost
        )
    );
    assert!(stats.packets_lost > 0 && stats.packets_dropped > 0);
}
