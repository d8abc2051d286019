//! Credit in both directions: when it is asked for, given, and used.

use std::time::Duration;

use super::{
    BIDI, Frame, GENEROUS, PeerLimits, Side, StreamEvent, StreamId, StreamSettings, Streams, UNI,
    WindowSize, acked, client_bidi, client_uni, epoch, events, lost, server, write,
};

const RTT: Duration = Duration::from_millis(10);

fn client(limits: PeerLimits) -> Streams {
    let mut streams = Streams::new(Side::Client, StreamSettings::default());
    streams.set_peer_limits(limits);
    while streams.next_event().is_some() {}
    streams
}

/// RFC 9000, 4.6: a stream counts until both parts are over; here, until the application is done with it too.
#[test]
fn a_stream_is_given_back_when_both_ends_and_the_application_are_done() {
    let mut streams = server();
    for index in 0..3 {
        let id = client_bidi(index);
        streams.on_stream(id, 0, b"question", true).unwrap();
        assert_eq!(
            events(&mut streams),
            [StreamEvent::Opened(id), StreamEvent::Readable(id)]
        );
        assert_eq!(streams.send(id, b"answer"), Ok(6));
        streams.finish(id).unwrap();
        let packet = write(&mut streams, 1200);
        assert_eq!(packet.records.len(), 1, "no MAX_STREAMS yet");
        acked(&mut streams, &packet);
        assert_eq!(events(&mut streams), [StreamEvent::Finished(id)]);
        assert_eq!(streams.count(), 1, "the question has not been read");
        let mut buffer = [0; 100];
        assert!(streams.read(id, &mut buffer).unwrap().fin);
        assert_eq!(streams.count(), 0);
    }
    let packet = write(&mut streams, 1200);
    let limit = Frame::MaxStreams {
        direction: BIDI,
        limit: 13,
    };
    assert_eq!(packet.frames(), [limit]);
    assert!(!streams.has_pending_frames());
    lost(&mut streams, &packet);
    assert_eq!(write(&mut streams, 1200).frames(), [limit]);
    assert!(streams.on_stream(client_bidi(12), 0, b"", false).is_ok());
    assert!(streams.on_stream(client_bidi(13), 0, b"", false).is_err());
}

/// A peer that opens and resets streams as fast as it can gets no more of them than the application ends.
#[test]
fn rapid_resets_wait_for_the_application() {
    let mut streams = server();
    for index in 0..10 {
        streams.on_reset_stream(client_bidi(index), 1, 0).unwrap();
    }
    assert_eq!(events(&mut streams).len(), 20);
    assert_eq!(streams.count(), 10);
    assert!(!streams.has_pending_frames());
    assert!(streams.on_reset_stream(client_bidi(10), 1, 0).is_err());
}

#[test]
fn blocked_is_said_once_for_each_limit() {
    let mut streams = client(PeerLimits {
        stream_remote: 10,
        ..GENEROUS
    });
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.send(id, &[1; 30]), Ok(30));
    let packet = write(&mut streams, 1200);
    assert_eq!(packet.frames().len(), 1);
    let packet = write(&mut streams, 1200);
    assert_eq!(
        packet.frames(),
        [Frame::StreamDataBlocked { id, limit: 10 }]
    );
    assert!(!streams.has_pending_frames());
    lost(&mut streams, &packet);
    assert_eq!(write(&mut streams, 1200).frames(), packet.frames());
    streams.on_max_stream_data(id, 10).unwrap();
    streams.on_max_stream_data(id, 5).unwrap();
    assert!(!streams.has_pending_frames());
    streams.on_max_stream_data(id, 50).unwrap();
    lost(&mut streams, &packet);
    assert_eq!(
        write(&mut streams, 1200).frames(),
        [Frame::Stream {
            id,
            offset: 10,
            data: &[1; 20],
            fin: false
        }]
    );
    assert!(!streams.has_pending_frames());
}

#[test]
fn a_stream_that_has_sent_all_it_had_is_not_blocked() {
    let mut streams = client(PeerLimits {
        stream_remote: 10,
        ..GENEROUS
    });
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.send(id, &[1; 10]), Ok(10));
    assert_eq!(write(&mut streams, 1200).frames().len(), 1);
    assert!(!streams.has_pending_frames());
    assert_eq!(write(&mut streams, 1200).frames(), []);
}

