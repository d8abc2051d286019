//! How streams end: by FIN, by reset, by STOP_SENDING, from either side.

use super::{
    BIDI, Frame, Side, StreamEvent, StreamSettings, Streams, UNI, acked, client_bidi, client_uni,
    events, lost, server, server_bidi, write,
};
use crate::error::StreamError;
use crate::stream::{Fill, Read};

/// RFC 9000, 3.5: STOP_SENDING MUST be answered with RESET_STREAM; the code is copied.
#[test]
fn stop_sending_is_answered_with_the_same_code() {
    let mut streams = server();
    let id = client_bidi(0);
    streams.on_stop_sending(id, 77).unwrap();
    assert_eq!(
        events(&mut streams),
        [
            StreamEvent::Opened(id),
            StreamEvent::Stopped { id, code: 77 }
        ]
    );
    assert_eq!(
        streams.send(id, b"x"),
        Err(StreamError::Stopped { code: 77 })
    );
    assert_eq!(streams.finish(id), Err(StreamError::Stopped { code: 77 }));
    let packet = write(&mut streams, 1200);
    let reset = Frame::ResetStream {
        id,
        code: 77,
        final_size: 0,
    };
    assert_eq!(packet.frames(), [reset]);
    streams.on_stop_sending(id, 78).unwrap();
    assert!(!streams.has_pending_frames() && !streams.has_event());
    // RFC 9000, 13.3: the content MUST NOT change when it is sent again.
    lost(&mut streams, &packet);
    assert_eq!(write(&mut streams, 1200).frames(), [reset]);
}

#[test]
fn a_reset_discards_what_was_buffered_and_keeps_the_final_size() {
    let mut streams = server();
    let id = streams.open(BIDI).unwrap();
    streams.send(id, &[1; 5000]).unwrap();
    let packet = write(&mut streams, 1000);
    let sent = packet.records.len();
    assert_eq!(sent, 1);
    streams.reset(id, 5).unwrap();
    assert_eq!((streams.held(), streams.unsent()), (0, 0));
    let reset = write(&mut streams, 1000);
    let Frame::ResetStream {
        code: 5,
        final_size,
        ..
    } = reset.frames()[0]
    else {
        panic!("{reset:?}")
    };
    assert!((900..1000).contains(&final_size));
    lost(&mut streams, &packet);
    assert!(!streams.has_pending_frames(), "nothing of it is sent again");
    acked(&mut streams, &packet);
    assert_eq!(streams.send(id, b"x"), Err(StreamError::Finished));
    assert_eq!(streams.reset(id, 6), Ok(()), "once is enough");
    acked(&mut streams, &reset);
    let delivered = final_size;
    assert_eq!(
        events(&mut streams),
        [StreamEvent::ResetAcknowledged { id, delivered }]
    );
    assert_eq!(streams.count(), 1, "the other part is open");
    streams.on_stream(id, 0, b"", true).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Readable(id)]);
    assert_eq!(
        streams.fill(id),
        Ok(Fill {
            data: &[],
            fin: true
        })
    );
    assert_eq!(streams.count(), 0);
    assert_eq!(streams.fill(id), Err(StreamError::UnknownStream));
}

#[test]
fn a_peers_reset_is_told_once() {
    for by_reading in [false, true] {
        let mut streams = server();
        let id = client_uni(0);
        streams.on_stream(id, 0, b"abc", false).unwrap();
        streams.on_reset_stream(id, 9, 500).unwrap();
        streams.on_reset_stream(id, 9, 500).unwrap();
        assert_eq!(streams.next_event(), Some(StreamEvent::Opened(id)));
        if by_reading {
            let read = streams.read(id, &mut [0; 9]);
            assert_eq!(read, Err(StreamError::Reset { code: 9 }));
        } else {
            let reset = StreamEvent::Reset { id, code: 9 };
            assert_eq!(streams.next_event(), Some(reset));
        }
        assert_eq!(streams.next_event(), None);
        assert_eq!(streams.count(), 0);
    }
}

/// RFC 9000, 3.2: a reset after everything has arrived may be ignored.
#[test]
fn a_reset_behind_all_data_takes_nothing_away() {
    let mut streams = server();
    let id = client_uni(0);
    streams.on_stream(id, 0, b"abc", true).unwrap();
    streams.on_reset_stream(id, 9, 3).unwrap();
    let mut buffer = [0; 9];
    let read = streams.read(id, &mut buffer).unwrap();
    assert_eq!(
        read,
        Read {
            length: 3,
            fin: true
        }
    );
}

