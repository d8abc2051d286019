//! Bytes that the application lends: they arrive as copied ones do, count as those do, and are let go of in time.

use bytes::Bytes;

use super::{
    GENEROUS, PeerLimits, Side, StreamSettings, Streams, UNI, acked, deliver, events, lost, write,
};
use crate::error::StreamError;
use crate::limits::LEAST_LENT;
use crate::transmit::SentFrame;
use crate::wire::StreamId;

/// Bytes to be lent, and what tells whether they still are: somebody else has them.
fn lendable(data: Vec<u8>) -> (Bytes, Bytes) {
    let bytes = Bytes::from(data);
    (bytes.clone(), bytes)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 251).to_le_bytes()[0]).collect()
}

fn client(settings: StreamSettings) -> (Streams, StreamId) {
    let mut streams = Streams::new(Side::Client, settings);
    streams.set_peer_limits(GENEROUS);
    while streams.next_event().is_some() {}
    let id = streams.open(UNI).unwrap();
    (streams, id)
}

/// Packets are lost in every pattern of three, and what is written is of either kind in turn.
#[test]
fn what_is_lent_arrives_though_packets_are_lost() {
    for pattern_of_loss in 0..8 {
        let (mut streams, id) = client(StreamSettings::default());
        let mut server = Streams::new(Side::Server, StreamSettings::default());
        let data = pattern(100_000);
        let mut rest = Bytes::from(data.clone());
        let mut is_lent = true;
        while !rest.is_empty() {
            let mut piece = rest.split_to(rest.len().min(7777));
            let length = piece.len();
            let taken = if is_lent {
                streams.send_bytes(id, &mut piece)
            } else {
                streams.send(id, &piece)
            };
            assert_eq!(taken, Ok(length));
            is_lent = !is_lent;
        }
        streams.finish(id).unwrap();
        let mut step = 0;
        while streams.has_pending_frames() {
            let packet = write(&mut streams, 1200);
            if step < 100 && pattern_of_loss & (1 << (step % 3)) != 0 {
                lost(&mut streams, &packet);
            } else {
                deliver(&mut server, &packet.payload).unwrap();
                acked(&mut streams, &packet);
            }
            step += 1;
        }
        let mut received = vec![0; 100_001];
        let read = server.read(id, &mut received).unwrap();
        assert!(read.fin && received[..read.length] == data);
        assert_eq!(streams.held(), 0);
    }
}

#[test]
fn what_fits_is_taken_off_the_front() {
    let (mut streams, id) = client(StreamSettings {
        backlog: 5000,
        ..StreamSettings::default()
    });
    let mut data = Bytes::from(pattern(8000));
    assert_eq!(streams.send_bytes(id, &mut data), Ok(5000));
    assert_eq!(data, pattern(8000)[5000..]);
    assert_eq!(streams.send_bytes(id, &mut data), Ok(0));
    assert_eq!((data.len(), streams.held()), (3000, 5000));
    assert_eq!(streams.memory(), 5000 + (3 << 19) / 4, "it counts as held");
    streams.finish(id).unwrap();
    assert_eq!(
        streams.send_bytes(id, &mut data),
        Err(StreamError::Finished)
    );
    assert_eq!(data.len(), 3000, "nothing is taken");
}

#[test]
fn little_is_copied_and_much_is_not() {
    for (length, is_held) in [(LEAST_LENT - 1, false), (LEAST_LENT, true)] {
        let (mut streams, id) = client(StreamSettings::default());
        let (mut bytes, memory) = lendable(pattern(length));
        assert_eq!(streams.send_bytes(id, &mut bytes), Ok(length));
        assert_eq!(!memory.is_unique(), is_held);
    }
}

#[test]
fn what_is_lent_is_let_go_of_at_the_end_of_any_kind() {
    let ends: [fn(&mut Streams, StreamId); 4] = [
        |streams, id| {
            let packet = write(streams, 6000);
            acked(streams, &packet);
            let (offset, length) = (0, 6000);
            streams.on_acked(SentFrame::Stream {
                id,
                offset,
                length,
                fin: false,
            });
        },
        |streams, id| streams.reset(id, 7).unwrap(),
        |streams, id| streams.on_stop_sending(id, 7).unwrap(),
        |streams, id| streams.reset_at(id, 7, 10).unwrap(),
    ];
    for end in ends {
        let (mut streams, id) = client(StreamSettings::default());
        streams.send(id, &[1; 10]).unwrap();
        let (mut bytes, memory) = lendable(pattern(4500));
        streams.send_bytes(id, &mut bytes).unwrap();
        let packet = write(&mut streams, 1200);
        assert!(!memory.is_unique());
        end(&mut streams, id);
        assert!(memory.is_unique());
        acked(&mut streams, &packet);
        lost(&mut streams, &packet);
    }
}

/// RFC 9001, 4.6.2: what was sent in rejected 0-RTT packets is sent again, from where it was lent.
#[test]
fn what_is_lent_outlives_rejected_early_data() {
    let (mut streams, id) = client(StreamSettings::default());
    let (mut bytes, memory) = lendable(pattern(4500));
    streams.send_bytes(id, &mut bytes).unwrap();
    streams.finish(id).unwrap();
    while streams.has_pending_frames() {
        drop(write(&mut streams, 1200));
    }
    streams.restart(PeerLimits {
        stream_unidirectional: 5000,
        ..GENEROUS
    });
    let mut server = Streams::new(Side::Server, StreamSettings::default());
    while streams.has_pending_frames() {
        let packet = write(&mut streams, 1200);
        deliver(&mut server, &packet.payload).unwrap();
        acked(&mut streams, &packet);
    }
    let mut received = vec![0; 5000];
    let read = server.read(id, &mut received).unwrap();
    assert!(read.fin && received[..read.length] == pattern(4500));
    assert!(memory.is_unique());
    assert_eq!(events(&mut streams).len(), 1);
}