/// A limit that rises before the peer was told of it: the next one has to be told of.
#[test]
fn what_was_not_said_of_one_limit_is_said_of_the_next() {
    let mut streams = client(PeerLimits {
        stream_remote: 0,
        ..GENEROUS
    });
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.send(id, &[1; 30]), Ok(30));
    streams.on_max_stream_data(id, 10).unwrap();
    assert_eq!(write(&mut streams, 1200).frames().len(), 1, "data");
    assert_eq!(
        write(&mut streams, 1200).frames(),
        [Frame::StreamDataBlocked { id, limit: 10 }]
    );
}

/// RFC 9000, 4.1: one frame for all that wait, while any of them does.
#[test]
fn blocked_is_repeated_for_one_that_waits() {
    let mut streams = client(PeerLimits {
        stream_remote: 10,
        ..GENEROUS
    });
    let [first, second] = [0, 1].map(|_| streams.open(BIDI).unwrap());
    assert!(!streams.waits_for_credit());
    for id in [first, second] {
        assert_eq!(streams.send(id, &[1; 30]), Ok(30));
    }
    while streams.has_pending_frames() {
        write(&mut streams, 1200);
    }
    let blocked = |id| [Frame::StreamDataBlocked { id, limit: 10 }];
    for id in [first, second, first] {
        assert!(streams.waits_for_credit());
        streams.repeat_blocked();
        assert_eq!(write(&mut streams, 1200).frames(), blocked(id));
    }
    streams.on_max_stream_data(second, 30).unwrap();
    assert_eq!(write(&mut streams, 1200).frames().len(), 1, "data");
    for _ in 0..2 {
        streams.repeat_blocked();
        assert_eq!(write(&mut streams, 1200).frames(), blocked(first));
    }
    streams.reset(first, 7).unwrap();
    assert!(!streams.waits_for_credit());
    streams.repeat_blocked();
    assert_eq!(write(&mut streams, 1200).frames().len(), 1, "the reset");
}

/// RFC 9000, 4.1: so it is with the limit for all streams.
#[test]
fn data_blocked_is_repeated_while_data_waits() {
    let mut streams = client(PeerLimits {
        data: 10,
        ..GENEROUS
    });
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.send(id, &[1; 30]), Ok(30));
    while streams.has_pending_frames() {
        write(&mut streams, 1200);
    }
    assert!(streams.waits_for_credit());
    streams.repeat_blocked();
    assert_eq!(
        write(&mut streams, 1200).frames(),
        [Frame::DataBlocked { limit: 10 }]
    );
    streams.reset(id, 7).unwrap();
    assert!(!streams.waits_for_credit(), "nothing waits any more");
}

/// Lost data needs no credit: it goes out while the connection is blocked, and new data doesn't.
#[test]
fn a_blocked_connection_still_retransmits() {
    let mut streams = client(PeerLimits {
        data: 100,
        ..GENEROUS
    });
    let (first, second) = (streams.open(BIDI).unwrap(), streams.open(UNI).unwrap());
    streams.send(first, &[1; 60]).unwrap();
    streams.send(second, &[2; 60]).unwrap();
    let packet = write(&mut streams, 1200);
    assert_eq!(packet.frames().len(), 2);
    assert_eq!(
        write(&mut streams, 1200).frames(),
        [Frame::DataBlocked { limit: 100 }]
    );
    assert!(!streams.has_pending_frames());
    lost(&mut streams, &packet);
    let packet = write(&mut streams, 1200);
    assert_eq!(packet.frames().len(), 2);
    assert!(!streams.has_pending_frames());
    acked(&mut streams, &packet);
    streams.on_max_data(1000);
    let packet = write(&mut streams, 1200);
    assert_eq!(
        packet.frames(),
        [Frame::Stream {
            id: second,
            offset: 40,
            data: &[2; 20],
            fin: false
        }]
    );
    acked(&mut streams, &packet);
    assert_eq!((streams.held(), streams.unsent()), (0, 0));
}

