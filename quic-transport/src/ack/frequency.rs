//! What the peer asks for in an ACK_FREQUENCY frame, draft-ietf-quic-ack-frequency-14, 4.

use std::time::Duration;

use crate::error::Error;
use crate::wire::Frame;

/// The shortest delay that we can be asked for: timers aren't finer.
pub(crate) const MIN_ACK_DELAY: Duration = Duration::from_millis(1);

/// The first delay that is too long.
const TOO_LONG: Duration = Duration::from_millis(1 << 14);

/// A request, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frequency {
    pub(crate) sequence: u64,
    /// Ack-eliciting packets that need not be acknowledged at once.
    pub(crate) threshold: u64,
    pub(crate) max_delay: Duration,
    /// How far packets may be out of order before that is told; 0 for never.
    pub(crate) reordering: u64,
}

impl Frequency {
    /// What `frame` asks for, of one who has said that it delays by `least` at least; `None` for another frame.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when the delay is shorter, or 2^14 ms or more.
    pub(crate) fn read(frame: &Frame<'_>, least: Duration) -> Result<Option<Self>, Error> {
        let Frame::AckFrequency {
            sequence,
            threshold,
            max_delay,
            reordering,
        } = *frame
        else {
            return Ok(None);
        };
        let max_delay = Duration::from_micros(max_delay);
        if max_delay < least || max_delay >= TOO_LONG {
            let reason = "a delay of acknowledgments that can't be";
            return Err(Error::protocol(frame.frame_type(), reason));
        }
        Ok(Some(Self {
            sequence,
            threshold,
            max_delay,
            reordering,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Frequency;
    use crate::wire::{Frame, TransportErrorCode as Code};

    /// draft-ietf-quic-ack-frequency-14, 4: a delay below our min_ack_delay, or of 2^14 ms, MUST be a PROTOCOL_VIOLATION.
    #[test]
    fn the_delay_is_within_its_bounds() {
        let read = |max_delay| {
            let frame = Frame::AckFrequency {
                sequence: 1,
                threshold: 2,
                max_delay,
                reordering: 3,
            };
            let read = Frequency::read(&frame, Duration::from_millis(1));
            read.map_err(|error| (error.code, error.frame))
        };
        for micros in [1000, 25_000, 16_383_999] {
            let delay = read(micros).unwrap().unwrap().max_delay;
            assert_eq!(delay, Duration::from_micros(micros));
        }
        for micros in [0, 999, 16_384_000, quic_common::MAX_VARINT] {
            assert_eq!(read(micros), Err((Code::PROTOCOL_VIOLATION, 0xaf)));
        }
        let other = Frequency::read(&Frame::Ping, Duration::ZERO);
        assert_eq!(other, Ok(None));
    }
}
