//! What belongs to one packet number space,
//! [RFC 9000, section 12.3](https://www.rfc-editor.org/rfc/rfc9000#section-12.3).

use std::time::Duration;

use quic_common::{MAX_BATCH_SEGMENTS, Random};

use crate::{
    ack::ReceivedPackets,
    crypto_stream::CryptoStream,
    path::EcnSpace,
    recovery::{PacketNumbers, SentPackets},
    transmit::{FrameLog, Space},
    wire::{Level, PacketNumber, wide},
};

/// A packet number space with its handshake stream.
#[derive(Debug)]
pub(super) struct SpaceState {
    pub(super) received: ReceivedPackets,
    pub(super) sent: SentPackets,
    pub(super) numbers: PacketNumbers,
    pub(super) log: FrameLog,
    pub(super) ecn: EcnSpace,
    /// Once anything is said or heard.
    pub(super) crypto: Option<Box<CryptoStream>>,
    /// Probe packets that are owed, whatever the congestion window says (RFC 9002, 7.5).
    pub(super) probes: usize,
    /// Probes have repeated what was in flight up to this packet number.
    pub(super) repeated_to: u64,
}

impl SpaceState {
    fn new(space: Space, numbers: PacketNumbers, max_ack_delay: Duration) -> Self {
        Self {
            received: ReceivedPackets::new(space, max_ack_delay),
            sent: SentPackets::new(),
            numbers,
            log: FrameLog::new(),
            ecn: EcnSpace::default(),
            crypto: None,
            probes: 0,
            repeated_to: 0,
        }
    }

    /// The handshake stream.
    pub(super) fn crypto(&mut self) -> &mut CryptoStream {
        self.crypto.get_or_insert_default()
    }

    /// Bytes of the next packet's number in its header: enough for all of a batch, whose packets then have the same.
    #[inline]
    pub(super) fn number_length(&self) -> usize {
        let last = self.numbers.upcoming_run(wide(MAX_BATCH_SEGMENTS)).end;
        PacketNumber(last).encoded_length(self.sent.largest_acked())
    }

    /// Whether there is handshake data to be sent.
    #[inline]
    pub(super) fn has_pending_crypto(&self) -> bool {
        self.crypto
            .as_ref()
            .is_some_and(|crypto| crypto.has_pending_frames())
    }

    /// Gives back the room that isn't needed in a silence; the handshake stream too, once it `is_over`.
    pub(super) fn rest(&mut self, is_over: bool) {
        self.received.rest();
        self.sent.rest();
        self.log.rest();
        if is_over {
            self.crypto = None;
        } else if let Some(crypto) = &mut self.crypto {
            crypto.rest();
        }
    }

    /// Forgets the records of frames that nobody can ask for any more.
    #[inline]
    pub(super) fn release_frames(&mut self) {
        let oldest = self
            .sent
            .oldest_frames()
            .unwrap_or_else(|| self.log.next_index());
        self.log.release_to(oldest);
    }
}

/// The spaces of a connection; those of the handshake go away with their keys.
#[derive(Debug)]
pub(super) struct Spaces {
    initial: Option<Box<SpaceState>>,
    handshake: Option<Box<SpaceState>>,
    pub(super) application: SpaceState,
}

impl Spaces {
    pub(super) fn new(max_ack_delay: Duration, random: &mut Random) -> Self {
        let early = |space| {
            Some(Box::new(SpaceState::new(
                space,
                PacketNumbers::new(),
                Duration::ZERO,
            )))
        };
        Self {
            initial: early(Space::Initial),
            handshake: early(Space::Handshake),
            application: SpaceState::new(
                Space::Application,
                PacketNumbers::with_gaps(random),
                max_ack_delay,
            ),
        }
    }

    #[inline]
    pub(super) fn get(&self, space: Space) -> Option<&SpaceState> {
        match space {
            Space::Initial => self.initial.as_deref(),
            Space::Handshake => self.handshake.as_deref(),
            Space::Application => Some(&self.application),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, space: Space) -> Option<&mut SpaceState> {
        match space {
            Space::Initial => self.initial.as_deref_mut(),
            Space::Handshake => self.handshake.as_deref_mut(),
            Space::Application => Some(&mut self.application),
        }
    }

    /// Forgets a space of the handshake.
    pub(super) const fn take(&mut self, space: Space) -> Option<Box<SpaceState>> {
        match space {
            Space::Initial => self.initial.take(),
            Space::Handshake => self.handshake.take(),
            Space::Application => None,
        }
    }

    /// Whether only the application's space is left.
    #[inline]
    pub(super) const fn is_settled(&self) -> bool {
        self.initial.is_none() && self.handshake.is_none()
    }
}

/// The space that packets of a level are numbered in.
pub(super) trait SpaceOf {
    fn space(self) -> Space;
}

impl SpaceOf for Level {
    #[inline]
    fn space(self) -> Space {
        match self {
            Self::Initial => Space::Initial,
            Self::Handshake => Space::Handshake,
            Self::ZeroRtt | Self::OneRtt => Space::Application,
        }
    }
}
