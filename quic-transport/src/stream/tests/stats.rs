//! What streams have counted.

use super::{
    BIDI, GENEROUS, PeerLimits, Side, StreamEvent, StreamSettings, Streams, acked, client_bidi,
    lost, server, write,
};
use crate::stream::StreamStats;

#[test]
fn what_is_sent_is_counted() {
    let mut streams = Streams::new(Side::Client, StreamSettings::default());
    streams.set_peer_limits(PeerLimits {
        stream_remote: 2600,
        ..GENEROUS
    });
    let id = streams.open(BIDI).unwrap();
    streams.send(id, &[1; 3000]).unwrap();
    let sizes = [1002, 1004, 1004];
    let packets = sizes.map(|size| write(&mut streams, size));
    acked(&mut streams, &packets[1]);
    lost(&mut streams, &packets[0]);
    drop(write(&mut streams, 1200));
    let stats = streams.stats(id).unwrap();
    let expected = StreamStats {
        written: 3000,
        sent: 2600,
        acknowledged: 1000,
        delivered: 0,
        retransmitted: 1000,
        send_limit: 2600,
        times_blocked: 1,
        is_blocked: true,
        receive_limit: 1 << 20,
        ..StreamStats::default()
    };
    assert_eq!(stats, expected);
    streams.on_max_stream_data(id, 2700).unwrap();
    acked(&mut streams, &packets[0]);
    acked(&mut streams, &packets[2]);
    let packet = write(&mut streams, 1200);
    acked(&mut streams, &packet);
    let stats = streams.stats(id).unwrap();
    assert_eq!((stats.acknowledged, stats.delivered), (2700, 2700));
    assert_eq!((stats.times_blocked, stats.is_blocked), (2, true));
}

#[test]
fn what_is_received_is_counted() {
    let mut streams = server();
    let id = client_bidi(0);
    streams.on_stream(id, 0, &[1; 300], false).unwrap();
    streams.on_stream(id, 400, &[1; 100], true).unwrap();
    streams.read(id, &mut [0; 200]).unwrap();
    let stats = streams.stats(id).unwrap();
    let expected = StreamStats {
        received: 300,
        received_end: 500,
        read: 200,
        receive_limit: 1000,
        send_limit: 1 << 40,
        ..StreamStats::default()
    };
    assert_eq!(stats, expected);
    assert_eq!(streams.stats(client_bidi(1)), None);
}

/// Whoever has been told of a stream's end can still ask for its figures.
#[test]
fn figures_last_until_the_event_behind_the_end() {
    let mut streams = server();
    let id = client_bidi(0);
    streams.on_stream(id, 0, b"x", true).unwrap();
    streams.read(id, &mut [0; 2]).unwrap();
    streams.send(id, b"y").unwrap();
    streams.finish(id).unwrap();
    let packet = write(&mut streams, 1200);
    acked(&mut streams, &packet);
    assert_eq!(streams.next_event(), Some(StreamEvent::Opened(id)));
    assert_eq!(streams.next_event(), Some(StreamEvent::Finished(id)));
    assert_eq!(streams.stats(id).map(|stats| stats.delivered), Some(1));
    assert_eq!(streams.next_event(), None);
    assert_eq!((streams.stats(id), streams.count()), (None, 0));
}
