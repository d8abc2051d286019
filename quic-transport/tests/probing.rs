//! Probe timeouts as the peer sees them: what is sent, how often, and what it counts for.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use quic_transport::{Direction, Stats, StreamId};
use test_fixture::Pair;
use test_fixture::ends::{Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{Level, Parameters, ScriptedPeer, SeenFrame, SeenPacket, frames};

const SECOND: Duration = Duration::from_secs(1);
const ROUND_TRIP: Duration = Duration::from_millis(25);

type ToServer = Pair<ScriptedPeer, Server<Log>>;

fn link() -> Link {
    Link::delayed(Duration::from_millis(10))
}

/// A server whose client has fallen silent.
fn unheard() -> ToServer {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.handshake();
    pair.run(SECOND);
    pair.client.forget();
    pair.client.acknowledges = false;
    pair
}

fn stats(pair: &mut ToServer) -> Stats {
    pair.server.connection(0).unwrap().0.stats()
}

fn send(pair: &mut ToServer, bytes: usize) -> StreamId {
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.stream_send(id, &vec![1; bytes]).unwrap();
    id
}

fn is_ack_eliciting(packet: &SeenPacket) -> bool {
    packet.frames.iter().any(SeenFrame::is_ack_eliciting)
}

/// RFC 9002, 5.1: the largest packet that an ACK names has to be new, and one that asks for an answer among the new ones.
#[test]
fn samples_need_a_new_largest_packet_that_asks_for_an_answer() {
    let late = Duration::from_millis(200);
    let mut pair = unheard();
    let before = stats(&mut pair).smoothed_rtt;
    // An ACK of ours, acknowledged late.
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(late);
    let [packet] = pair.client.packets() else {
        panic!("{:?}", pair.client.packets());
    };
    let number = packet.number;
    assert!(!is_ack_eliciting(packet));
    pair.client
        .send(Level::OneRtt, &frames::ack(&[number..=number]));
    pair.run(ROUND_TRIP);
    assert_eq!(stats(&mut pair).smoothed_rtt, before);

    // Two packets, the second acknowledged at once and the first a moment later.
    let mut pair = unheard();
    send(&mut pair, 100);
    pair.run(Duration::from_millis(1));
    send(&mut pair, 100);
    pair.run(Duration::from_millis(10));
    let numbers: Vec<_> = pair.client.packets().iter().map(|p| p.number).collect();
    let [first, second] = numbers[..] else {
        panic!("{numbers:?}");
    };
    pair.client
        .send(Level::OneRtt, &frames::ack(&[second..=second]));
    pair.run(Duration::from_millis(10));
    let before = stats(&mut pair).smoothed_rtt;
    pair.client
        .send(Level::OneRtt, &frames::ack(&[first..=second]));
    pair.run(Duration::from_millis(10));
    assert_eq!(stats(&mut pair).smoothed_rtt, before);
}

/// RFC 9002, 6.2, 6.2.1 and 6.2.4: one or two packets at a time that ask for an acknowledgment and carry what may have
/// been lost, each time after twice as long; nothing counts as lost for that.
#[test]
fn probes_repeat_what_may_be_lost_and_declare_nothing_lost() {
    let mut pair = unheard();
    send(&mut pair, 100);
    pair.run(SECOND * 5);
    let mut times: Vec<_> = pair
        .client
        .packets()
        .iter()
        .map(|packet| packet.at)
        .collect();
    assert!(pair.client.packets().iter().all(is_ack_eliciting));
    let most = times.chunk_by(|a, b| a == b).map(<[_]>::len).max();
    assert!(most <= Some(2), "{times:?}");
    times.dedup();
    assert!(times.len() > 4, "{times:?}");
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let ms = Duration::from_millis(2);
    assert!(
        waits.windows(2).all(|w| w[1].abs_diff(w[0] * 2) <= ms),
        "{waits:?}"
    );
    let has_data = |packet: &SeenPacket| {
        let is_data = |frame: &SeenFrame| matches!(frame, SeenFrame::Stream { data, .. } if data.len() == 100);
        packet.frames.iter().any(is_data)
    };
    assert!(pair.client.packets().iter().filter(|p| has_data(p)).count() > 4);
    assert_eq!(stats(&mut pair).packets_lost, 0);
}

/// RFC 9002, 6.2.4: probes carry new data while there is any, and what may be lost once there is none.
#[test]
fn probes_carry_new_data_first() {
    let mut pair = unheard();
    send(&mut pair, 100);
    pair.run(Duration::from_millis(11));
    let id = send(&mut pair, 15_000);
    pair.run(Duration::from_millis(12));
    pair.client.forget();
    pair.run(SECOND * 3);
    let mut ends = Vec::new();
    for frame in pair.client.frames(Level::OneRtt) {
        if let SeenFrame::Stream {
            id: of,
            offset,
            data,
            ..
        } = frame
            && *of == id.value()
        {
            ends.push(offset + u64::try_from(data.len()).unwrap());
        }
    }
    assert!(ends[0] > 14_000 && ends[1] == 15_000, "the rest: {ends:?}");
    assert!(
        ends[2..].iter().all(|end| *end < 14_000),
        "all again: {ends:?}"
    );
    assert_eq!(stats(&mut pair).packets_lost, 0);
}

/// RFC 9002, 7.5 and 7: probes leave though the window is full, and count as in flight; nothing else leaves.
#[test]
fn probes_leave_through_a_full_window_and_count() {
    let mut pair = unheard();
    send(&mut pair, 200_000);
    pair.run(Duration::from_millis(40));
    let before = stats(&mut pair);
    assert!(before.bytes_in_flight <= before.congestion_window);
    assert!(before.bytes_in_flight + 1500 > before.congestion_window);
    let arrived = pair.client.packets().len();
    pair.run(Duration::from_millis(200));
    let after = stats(&mut pair);
    let probes = u64::try_from(pair.client.packets().len() - arrived).unwrap();
    assert!(after.probe_timeouts > before.probe_timeouts);
    let timeouts = after.probe_timeouts - before.probe_timeouts;
    assert!(
        (timeouts..=timeouts * 2).contains(&probes),
        "{probes} for {timeouts}"
    );
    assert!(after.bytes_in_flight > before.bytes_in_flight);
    assert_eq!(after.congestion_window, before.congestion_window);
}

/// RFC 9002, 7 and 7.7: acknowledgments are neither held back by the window nor paced.
#[test]
fn acknowledgments_leave_through_a_full_window() {
    let mut pair = unheard();
    send(&mut pair, 200_000);
    pair.run(Duration::from_millis(40));
    pair.client.forget();
    let number = pair.client.next_number(Level::OneRtt);
    let start = pair.network.now();
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(ROUND_TRIP);
    let is_answer = |packet: &&SeenPacket| {
        let mut frames = packet.frames.iter();
        frames.any(|f| matches!(f, SeenFrame::Ack { ranges, .. } if ranges[0].contains(&number)))
    };
    let answer = pair.client.packets().iter().find(is_answer).unwrap();
    assert_eq!(answer.at - start, Duration::from_millis(20));
    assert!(!is_ack_eliciting(answer));
}

/// RFC 9002, 6.2.4: when the timer goes off in one space of the handshake, what is in flight in the other goes along.
#[test]
fn a_probe_of_the_handshake_repeats_both_spaces() {
    let mut pair = ToServer::scripted_client(&Settings::default(), Parameters::generous(), link());
    pair.client.is_automatic = false;
    let hello = pair.client.take_crypto(Level::Initial);
    pair.client.send(Level::Initial, &frames::crypto(0, &hello));
    pair.run(ROUND_TRIP);
    pair.client.forget();
    pair.run(SECOND);
    let crypto = |level| {
        let mut frames = pair.client.frames(level);
        frames.any(|frame| matches!(frame, SeenFrame::Crypto { .. }))
    };
    assert!(crypto(Level::Initial) && crypto(Level::Handshake));
    let [initial, handshake, ..] = pair.client.packets() else {
        panic!("{:?}", pair.client.packets());
    };
    assert_eq!(initial.datagram, handshake.datagram, "coalesced");
}
