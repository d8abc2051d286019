//! What fills packets without anything before or between.

use super::{BIDI, GENEROUS, Side, StreamId, Streams, server, settings, write};
use crate::stream::{PeerLimits, Priority};
use crate::transmit::SentFrame;

/// Where it begins and ends.
fn bulk(streams: &mut Streams) -> Option<(StreamId, u64, u64)> {
    let bulk = streams.bulk()?;
    Some((bulk.id, bulk.offset, bulk.end))
}

fn send(streams: &mut Streams, length: usize) -> StreamId {
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.send(id, &vec![7; length]).unwrap(), length);
    id
}

#[test]
fn the_fin_is_left_to_another_packet() {
    let mut streams = server();
    let id = send(&mut streams, 5000);
    assert_eq!(bulk(&mut streams), Some((id, 0, 5000)));
    streams.finish(id).unwrap();
    assert_eq!(bulk(&mut streams), Some((id, 0, 4999)));
    streams.on_bulk(id, 3000);
    assert_eq!(bulk(&mut streams), Some((id, 3000, 4999)));
    assert_eq!(streams.unsent(), 2000);
    let last = write(&mut streams, 4000);
    let record = SentFrame::Stream {
        id,
        offset: 3000,
        length: 2000,
        fin: true,
    };
    assert_eq!(last.records, [record]);
    assert_eq!(bulk(&mut streams), None);
}

#[test]
fn streams_that_take_turns_are_no_bulk_but_in_a_lane_of_their_own() {
    let mut streams = server();
    let first = send(&mut streams, 5000);
    let second = send(&mut streams, 5000);
    assert_eq!(bulk(&mut streams), None);
    streams
        .set_priority(second, Priority::new(1, true))
        .unwrap();
    assert_eq!(bulk(&mut streams), Some((second, 0, 5000)));
    streams.on_bulk(second, 5000);
    assert_eq!(bulk(&mut streams), Some((first, 0, 5000)));
    let third = send(&mut streams, 10);
    for id in [first, third] {
        streams.set_priority(id, Priority::new(3, false)).unwrap();
    }
    assert_eq!(bulk(&mut streams), Some((first, 0, 5000)), "in their order");
}

#[test]
fn what_is_owed_or_lost_goes_first() {
    let mut streams = server();
    let id = send(&mut streams, 5000);
    let packet = write(&mut streams, 1000);
    let other = streams.open(BIDI).unwrap();
    streams.reset(other, 1).unwrap();
    assert_eq!(bulk(&mut streams), None, "RESET_STREAM is owed");
    write(&mut streams, 20);
    let next = bulk(&mut streams).map(|(id, ..)| id);
    assert_eq!(next, Some(id));
    for record in packet.records {
        streams.on_lost(record);
    }
    assert_eq!(bulk(&mut streams), None, "lost data is sent again first");
}

#[test]
fn bulk_ends_where_credit_does() {
    for (data, stream) in [(4000, 1 << 20), (1 << 20, 4000)] {
        let mut streams = Streams::new(Side::Server, settings(10, 1000, 1500));
        streams.set_peer_limits(PeerLimits {
            data,
            stream_remote: stream,
            ..GENEROUS
        });
        let id = streams.open(BIDI).unwrap();
        streams.send(id, &[7; 4000]).unwrap();
        streams.send(id, &[7; 1000]).unwrap();
        assert_eq!(bulk(&mut streams), Some((id, 0, 4000)));
        streams.on_bulk(id, 4000);
        assert_eq!(bulk(&mut streams), None);
    }
}
