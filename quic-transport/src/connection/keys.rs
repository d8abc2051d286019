//! The keys of each level, and which level may be used for what,
//! [RFC 9001, section 4.1.4](https://www.rfc-editor.org/rfc/rfc9001#section-4.1.4).

use crate::{
    tls::{LevelKeys, OneRttKeys},
    wire::Level,
};

/// The keys that there are at the moment.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) initial: Option<Box<LevelKeys>>,
    /// Of 0-RTT packets.
    pub(super) early: Option<Box<LevelKeys>>,
    pub(super) handshake: Option<Box<LevelKeys>>,
    pub(super) one_rtt: Option<Box<OneRttKeys>>,
    /// 1-RTT packets of the peer may be processed: a server waits for the handshake to complete (RFC 9001, 5.7).
    pub(super) opens_one_rtt: bool,
}

impl Keys {
    /// Whether packets of this level can be opened.
    pub(super) const fn can_open(&self, level: Level) -> bool {
        match level {
            Level::Initial => self.initial.is_some(),
            Level::Handshake => self.handshake.is_some(),
            Level::OneRtt => self.one_rtt.is_some() && self.opens_one_rtt,
            Level::ZeroRtt => self.early.is_some(),
        }
    }

    /// The keys of packets with long headers.
    pub(super) fn of_long(&self, level: Level) -> Option<&LevelKeys> {
        match level {
            Level::Initial => self.initial.as_deref(),
            Level::Handshake => self.handshake.as_deref(),
            Level::ZeroRtt => self.early.as_deref(),
            Level::OneRtt => None,
        }
    }
}
