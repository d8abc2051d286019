//! What arrives: datagrams are taken apart, opened and kept, and TLS reads what is for it.

use std::time::Instant;

use rustls::Side;
use rustls::quic::ServerConnection;

use super::{ScriptedPeer, index};
use crate::scripted::packet::{Start, start};
use crate::scripted::parameters::{INITIAL_SOURCE_CID, ORIGINAL_DESTINATION_CID};
use crate::scripted::protection::{Opened, Protection, rustls_version};
use crate::scripted::seen::{self, Level, SeenPacket};

impl ScriptedPeer {
    pub(super) fn on_datagram(&mut self, datagram: &[u8], at: Instant) {
        let mut rest = datagram;
        while !rest.is_empty() {
            let begin = start(rest, self.local_cid.len());
            let length = match begin {
                Start::Sealed {
                    level,
                    destination,
                    source,
                    end,
                    ..
                } => {
                    if level == Level::Initial {
                        self.on_initial(destination, source);
                    }
                    self.on_packet(&begin, &rest[..end], datagram.len(), at);
                    end
                }
                Start::Retry { source, token } => {
                    self.on_retry(source, token);
                    rest.len()
                }
                Start::VersionNegotiation { versions } => {
                    self.versions = versions;
                    rest.len()
                }
                Start::Unknown => {
                    self.unreadable.push(rest.to_vec());
                    rest.len()
                }
            };
            rest = &rest[length..];
        }
        self.datagrams += 1;
    }

    /// Learns the other end's connection ID; a server learns the keys, too.
    fn on_initial(&mut self, destination: &[u8], source: &[u8]) {
        if std::mem::replace(&mut self.has_spoken, true) {
            return;
        }
        self.remote_cid = source.to_vec();
        let Some(config) = self.server.take() else {
            return;
        };
        self.parameters
            .fill_in(ORIGINAL_DESTINATION_CID, destination);
        self.parameters.fill_in(INITIAL_SOURCE_CID, &self.local_cid);
        let labels = rustls_version(self.chosen);
        let session = ServerConnection::new(config, labels, self.parameters.encode());
        self.session = Some(session.unwrap().into());
        self.derive_initial_keys(destination);
    }

    pub(super) fn derive_initial_keys(&mut self, destination: &[u8]) {
        let keys = Protection::initial(self.version, destination, self.side);
        self.initial_space().protection = Some(keys);
        self.initial_dcid = destination.to_vec();
    }

    /// Opens an Initial packet of another version than ours; a client goes on with that version.
    fn on_other_version(
        &mut self,
        version: u32,
        packet: &[u8],
        number_at: usize,
    ) -> Option<Opened> {
        let mut keys = Protection::initial(version, &self.initial_dcid, self.side);
        let expected = self.space(Level::Initial).expected();
        let opened = keys.open(packet, number_at, expected, |_| 0)?;
        if self.side == Side::Client && version == self.chosen {
            self.version = version;
            self.initial_space().protection = Some(keys);
        }
        Some(opened)
    }

    fn on_retry(&mut self, source: &[u8], token: &[u8]) {
        self.retries += 1;
        if self.side == Side::Client {
            self.remote_cid = source.to_vec();
            self.token = token.to_vec();
            self.derive_initial_keys(source);
            self.initial_space().rewind();
        }
    }

    fn on_packet(&mut self, begin: &Start<'_>, packet: &[u8], datagram_length: usize, at: Instant) {
        let Start::Sealed {
            level,
            version,
            destination,
            source,
            token,
            number_at,
            ..
        } = *begin
        else {
            return;
        };
        let space = &mut self.spaces[index(level)];
        let expected = space.expected();
        let current = self.phases.1;
        let mut phase = 0;
        let opened = if level == Level::Initial && version != self.version {
            self.on_other_version(version, packet, number_at)
        } else {
            space.protection.as_mut().and_then(|protection| {
                protection.open(packet, number_at, expected, |first| {
                    let is_odd = first & 4 != 0;
                    let is_other = level == Level::OneRtt && is_odd != (current % 2 == 1);
                    phase =
                        if level == Level::OneRtt { current } else { 0 } + usize::from(is_other);
                    phase
                })
            })
        };
        let Some(opened) = opened else {
            self.unreadable.push(packet.to_vec());
            return;
        };
        if level == Level::OneRtt {
            self.phases = (self.phases.0.max(phase), phase);
        }
        let frames = seen::frames(&opened.payload);
        self.spaces[index(level)].on_packet(opened.number, &frames);
        let (from, to) = self.arrival;
        self.packets.push(SeenPacket {
            at,
            from,
            to,
            level,
            version,
            first: opened.first,
            destination: destination.to_vec(),
            source: source.to_vec(),
            token: token.to_vec(),
            number: opened.number,
            datagram: self.datagrams,
            datagram_length,
            frames,
        });
        self.read_tls(level);
        self.pump();
    }

    fn read_tls(&mut self, level: Level) {
        let space = &mut self.spaces[index(level)];
        while let (Some(session), Some(bytes)) = (&mut self.session, space.read_crypto()) {
            if let Err(error) = session.read_hs(&bytes) {
                self.tls_error = Some(error);
                return;
            }
        }
    }
}
