//! QPACK's part in a session: its two streams of ours, and the requests that wait for lines of the dynamic table.

use std::time::Instant;

use quic_transport::StreamId;

use super::Session;
use super::outgoing::Critical;
use crate::error::Error;
use crate::qpack::References;
use crate::transport::Transport;

/// Where our encoder stream is among the critical ones.
const ENCODER: usize = 1;

/// And the decoder stream.
const DECODER: usize = 2;

impl Session {
    /// Has requests looked at that have waited for lines which have come.
    pub(super) fn unblock(&mut self) {
        while let Some(stream) = self.decoder.take_unblocked() {
            self.exchanges.queue_stream(stream);
        }
    }

    /// Counts what the peer has had copied out of the dynamic table.
    #[inline]
    pub(super) fn count_copies(&mut self, now: Instant) -> Result<(), Error> {
        while self.decoder.take_glitch() {
            self.glitches.count(now)?;
        }
        Ok(())
    }

    /// A field section was sent.
    #[inline]
    pub(super) fn on_section_sent<T: Transport>(
        &mut self,
        transport: &mut T,
        id: StreamId,
        references: References,
    ) {
        self.encoder.on_sent(id.value(), references);
        if self.encoder.has_instructions() {
            self.instruct(transport);
        }
    }

    /// Whether what was said on the encoder stream has not all left.
    #[inline]
    pub(super) fn are_instructions_held_up(&self) -> bool {
        let stream = self.critical.get(ENCODER);
        stream.is_some_and(|stream| !stream.is_clear())
    }

    /// Sends what the peer's encoder and decoder are to know.
    pub(super) fn tell_compression<T: Transport>(
        &mut self,
        transport: &mut T,
    ) -> Result<(), Error> {
        if self.encoder.has_instructions() {
            self.instruct(transport);
        }
        if self.decoder.has_news() {
            let stream = self
                .critical
                .get_mut(DECODER)
                .filter(|stream| stream.is_clear());
            self.scratch.clear();
            self.decoder
                .take_news(stream.is_some(), &mut self.scratch)?;
            if let Some(stream) = stream {
                stream.say(transport, &self.scratch);
            }
        }
        Ok(())
    }

    /// Sends instructions to the peer's decoder, once those before have left.
    #[cold]
    fn instruct<T: Transport>(&mut self, transport: &mut T) {
        if let Some(stream) = self.critical.get_mut(ENCODER)
            && stream.is_clear()
        {
            self.scratch.clear();
            self.encoder.take_instructions(&mut self.scratch);
            stream.say(transport, &self.scratch);
        }
    }
}

impl Critical {
    /// Sends bytes. A transport that refuses the stream altogether is closed, or tells why in an event.
    fn say<T: Transport>(&mut self, transport: &mut T, bytes: &[u8]) {
        let _: Result<(), _> = self.send.frames(self.id, transport, bytes);
    }
}