#[test]
fn streams_blocked_is_said_once_and_more_are_announced() {
    let mut streams = client(PeerLimits {
        unidirectional: 1,
        ..GENEROUS
    });
    assert_eq!(streams.open(UNI), Some(client_uni(0)));
    assert_eq!((streams.open(UNI), streams.open(UNI)), (None, None));
    let blocked = Frame::StreamsBlocked {
        direction: UNI,
        limit: 1,
    };
    assert_eq!(write(&mut streams, 1200).frames(), [blocked]);
    assert_eq!(streams.open(UNI), None);
    assert!(!streams.has_pending_frames());
    streams.on_max_streams(UNI, 1);
    assert_eq!(events(&mut streams), []);
    assert!(!streams.has_event());
    streams.on_max_streams(UNI, 2);
    assert!(streams.has_event());
    assert_eq!(events(&mut streams), [StreamEvent::Available(UNI)]);
    assert_eq!(streams.open(UNI), Some(client_uni(1)));
}

/// A peer that gives credit a byte at a time gets one small frame a round trip, not one for each byte.
#[test]
fn slivers_of_credit_are_saved_up() {
    let mut streams = client(PeerLimits {
        stream_remote: 1,
        ..GENEROUS
    });
    let id = streams.open(BIDI).unwrap();
    streams.send(id, &[1; 1000]).unwrap();
    let first = write(&mut streams, 1200);
    assert_eq!(first.records.len(), 1);
    for limit in 2..20 {
        streams.on_max_stream_data(id, limit).unwrap();
        let packet = write(&mut streams, 1200);
        assert!(
            !packet
                .frames()
                .iter()
                .any(|f| matches!(f, Frame::Stream { .. }))
        );
    }
    acked(&mut streams, &first);
    let packet = write(&mut streams, 1200);
    assert_eq!(
        packet.frames(),
        [Frame::Stream {
            id,
            offset: 1,
            data: &[1; 18],
            fin: false
        }]
    );
}

/// What can't be sent stays with the application (a reader that never reads holds little of our memory).
#[test]
fn without_credit_little_is_accepted() {
    let mut streams = client(PeerLimits {
        stream_remote: 0,
        ..GENEROUS
    });
    let id = streams.open(BIDI).unwrap();
    assert_eq!(streams.send(id, &vec![1; 100_000]), Ok(4096));
    assert_eq!(streams.send(id, &vec![1; 100_000]), Ok(0));
    assert_eq!(events(&mut streams), []);
    streams.on_max_stream_data(id, 50_000).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Writable(id)]);
    assert_eq!(streams.send(id, &vec![1; 100_000]), Ok(50_000 - 4096));
}

#[test]
fn all_streams_together_hold_a_bounded_amount() {
    let mut streams = Streams::new(
        Side::Client,
        StreamSettings {
            held: 1000,
            ..StreamSettings::default()
        },
    );
    streams.set_peer_limits(GENEROUS);
    let (first, second) = (streams.open(BIDI).unwrap(), streams.open(BIDI).unwrap());
    drop(events(&mut streams));
    assert_eq!(streams.send(first, &[1; 800]), Ok(800));
    assert_eq!(streams.send(second, &[1; 800]), Ok(200));
    assert_eq!(streams.send(second, &[1; 800]), Ok(0));
    let packet = write(&mut streams, 2000);
    assert_eq!(
        events(&mut streams),
        [],
        "it is held until it is acknowledged"
    );
    acked(&mut streams, &packet);
    assert_eq!(events(&mut streams), [StreamEvent::Writable(second)]);
    assert_eq!(streams.send(second, &[1; 2000]), Ok(1000));
}

#[test]
fn reading_gives_credit_by_the_quarter() {
    let mut streams = server();
    let id = client_bidi(0);
    streams.on_stream(id, 0, &[1; 1000], false).unwrap();
    let mut buffer = [0; 1000];
    streams.read(id, &mut buffer[..249]).unwrap();
    streams.settle(epoch(), RTT, true);
    assert!(!streams.has_pending_frames());
    streams.read(id, &mut buffer[..1]).unwrap();
    streams.settle(epoch(), RTT, true);
    let packet = write(&mut streams, 1200);
    assert_eq!(packet.frames(), [Frame::MaxStreamData { id, limit: 1250 }]);
    streams.read(id, &mut buffer[..250]).unwrap();
    streams.settle(epoch(), RTT, true);
    lost(&mut streams, &packet);
    let packet = write(&mut streams, 1200);
    assert_eq!(
        packet.frames(),
        [
            Frame::MaxData { limit: 2000 },
            Frame::MaxStreamData { id, limit: 1500 }
        ]
    );
    lost(&mut streams, &packet);
    assert_eq!(write(&mut streams, 1200).frames(), packet.frames());
    // RFC 9000, 13.3: no MAX_STREAM_DATA once the final size is known.
    streams.on_stream(id, 1000, b"", true).unwrap();
    lost(&mut streams, &packet);
    assert_eq!(
        write(&mut streams, 1200).frames(),
        [Frame::MaxData { limit: 2000 }]
    );
}

