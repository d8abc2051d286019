//! Records of stream data that lie end to end, as one.
//!
//! A bulk transfer's acknowledgement frees the data of many packets: their stream hears of it once.

use super::SentFrame;

/// What has been collected of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    frame: Option<SentFrame>,
}

impl Run {
    /// Adds the next record; returns the run before it, if it doesn't belong to that.
    #[inline]
    pub(crate) fn push(&mut self, next: SentFrame) -> Option<SentFrame> {
        if let Some(frame) = &mut self.frame
            && frame.join(next)
        {
            return None;
        }
        self.frame.replace(next)
    }

    /// Ends the last run.
    #[inline]
    pub(crate) const fn take(&mut self) -> Option<SentFrame> {
        self.frame.take()
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, SentFrame};
    use crate::wire::{Direction, Side, StreamId};

    const fn stream(index: u64, offset: u64, length: u32, fin: bool) -> SentFrame {
        SentFrame::Stream {
            id: StreamId::new(Side::Client, Direction::Bidirectional, index),
            offset,
            length,
            fin,
        }
    }

    #[test]
    fn only_data_of_one_stream_that_lies_end_to_end_is_a_run() {
        let mut run = Run::default();
        let frames = [
            stream(0, 0, 10, false),
            stream(0, 10, 5, false),
            stream(0, 16, 4, false),
            stream(1, 20, 4, false),
            stream(1, 24, 4, true),
            stream(1, 28, 0, true),
            SentFrame::Ping,
            SentFrame::Ping,
            stream(2, 0, u32::MAX, false),
            stream(2, u32::MAX.into(), 1, false),
        ];
        let mut runs: Vec<SentFrame> = frames.into_iter().filter_map(|f| run.push(f)).collect();
        runs.extend(run.take());
        assert_eq!(
            runs,
            [
                stream(0, 0, 15, false),
                stream(0, 16, 4, false),
                stream(1, 20, 8, true),
                stream(1, 28, 0, true),
                SentFrame::Ping,
                SentFrame::Ping,
                stream(2, 0, u32::MAX, false),
                stream(2, u32::MAX.into(), 1, false),
            ]
        );
        assert_eq!(run.take(), None);
    }
}
