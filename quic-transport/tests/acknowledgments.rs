//! What is acknowledged, where, when and how often, and what is not.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::ops::RangeInclusive;
use std::time::Duration;

use quic_common::Ecn;
use quic_transport::Direction;
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{
    Draft, Level, Parameters, ScriptedPeer, SeenFrame, SeenPacket, frames, parameters as ids,
};
use test_fixture::{CLIENT, Pair, SERVER};

const SECOND: Duration = Duration::from_secs(1);
const ONE_WAY: Duration = Duration::from_millis(10);
const ROUND_TRIP: Duration = Duration::from_millis(20);
/// The default of `Config::max_ack_delay`.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

type ToServer = Pair<ScriptedPeer, Server<Log>>;
type ToClient = Pair<Client<Log>, ScriptedPeer>;

/// A connection on which nothing is under way.
fn to_server(settings: &Settings, parameters: Parameters) -> ToServer {
    let link = Link::delayed(ONE_WAY);
    let mut pair = ToServer::scripted_client(settings, parameters, link);
    pair.handshake();
    pair.run(SECOND);
    pair.client.forget();
    pair
}

fn quiet() -> ToServer {
    to_server(&Settings::default(), Parameters::generous())
}

/// The ranges that a packet acknowledges.
fn acknowledged(packet: &SeenPacket) -> Vec<RangeInclusive<u64>> {
    let mut acknowledged = Vec::new();
    for frame in &packet.frames {
        if let SeenFrame::Ack { ranges, .. } = frame {
            acknowledged.extend(ranges.iter().cloned());
        }
    }
    acknowledged
}

fn acknowledges(packet: &SeenPacket, level: Level, number: u64) -> bool {
    let ranges = acknowledged(packet);
    packet.level == level && ranges.iter().any(|range| range.contains(&number))
}

/// RFC 9000, 13.2.6, 12.2 and 13.2.1: packets are acknowledged where they belong, those of the handshake without delay.
#[test]
fn every_space_acknowledges_its_own_packets() {
    let link = Link::delayed(ONE_WAY);
    let mut pair = ToClient::scripted_server(&Settings::default(), Parameters::generous(), link);
    pair.server.is_automatic = false;
    pair.run(ROUND_TRIP);
    let start = pair.network.now();
    let hello = frames::crypto(0, &pair.server.take_crypto(Level::Initial));
    let flight = frames::crypto(0, &pair.server.take_crypto(Level::Handshake));
    // The numbers differ, so that they can't be mistaken for those of another space.
    let packets = [
        (Level::Initial, 0, hello),
        (Level::Handshake, 10, flight),
        (Level::OneRtt, 20, frames::ping()),
    ];
    for (level, number, frames) in &packets {
        let mut draft = Draft::new(*level, frames);
        draft.number = Some(*number);
        draft.size = if *level == Level::Initial { 200 } else { 0 };
        let packet = pair.server.seal(&draft);
        pair.server.send_datagram(packet);
    }
    pair.run(ROUND_TRIP + MAX_ACK_DELAY + ONE_WAY);
    for (level, number, _) in packets {
        let mut packets = pair.server.packets().iter();
        let first = packets
            .find(|packet| acknowledges(packet, level, number))
            .unwrap();
        if level != Level::OneRtt {
            assert_eq!(first.at - start, ROUND_TRIP, "{level:?}");
        }
        let all = pair.server.packets().iter().filter(|p| p.level == level);
        let all: Vec<_> = all.flat_map(acknowledged).collect();
        assert!(
            all.iter().all(|range| *range == (number..=number)),
            "{level:?}: {all:?}"
        );
    }
}

/// RFC 9000, 13.2.1 and 18.2: within the delay that was announced, also if timers go off a millisecond late, in one packet
/// with nothing else in it.
#[test]
fn a_lone_packet_is_acknowledged_within_the_promised_delay() {
    let mut pair = quiet();
    let start = pair.network.now();
    let number = pair.client.next_number(Level::OneRtt);
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(SECOND);
    let [packet] = pair.client.packets() else {
        panic!("{:?}", pair.client.packets());
    };
    assert!(acknowledges(packet, Level::OneRtt, number));
    let taken = packet.at - start;
    let late = Duration::from_millis(1);
    assert!(taken + late <= ROUND_TRIP + MAX_ACK_DELAY, "{taken:?}");
    assert!(!packet.frames.iter().any(SeenFrame::is_ack_eliciting));
}

/// RFC 9000, 13.2.1: what asks for no acknowledgment gets no answer, not even when numbers are missing before it.
#[test]
fn acknowledgments_are_not_acknowledged() {
    let mut pair = quiet();
    let sent = pair.network.passed(SERVER, CLIENT).sent;
    let ack = frames::ack(&[0..=0]);
    for round in 0..100_u64 {
        let mut draft = Draft::new(Level::OneRtt, &ack);
        draft.number = Some(pair.client.next_number(Level::OneRtt) + round % 3);
        let packet = pair.client.seal(&draft);
        pair.client.send_datagram(packet);
        pair.client.send(Level::OneRtt, &frames::padding(20));
    }
    pair.run(SECOND);
    assert_eq!(pair.network.passed(SERVER, CLIENT).sent, sent);
}

