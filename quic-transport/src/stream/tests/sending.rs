//! Which data goes into a packet, in what order and how.

use super::{
    BIDI, Direction, Frame, GENEROUS, Packet, Side, StreamId, StreamSettings, Streams, lost, write,
};
use crate::stream::Priority;

fn client(priorities: &[Priority]) -> (Streams, Vec<StreamId>) {
    let mut streams = Streams::new(Side::Client, StreamSettings::default());
    streams.set_peer_limits(GENEROUS);
    let ids = priorities
        .iter()
        .map(|priority| {
            let id = streams.open(Direction::Bidirectional).unwrap();
            streams.set_priority(id, *priority).unwrap();
            id
        })
        .collect();
    (streams, ids)
}

/// The stream, by its place, that each of the next packets begins with.
fn order(streams: &mut Streams, ids: &[StreamId], packets: usize) -> Vec<usize> {
    (0..packets)
        .map(|_| {
            let packet = write(streams, 1200);
            let Frame::Stream { id, .. } = packet.frames()[0] else {
                panic!("{packet:?}")
            };
            ids.iter().position(|other| *other == id).unwrap()
        })
        .collect()
}

fn frame_lengths(packet: &Packet) -> Vec<usize> {
    packet
        .frames()
        .iter()
        .filter_map(|frame| {
            if let Frame::Stream { data, .. } = frame {
                Some(data.len())
            } else {
                None
            }
        })
        .collect()
}

/// RFC 9218, 10: the more urgent first.
#[test]
fn the_more_urgent_stream_goes_first() {
    let (mut streams, ids) = client(&[
        Priority::new(5, true),
        Priority::new(1, false),
        Priority::new(3, true),
    ]);
    for id in &ids {
        streams.send(*id, &[1; 2300]).unwrap();
    }
    assert_eq!(order(&mut streams, &ids, 6), [1, 1, 2, 2, 0, 0]);
}

/// RFC 9218, 10: incremental streams share, others go one after the other in the order of their numbers.
#[test]
fn incremental_streams_take_turns() {
    let (mut streams, ids) = client(&[Priority::default(); 3]);
    for id in &ids {
        streams.send(*id, &vec![1; 100_000]).unwrap();
    }
    assert_eq!(order(&mut streams, &ids, 7), [0, 1, 2, 0, 1, 2, 0]);

    let (mut streams, ids) = client(&[Priority::default(); 3]);
    for id in ids.iter().rev() {
        streams.send(*id, &vec![1; 100_000]).unwrap();
    }
    assert_eq!(order(&mut streams, &ids, 6), [2, 1, 0, 2, 1, 0]);

    let (mut streams, ids) = client(&[Priority::new(3, false); 3]);
    for id in ids.iter().rev() {
        streams.send(*id, &[1; 2300]).unwrap();
    }
    assert_eq!(order(&mut streams, &ids, 6), [0, 0, 1, 1, 2, 2]);

    let (mut streams, ids) = client(&[Priority::new(3, false); 3]);
    for id in &ids {
        streams.send(*id, &[1; 2300]).unwrap();
    }
    assert_eq!(order(&mut streams, &ids, 6), [0, 0, 1, 1, 2, 2]);
}

/// What was lost of one stream goes out before what was lost of another: it has waited long enough.
#[test]
fn lost_data_takes_no_turns() {
    let (mut streams, ids) = client(&[Priority::default(); 2]);
    for id in &ids {
        streams.send(*id, &[1; 2300]).unwrap();
    }
    let packets: Vec<_> = (0..4).map(|_| write(&mut streams, 1200)).collect();
    for packet in &packets {
        lost(&mut streams, packet);
    }
    assert_eq!(order(&mut streams, &ids, 4), [1, 1, 0, 0]);
}

#[test]
fn data_follows_other_frames_in_the_same_packet() {
    let (mut streams, ids) = client(&[Priority::default()]);
    streams.stop(ids[0], 7).unwrap();
    streams.send(ids[0], &[1; 100]).unwrap();
    let packet = write(&mut streams, 1200);
    assert!(matches!(
        packet.frames()[..],
        [Frame::StopSending { .. }, Frame::Stream { .. }]
    ));
}

/// Data that is lost from before the end brings no second FIN.
#[test]
fn a_fin_in_flight_is_not_sent_again_with_lost_data() {
    let (mut streams, ids) = client(&[Priority::default()]);
    streams.send(ids[0], &[1; 2000]).unwrap();
    streams.finish(ids[0]).unwrap();
    let packets: Vec<_> = (0..2).map(|_| write(&mut streams, 1200)).collect();
    lost(&mut streams, &packets[0]);
    assert_eq!(write(&mut streams, 1200).records, packets[0].records);
    assert!(!streams.has_pending_frames());
}

