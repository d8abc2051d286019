//! Streams that are given up, but for their beginning (draft-ietf-quic-reliable-stream-reset-10).

use super::{
    Frame, Packet, StreamEvent, UNI, acked, client_uni, deliver, events, lost, server, write,
};
use crate::error::StreamError;
use crate::stream::{Read, StreamSettings, Streams};
use crate::wire::{Side, StreamId, TransportErrorCode as Code};

/// What a packet says of resets: code, final size and reliable size.
fn resets(packet: &Packet) -> Vec<(u64, u64, u64)> {
    let mut found = Vec::new();
    for frame in packet.frames() {
        if let Frame::ResetStreamAt {
            code,
            final_size,
            reliable_size,
            ..
        } = frame
        {
            found.push((code, final_size, reliable_size));
        } else if let Frame::ResetStream {
            code, final_size, ..
        } = frame
        {
            found.push((code, final_size, 0));
        }
    }
    found
}

/// Stream data in a packet: offset, length and whether it is the end.
fn data(packet: &Packet) -> Vec<(u64, usize, bool)> {
    let mut found = Vec::new();
    for frame in packet.frames() {
        if let Frame::Stream {
            offset, data, fin, ..
        } = frame
        {
            found.push((offset, data.len(), fin));
        }
    }
    found
}

fn sending(bytes: usize) -> (Streams, StreamId) {
    let mut streams = server();
    let id = streams.open(UNI).unwrap();
    assert_eq!(streams.send(id, &vec![7; bytes]), Ok(bytes));
    (streams, id)
}

const fn delivered(id: StreamId, delivered: u64) -> StreamEvent {
    StreamEvent::ResetAcknowledged { id, delivered }
}

/// 5: data up to the reliable size is sent again when it is lost, and data beyond it is not.
#[test]
fn only_what_is_promised_is_sent_again() {
    let (mut streams, id) = sending(2000);
    let first = write(&mut streams, 1030);
    let [(0, length, false)] = data(&first)[..] else {
        panic!("{first:?}")
    };
    streams.reset_at(id, 9, 100).unwrap();
    assert_eq!(streams.held(), 100, "nothing else is held");
    let sent = u64::try_from(length).unwrap();
    let reset = write(&mut streams, 1000);
    assert_eq!(resets(&reset), [(9, sent, 100)]);
    assert!(data(&reset).is_empty(), "what was never sent isn't");
    lost(&mut streams, &first);
    let again = write(&mut streams, 1000);
    assert_eq!(data(&again), [(0, 100, false)]);
    lost(&mut streams, &reset);
    let repeated = write(&mut streams, 1000);
    assert_eq!(resets(&repeated), [(9, sent, 100)]);
    acked(&mut streams, &repeated);
    assert_eq!(streams.count(), 1, "the data is missing");
    acked(&mut streams, &again);
    assert_eq!(events(&mut streams), [delivered(id, 100)]);
    assert_eq!((streams.count(), streams.held()), (0, 0));
}

/// 5.3: the end is reached in the other order, too.
#[test]
fn the_frame_is_waited_for_when_the_data_has_arrived() {
    let (mut streams, id) = sending(500);
    let first = write(&mut streams, 1000);
    acked(&mut streams, &first);
    streams.reset_at(id, 1, 500).unwrap();
    let reset = write(&mut streams, 1000);
    assert_eq!(resets(&reset), [(1, 500, 500)]);
    assert_eq!(streams.count(), 1);
    acked(&mut streams, &reset);
    assert_eq!(events(&mut streams), [delivered(id, 500)]);
    assert_eq!(streams.count(), 0);
}

/// 4: the frame waits until all that it promises is within the peer's credit.
#[test]
fn what_is_promised_is_sent_before_the_frame() {
    let (mut streams, id) = sending(3000);
    streams.reset_at(id, 4, 2500).unwrap();
    let mut total = 0;
    let mut told = Vec::new();
    while streams.has_pending_frames() {
        let packet = write(&mut streams, 1000);
        told.extend(resets(&packet));
        total += data(&packet)
            .iter()
            .map(|(_, length, _)| length)
            .sum::<usize>();
        assert!(told.is_empty() || total == 2500);
    }
    assert_eq!((total, told), (2500, vec![(4, 2500, 2500)]));
    assert_eq!(streams.send(id, b"x"), Err(StreamError::Finished));
    assert_eq!(streams.finish(id), Err(StreamError::Finished));
}

