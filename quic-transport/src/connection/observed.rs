//! What the observer of a connection is shown. Without one, nothing here is called or everything here returns at once.

use std::time::Instant;

use super::Connection;
use crate::{
    error::CloseReason,
    event::Event,
    observe::{DropReason, Observation, ObservedPacket, Observer, PacketType, Start, Tap},
    transmit::Space,
    wire::{ConnectionId, Level, Side},
};

impl Connection {
    /// Shows `observer` everything from now on, and first how the connection began.
    ///
    /// A client's should come before the first [`Connection::process_output`]; a server's belongs to the
    /// [`Incoming`](crate::Incoming), so that it misses nothing.
    pub fn observe(&mut self, observer: Box<dyn Observer>, now: Instant) {
        let mut tap = Box::new(Tap::new(observer, now));
        let start = Start {
            side: self.side,
            version: self.version,
            remote: self.path.remote,
            original_dcid: self.original_dcid(),
            local_cid: self.local_cids.first(),
        };
        tap.tell(&Observation::Started(start), now);
        let bytes = self.session.transport_parameters();
        if !bytes.is_empty() {
            let of = self.side;
            tap.tell(&Observation::Parameters { of, bytes }, now);
        }
        self.tap = Some(tap);
    }

    /// The destination of the client's very first packet: both ends know it, and logs of both are named after it.
    #[must_use]
    pub const fn original_dcid(&self) -> ConnectionId {
        self.setup.original_dcid
    }

    /// Ends the connection for the application.
    pub(super) fn tell_end(&mut self, reason: CloseReason) {
        if let Some(tap) = &mut self.tap {
            tap.tell_late(&Observation::Closed(&reason));
        }
        self.events.push_back(Event::Closed(reason));
    }

    /// Counts a packet that is thrown away.
    pub(super) fn drop_packet(&mut self, size: usize, why: DropReason, now: Instant) {
        self.stats.packets_dropped += 1;
        if let Some(tap) = &mut self.tap {
            tap.tell(&Observation::PacketDropped { size, why }, now);
        }
    }

    /// Shows that `by` has updated the keys.
    #[cold]
    pub(super) fn tell_key_update(&mut self, by: Side) {
        let generation = self.key_updates();
        if let Some(tap) = &mut self.tap {
            tap.tell_late(&Observation::KeysUpdated { by, generation });
        }
    }

    /// Shows a packet without a number.
    pub(super) fn tell_unnumbered(
        &mut self,
        kind: PacketType,
        (dcid, scid): (ConnectionId, ConnectionId),
        size: usize,
        now: Instant,
    ) {
        let version = self.version;
        if let Some(tap) = &mut self.tap {
            let packet = ObservedPacket {
                kind,
                version,
                number: None,
                dcid,
                scid: Some(scid),
                size,
                frames: &[],
                ecn: quic_common::Ecn::NotEct,
                is_mtu_probe: false,
            };
            tap.tell(&Observation::PacketReceived(packet), now);
        }
    }
}

impl From<Space> for PacketType {
    fn from(space: Space) -> Self {
        match space {
            Space::Initial => Self::Initial,
            Space::Handshake => Self::Handshake,
            Space::Application => Self::OneRtt,
        }
    }
}

impl From<Level> for PacketType {
    fn from(level: Level) -> Self {
        match level {
            Level::Initial => Self::Initial,
            Level::ZeroRtt => Self::ZeroRtt,
            Level::Handshake => Self::Handshake,
            Level::OneRtt => Self::OneRtt,
        }
    }
}