#[test]
fn a_change_of_priority_counts_at_once() {
    let (mut streams, ids) = client(&[Priority::default(); 2]);
    for id in &ids {
        streams.send(*id, &vec![1; 100_000]).unwrap();
    }
    streams
        .set_priority(ids[1], Priority::new(0, true))
        .unwrap();
    assert_eq!(order(&mut streams, &ids, 3), [1, 1, 1]);
}

/// RFC 9000, 13.3: retransmission before new data.
#[test]
fn lost_data_goes_first() {
    let (mut streams, ids) = client(&[Priority::default(); 2]);
    for id in &ids {
        streams.send(*id, &vec![1; 100_000]).unwrap();
    }
    let packets: Vec<_> = (0..4).map(|_| write(&mut streams, 1200)).collect();
    lost(&mut streams, &packets[1]);
    lost(&mut streams, &packets[3]);
    for sent in [&packets[1], &packets[3]] {
        assert_eq!(write(&mut streams, 1200).records, sent.records);
    }
    assert_eq!(order(&mut streams, &ids, 2), [0, 1]);
}

/// A lost packet is sent again in a smaller one without loss of a byte.
#[test]
fn lost_data_is_cut_to_the_packet() {
    let (mut streams, ids) = client(&[Priority::default()]);
    streams.send(ids[0], &[1; 1100]).unwrap();
    let packet = write(&mut streams, 1200);
    assert_eq!(frame_lengths(&packet), [1100]);
    lost(&mut streams, &packet);
    let mut sizes = Vec::new();
    while streams.has_pending_frames() {
        sizes.extend(frame_lengths(&write(&mut streams, 500)));
    }
    assert_eq!(sizes.iter().sum::<usize>(), 1100);
    assert_eq!(sizes.len(), 3);
}

#[test]
fn the_last_frame_of_a_full_packet_has_no_length() {
    let (mut streams, ids) = client(&[Priority::default()]);
    streams.send(ids[0], &[1; 3000]).unwrap();
    let packet = write(&mut streams, 1200);
    assert_eq!(packet.payload.len(), 1200);
    assert_eq!(packet.payload[0], 0x08, "neither offset nor length");
    assert_eq!(write(&mut streams, 1200).payload[0], 0x0c, "an offset");
    assert_eq!(write(&mut streams, 1200).payload[0], 0x0e, "and a length");
}

/// One byte fewer than the room without the length field: padding in front, rather than a splinter behind.
#[test]
fn all_that_would_fit_but_for_the_length_is_sent_whole() {
    for length in 1190..=1200 {
        let (mut streams, ids) = client(&[Priority::default()]);
        streams.send(ids[0], &vec![1; length]).unwrap();
        streams.finish(ids[0]).unwrap();
        let packet = write(&mut streams, 1200);
        let whole = length <= 1198;
        assert_eq!(frame_lengths(&packet), [length.min(1198)]);
        assert_eq!(streams.has_pending_frames(), !whole);
    }
}

#[test]
fn the_tail_of_a_packet_takes_no_splinters() {
    let (mut streams, ids) = client(&[Priority::new(0, true), Priority::new(1, true)]);
    for (room, expected) in [(33, 1), (34, 2)] {
        // Behind the first frame with its header of 5 or 6 bytes, `room` bytes are left.
        streams.send(ids[0], &[1; 1000]).unwrap();
        streams.send(ids[1], &[1; 1000]).unwrap();
        let first = if expected == 1 { 1000 + 4 } else { 1000 + 6 };
        let packet = write(&mut streams, first + room + 2 * (expected - 1));
        assert_eq!(frame_lengths(&packet).len(), expected, "{packet:?}");
    }
}

/// Many small streams share a packet.
#[test]
fn small_streams_fill_a_packet_together() {
    let (mut streams, ids) = client(&[Priority::default(); 1000]);
    for id in &ids {
        assert_eq!(streams.send(*id, b"x"), Ok(1));
        streams.finish(*id).unwrap();
    }
    let mut packets = 0;
    let mut frames = 0;
    while streams.has_pending_frames() {
        let packet = write(&mut streams, 1200);
        assert!(frame_lengths(&packet).iter().all(|length| *length == 1));
        frames += packet.records.len();
        packets += 1;
    }
    assert_eq!((frames, packets), (1000, 5));
    assert_eq!(streams.openable(BIDI), 0);
}
