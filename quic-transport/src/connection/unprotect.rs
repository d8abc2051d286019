//! From a protected packet to its plaintext, where it lies,
//! [RFC 9001, section 5](https://www.rfc-editor.org/rfc/rfc9001#section-5).
//!
//! Duplicates are told apart after the packet is authenticated, so that the time taken says nothing of its number.

use std::time::Instant;

use super::{Connection, space::SpaceOf as _};
use crate::{
    error::Error,
    tls::{CipherSuite, NotOpened, Phase},
    wire::{Level, PacketHeader, PacketNumber, has_reserved_bits, key_phase_bit},
};

/// What became of a packet.
#[derive(Debug)]
pub(super) enum Opened<'p> {
    /// It is authentic and new.
    Packet(Packet<'p>),
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
struct Unmasked {
    first: u8,
    number: u64,
    header_length: usize,
}

impl Connection {
    /// Removes the protection of `packet`, whose header was parsed to `header`.
    #[inline]
    pub(super) fn unprotect<'p>(
        &mut self,
        packet: &'p mut [u8],
        header: &PacketHeader,
        now: Instant,
    ) -> Opened<'p> {
        let Some(level) = header.kind.level() else {
            return Opened::Dropped;
        };
        let space = level.space();
        let largest = self
            .spaces
            .get(space)
            .and_then(|space| space.received.largest());
        let opened = if level == Level::OneRtt {
            self.open_one_rtt(packet, header.number_offset, largest, now)
        } else {
            self.open_long(level, packet, header.number_offset, largest)
        };
        let (unmasked, payload, phase) = match opened {
            Ok(parts) => parts,
            Err(not) => return not,
        };
        // RFC 9000, 17.2 and 17.3.1: checked only after the packet is authenticated.
        if has_reserved_bits(unmasked.first) {
            return Opened::Broken(Error::protocol(0, "reserved header bits are set"));
        }
        if self
            .spaces
            .get(space)
            .is_none_or(|space| space.received.is_duplicate(unmasked.number))
        {
            return Opened::Duplicate;
        }
        Opened::Packet(Packet {
            level,
            number: unmasked.number,
            payload,
            phase,
        })
    }

    #[inline]
    fn open_one_rtt<'p>(
        &mut self,
        packet: &'p mut [u8],
        number_offset: usize,
        largest: Option<u64>,
        now: Instant,
    ) -> Result<(Unmasked, &'p [u8], Phase), Opened<'p>> {
        if !self.keys.can_open(Level::OneRtt) {
            return Err(Opened::Early(Level::OneRtt));
        }
        let Some(keys) = self.keys.one_rtt.as_mut() else {
            return Err(Opened::Dropped);
        };
        let suite = keys.suite();
        let Some(unmasked) = unmask(keys.remote_header(), packet, number_offset, largest) else {
            return Err(Opened::Dropped);
        };
        match keys.open(
            unmasked.number,
            key_phase_bit(unmasked.first),
            unmasked.header_length,
            packet,
        ) {
            Ok(opened) => {
                if matches!(opened.phase, Phase::Updated | Phase::Confirmed) {
                    self.drop_old_keys_at =
                        now.checked_add(3 * self.path.rtt.pto_base(self.peer.max_ack_delay));
                }
                Ok((unmasked, opened.payload, opened.phase))
            }
            Err(NotOpened::Forged) => Err(self.on_forged(suite)),
            Err(NotOpened::Invalid(error)) => Err(Opened::Broken(error)),
        }
    }

    fn open_long<'p>(
        &mut self,
        level: Level,
        packet: &'p mut [u8],
        number_offset: usize,
        largest: Option<u64>,
    ) -> Result<(Unmasked, &'p [u8], Phase), Opened<'p>> {
        let Some(keys) = self.keys.of_handshake(level) else {
            let is_early = level == Level::Handshake && self.keys.one_rtt.is_none();
            return Err(if is_early {
                Opened::Early(level)
            } else {
                Opened::Dropped
            });
        };
        let suite = keys.suite();
        let Some(unmasked) = unmask(&keys.remote.header, packet, number_offset, largest) else {
            return Err(Opened::Dropped);
        };
        match keys
            .remote
            .packet
            .open(unmasked.number, unmasked.header_length, packet)
        {
            Some(payload) => Ok((unmasked, payload, Phase::Current)),
            // Anyone can make up an Initial, so these say nothing of an attack on the keys.
            None if level == Level::Initial => Err(Opened::Dropped),
            None => Err(self.on_forged(suite)),
        }
    }

    /// RFC 9001, 6.6: too many forgeries end the connection.
    #[cold]
    const fn on_forged(&mut self, suite: CipherSuite) -> Opened<'static> {
        match self.forgeries.on_forged(suite) {
            Ok(()) => Opened::Dropped,
            Err(error) => Opened::Broken(error),
        }
    }
}

#[inline]
fn unmask(
    key: &crate::tls::HeaderKey,
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
