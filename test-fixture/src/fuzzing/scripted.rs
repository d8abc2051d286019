//! A peer with real keys that puts any bytes in its packets.

use std::time::Duration;

use quic_common::{Ecn, Reader};

use crate::busy::Busy;
use crate::ends::{Client, Server, Settings};
use crate::network::{Link, Party};
use crate::pair::Pair;
use crate::scripted::{Draft, Level, Parameters, ScriptedPeer};

/// Lets a scripted client send what the bytes say to a server.
///
/// The server answers in bounded measure, doesn't spin, and frees all state in the end.
pub fn scripted_client(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let Ok(first) = input.u8() else {
        return;
    };
    let mut pair = Pair::<ScriptedPeer, Server<Busy>>::scripted_client(
        &Settings::default(),
        Parameters::generous(),
        link(),
    );
    let is_early = first % 4 == 3;
    if is_early {
        pair.run(Duration::from_millis(u64::from(first / 4 % 8)));
    } else {
        pair.handshake();
    }
    pair.client.acknowledges = first < 128;
    while let Some(packet) = Packet::read(&mut input) {
        let level = packet.level(is_early, Level::Initial);
        packet.send(&mut pair.client, level);
        pass(&mut pair, packet.time);
    }
    pair.client.is_automatic = false;
    pair.run(Duration::from_secs(100));
    assert!(pair.server.endpoint.is_empty(), "the state is freed");
}

/// Lets a scripted server send what the bytes say to a client. What holds for [`scripted_client`] holds here.
pub fn scripted_server(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let Ok(first) = input.u8() else {
        return;
    };
    let mut pair = Pair::<Client<Busy>, ScriptedPeer>::scripted_server(
        &Settings::default(),
        Parameters::generous(),
        link(),
    );
    let is_early = first % 4 == 3;
    if is_early {
        pair.server.is_automatic = false;
        pair.run(Duration::from_millis(4));
    } else {
        pair.handshake();
    }
    pair.server.acknowledges = first < 128;
    while let Some(packet) = Packet::read(&mut input) {
        let level = packet.level(is_early, Level::Handshake);
        packet.send(&mut pair.server, level);
        pass(&mut pair, packet.time);
    }
    pair.server.is_automatic = false;
    pair.run(Duration::from_secs(100));
    assert!(pair.client.connection.is_closed());
}

fn link() -> Link {
    Link::delayed(Duration::from_millis(1))
}

/// A packet to be sent.
struct Packet<'i> {
    kind: u8,
    /// How many numbers are left out, and which bits of the first byte are turned over.
    odd: u8,
    time: Duration,
    frames: &'i [u8],
}

impl<'i> Packet<'i> {
    fn read(input: &mut Reader<'i>) -> Option<Self> {
        let kind = input.u8().ok()?;
        let time = u64::from(input.u8().ok()?);
        let odd = if kind & 4 == 0 { 0 } else { input.u8().ok()? };
        let length = usize::from(input.u8().ok()?);
        Some(Self {
            kind,
            odd,
            // Seconds, now and then.
            time: Duration::from_millis(if time > 250 {
                (time - 250) * 800
            } else {
                time / 4
            }),
            frames: input.bytes(length.min(input.remaining())).ok()?,
        })
    }

    const fn level(&self, is_early: bool, early: Level) -> Level {
        match (is_early, self.kind >> 5) {
            (true, 0..=3) => early,
            (true, _) | (false, 7) => Level::Initial,
            (false, 6) => Level::Handshake,
            (false, _) => Level::OneRtt,
        }
    }

    fn send(&self, peer: &mut ScriptedPeer, level: Level) {
        let mut draft = Draft::new(level, self.frames);
        draft.number_length = usize::from(1 + self.kind % 4);
        draft.number = Some(peer.next_number(level) + u64::from(self.odd % 8));
        draft.flip = ((self.odd / 8) << 2) & 0x3c;
        if self.odd == 255 {
            peer.update_keys();
        }
        // A packet must be long enough for the sample of its header protection.
        draft.size = draft.size.max(60);
        peer.set_ecn(Ecn::from_bits(self.kind >> 3));
        let packet = peer.seal(&draft);
        peer.send_datagram(packet);
    }
}

/// Lets time pass, in which nobody may spin.
fn pass<C: Party, S: Party>(pair: &mut Pair<C, S>, time: Duration) {
    let (client, server) = pair.turns(time);
    assert!(
        client < 600 && server < 600,
        "{client} {server} in {time:?}"
    );
}