/// RFC 9000, 13.2 and 13.2.1: what is sent anyway takes the acknowledgment along, before it is due.
#[test]
fn an_ack_travels_with_other_frames() {
    let mut pair = quiet();
    let number = pair.client.next_number(Level::OneRtt);
    pair.client.send(Level::OneRtt, &frames::ping());
    pair.run(ONE_WAY + Duration::from_millis(2));
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.stream_send(id, b"data").unwrap();
    pair.run(ROUND_TRIP);
    let packet = pair.client.packets().first().unwrap();
    assert!(
        packet
            .frames
            .iter()
            .any(|frame| matches!(frame, SeenFrame::Stream { .. }))
    );
    assert!(acknowledges(packet, Level::OneRtt, number));
}

/// RFC 9000, 13.4.1: marks are reported, also by an end that doesn't mark.
#[test]
fn marks_are_reported() {
    let mut settings = Settings::default();
    settings.server.ecn = false;
    let mut pair = to_server(&settings, Parameters::generous());
    for ecn in [Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct] {
        pair.client.set_ecn(ecn);
        pair.client.send(Level::OneRtt, &frames::ping());
        pair.run(SECOND);
    }
    let mut counts = None;
    for frame in pair.client.frames(Level::OneRtt) {
        if let SeenFrame::Ack { ecn, .. } = frame {
            counts = *ecn;
        }
    }
    assert_eq!(counts, Some([2, 1, 1]));
}

/// RFC 9000, 13.1 and 5.2: the frames before a mistake are neither acknowledged nor taken back: the connection ends.
#[test]
fn nothing_of_a_broken_packet_is_acknowledged() {
    let mut pair = quiet();
    let number = pair.client.next_number(Level::OneRtt);
    let broken = [frames::stream(0, 0, b"data", true), vec![0x21]].concat();
    pair.client.send(Level::OneRtt, &broken);
    pair.run(SECOND);
    assert!(pair.client.close_code().is_some());
    let mut packets = pair.client.packets().iter();
    assert!(!packets.any(|packet| acknowledges(packet, Level::OneRtt, number)));
}

/// RFC 9000, 13.3, 4.1 and 4.6: frames that time has overtaken are fine, and limits that don't rise change nothing.
#[test]
fn outdated_frames_are_taken() {
    let mut parameters = Parameters::generous();
    parameters.set(ids::INITIAL_MAX_DATA, 50_000);
    parameters.set(ids::INITIAL_MAX_STREAM_DATA_UNI, 40_000);
    parameters.set(ids::INITIAL_MAX_STREAMS_UNI, 2);
    let mut pair = to_server(&Settings::default(), parameters);
    let (connection, _) = pair.server.connection(0).unwrap();
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.stream_send(id, &[1; 1000]).unwrap();
    let mut few_streams = frames::max_streams(1);
    if let Some(kind) = few_streams.first_mut() {
        *kind += 1;
    }
    for frame in [
        frames::max_data(10),
        frames::max_stream_data(id.value(), 10),
        few_streams,
        frames::data_blocked(3),
        frames::retire_connection_id(1),
        frames::retire_connection_id(1),
    ] {
        pair.client.send(Level::OneRtt, &frame);
        pair.run(SECOND);
    }
    assert_eq!(pair.client.close_code(), None);
    let (connection, _) = pair.server.connection(0).unwrap();
    assert!(connection.open(Direction::Unidirectional).is_some());
    let mut written = 1000;
    for _ in 0..100 {
        let (connection, _) = pair.server.connection(0).unwrap();
        written += connection.stream_send(id, &[1; 1000]).unwrap_or_default();
        pair.run(ONE_WAY);
    }
    assert!(written > 40_000);
    assert_eq!(received(&pair.client, id.value()), 40_000);
}

/// The end of what has arrived of a stream.
fn received(peer: &ScriptedPeer, stream: u64) -> u64 {
    let mut end = 0;
    for frame in peer.frames(Level::OneRtt) {
        if let SeenFrame::Stream {
            id, offset, data, ..
        } = frame
            && *id == stream
        {
            end = end.max(offset + u64::try_from(data.len()).unwrap());
        }
    }
    end
}

/// RFC 9000, 4.1, 19.9 and 19.10: neither a stream nor all of them together go beyond the peer's limits.
#[test]
fn a_sender_stays_within_the_peers_limits() {
    let mut parameters = Parameters::generous();
    parameters.set(ids::INITIAL_MAX_DATA, 25_000);
    parameters.set(ids::INITIAL_MAX_STREAM_DATA_UNI, 10_000);
    let mut pair = to_server(&Settings::default(), parameters);
    let (connection, _) = pair.server.connection(0).unwrap();
    let mut streams = Vec::new();
    for _ in 0..4 {
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.stream_send(id, &vec![1; 20_000]).unwrap();
        streams.push(id.value());
    }
    pair.run(SECOND * 3);
    let sizes = |peer: &ScriptedPeer| -> Vec<u64> {
        streams.iter().map(|id| received(peer, *id)).collect()
    };
    let first = sizes(&pair.client);
    assert!(first.iter().all(|size| *size <= 10_000), "{first:?}");
    assert_eq!(first.iter().sum::<u64>(), 25_000);
    let more = [
        frames::max_data(30_000),
        frames::max_stream_data(*streams.first().unwrap(), 12_000),
    ];
    pair.client.send(Level::OneRtt, &more.concat());
    pair.run(SECOND * 3);
    let second = sizes(&pair.client);
    assert!(
        second.iter().skip(1).all(|size| *size <= 10_000),
        "{second:?}"
    );
    assert_eq!(second.iter().sum::<u64>(), 30_000);
}