/// RFC 9000, 3.5: data after STOP_SENDING counts for flow control and is discarded.
#[test]
fn a_stopped_stream_takes_no_memory_and_gives_credit_back() {
    let mut streams = server();
    let id = client_uni(0);
    streams.on_stream(id, 0, &[1; 200], false).unwrap();
    streams.stop(id, 3).unwrap();
    let packet = write(&mut streams, 1200);
    assert_eq!(packet.frames(), [Frame::StopSending { id, code: 3 }]);
    lost(&mut streams, &packet);
    assert_eq!(write(&mut streams, 1200).frames(), packet.frames());
    streams.on_stream(id, 200, &[1; 300], false).unwrap();
    assert_eq!(streams.read(id, &mut [0; 9]), Err(StreamError::Finished));
    assert_eq!(streams.stop(id, 3), Err(StreamError::Finished));
    assert_eq!(streams.count(), 1);
    streams.on_reset_stream(id, 3, 600).unwrap();
    lost(&mut streams, &packet);
    streams.settle(super::epoch(), std::time::Duration::ZERO, true);
    assert_eq!(
        write(&mut streams, 1200).frames(),
        [Frame::MaxData { limit: 2100 }]
    );
    assert_eq!(events(&mut streams), [StreamEvent::Opened(id)]);
    assert_eq!(streams.count(), 0);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut streams = server();
    let id = streams.open(UNI).unwrap();
    streams.send(id, b"abc").unwrap();
    let data = write(&mut streams, 1200);
    streams.finish(id).unwrap();
    assert_eq!(streams.finish(id), Err(StreamError::Finished));
    assert_eq!(streams.send(id, b"x"), Err(StreamError::Finished));
    let bare = Frame::Stream {
        id,
        offset: 3,
        data: b"",
        fin: true,
    };
    let fin = write(&mut streams, 1200);
    assert_eq!(fin.frames(), [bare]);
    lost(&mut streams, &fin);
    assert_eq!(write(&mut streams, 1200).frames(), [bare]);
    lost(&mut streams, &data);
    let both = write(&mut streams, 1200);
    assert_eq!(
        both.frames(),
        [Frame::Stream {
            id,
            offset: 0,
            data: b"abc",
            fin: true
        }]
    );
    acked(&mut streams, &fin);
    assert_eq!(events(&mut streams), []);
    acked(&mut streams, &both);
    assert_eq!(events(&mut streams), [StreamEvent::Finished(id)]);
    assert_eq!(streams.count(), 0);
    acked(&mut streams, &data);
    lost(&mut streams, &fin);
    assert!(!streams.has_pending_frames());
}

#[test]
fn each_direction_has_its_calls() {
    let mut streams = server();
    let ours = streams.open(UNI).unwrap();
    streams.on_stream(client_uni(0), 0, b"x", false).unwrap();
    let theirs = client_uni(0);
    let wrong = Err(StreamError::WrongDirection);
    assert_eq!(streams.read(ours, &mut []).map(drop), wrong);
    assert_eq!(streams.stop(ours, 0), wrong);
    assert_eq!(streams.send(theirs, b"").map(drop), wrong);
    assert_eq!(streams.finish(theirs), wrong);
    assert_eq!(streams.reset(theirs, 0), wrong);
    let unknown = Err(StreamError::UnknownStream);
    assert_eq!(streams.finish(server_bidi(5)), unknown);
    assert_eq!(streams.stop(client_bidi(5), 0), unknown);
}

/// A slot is used again, and nothing of its former stream is left in any list.
#[test]
fn slots_are_recycled() {
    let mut streams = server();
    for _ in 0..1000 {
        let id = streams.open(UNI);
        let Some(id) = id else { break };
        streams.send(id, b"abc").unwrap();
        streams.finish(id).unwrap();
        let packet = write(&mut streams, 1200);
        lost(&mut streams, &packet);
        acked(&mut streams, &packet);
        assert_eq!(events(&mut streams), [StreamEvent::Finished(id)]);
        assert_eq!(streams.count(), 0);
        assert!(!streams.has_pending_frames() && !streams.has_event());
    }
    assert_eq!(streams.table.slots().count(), 1);
}

/// RFC 9000, 4.5: nothing is sent behind the FIN; 3.3: and nothing at all once all has arrived.
#[test]
fn a_finished_stream_takes_no_more() {
    let mut streams = server();
    let id = streams.open(UNI).unwrap();
    streams.send(id, b"abc").unwrap();
    streams.finish(id).unwrap();
    assert_eq!(streams.send(id, b"d"), Err(StreamError::Finished));
    let packet = write(&mut streams, 1200);
    let all = Frame::Stream {
        id,
        offset: 0,
        data: b"abc",
        fin: true,
    };
    assert_eq!(packet.frames(), [all]);
    acked(&mut streams, &packet);
    assert!(!streams.has_pending_frames());
    // Whatever the call says.
    let _ = streams.reset(id, 1);
    assert!(!streams.has_pending_frames());
}

