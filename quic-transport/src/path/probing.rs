//! What is asked and answered on a path: our challenges and the answers to the peer's,
//! [RFC 9000, section 8.2](https://www.rfc-editor.org/rfc/rfc9000#section-8.2).

use std::time::{Duration, Instant};

use super::responses::PathResponses;
use super::validation::{Expired, PathValidation, Reached};
use crate::transmit::{PacketWriter, SentFrame};
use crate::wire::Frame;

/// Both, and whether either has a frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probing {
    responses: PathResponses,
    validation: PathValidation,
    /// So that the common path looks at one flag.
    is_owing: bool,
}

impl Probing {
    /// Nothing to ask and nothing to answer.
    pub(crate) const fn new() -> Self {
        Self {
            responses: PathResponses::new(),
            validation: PathValidation::new(),
            is_owing: false,
        }
    }

    /// Whether a frame is to be sent.
    #[inline]
    pub(crate) const fn is_owing(&self) -> bool {
        self.is_owing
    }

    /// A PATH_CHALLENGE with `data` was received.
    pub(crate) fn on_challenge(&mut self, data: [u8; 8]) {
        self.responses.on_challenge(data);
        self.is_owing = true;
    }

    /// Asks the peer to answer; see [`PathValidation::begin`].
    pub(crate) fn begin(&mut self, data: [u8; 8], pto: Duration, patience: Duration, now: Instant) {
        self.validation.begin(data, pto, patience, now);
        self.is_owing = true;
    }

    /// See [`PathValidation::on_response`].
    pub(crate) fn on_response(&mut self, data: [u8; 8]) -> Option<Reached> {
        let reached = self.validation.on_response(data);
        self.look();
        reached
    }

    /// See [`PathValidation::on_refused`].
    pub(crate) fn on_refused(&mut self) {
        self.validation.on_refused();
    }

    /// See [`PathValidation::expire`].
    pub(crate) fn expire(&mut self, now: Instant, draw: impl FnOnce() -> [u8; 8]) -> Expired {
        let expired = self.validation.expire(now, draw);
        self.look();
        expired
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.validation.deadline()
    }

    /// Whether an answer is awaited.
    pub(crate) const fn is_pending(&self) -> bool {
        self.validation.is_pending()
    }

    /// Writes what is owed, as far as it fits: one challenge at most (RFC 9000, 8.2.1), and all answers.
    pub(crate) fn write(&mut self, writer: &mut PacketWriter<'_>) {
        if let Some(data) = self.validation.owed()
            && writer.frame(&Frame::PathChallenge { data }, SentFrame::PathChallenge)
        {
            self.validation.on_sent();
        }
        while let Some(data) = self.responses.next()
            && writer.frame(&Frame::PathResponse { data }, SentFrame::PathResponse)
        {
            self.responses.on_sent();
        }
        self.look();
    }

    /// The packet that was written last fills a datagram of 1200 bytes.
    pub(crate) const fn on_full(&mut self) {
        self.validation.on_full();
    }

    const fn look(&mut self) {
        self.is_owing = self.responses.next().is_some() || self.validation.owed().is_some();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Expired, Probing, Reached};
    use crate::transmit::{FrameLog, PacketWriter};

    fn write(probing: &mut Probing, room: usize) -> Vec<u8> {
        let (mut payload, mut log) = ([0; 64], FrameLog::new());
        let mut writer = PacketWriter::new(&mut payload[..room], &mut log);
        probing.write(&mut writer);
        let length = writer.finish().length;
        payload[..length].to_vec()
    }

    /// RFC 9000, 8.2.1: one challenge a packet; answers go along with it.
    #[test]
    fn questions_and_answers_are_owed_until_they_fit() {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut probing = Probing::new();
        assert!(!probing.is_owing() && write(&mut probing, 64).is_empty());
        probing.begin([7; 8], second, second * 3, now);
        probing.on_challenge([1; 8]);
        probing.on_challenge([2; 8]);
        assert_eq!(write(&mut probing, 18).len(), 18);
        assert!(probing.is_owing(), "the second answer");
        assert_eq!(write(&mut probing, 64)[0], 0x1b);
        assert!(!probing.is_owing());
        assert_eq!(probing.expire(now + second, || [8; 8]), Expired::Again);
        assert!(probing.is_owing());
        assert_eq!(write(&mut probing, 64).len(), 9);
        probing.on_full();
        assert_eq!(probing.on_response([8; 8]), Some(Reached::InFull));
        assert!(!probing.is_owing() && !probing.is_pending());
    }
}
