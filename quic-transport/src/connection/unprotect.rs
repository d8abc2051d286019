//! From a protected packet to its plaintext, where it lies,
//! [RFC 9001, section 5](https://www.rfc-editor.org/rfc/rfc9001#section-5).
//!
//! Duplicates are told apart after the packet is authenticated, so that the time taken says nothing of its number.

use std::time::Instant;

use super::{Connection, space::SpaceOf as _};
use crate::{
    ack::ReceivedPackets,
    error::Error,
    tls::{Choice, CipherSuite, HeaderKey, Phase},
    wire::{Level, PacketHeader, PacketNumber, has_reserved_bits, key_phase_bit},
};

/// What became of a packet.
#[derive(Debug)]
pub(super) enum Opened<'p> {
    /// It is authentic and new.
    Packet(Packet<'p>),
    /// It is not to be processed, or not now.
    Not(Unprocessed),
}

/// Why a packet is not processed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unprocessed {
    /// Its keys are still to come.
    Early(Level),
    /// It is authentic and was processed before.
    Duplicate,
    /// It can't be opened.
    Dropped,
    /// It breaks a rule that only an authentic peer can break.
    Broken(Error),
}

/// An authentic packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'p> {
    pub(super) level: Level,
    pub(super) number: u64,
    pub(super) payload: &'p [u8],
    pub(super) phase: Phase,
}

/// A packet's number and first byte, once the header's protection is off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unmasked {
    pub(super) first: u8,
    pub(super) number: u64,
    pub(super) header_length: usize,
}

