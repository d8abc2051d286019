//! What is remembered of a packet in flight, [RFC 9002, appendix A.1.1](https://www.rfc-editor.org/rfc/rfc9002#appendix-A.1.1).

use std::{ops::Range, time::Instant};

use crate::transmit::PathId;

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentPacket {
    /// When.
    pub(crate) sent: Instant,
    /// The index of its first record in the space's frame log.
    pub(crate) frames_start: u64,
    /// How many records it has.
    pub(crate) frames_count: u16,
    /// Bytes, without UDP and IP headers; no UDP payload has more than 65527.
    pub(crate) size: u16,
    /// What else matters.
    pub(crate) flags: PacketFlags,
    /// On which path.
    pub(crate) path: PathId,
}

/// Yes or no questions about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketFlags(u8);

impl PacketFlags {
    /// None of them.
    pub(crate) const NONE: Self = Self(0);
    /// The peer must acknowledge it.
    pub(crate) const ACK_ELICITING: Self = Self(1);
    /// It is acknowledged or lost.
    pub(crate) const IN_FLIGHT: Self = Self(2);
    /// It probes the path's MTU: its loss says nothing about congestion (RFC 9000, 14.4).
    pub(crate) const MTU_PROBE: Self = Self(4);
    /// It was sent with ECT(0).
    pub(crate) const ECT0: Self = Self(8);

    /// These and `other`.
    #[inline]
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These, and `other` too when `condition` holds.
    #[inline]
    pub(crate) const fn with_if(self, other: Self, condition: bool) -> Self {
        if condition { self.with(other) } else { self }
    }

    /// See [`SentPacket::fills_window`].
    #[inline]
    const fn fills_window(self) -> bool {
        self.has(Self::IN_FLIGHT) && !self.has(Self::MTU_PROBE)
    }

    /// Whether all of `other` are among these.
    #[inline]
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl SentPacket {
    /// The indices of its records.
    #[inline]
    pub(crate) fn frames(&self) -> Range<u64> {
        self.frames_start..self.frames_start.saturating_add(self.frames_count.into())
    }

    /// Whether the peer must acknowledge it.
    #[inline]
    pub(crate) const fn is_ack_eliciting(&self) -> bool {
        self.flags.has(PacketFlags::ACK_ELICITING)
    }

    /// Whether it is going to be acknowledged or lost.
    #[inline]
    pub(crate) const fn is_in_flight(&self) -> bool {
        self.flags.has(PacketFlags::IN_FLIGHT)
    }

    /// Whether it counts against the congestion window.
    ///
    /// A probe of the MTU doesn't, since its loss says nothing about congestion (RFC 9000, 14.4). There is one at a
    /// time, and it may be larger than the first window: counted, it would hold up all else for a round trip.
    #[inline]
    pub(crate) const fn fills_window(&self) -> bool {
        self.flags.fills_window()
    }

    /// Whether it probes the path's MTU.
    #[inline]
    pub(crate) const fn is_mtu_probe(&self) -> bool {
        self.flags.has(PacketFlags::MTU_PROBE)
    }

    /// Whether it was sent with ECT(0).
    #[inline]
    pub(crate) const fn is_ect0(&self) -> bool {
        self.flags.has(PacketFlags::ECT0)
    }
}

/// Packets that were acknowledged just now, as far as they were sent in one moment and differ in nothing that counts: what
/// follows from it is worked out for all of them at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acked {
    /// The number of the last one.
    pub(crate) number: u64,
    /// How many.
    pub(crate) count: u64,
    /// When they were sent.
    pub(crate) sent: Instant,
    /// Bytes of all.
    pub(crate) bytes: u64,
    /// Bytes of the largest.
    pub(crate) largest: u16,
    /// What else matters, the same for all.
    pub(crate) flags: PacketFlags,
    /// On which path.
    pub(crate) path: PathId,
    /// The indices of their records.
    pub(crate) frames: Range<u64>,
}

impl Acked {
    /// One packet.
    #[inline]
    pub(crate) fn new(number: u64, packet: &SentPacket) -> Self {
        Self {
            number,
            count: 1,
            sent: packet.sent,
            bytes: packet.size.into(),
            largest: packet.size,
            flags: packet.flags,
            path: packet.path,
            frames: packet.frames(),
        }
    }