/// 5.1: a reset after a FIN has the same final size.
#[test]
fn a_finished_stream_can_be_given_up() {
    let (mut streams, id) = sending(800);
    streams.finish(id).unwrap();
    let all = write(&mut streams, 1000);
    assert_eq!(data(&all), [(0, 800, true)]);
    streams.reset_at(id, 2, 300).unwrap();
    let reset = write(&mut streams, 1000);
    assert_eq!(resets(&reset), [(2, 800, 300)]);
    lost(&mut streams, &all);
    let again = write(&mut streams, 1000);
    assert_eq!(data(&again), [(0, 300, false)]);
    acked(&mut streams, &again);
    assert_eq!(streams.count(), 1, "the FIN that was lost doesn't count");
    acked(&mut streams, &reset);
    assert_eq!(events(&mut streams), [delivered(id, 300)]);
    assert_eq!(streams.count(), 0);
}

/// 5.2: the size may become smaller and never larger; only the smallest is sent again; the code and the final size stay.
#[test]
fn a_promise_may_be_reduced() {
    let (mut streams, id) = sending(900);
    let first = write(&mut streams, 1000);
    streams.reset_at(id, 7, 600).unwrap();
    let large = write(&mut streams, 1000);
    assert_eq!(streams.reset_at(id, 7, 601), Err(StreamError::Finished));
    streams.reset_at(id, 8, 200).unwrap();
    let small = write(&mut streams, 1000);
    assert_eq!(resets(&large), [(7, 900, 600)]);
    assert_eq!(resets(&small), [(7, 900, 200)]);
    lost(&mut streams, &large);
    assert!(!streams.has_pending_frames());
    lost(&mut streams, &first);
    assert_eq!(data(&write(&mut streams, 1000)), [(0, 200, false)]);
    lost(&mut streams, &small);
    assert_eq!(resets(&write(&mut streams, 1000)), [(7, 900, 200)]);
    // Nothing at all is a plain reset.
    streams.reset_at(id, 8, 0).unwrap();
    let plain = write(&mut streams, 1000);
    assert_eq!(resets(&plain), [(7, 900, 0)]);
    acked(&mut streams, &large);
    assert_eq!(streams.count(), 1);
    acked(&mut streams, &plain);
    assert_eq!(events(&mut streams), [delivered(id, 0)]);
    assert_eq!(streams.count(), 0);
}

/// Part of a promise that was never sent doesn't count towards the final size.
#[test]
fn a_promise_that_is_withdrawn_unsent_costs_no_credit() {
    let (mut streams, id) = sending(5000);
    let first = write(&mut streams, 600);
    let sent = u64::try_from(data(&first)[0].1).unwrap();
    streams.reset_at(id, 3, 4000).unwrap();
    streams.reset_at(id, 3, 100).unwrap();
    let reset = write(&mut streams, 1000);
    assert_eq!(resets(&reset), [(3, sent, 100)]);
}

/// 6: STOP_SENDING SHOULD be answered with RESET_STREAM; 5.2: which MUST NOT change the code.
#[test]
fn stop_sending_ends_the_promise() {
    let (mut streams, id) = sending(900);
    write(&mut streams, 1000);
    streams.reset_at(id, 7, 600).unwrap();
    write(&mut streams, 1000);
    streams.on_stop_sending(id, 99).unwrap();
    assert_eq!(
        events(&mut streams),
        [StreamEvent::Stopped { id, code: 99 }]
    );
    let reset = write(&mut streams, 1000);
    assert_eq!(resets(&reset), [(7, 900, 0)]);
    assert_eq!(
        streams.reset_at(id, 7, 1),
        Err(StreamError::Stopped { code: 99 })
    );
    acked(&mut streams, &reset);
    assert_eq!(events(&mut streams), [delivered(id, 0)]);
    assert_eq!(streams.count(), 0);
}

fn receiving() -> (Streams, StreamId) {
    (server(), client_uni(0))
}

fn read(streams: &mut Streams, id: StreamId) -> Result<usize, StreamError> {
    let mut buffer = [0; 5000];
    let Read { length, fin } = streams.read(id, &mut buffer)?;
    assert!(!fin, "a reset is no end");
    Ok(length)
}