impl Connection {
    /// Removes the protection of `packet`, whose header was parsed to `header`.
    pub(super) fn unprotect<'p>(
        &mut self,
        packet: &'p mut [u8],
        header: &PacketHeader,
        now: Instant,
    ) -> Opened<'p> {
        match header.kind.level() {
            Some(Level::OneRtt) => self.unprotect_short(packet, header.number_offset, now),
            Some(level) => self.unprotect_long(level, packet, header),
            None => Opened::Not(Unprocessed::Dropped),
        }
    }

    /// Removes the protection of a packet with a short header.
    #[inline]
    pub(super) fn unprotect_short<'p>(
        &mut self,
        packet: &'p mut [u8],
        number_offset: usize,
        now: Instant,
    ) -> Opened<'p> {
        let keys = match self.keys.one_rtt.as_mut() {
            Some(keys) if self.keys.opens_one_rtt => keys,
            Some(_) => return Opened::Not(Unprocessed::Early(Level::OneRtt)),
            None => match self.keys.wake() {
                Some(keys) => {
                    self.idle.on_woken(now);
                    keys
                }
                None => return Opened::Not(Unprocessed::Early(Level::OneRtt)),
            },
        };
        let received = &self.spaces.application.received;
        let header_key = keys.remote_header();
        let Some(unmasked) = unmask(header_key, packet, number_offset, received.largest()) else {
            return Opened::Not(Unprocessed::Dropped);
        };
        let bit = key_phase_bit(unmasked.first);
        match keys.open(unmasked.number, bit, unmasked.header_length, packet) {
            Some((payload, choice)) => self.authentic(unmasked, choice, payload, now),
            None => self.on_forged_short(),
        }
    }

    /// A packet with a short header was opened with the key of `choice`.
    #[inline]
    pub(super) fn authentic<'p>(
        &mut self,
        unmasked: Unmasked,
        choice: Choice,
        payload: &'p [u8],
        now: Instant,
    ) -> Opened<'p> {
        let Some(keys) = self.keys.one_rtt.as_mut() else {
            return Opened::Not(Unprocessed::Dropped);
        };
        let phase = match keys.on_opened(unmasked.number, choice) {
            Ok(phase) => phase,
            Err(error) => return Opened::Not(Unprocessed::Broken(error)),
        };
        let received = &self.spaces.application.received;
        if received
            .largest()
            .is_none_or(|newest| unmasked.number > newest)
        {
            self.first_byte.on_newest(unmasked.first);
        }
        if phase != Phase::Current {
            self.on_other_phase(phase, now);
        }
        let packet = Packet {
            level: Level::OneRtt,
            number: unmasked.number,
            payload,
            phase,
        };
        packet.admit(&unmasked, &self.spaces.application.received)
    }

    /// A packet with a short header isn't authentic.
    #[cold]
    pub(super) fn on_forged_short(&mut self) -> Opened<'static> {
        match &self.keys.one_rtt {
            Some(keys) => {
                let suite = keys.suite();
                self.on_forged(suite)
            }
            None => Opened::Not(Unprocessed::Dropped),
        }
    }

    fn unprotect_long<'p>(
        &mut self,
        level: Level,
        packet: &'p mut [u8],
        header: &PacketHeader,
    ) -> Opened<'p> {
        // A client's own 0-RTT packets, if someone sends them back.
        if level == Level::ZeroRtt && self.side.is_client() {
            return Opened::Not(Unprocessed::Dropped);
        }
        let number_offset = header.number_offset;
        let keys = if level == Level::Initial && header.version != self.version {
            self.setup.negotiation.keys(header.version)
        } else {
            self.keys.of_long(level)
        };
        let Some(keys) = keys else {
            let is_early = match level {
                Level::Handshake => !self.keys.has_one_rtt(),
                // RFC 9001, 5.7: the ClientHello may still be on its way.
                Level::ZeroRtt => self.keys.handshake.is_none() && !self.keys.has_one_rtt(),
                Level::Initial | Level::OneRtt => false,
            };
            return Opened::Not(if is_early {
                Unprocessed::Early(level)
            } else {
                Unprocessed::Dropped
            });
        };
        let Some(state) = self.spaces.get(level.space()) else {
            return Opened::Not(Unprocessed::Dropped);
        };
        let received = &state.received;
        let header_key = &keys.remote.header;
        let Some(unmasked) = unmask(header_key, packet, number_offset, received.largest()) else {
            return Opened::Not(Unprocessed::Dropped);
        };
        match keys
            .remote
            .packet
            .open(unmasked.number, unmasked.header_length, packet)
        {
            Some(payload) => Packet {
                level,
                number: unmasked.number,
                payload,
                phase: Phase::Current,
            }
            .admit(&unmasked, received),
            // Anyone can make up an Initial, so these say nothing of an attack on the keys.
            None if level == Level::Initial => Opened::Not(Unprocessed::Dropped),
            None => {
                let suite = keys.suite();
                self.on_forged(suite)
            }
        }
    }

    /// The packet came before or after a key update: once the peer has made one too, the old keys may go.
    #[cold]
    fn on_other_phase(&mut self, phase: Phase, now: Instant) {
        if phase == Phase::Updated {
            self.tell_key_update(self.side.peer());
        }
        if matches!(phase, Phase::Updated | Phase::Confirmed) {
            self.drop_old_keys_at =
                now.checked_add(3 * self.path.rtt.pto_base(self.peer.max_ack_delay));
        }
    }

    /// RFC 9001, 6.6: too many forgeries end the connection.
    #[cold]
    const fn on_forged(&mut self, suite: CipherSuite) -> Opened<'static> {
        Opened::Not(match self.forgeries.on_forged(suite) {
            Ok(()) => Unprocessed::Dropped,
            Err(error) => Unprocessed::Broken(error),
        })
    }
}

impl<'p> Packet<'p> {
    /// What is checked only after the packet is authenticated.
    #[inline]
    fn admit(self, unmasked: &Unmasked, received: &ReceivedPackets) -> Opened<'p> {
        // RFC 9000, 17.2 and 17.3.1.
        if has_reserved_bits(unmasked.first) {
            let error = Error::protocol(0, "reserved header bits are set");
            return Opened::Not(Unprocessed::Broken(error));
        }
        if received.is_duplicate(self.number) {
            return Opened::Not(Unprocessed::Duplicate);
        }
        Opened::Packet(self)
    }
}

#[inline]
pub(super) fn unmask(
    key: &HeaderKey,
    packet: &mut [u8],
    number_offset: usize,
    largest: Option<u64>,
) -> Option<Unmasked> {
    let unprotected = key.unprotect(packet, number_offset)?;
    let number = PacketNumber::decode(unprotected.truncated, unprotected.number_length, largest);
    Some(Unmasked {
        first: unprotected.first,
        number: number.value(),
        header_length: number_offset + unprotected.number_length,
    })
}
