//! Peers that keep to the wire format and not to its spirit: they withhold, flood, cut into pieces, or fall silent.

use std::time::Duration;

use quic_transport::{CloseReason, Direction, Event, Side, StreamId};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::{Link, Verdict};
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames, parameters as ids,
};
use test_fixture::{CLIENT, Pair, SERVER};

const SECOND: Duration = Duration::from_secs(1);

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type Own = Pair<Client<Log>, Server<Log>>;

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

fn to_server() -> ToServer {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.handshake();
    pair.run(SECOND);
    pair
}

/// RFC 9002, 7: what is in flight never exceeds the window; RFC 9000, 10.1: silence ends it.
#[test]
fn a_peer_that_acknowledges_nothing_gets_a_window_and_then_silence() {
    let mut pair = to_server();
    pair.client.acknowledges = false;
    let before = pair.network.passed(SERVER, CLIENT).sent_bytes;
    let (connection, _) = pair.server.connection(0).unwrap();
    let window = connection.stats().congestion_window;
    let id = connection.open(Direction::Unidirectional).unwrap();
    let mut written = 0;
    loop {
        let (connection, _) = pair.server.connection(0).unwrap();
        let taken = connection.stream_send(id, &[1; 10_000]).unwrap();
        if taken == 0 {
            break;
        }
        written += taken;
        assert!(written < 64 << 20, "the send buffer has a bound");
    }
    pair.run(Duration::from_millis(1));
    let (connection, _) = pair.server.connection(0).unwrap();
    let in_flight = connection.stats().bytes_in_flight;
    assert!(
        (window / 2..=window).contains(&in_flight),
        "{in_flight} of {window}"
    );
    pair.run(Duration::from_mins(2));
    assert!(pair.server.connection(0).is_none(), "the state is freed");
    let sent = pair.network.passed(SERVER, CLIENT).sent_bytes - before;
    assert!(sent < window + 40 * 1452, "{sent}");
}

/// One byte at each odd offset: a stream may have 4096 pieces, and one more for each 4096 bytes that it spans.
#[test]
fn a_stream_in_single_bytes_is_refused_past_the_bound() {
    let mut pair = to_server();
    let mut pieces = 0;
    while pair.client.close_code().is_none() {
        assert!(pieces < 5000);
        let payload: Vec<u8> = (pieces..pieces + 100)
            .flat_map(|piece| frames::stream(0, piece * 2 + 1, b"x", false))
            .collect();
        pieces += 100;
        pair.client.send(Level::OneRtt, &payload);
        pair.run(Duration::from_millis(30));
    }
    assert!(pieces > 4096, "{pieces}");
}

/// RFC 9000, 10.2.1: fewer and fewer answers to what comes after the close, and then none.
#[test]
fn a_closed_connection_answers_less_and_less() {
    let mut pair = to_server();
    let (connection, _) = pair.server.connection(0).unwrap();
    connection.close(5, b"enough");
    let before = pair.network.passed(SERVER, CLIENT).sent;
    for _ in 0..1000 {
        pair.client.send(Level::OneRtt, &frames::ping());
    }
    pair.run(Duration::from_millis(50));
    let closes = pair.network.passed(SERVER, CLIENT).sent - before;
    assert!((1..=12).contains(&closes), "{closes}");
    assert_eq!(pair.client.close_code(), Some(5));
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.server.endpoint.len(), 0);
}

/// RFC 9000, 19.19: any reason and any code.
#[test]
fn a_close_is_taken_whatever_it_says() {
    for frame in [
        frames::connection_close((1 << 62) - 1, (1 << 62) - 1, &[0xff; 1000]),
        frames::application_close((1 << 62) - 1, b""),
    ] {
        let mut pair = to_server();
        pair.client.send(Level::OneRtt, &frame);
        pair.run(Duration::from_millis(50));
        let (connection, log) = pair.server.connection(0).unwrap();
        assert!(connection.is_closing());
        assert!(matches!(log.events.last(), Some(Event::Closed(_))));
        pair.run(Duration::from_secs(5));
        assert_eq!(pair.server.endpoint.len(), 0);
    }
}

/// Floods of small frames are taken in, and answered with little.
#[test]
fn floods_of_small_frames_are_not_amplified() {
    let flood = |make: &dyn Fn(u64) -> Vec<u8>| {
        let mut pair = to_server();
        let before = (
            pair.network.passed(CLIENT, SERVER).sent_bytes,
            pair.network.passed(SERVER, CLIENT).sent_bytes,
        );
        for round in 0..100 {
            let payload: Vec<u8> = (0..100).flat_map(|n| make(round * 100 + n)).collect();
            pair.client.send(Level::OneRtt, &payload);
        }
        pair.run(SECOND);
        let came = pair.network.passed(CLIENT, SERVER).sent_bytes - before.0;
        let went = pair.network.passed(SERVER, CLIENT).sent_bytes - before.1;
        assert_eq!(pair.client.close_code(), None);
        assert!(went <= came * 2, "{went} for {came}");
    };
    flood(&|_| frames::ping());
    flood(&|n| frames::max_data(n % 64));
    flood(&|_| frames::data_blocked(5));
    flood(&|_| frames::streams_blocked(5));
}