/// 5: the application gets the promised bytes, and then the reset.
#[test]
fn the_reset_is_told_after_the_promise_is_kept() {
    for reset_first in [false, true] {
        let (mut streams, id) = receiving();
        if reset_first {
            streams.on_reset_stream_at(id, 5, 1000, 300).unwrap();
        }
        streams.on_stream(id, 0, &[7; 200], false).unwrap();
        if !reset_first {
            streams.on_reset_stream_at(id, 5, 1000, 300).unwrap();
        }
        let told = [StreamEvent::Opened(id), StreamEvent::Readable(id)];
        assert_eq!(events(&mut streams), told);
        assert_eq!(read(&mut streams, id), Ok(200));
        assert!(!streams.has_event());
        streams.on_stream(id, 200, &[7; 400], false).unwrap();
        assert_eq!(events(&mut streams), [StreamEvent::Readable(id)]);
        assert_eq!(read(&mut streams, id), Ok(100), "and no more");
        let reset = StreamEvent::Reset { id, code: 5 };
        assert_eq!(events(&mut streams), [reset]);
        assert_eq!(streams.count(), 0);
        // All credit is given back: what was read, and what nobody will read.
        assert_eq!(streams.window.used(), 1000);
        assert_eq!(streams.received, 1000);
    }
}

/// What has been read already is not taken back.
#[test]
fn a_promise_that_was_kept_before_resets_at_once() {
    let (mut streams, id) = receiving();
    streams.on_stream(id, 0, &[7; 500], false).unwrap();
    assert_eq!(read(&mut streams, id), Ok(500));
    streams.on_stream(id, 500, &[7; 100], false).unwrap();
    events(&mut streams);
    streams.on_reset_stream_at(id, 5, 700, 500).unwrap();
    assert_eq!(read(&mut streams, id), Err(StreamError::Reset { code: 5 }));
    assert_eq!((streams.count(), streams.window.used()), (0, 700));
}

/// 5.3: all data up to the final size is no clean end after a reset with that promise.
#[test]
fn a_promise_of_everything_still_ends_with_a_reset() {
    let (mut streams, id) = receiving();
    streams.on_reset_stream_at(id, 5, 400, 400).unwrap();
    streams.on_stream(id, 0, &[7; 400], false).unwrap();
    events(&mut streams);
    assert_eq!(read(&mut streams, id), Ok(400));
    assert_eq!(events(&mut streams), [StreamEvent::Reset { id, code: 5 }]);
}

/// 5.2: a smaller reliable size is taken over, a larger one MUST be ignored.
#[test]
fn only_the_smallest_promise_counts() {
    let (mut streams, id) = receiving();
    streams.on_reset_stream_at(id, 5, 1000, 600).unwrap();
    streams.on_reset_stream_at(id, 5, 1000, 300).unwrap();
    streams.on_reset_stream_at(id, 5, 1000, 800).unwrap();
    streams.on_stream(id, 0, &[7; 1000], true).unwrap();
    assert_eq!(read(&mut streams, id), Ok(300));
    assert_eq!(read(&mut streams, id), Err(StreamError::Reset { code: 5 }));
}

/// 5.2: RESET_STREAM takes the whole promise back.
#[test]
fn a_plain_reset_takes_the_promise_back() {
    let (mut streams, id) = receiving();
    streams.on_stream(id, 0, &[7; 100], false).unwrap();
    streams.on_reset_stream_at(id, 5, 1000, 600).unwrap();
    streams.on_reset_stream(id, 5, 1000).unwrap();
    let told = [StreamEvent::Opened(id), StreamEvent::Reset { id, code: 5 }];
    assert_eq!(events(&mut streams), told);
    assert_eq!((streams.count(), streams.window.used()), (0, 1000));
}

/// 5.2: a code that changes MUST be a STREAM_STATE_ERROR, a final size a FINAL_SIZE_ERROR.
#[test]
fn code_and_final_size_do_not_change() {
    let mut codes = Vec::new();
    let id = client_uni(0);
    for break_rule in [
        |s: &mut Streams, id| s.on_reset_stream_at(id, 6, 1000, 600),
        |s: &mut Streams, id| s.on_reset_stream(id, 6, 1000),
        |s: &mut Streams, id| s.on_reset_stream_at(id, 5, 1001, 600),
        |s: &mut Streams, id| s.on_reset_stream(id, 5, 999),
        |s: &mut Streams, id| s.on_stream(id, 0, &[7; 900], true),
        |s: &mut Streams, id| s.on_stream(id, 1000, &[7; 1], false),
    ] {
        let mut streams = server();
        streams.on_reset_stream_at(id, 5, 1000, 600).unwrap();
        codes.push(break_rule(&mut streams, id).unwrap_err().code);
    }
    let state = [Code::STREAM_STATE_ERROR; 2];
    let size = [Code::FINAL_SIZE_ERROR; 4];
    assert_eq!(codes, [&state[..], &size[..]].concat());

    let mut streams = server();
    streams.on_reset_stream(id, 5, 1000).unwrap();
    let error = streams.on_reset_stream_at(id, 6, 1000, 10).unwrap_err();
    assert_eq!(error.code, Code::STREAM_STATE_ERROR);
}

