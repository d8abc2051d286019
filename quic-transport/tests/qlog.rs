//! A qlog file is what the format's own reader understands, and holds what the connection counts.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    io::{self, Cursor, Write},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use qlog::{
    VantagePointType,
    events::EventData,
    reader::{Event, QlogSeqReader},
};
use quic_transport::{Stats, qlog::Qlog};
use test_fixture::ends::{Client, Server, Settings};
use test_fixture::network::{Chance, Link};
use test_fixture::{Bulk, Pair};

/// Memory that is written to in one place and read in another.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of a client that moves some bytes over a bad link, and what it counted.
fn logged() -> (Vec<u8>, Stats) {
    let link = Link {
        loss: Chance::percent(2),
        ..Link::delayed(Duration::from_millis(10))
    };
    let mut pair = Pair::<Client<Bulk>, Server<Bulk>>::new(&Settings::default(), link);
    let shared = Shared::default();
    let log = Qlog::new(Box::new(shared.clone()), "test", SystemTime::UNIX_EPOCH);
    let now = pair.network.now();
    pair.client.connection.observe(Box::new(log), now);
    pair.handshake();
    pair.run(Duration::from_secs(1));
    pair.client.connection.update_keys().unwrap();
    pair.client.request(300_000, 300_000).unwrap();
    pair.run_until(|pair| pair.client.application.complete == 1);
    pair.client.connection.close(7, b"done");
    pair.run(Duration::from_secs(5));
    let bytes = shared.0.lock().unwrap().clone();
    (bytes, pair.client.connection.stats())
}

fn is(event: &EventData, name: &str) -> bool {
    format!("{event:?}").starts_with(name)
}

#[test]
fn a_log_can_be_read_and_is_complete() {
    let (bytes, stats) = logged();
    // RFC 7464, 2: each text stands between a record separator and a line feed.
    assert_eq!(bytes.first(), Some(&0x1e));
    for record in bytes.split(|byte| *byte == 0x1e).skip(1) {
        assert!(record.starts_with(b"{") && record.ends_with(b"}\n"));
    }

    let reader = QlogSeqReader::new(Box::new(Cursor::new(bytes))).unwrap();
    let trace = &reader.qlog.trace;
    let vantage = trace.vantage_point.as_ref().unwrap();
    assert_eq!(vantage.ty, VantagePointType::Client);
    assert_eq!(reader.qlog.serialization_format, "JSON-SEQ");
    let events: Vec<_> = reader
        .map(|event| match event {
            Event::Qlog(event) => event,
            Event::Json(event) => panic!("{event:?}"),
        })
        .collect();
    assert!(events.is_sorted_by(|one, next| one.time <= next.time));
    assert!(is(&events[0].data, "QuicConnectionStarted"));

    let count = |name: &str| {
        let all = events.iter().filter(|event| is(&event.data, name));
        u64::try_from(all.count()).unwrap()
    };
    assert_eq!(count("QuicPacketSent("), stats.packets_sent);
    assert_eq!(count("QuicPacketReceived("), stats.packets_received);
    assert_eq!(count("QuicPacketLost("), stats.packets_lost);
    assert!(stats.packets_lost > 0);
    // Both ends' parameters, and what TLS agreed on.
    assert_eq!(count("QuicParametersSet("), 3);
    assert_eq!(count("QuicConnectionClosed("), 1);
    // Keys of three levels at both ends, and one update; those of two levels go away.
    assert_eq!(count("QuicKeyUpdated("), 7);
    assert_eq!(count("QuicKeyDiscarded("), 4);
    for name in [
        "QuicVersionInformation(",
        "QuicAlpnInformation(",
        "QuicConnectionStateUpdated(",
        "QuicMetricsUpdated(",
        "QuicCongestionStateUpdated(",
        "QuicTimerUpdated(",
        "QuicMtuUpdated(",
        "QuicEcnStateUpdated(",
    ] {
        assert!(count(name) > 0, "{name}");
    }
    let has_frames = |event: &EventData| event.contains_quic_frames().is_none_or(|n| n > 0);
    assert!(events.iter().all(|event| has_frames(&event.data)));
}
