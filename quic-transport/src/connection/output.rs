//! Batches out, or how long to wait.

use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, BatchHead, DatagramBatch};

use super::Connection;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Output<'b> {
    /// Send these datagrams, then ask again.
    Datagrams(DatagramBatch<'b>),
    /// Nothing to send: ask again after this time, or after the next input or call that gives reason to send.
    Callback(Duration),
    /// Nothing to send, and nothing to wait for but input.
    None,
}

impl Output<'_> {
    /// How long to wait for input, as the read timeout of a socket that blocks: never zero, and `None` for as long as it
    /// takes.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Callback(wait) => Some((*wait).max(Duration::from_micros(1))),
            Self::Datagrams(_) | Self::None => None,
        }
    }
}

/// The same, with the bytes left in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Send(BatchHead),
    Wait(Option<Instant>),
}

impl Connection {
    /// The next batch of datagrams, built in `buffer`, or how long to wait.
    ///
    /// Call it after input, after calls that may give reason to send, and when the time of an
    /// [`Output::Callback`] has passed; after [`Output::Datagrams`] call it again.
    ///
    /// A batch makes room in the streams, and deadlines that pass are events too: take events before each call, or a long
    /// body stops every 256 KiB until something arrives.
    pub fn process_output<'b>(&mut self, now: Instant, buffer: &'b mut BatchBuffer) -> Output<'b> {
        match self.step(now, buffer.bytes_mut()) {
            Step::Send(head) => Output::Datagrams(buffer.batch(head)),
            Step::Wait(Some(at)) => Output::Callback(at.saturating_duration_since(now)),
            Step::Wait(None) => Output::None,
        }
    }

    /// [`Connection::process_output`] for one who shares the buffer among connections.
    pub(crate) fn step(&mut self, now: Instant, buffer: &mut [u8]) -> Step {
        self.expire(now);
        self.settle(now);
        let step = if self.is_at_rest() && !self.rouse(now) {
            Step::Wait(self.deadline(now))
        } else {
            self.assemble(now, buffer)
                .map_or_else(|| self.wait(now), Step::Send)
        };
        if self.tap.is_some() {
            self.tell_standing(now);
        }
        step
    }

    #[inline]
    fn wait(&mut self, now: Instant) -> Step {
        self.consider_rest(now);
        Step::Wait(self.deadline(now))
    }
}
