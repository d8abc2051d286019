//! How much the application may hand over, when it hears of room again, and what that counts as memory.

use super::{
    BIDI, GENEROUS, Side, StreamEvent, StreamSettings, Streams, acked, client_bidi, events, server,
    write,
};
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
