//! How much the application may hand over, when it hears of room again, and what that counts as memory.

use std::num::NonZeroU32;

use super::{
    BIDI, GENEROUS, PeerLimits, Side, StreamEvent, StreamSettings, Streams, acked, client_bidi,
    events, server, write,
};
use crate::error::StreamError;
use crate::stream::Priority;

fn client(settings: StreamSettings) -> Streams {
    let mut streams = Streams::new(Side::Client, settings);
    streams.set_peer_limits(GENEROUS);
    while streams.next_event().is_some() {}
    streams
}

#[test]
fn the_application_hears_of_room_once_more_than_half_is_free() {
    let mut streams = client(StreamSettings {
        backlog: 8192,
        ..StreamSettings::default()
    });
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.send(id, &[1; 10_000]), Ok(8192));
    // Two bytes of header, and half of what waits.
    drop(write(&mut streams, 2 + 4096));
    assert_eq!(events(&mut streams), []);
    drop(write(&mut streams, 4 + 32));
    assert_eq!(events(&mut streams), [StreamEvent::Writable(id)]);
    assert_eq!(streams.send(id, &[1; 10_000]), Ok(4096 + 32));
}

#[test]
fn the_application_sets_how_much_room_it_wants() {
    for (mark, sent) in [(1, 1), (1000, 1000), (8192, 8192), (1 << 20, 8192)] {
        let mut streams = client(StreamSettings {
            backlog: 8192,
            ..StreamSettings::default()
        });
        let id = streams.open(BIDI).unwrap();
        streams
            .set_low_water_mark(id, NonZeroU32::new(mark))
            .unwrap();
        assert_eq!(streams.send(id, &[1; 10_000]), Ok(8192));
        // Two bytes of header; whole packets of 100 bytes, and then what is missing.
        let mut total = 0;
        while total < sent {
            assert_eq!(events(&mut streams), [], "{total} of {mark}");
            let header = if total == 0 {
                2
            } else {
                2 + size_of_offset(total)
            };
            let length = (sent - total).clamp(32, 100);
            drop(write(&mut streams, header + length));
            total += length;
        }
        assert_eq!(events(&mut streams), [StreamEvent::Writable(id)], "{mark}");
        assert_eq!(streams.send(id, &[1; 10_000]), Ok(total.min(8192)));
    }
}

const fn size_of_offset(offset: usize) -> usize {
    if offset < 64 { 1 } else { 2 }
}

/// A mark that is lowered counts at once, and one that the peer's credit keeps out of reach stops nothing.
#[test]
fn a_mark_never_stops_a_stream() {
    let mut streams = Streams::new(Side::Client, StreamSettings::default());
    streams.set_peer_limits(PeerLimits {
        stream_remote: 10_000,
        ..GENEROUS
    });
    while streams.next_event().is_some() {}
    let id = streams.open(BIDI).unwrap();
    let mark = NonZeroU32::new(100_000);
    streams.set_low_water_mark(id, mark).unwrap();
    assert_eq!(streams.send(id, &vec![1; 20_000]), Ok(10_000));
    for _ in 0..8 {
        drop(write(&mut streams, 1200));
        assert_eq!(events(&mut streams), []);
    }
    streams
        .set_low_water_mark(id, NonZeroU32::new(500))
        .unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Writable(id)]);

    streams.set_low_water_mark(id, mark).unwrap();
    let room = usize::try_from(4096 - streams.unsent()).unwrap();
    assert_eq!(streams.send(id, &vec![1; 20_000]), Ok(room));
    streams.on_max_stream_data(id, 14_000).unwrap();
    assert_eq!(events(&mut streams), [], "something waits to be sent");
    while streams.has_pending_frames() {
        drop(write(&mut streams, 1200));
    }
    assert_eq!(events(&mut streams), [StreamEvent::Writable(id)]);
    let unknown = streams.set_low_water_mark(client_bidi(9), None);
    assert_eq!(unknown, Err(StreamError::UnknownStream));
}

/// Small acknowledgments of a full connection make no storm: there is one event for each refusal.
#[test]
fn room_is_told_once_for_each_refusal() {
    let mut streams = client(StreamSettings {
        held: 40_000,
        ..StreamSettings::default()
    });
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.send(id, &vec![1; 50_000]), Ok(40_000));
    let mut told = 0;
    while streams.has_pending_frames() {
        let packet = write(&mut streams, 100);
        acked(&mut streams, &packet);
        told += events(&mut streams).len();
    }
    assert_eq!(told, 1);
}

/// One stream fills its own share, and then others fill what all may hold: it is woken when they are acknowledged.
#[test]
fn a_stream_that_others_keep_from_its_room_waits_for_them() {
    let mut streams = client(StreamSettings {
        backlog: 500,
        held: 1000,
        ..StreamSettings::default()
    });
    let (first, second) = (streams.open(BIDI).unwrap(), streams.open(BIDI).unwrap());
    assert_eq!(streams.send(first, &[1; 600]), Ok(500));
    assert_eq!(streams.send(second, &[1; 500]), Ok(500));
    let packet = write(&mut streams, 1200);
    assert_eq!((streams.unsent(), events(&mut streams)), (0, vec![]));
    acked(&mut streams, &packet);
    assert_eq!(events(&mut streams), [StreamEvent::Writable(first)]);
}

/// Of two streams, one was refused bytes that the other holds.
#[test]
fn a_stream_that_waits_for_others_hears_of_room_once_half_is_free() {
    let mut streams = client(StreamSettings {
        held: 1000,
        ..StreamSettings::default()
    });
    let (first, second) = (streams.open(BIDI).unwrap(), streams.open(BIDI).unwrap());
    streams
        .set_priority(second, Priority::new(7, true))
        .unwrap();
    assert_eq!(streams.send(first, &[1; 800]), Ok(800));
    assert_eq!(streams.send(second, &[1; 800]), Ok(200));
    for (header, length, held) in [(2, 467, 533), (4, 32, 501)] {
        let packet = write(&mut streams, header + length);
        acked(&mut streams, &packet);
        assert_eq!((streams.held(), events(&mut streams)), (held, vec![]));
    }
    let packet = write(&mut streams, 4 + 32);
    acked(&mut streams, &packet);
    assert_eq!(streams.held(), 469);
    assert_eq!(events(&mut streams), [StreamEvent::Writable(second)]);
}

/// A stream that was refused nothing for the sake of others doesn't wait for them.
#[test]
fn what_is_full_for_itself_waits_for_itself() {
    let mut streams = client(StreamSettings {
        backlog: 500,
        held: 500,
        ..StreamSettings::default()
    });
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.send(id, &[1; 501]), Ok(500));
    assert!(streams.waiting.is_empty());
}

#[test]
fn what_streams_hold_counts_and_a_quarter_of_the_window_at_least() {
    let mut streams = server();
    let id = client_bidi(0);
    assert_eq!(streams.memory(), 1500 / 4);
    streams.on_stream(id, 0, &[1; 374], false).unwrap();
    assert_eq!(streams.memory(), 375);
    streams.on_stream(id, 374, &[1; 26], false).unwrap();
    assert_eq!(streams.memory(), 400);
    streams.send(id, &[2; 50]).unwrap();
    assert_eq!((streams.memory(), streams.unsent()), (450, 50));
    let packet = write(&mut streams, 1200);
    assert_eq!((streams.memory(), streams.unsent()), (450, 0));
    streams.read(id, &mut [0; 400]).unwrap();
    assert_eq!(streams.memory(), 375 + 50);
    acked(&mut streams, &packet);
    assert_eq!(streams.memory(), 375);
}