/// Bytes of a reset stream, arrived or not, come back to the connection's window.
#[test]
fn a_reset_stream_gives_its_credit_back() {
    let mut streams = server();
    for index in 0..10 {
        streams
            .on_stream(client_bidi(index), 100, b"x", false)
            .unwrap();
        streams.on_reset_stream(client_bidi(index), 0, 900).unwrap();
        streams.settle(epoch(), RTT, true);
        drop(write(&mut streams, 1200));
    }
    assert_eq!(streams.window.limit(), 9000 + 1500);
}

#[test]
fn a_fast_reader_gets_larger_windows_and_a_slow_one_does_not() {
    for (step, window, connection_window) in
        [(RTT, 16 << 20, 24 << 20), (30 * RTT, 1 << 20, 3 << 19)]
    {
        let mut streams = Streams::new(Side::Server, StreamSettings::default());
        let id = client_uni(0);
        let mut now = epoch();
        let mut offset = 0;
        let mut buffer = vec![0; 1 << 20];
        for _ in 0..200 {
            let data = &vec![0; 1 << 18];
            streams.on_stream(id, offset, data, false).unwrap();
            offset += 1 << 18;
            streams.read(id, &mut buffer).unwrap();
            streams.settle(now, RTT, true);
            drop(write(&mut streams, 1200));
            now += step / 16;
        }
        assert_eq!(stream_window(&mut streams, id), window);
        assert_eq!(streams.window.window(), connection_window);
    }
}

/// A server whose windows may grow, and its stream, of which the client has sent 250 bytes a moment ago.
fn growing() -> (Streams, StreamId) {
    let grows = |initial, most| WindowSize { initial, most };
    let settings = StreamSettings {
        stream_window: grows(1000, 8000),
        connection_window: grows(1500, 100_000),
        ..StreamSettings::default()
    };
    let mut streams = Streams::new(Side::Server, settings);
    streams
        .on_stream(client_uni(0), 0, &[1; 250], false)
        .unwrap();
    (streams, client_uni(0))
}

fn stream_window(streams: &mut Streams, id: StreamId) -> u64 {
    let slot = streams.table.find(id).unwrap();
    let receive = streams.table.get(slot).unwrap().receive.as_ref().unwrap();
    receive.window.window()
}

/// Half of it is left to the other streams.
#[test]
fn the_connections_window_is_half_as_large_again_as_a_streams() {
    let (mut streams, id) = growing();
    let mut buffer = [0; 1000];
    streams.read(id, &mut buffer).unwrap();
    streams.settle(epoch(), RTT, true);
    streams.on_stream(id, 250, &[1; 500], false).unwrap();
    streams.read(id, &mut buffer).unwrap();
    streams.settle(epoch(), RTT, true);
    assert_eq!(stream_window(&mut streams, id), 2000);
    assert_eq!(streams.window.window(), 3000);
}

/// What is read before it is worth a frame says nothing about the reader's speed.
#[test]
fn the_measurement_begins_when_credit_is_due() {
    let (mut streams, id) = growing();
    let start = epoch();
    let mut buffer = [0; 1000];
    streams.read(id, &mut buffer[..1]).unwrap();
    streams.settle(start, RTT, true);
    streams.read(id, &mut buffer[..249]).unwrap();
    streams.settle(start + 3 * RTT, RTT, true);
    streams.on_stream(id, 250, &[1; 500], false).unwrap();
    streams.read(id, &mut buffer).unwrap();
    streams.settle(start + 4 * RTT, RTT, true);
    assert_eq!(stream_window(&mut streams, id), 2000);
}
