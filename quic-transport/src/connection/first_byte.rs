//! The bits of a packet's first byte that say nothing of the packet: the fixed bit, which is set at random for a peer that
//! doesn't mind ([RFC 9287](https://www.rfc-editor.org/rfc/rfc9287)), and the spin bit, which lets the network see the
//! round-trip time ([RFC 9000, section 17.4](https://www.rfc-editor.org/rfc/rfc9000#section-17.4)).

use quic_common::Random;

use crate::wire::{FIXED, SPIN, Side};

/// One in so many connections doesn't spin, whatever the settings say.
const QUIET_SHARE: u64 = 16;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstByte {
    /// For the next packet.
    bits: u8,
    /// [`SPIN`] if the bit follows the peer's.
    spins: u8,
    /// [`SPIN`] if it is turned over on the way back.
    turns: u8,
    /// Bits that the peer's packets must have: none when it was told that it may clear the fixed one.
    required: u8,
    /// The peer takes packets with a clear fixed bit.
    is_greased: bool,
}

impl FirstByte {
    /// `spins` if the settings allow it, and `greases` if we say that we take packets with a clear fixed bit.
    pub(super) fn new(side: Side, spins: bool, greases: bool, random: &mut Random) -> Self {
        let spins = spins && random.below(QUIET_SHARE) > 0;
        let mut first = Self {
            bits: FIXED,
            spins: if spins { SPIN } else { 0 },
            turns: if side.is_client() { SPIN } else { 0 },
            required: if greases { 0 } else { FIXED },
            is_greased: false,
        };
        first.on_new_cid(random);
        first
    }

    /// Of the next packet.
    #[inline]
    pub(super) const fn bits(self) -> u8 {
        self.bits
    }

    /// What the first byte of the peer's short headers must have.
    #[inline]
    pub(super) const fn required(self) -> u8 {
        self.required
    }

    /// A packet with the highest number so far came with this first byte.
    #[inline]
    pub(super) const fn on_newest(&mut self, first: u8) {
        self.bits ^= (self.bits ^ first ^ self.turns) & self.spins;
    }

    /// Packets go to another connection ID from now on: the spin bit starts anew, or is drawn again.
    pub(super) fn on_new_cid(&mut self, random: &mut Random) {
        let drawn = random.array::<1>()[0] & SPIN & !self.spins;
        self.bits = self.bits & !SPIN | drawn;
    }

    /// The peer takes packets with a clear fixed bit.
    pub(super) const fn grease(&mut self) {
        self.is_greased = true;
    }

    /// Draws the fixed bit of the next packets, once for each batch.
    #[inline]
    pub(super) fn draw(&mut self, random: &mut Random) {
        if self.is_greased {
            self.bits = self.bits & !FIXED | random.array::<1>()[0] & FIXED;
        }
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::{FIXED, FirstByte, SPIN, Side};

    fn spinning(side: Side) -> FirstByte {
        let mut random = Random::from_seed([1; 32]);
        loop {
            let first = FirstByte::new(side, true, true, &mut random);
            if first.spins != 0 {
                return first;
            }
        }
    }

    /// RFC 9000, 17.4: a server reflects the bit, a client inverts it; both start with 0.
    #[test]
    fn the_bit_turns_at_the_client() {
        let (mut client, mut server) = (spinning(Side::Client), spinning(Side::Server));
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(client.bits() & SPIN != 0);
            server.on_newest(client.bits());
            assert_eq!(server.bits(), client.bits());
            client.on_newest(server.bits());
        }
        assert_eq!(seen, [false, true, false, true]);
        client.on_new_cid(&mut Random::from_seed([2; 32]));
        assert_eq!(client.bits() & SPIN, 0);
    }

    /// RFC 9000, 17.4: one in 16 paths at least doesn't spin; what comes in is ignored then, and what goes out is random
    /// for each connection ID.
    #[test]
    fn some_connections_do_not_spin() {
        let mut random = Random::from_seed([3; 32]);
        let mut quiet = 0;
        for _ in 0..10_000 {
            quiet += u32::from(FirstByte::new(Side::Client, true, true, &mut random).spins == 0);
        }
        assert!((500..750).contains(&quiet), "{quiet}");
        let mut set = 0;
        for _ in 0..1000 {
            let mut first = FirstByte::new(Side::Client, false, true, &mut random);
            let bits = first.bits();
            for incoming in [0x40, 0x60] {
                first.on_newest(incoming);
                assert_eq!(first.bits(), bits);
            }
            first.on_new_cid(&mut random);
            set += u32::from(first.bits() & SPIN != 0);
        }
        assert!((400..600).contains(&set), "{set}");
    }

    /// RFC 9287, 3.1: the bit is unpredictable once the peer takes packets without it, and set before.
    #[test]
    fn the_fixed_bit_is_drawn_for_a_peer_that_does_not_mind() {
        let mut random = Random::from_seed([4; 32]);
        let mut first = spinning(Side::Client);
        let clear = |first: &mut FirstByte, random: &mut Random| {
            (0..1000)
                .filter(|_| {
                    first.draw(random);
                    first.bits() & FIXED == 0
                })
                .count()
        };
        assert_eq!(clear(&mut first, &mut random), 0);
        first.grease();
        let drawn = clear(&mut first, &mut random);
        assert!((400..600).contains(&drawn), "{drawn}");
    }
}