/// RFC 9000, 3.5: who has been told that nothing more comes has nothing to ask for.
#[test]
fn a_stream_that_was_reset_is_not_stopped() {
    let mut streams = server();
    let id = client_uni(0);
    streams.on_stream(id, 0, b"abc", false).unwrap();
    streams.on_reset_stream(id, 1, 3).unwrap();
    // What the call says matters less than what goes out.
    let _ = streams.stop(id, 2);
    let packet = write(&mut streams, 1200);
    let stops = |frame: &Frame<'_>| matches!(frame, Frame::StopSending { .. });
    assert!(!packet.frames().iter().any(stops));

    // A STOP_SENDING that is lost isn't repeated after the reset either.
    let id = client_uni(1);
    streams.on_stream(id, 0, b"abc", false).unwrap();
    streams.stop(id, 2).unwrap();
    let packet = write(&mut streams, 1200);
    assert!(packet.frames().iter().any(stops));
    streams.on_reset_stream(id, 2, 3).unwrap();
    lost(&mut streams, &packet);
    let packet = write(&mut streams, 1200);
    assert!(!packet.frames().iter().any(stops));
}

/// Bytes are lent piece by piece, and only the last piece comes with the end.
#[test]
fn the_end_is_lent_with_the_last_piece() {
    let mut streams = Streams::new(Side::Server, StreamSettings::default());
    let id = client_uni(0);
    let data: Vec<u8> = (0..=u8::MAX).cycle().take(40_000).collect();
    streams.on_stream(id, 0, &data, true).unwrap();
    let mut read = Vec::new();
    loop {
        let Fill { data: lent, fin } = streams.fill(id).unwrap();
        read.extend_from_slice(lent);
        let length = lent.len();
        assert_eq!(fin, read.len() == data.len());
        streams.consume(id, length).unwrap();
        if fin {
            break;
        }
        assert!(length < 20_000, "all lies together");
    }
    assert_eq!(read, data);
    assert_eq!(streams.window.used(), 40_000);
    assert_eq!(
        streams.consume(client_uni(1), 1),
        Err(StreamError::UnknownStream)
    );
}

/// The acknowledgment of a FIN that comes after a reset ends nothing: the peer has to hear of the reset.
#[test]
fn a_reset_stands_though_everything_arrives() {
    let mut streams = server();
    let id = streams.open(UNI).unwrap();
    streams.send(id, b"all").unwrap();
    streams.finish(id).unwrap();
    let packet = write(&mut streams, 1200);
    streams.reset(id, 5).unwrap();
    acked(&mut streams, &packet);
    lost(&mut streams, &packet);
    assert_eq!((events(&mut streams), streams.count()), (vec![], 1));
    let reset = write(&mut streams, 1200);
    assert!(matches!(reset.frames()[..], [Frame::ResetStream { .. }]));
    acked(&mut streams, &reset);
    let delivered = 3;
    assert_eq!(
        events(&mut streams),
        [StreamEvent::ResetAcknowledged { id, delivered }]
    );
    assert_eq!(streams.count(), 0);
}

/// What arrived without a gap counts until the reset is acknowledged; what lies beyond one, and what comes later, doesn't.
#[test]
fn a_reset_tells_what_was_delivered_before_it_was_acknowledged() {
    for (arrived, expected) in [
        (&[][..], 0),
        (&[0], 1000),
        (&[0, 2], 1000),
        (&[0, 2, 1], 3000),
        (&[1, 2], 0),
    ] {
        for is_stopped in [false, true] {
            let mut streams = server();
            let id = streams.open(UNI).unwrap();
            streams.send(id, &[1; 5000]).unwrap();
            let packets: Vec<_> = [1002, 1004, 1004]
                .map(|size| write(&mut streams, size))
                .into();
            let (before, after) = arrived.split_at(arrived.len() / 2);
            for place in before {
                acked(&mut streams, &packets[*place]);
            }
            if is_stopped {
                streams.on_stop_sending(id, 5).unwrap();
                let stopped = StreamEvent::Stopped { id, code: 5 };
                assert_eq!(events(&mut streams), [stopped]);
            } else {
                streams.reset(id, 5).unwrap();
            }
            assert_eq!((streams.held(), streams.unsent()), (0, 0));
            let reset = write(&mut streams, 1200);
            for place in after {
                acked(&mut streams, &packets[*place]);
            }
            assert_eq!((streams.held(), events(&mut streams)), (0, vec![]));
            acked(&mut streams, &reset);
            for packet in &packets {
                acked(&mut streams, packet);
            }
            let delivered = expected.min(3000);
            assert_eq!(
                events(&mut streams),
                [StreamEvent::ResetAcknowledged { id, delivered }]
            );
            assert_eq!(streams.count(), 0);
        }
    }
}
