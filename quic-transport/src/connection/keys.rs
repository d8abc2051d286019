//! The keys of each level, and which level may be used for what,
//! [RFC 9001, section 4.1.4](https://www.rfc-editor.org/rfc/rfc9001#section-4.1.4).

use crate::{
    tls::{DormantKeys, LevelKeys, OneRttKeys},
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
    /// What they are made from again, instead of them, while the connection is silent.
    dormant: Option<Box<DormantKeys>>,
    /// 1-RTT packets of the peer may be processed: a server waits for the handshake to complete (RFC 9001, 5.7).
    pub(super) opens_one_rtt: bool,
}

impl Keys {
    /// Those of Initial packets.
    pub(super) fn begin(initial: Box<LevelKeys>) -> Self {
        Self {
            initial: Some(initial),
            ..Self::default()
        }
    }

    /// Whether there are 1-RTT keys, or were and are to be made again.
    pub(super) const fn has_one_rtt(&self) -> bool {
        self.one_rtt.is_some() || self.is_dormant()
    }

    /// Whether the 1-RTT keys were given up for the time of a silence.
    #[inline]
    pub(super) const fn is_dormant(&self) -> bool {
        self.dormant.is_some()
    }

    /// Gives up the 1-RTT keys: nothing is to be sent, and nothing arrives.
    pub(super) fn sleep(&mut self) {
        self.dormant = self
            .one_rtt
            .take()
            .map(|keys| Box::new(keys.into_dormant()));
    }

    /// Makes the 1-RTT keys again that were given up, and returns them.
    ///
    /// To be called before anything of the packet is known that breaks the silence: the time that it takes must not depend
    /// on what the packet says (RFC 9001, 6.3 and 9.5).
    #[cold]
    pub(super) fn wake(&mut self) -> Option<&mut Box<OneRttKeys>> {
        let keys = self.dormant.take()?.wake();
        Some(self.one_rtt.insert(Box::new(keys)))
    }

    /// Whether packets of the phase before can still be opened.
    pub(super) fn has_previous(&self) -> bool {
        self.one_rtt
            .as_ref()
            .is_some_and(|keys| keys.has_previous())
    }

    /// How many updates of the 1-RTT keys there have been.
    pub(super) fn generation(&self) -> u64 {
        match (&self.one_rtt, &self.dormant) {
            (Some(keys), _) => keys.generation(),
            (None, Some(keys)) => keys.generation(),
            (None, None) => 0,
        }
    }

    /// Whether packets of this level can be opened.
    pub(super) const fn can_open(&self, level: Level) -> bool {
        match level {
            Level::Initial => self.initial.is_some(),
            Level::Handshake => self.handshake.is_some(),
            Level::OneRtt => self.has_one_rtt() && self.opens_one_rtt,
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