    /// Adds a packet with a higher number, if it belongs here; returns whether it does.
    #[inline]
    pub(crate) fn join(&mut self, number: u64, packet: &SentPacket) -> bool {
        let belongs = self.sent == packet.sent
            && self.flags == packet.flags
            && self.path == packet.path
            && self.frames.end == packet.frames_start
            && !packet.is_mtu_probe();
        if belongs {
            self.number = number;
            self.count += 1;
            self.bytes += u64::from(packet.size);
            self.largest = self.largest.max(packet.size);
            self.frames.end += u64::from(packet.frames_count);
        }
        belongs
    }

    /// See [`SentPacket::fills_window`].
    #[inline]
    pub(crate) const fn fills_window(&self) -> bool {
        self.flags.fills_window()
    }

    /// Whether it is a probe of the path's MTU.
    #[inline]
    pub(crate) const fn is_mtu_probe(&self) -> bool {
        self.flags.has(PacketFlags::MTU_PROBE)
    }
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Its number.
    pub(crate) number: u64,
    /// The packet.
    pub(crate) packet: SentPacket,
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{Acked, PacketFlags, SentPacket};
    use crate::transmit::PathId;

    fn packet(flags: PacketFlags) -> SentPacket {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        let sent = Instant::now();
        SentPacket {
            sent,
            frames_start: 0,
            frames_count: 0,
            size: 1200,
            flags,
            path: PathId(0),
        }
    }

    /// RFC 9000, 14.4: a probe of the MTU takes no room in the congestion window.
    #[test]
    fn what_is_in_flight_fills_the_window_but_for_probes_of_the_mtu() {
        let probe = PacketFlags::IN_FLIGHT.with(PacketFlags::MTU_PROBE);
        for (flags, fills) in [
            (PacketFlags::NONE, false),
            (PacketFlags::MTU_PROBE, false),
            (PacketFlags::IN_FLIGHT, true),
            (probe, false),
        ] {
            assert_eq!(packet(flags).fills_window(), fills, "{flags:?}");
        }
        assert!(packet(PacketFlags::ECT0).is_ect0() && !packet(probe).is_ect0());
    }

    #[test]
    fn packets_of_one_moment_are_acknowledged_as_one() {
        let flags = PacketFlags::IN_FLIGHT.with(PacketFlags::ACK_ELICITING);
        let mut one = packet(flags);
        one.frames_count = 3;
        let next = SentPacket {
            frames_start: 3,
            size: 1300,
            ..one
        };
        let mut acked = Acked::new(7, &one);
        assert!(acked.join(9, &next));
        assert_eq!((acked.number, acked.count), (9, 2));
        assert_eq!((acked.bytes, acked.largest), (2500, 1300));
        assert_eq!(acked.frames, 0..6);
        let others = [
            SentPacket {
                sent: one.sent + std::time::Duration::from_nanos(1),
                frames_start: 6,
                ..one
            },
            SentPacket {
                flags: flags.with(PacketFlags::ECT0),
                frames_start: 6,
                ..one
            },
            SentPacket {
                path: PathId(1),
                frames_start: 6,
                ..one
            },
            SentPacket {
                frames_start: 7,
                ..one
            },
        ];
        for other in others {
            assert!(!acked.join(10, &other), "{other:?}");
        }
        let probe = SentPacket {
            flags: flags.with(PacketFlags::MTU_PROBE),
            ..one
        };
        let mut acked = Acked::new(7, &probe);
        let next = SentPacket {
            frames_start: 3,
            ..probe
        };
        assert!(!acked.join(8, &next), "each probe is of a size");
    }

    #[test]
    fn flags_are_independent() {
        let flags = PacketFlags::NONE
            .with(PacketFlags::ACK_ELICITING)
            .with_if(PacketFlags::MTU_PROBE, false)
            .with_if(PacketFlags::ECT0, true)
            .with(PacketFlags::ACK_ELICITING);
        assert!(flags.has(PacketFlags::ACK_ELICITING) && flags.has(PacketFlags::ECT0));
        assert!(!flags.has(PacketFlags::MTU_PROBE) && !flags.has(PacketFlags::IN_FLIGHT));
    }
}
