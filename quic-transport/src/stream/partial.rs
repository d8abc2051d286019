//! A stream that is given up, but for its beginning, draft-ietf-quic-reliable-stream-reset-10, 5.
//!
//! The bytes that are delivered nevertheless may become fewer. The code and the final size stay as they were told.

/// What RESET_STREAM_AT says of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResetAt {
    pub(super) code: u64,
    pub(super) final_size: u64,
    pub(super) reliable_size: u64,
}

/// Where the frame stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Owed,
    Sent,
    Acked,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partial {
    code: u64,
    reliable: u64,
    /// Bytes that had been sent when some of them were last given up.
    sent: u64,
    stage: Stage,
}

impl Partial {
    /// Of a stream of which `sent` bytes have been sent, the first `reliable` are delivered.
    pub(super) const fn new(code: u64, reliable: u64, sent: u64) -> Self {
        Self {
            code,
            reliable,
            sent,
            stage: Stage::Owed,
        }
    }

    /// Delivers fewer bytes; `None`, and nothing changes, if it were more.
    pub(super) fn reduce(&mut self, reliable: u64, sent: u64) -> Option<()> {
        if reliable > self.reliable {
            return None;
        }
        self.on_size(sent);
        if reliable < self.reliable {
            self.reliable = reliable;
            self.stage = Stage::Owed;
        }
        Some(())
    }

    /// So many bytes have been sent, some of which are about to be given up.
    pub(super) fn on_size(&mut self, sent: u64) {
        self.sent = self.sent.max(sent);
    }

    /// What the frame says if it is to be sent, and `sent` bytes have been.
    pub(super) fn owed(&self, sent: u64) -> Option<ResetAt> {
        (self.stage == Stage::Owed).then(|| ResetAt {
            code: self.code,
            final_size: self.sent.max(sent),
            reliable_size: self.reliable,
        })
    }

    /// The code and final size of a frame that gives up the beginning too.
    pub(super) fn told(&self, sent: u64) -> (u64, u64) {
        (self.code, self.sent.max(sent))
    }

    pub(super) const fn on_sent(&mut self) {
        self.stage = Stage::Sent;
    }

    /// The frame with this reliable size arrived; only the smallest counts.
    pub(super) const fn on_acked(&mut self, reliable: u64) {
        if reliable == self.reliable {
            self.stage = Stage::Acked;
        }
    }

    pub(super) fn on_lost(&mut self, reliable: u64) {
        if reliable == self.reliable && self.stage == Stage::Sent {
            self.stage = Stage::Owed;
        }
    }

    /// Whether the peer has the frame with the smallest reliable size.
    pub(super) fn is_acked(&self) -> bool {
        self.stage == Stage::Acked
    }
}
