//! Credit that comes in slivers is saved up, for a stream and for all together, as long as something is in flight.

use super::Packet;
use super::{
    BIDI, Frame, GENEROUS, PeerLimits, Side, StreamId, StreamSettings, Streams, acked, write,
};

/// A client whose only stream has sent all that it may, ten bytes, of `length`.
fn stopped(limits: PeerLimits, length: usize) -> (Streams, StreamId, Packet) {
    let mut streams = Streams::new(Side::Client, StreamSettings::default());
    streams.set_peer_limits(limits);
    let id = streams.open(BIDI).unwrap();
    streams.send(id, &vec![1; length]).unwrap();
    let first = write(&mut streams, 1200);
    assert_eq!(sent(&first), Some(10));
    // The frame that says so.
    assert_eq!(sent(&write(&mut streams, 1200)), None);
    (streams, id, first)
}

fn by_stream(length: usize) -> (Streams, StreamId, Packet) {
    let limits = PeerLimits {
        stream_remote: 10,
        ..GENEROUS
    };
    stopped(limits, length)
}

fn by_connection(length: usize) -> (Streams, StreamId, Packet) {
    let limits = PeerLimits {
        data: 10,
        ..GENEROUS
    };
    stopped(limits, length)
}

/// Bytes of the first STREAM frame, if there is one.
fn sent(packet: &Packet) -> Option<usize> {
    packet.frames().iter().find_map(|frame| {
        if let Frame::Stream { data, .. } = frame {
            Some(data.len())
        } else {
            None
        }
    })
}

#[test]
fn less_than_the_least_fragment_waits_and_the_least_fragment_does_not() {
    let (mut streams, id, _first) = by_stream(1000);
    streams.on_max_stream_data(id, 10 + 31).unwrap();
    assert_eq!(sent(&write(&mut streams, 1200)), None);
    streams.on_max_stream_data(id, 10 + 32).unwrap();
    assert_eq!(sent(&write(&mut streams, 1200)), Some(32));

    let (mut streams, _, _first) = by_connection(1000);
    streams.on_max_data(10 + 31);
    assert_eq!(sent(&write(&mut streams, 1200)), None);
    streams.on_max_data(10 + 32);
    assert_eq!(sent(&write(&mut streams, 1200)), Some(32));
}

#[test]
fn all_that_waits_is_no_sliver() {
    for spare in [0, 5] {
        let (mut streams, id, _first) = by_stream(30);
        streams.on_max_stream_data(id, 30 + spare).unwrap();
        assert_eq!(sent(&write(&mut streams, 1200)), Some(20));

        let (mut streams, _, _first) = by_connection(30);
        streams.on_max_data(30 + spare);
        assert_eq!(sent(&write(&mut streams, 1200)), Some(20));
    }
}

#[test]
fn more_than_a_sliver_is_used_though_more_waits() {
    let (mut streams, id, _first) = by_stream(1000);
    streams.on_max_stream_data(id, 110).unwrap();
    assert_eq!(sent(&write(&mut streams, 1200)), Some(100));

    let (mut streams, _, _first) = by_connection(1000);
    streams.on_max_data(110);
    assert_eq!(sent(&write(&mut streams, 1200)), Some(100));
}

#[test]
fn a_sliver_is_used_once_nothing_is_in_flight() {
    let (mut streams, id, first) = by_stream(1000);
    acked(&mut streams, &first);
    streams.on_max_stream_data(id, 11).unwrap();
    assert_eq!(sent(&write(&mut streams, 1200)), Some(1));

    let (mut streams, _, first) = by_connection(1000);
    acked(&mut streams, &first);
    streams.on_max_data(11);
    assert_eq!(sent(&write(&mut streams, 1200)), Some(1));
}
