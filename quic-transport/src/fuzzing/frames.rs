//! The frames of a packet's payload.

use quic_common::Writer;

use crate::wire::{Encode as _, Frame, Frames};

/// Decodes the frames of a payload, encodes each again, and compares.
///
/// The iterator ends after its first error, and never gives more frames than there are bytes.
pub fn frames(payload: &[u8]) {
    let Ok(mut frames) = Frames::new(payload) else {
        assert!(payload.is_empty(), "only an empty payload has no frames");
        return;
    };
    for _ in 0..payload.len() {
        match frames.next() {
            Some(Ok(frame)) => encode_again(&frame),
            Some(Err(malformed)) => {
                assert!(!malformed.reason.is_empty());
                assert!(frames.next().is_none(), "nothing follows an error");
                return;
            }
            None => return,
        }
    }
    assert!(frames.next().is_none(), "more frames than bytes");
}

fn encode_again(frame: &Frame<'_>) {
    let mut space = vec![0; frame.size()];
    let mut writer = Writer::new(&mut space);
    frame.encode(&mut writer);
    assert_eq!(writer.remaining(), 0, "{frame:?} has another size");
    let encoded = writer.into_written();
    let mut frames = Frames::new(encoded).unwrap();
    let again = frames.next().unwrap().unwrap();
    assert!(frames.next().is_none(), "{frame:?} became two frames");
    assert_eq!(frame.frame_type(), again.frame_type());
    assert_eq!(frame.is_ack_eliciting(), again.is_ack_eliciting());
    let (Frame::Ack(ack), Frame::Ack(other)) = (frame, &again) else {
        assert_eq!(*frame, again);
        return;
    };
    assert_eq!(
        (ack.largest, ack.delay, ack.ecn),
        (other.largest, other.delay, other.ecn)
    );
    assert!(
        ack.ranges().eq(other.ranges()),
        "the ranges of {ack:?} differ"
    );
    let mut below = None;
    for range in ack.ranges() {
        assert!(range.start() <= range.end());
        assert!(below.is_none_or(|below| range.end() + 1 < below));
        below = Some(*range.start());
    }
}