/// 4: the final size is subject to flow control.
#[test]
fn a_final_size_beyond_the_credit_is_an_error() {
    let limit = |streams: &Streams| streams.settings.stream_window.initial;
    let (mut streams, id) = receiving();
    let most = limit(&streams);
    assert!(streams.on_reset_stream_at(id, 5, most, 1).is_ok());
    let (mut streams, id) = receiving();
    let error = streams.on_reset_stream_at(id, 5, most + 1, 1).unwrap_err();
    assert_eq!(error.code, Code::FLOW_CONTROL_ERROR);
}

/// A stream that the application has stopped doesn't wait for what was promised.
#[test]
fn a_stopped_stream_ends_with_the_reset() {
    let (mut streams, id) = receiving();
    streams.on_stream(id, 0, &[7; 100], false).unwrap();
    events(&mut streams);
    streams.stop(id, 1).unwrap();
    streams.on_reset_stream_at(id, 5, 1000, 600).unwrap();
    assert_eq!((streams.count(), streams.window.used()), (0, 1000));

    let (mut streams, id) = receiving();
    streams.on_stream(id, 0, &[7; 100], false).unwrap();
    streams.on_reset_stream_at(id, 5, 1000, 600).unwrap();
    events(&mut streams);
    streams.stop(id, 1).unwrap();
    assert_eq!((streams.count(), streams.window.used()), (0, 1000));
    assert!(!streams.has_event());
}

/// Pieces beyond the promise are forgotten.
#[test]
fn what_lies_beyond_the_promise_is_forgotten() {
    let (mut streams, id) = receiving();
    for offset in (100..1000).step_by(20) {
        streams.on_stream(id, offset, &[7; 10], false).unwrap();
    }
    streams.on_reset_stream_at(id, 5, 1000, 200).unwrap();
    streams.on_stream(id, 0, &[7; 1000], true).unwrap();
    assert_eq!(read(&mut streams, id), Ok(200));
    assert_eq!(streams.count(), 1, "the reset is still to be told");
}

/// Seeded: two ends, with losses, in any order of things.
#[test]
fn promises_are_kept_whatever_is_lost() {
    let mut random = quic_common::Random::from_seed([7; 32]);
    for round in 0..300 {
        let mut sender = server();
        let mut receiver = Streams::new(Side::Client, StreamSettings::default());
        let id = sender.open(UNI).unwrap();
        let length = usize::try_from(random.below(20_000)).unwrap();
        let written = sender.send(id, &vec![7; length]).unwrap();
        let mut promise = u64::try_from(written).unwrap();
        let mut flying = Vec::new();
        let mut total = 0;
        let mut is_reset = false;
        for step in 0.. {
            assert!(step < 10_000, "round {round} doesn't end");
            if step == 3 || (step > 3 && random.below(8) == 0) {
                promise = random.below(promise + 1);
                let _may_be_over = sender.reset_at(id, 5, promise);
            }
            if sender.has_pending_frames() {
                flying.push(write(&mut sender, 1000));
            }
            if !flying.is_empty() && random.below(3) > 0 {
                let any =
                    usize::try_from(random.below(u64::try_from(flying.len()).unwrap())).unwrap();
                let packet: Packet = flying.swap_remove(any);
                if random.below(3) == 0 {
                    lost(&mut sender, &packet);
                } else {
                    deliver(&mut receiver, &packet.payload).unwrap();
                    acked(&mut sender, &packet);
                }
            }
            for event in events(&mut sender) {
                let StreamEvent::ResetAcknowledged { delivered, .. } = event else {
                    panic!("{event:?}")
                };
                assert!(delivered >= promise);
            }
            for event in events(&mut receiver) {
                is_reset |= event == StreamEvent::Reset { id, code: 5 };
            }
            let mut buffer = [0; 3000];
            while let Ok(Read { length, .. }) = receiver.read(id, &mut buffer)
                && length > 0
            {
                total += length;
            }
            is_reset |= events(&mut receiver).contains(&StreamEvent::Reset { id, code: 5 });
            if is_reset && sender.count() == 0 {
                break;
            }
            if step > 3 && promise == 0 && sender.count() == 0 {
                break;
            }
        }
        assert!(
            u64::try_from(total).unwrap() >= promise,
            "{total} of {promise}"
        );
        assert_eq!(sender.held(), 0);
    }
}