/// RFC 9000, 4: a window that opens byte by byte doesn't fill the network with headers.
#[test]
fn a_window_that_opens_by_single_bytes_makes_no_storm() {
    let mut parameters = Parameters::generous();
    parameters.set(ids::INITIAL_MAX_STREAM_DATA_UNI, 0);
    let mut pair = ToServer::scripted_client(&Settings::default(), parameters, link());
    pair.handshake();
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.stream_send(id, &[7; 10_000]).unwrap();
    pair.run(SECOND);
    pair.client.forget();
    for limit in 1..=1000 {
        pair.client
            .send(Level::OneRtt, &frames::max_stream_data(id.value(), limit));
    }
    pair.run(SECOND);
    let received: usize = pair
        .client
        .frames(Level::OneRtt)
        .map(|frame| {
            if let SeenFrame::Stream { data, .. } = frame {
                data.len()
            } else {
                0
            }
        })
        .sum();
    assert_eq!(received, 1000);
    assert!(
        pair.client.packets().len() < 100,
        "{}",
        pair.client.packets().len()
    );
}

/// RFC 9000, 10.1: both ends give up at the smaller of their timeouts.
#[test]
fn silence_ends_a_connection() {
    let mut settings = Settings::default();
    settings.server.idle_timeout = Duration::from_secs(10);
    let mut pair = Own::new(&settings, link());
    pair.handshake();
    pair.run(Duration::from_secs(9));
    assert!(!pair.client.connection.is_closing());
    pair.run(Duration::from_secs(5));
    assert!(pair.client.connection.is_closed());
    assert_eq!(
        pair.client.application.events.last(),
        Some(&Event::Closed(CloseReason::IdleTimeout))
    );
    assert_eq!(pair.server.endpoint.len(), 0);
}

/// RFC 9002, 6.2: an outage in the middle of a transfer is survived.
#[test]
fn a_black_hole_that_heals_is_survived() {
    let mut pair = Own::new(&Settings::default(), link());
    pair.handshake();
    let id = pair
        .client
        .connection
        .open(Direction::Unidirectional)
        .unwrap();
    let mut sent = 0;
    let mut read = 0;
    let mut buffer = [0; 4096];
    let start = pair.network.now();
    let mut is_out = false;
    while read < 2_000_000 {
        let elapsed = pair.network.now() - start;
        if sent < 2_000_000 {
            sent += pair.client.connection.stream_send(id, &[5; 4096]).unwrap();
        }
        if elapsed > Duration::from_millis(50) && !is_out {
            is_out = true;
            for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
                pair.network
                    .set_filter(from, to, Box::new(|_, _| Verdict::Drop));
            }
            pair.run(Duration::from_secs(10));
            pair.network.clear_filter(CLIENT, SERVER);
            pair.network.clear_filter(SERVER, CLIENT);
        }
        assert!(pair.step());
        assert!(elapsed < Duration::from_secs(40));
        let (connection, _) = pair.server.connection(0).unwrap();
        let stream = StreamId::new(Side::Client, Direction::Unidirectional, 0);
        while let Ok(part) = connection.stream_read(stream, &mut buffer) {
            read += part.length;
            if part.length == 0 {
                break;
            }
        }
    }
    assert!(is_out);
}

/// RFC 9001, 6: updates are followed; one that comes before the last is confirmed is an error.
#[test]
fn key_updates_are_followed_within_the_rules() {
    let mut pair = to_server();
    for _ in 0..3 {
        pair.client.update_keys();
        pair.client.send(Level::OneRtt, &frames::ping());
        pair.run(SECOND);
        assert_eq!(pair.client.phases().0, pair.client.phases().1);
        assert_eq!(pair.client.close_code(), None);
    }
    let old = pair.client.seal(&Draft::new(Level::OneRtt, &[1]));
    let mut spoiled = old;
    if let Some(last) = spoiled.last_mut() {
        *last ^= 1;
    }
    if let Some(first) = spoiled.first_mut() {
        *first ^= 4;
    }
    pair.client.send_datagram(spoiled);
    pair.run(SECOND);
    assert_eq!(pair.client.close_code(), None);
}

/// RFC 9000, 13.4.2: counts that can't be right end marking, and nothing else.
#[test]
fn ecn_counts_that_lie_do_no_harm() {
    let mut pair = to_server();
    pair.client.acknowledges = false;
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    for counts in [[0, 0, 0], [1000, 1000, 1000], [0, 0, 1 << 60]] {
        let (connection, _) = pair.server.connection(0).unwrap();
        connection.stream_send(id, &[1; 100]).unwrap();
        pair.run(Duration::from_millis(15));
        let last = pair.client.packets().last().unwrap().number;
        let ack = frames::with_ecn(frames::ack(&[last..=last]), counts);
        pair.client.send(Level::OneRtt, &ack);
        pair.run(Duration::from_millis(100));
        assert_eq!(pair.client.close_code(), None);
    }
    let (connection, _) = pair.server.connection(0).unwrap();
    assert!(connection.stats().congestion_window >= 2 * 1200);
}
