//! A client's answers to Retry and Version Negotiation packets,
//! [RFC 9000, section 17.2.5](https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5) and
//! [section 6.2](https://www.rfc-editor.org/rfc/rfc9000#section-6.2).

use super::{Connection, life::Life};
use crate::{
    error::CloseReason,
    event::Event,
    limits::TOKEN,
    tls,
    transmit::Space,
    wire::{PacketHeader, Retry, Version, supported_versions},
};

impl Connection {
    /// Starts over with the server's token, if the Retry is authentic and the first thing that was heard.
    pub(super) fn on_retry(&mut self, packet: &[u8], header: &PacketHeader) {
        let is_first = self.side.is_client()
            && self.setup.peer_cid.is_none()
            && self.setup.retry_scid.is_none();
        let retry = Retry::parse(packet, header).filter(|retry| {
            is_first
                && header.version == self.version
                && self.local_cids.contains(&header.dcid)
                && header.scid != self.setup.original_dcid
                && retry.token.len() <= TOKEN
                && tls::is_retry_authentic(self.version, &self.setup.original_dcid, packet)
        });
        let Some(retry) = retry else {
            self.stats.packets_dropped += 1;
            return;
        };
        self.setup.token = retry.token.to_vec();
        self.setup.retry_scid = Some(header.scid);
        self.setup.initial_dcid = header.scid;
        self.remote_cids.replace_initial(header.scid);
        self.keys.initial = Some(tls::initial_keys(self.version, &header.scid, self.side).into());
        self.resend_initial();
    }

    /// Ends the attempt when the server speaks none of our versions.
    pub(super) fn on_version_negotiation(&mut self, packet: &[u8], header: &PacketHeader) {
        let is_answer = self.side.is_client()
            && self.setup.peer_cid.is_none()
            && self.setup.retry_scid.is_none()
            && self.local_cids.contains(&header.dcid)
            && header.scid == self.setup.original_dcid;
        let Some(mut versions) = supported_versions(packet, header).filter(|_| is_answer) else {
            self.stats.packets_dropped += 1;
            return;
        };
        // RFC 9000, 6.2: a list with the version in use is to be ignored.
        if versions.any(|version: Version| version == self.version) {
            self.stats.packets_dropped += 1;
            return;
        }
        self.events
            .push_back(Event::Closed(CloseReason::VersionMismatch));
        self.life = Life::Closed;
    }

    /// Every Initial packet so far counts as lost; packet numbers go on (RFC 9000, 17.2.5.3).
    fn resend_initial(&mut self) {
        let Some(space) = self.spaces.get_mut(Space::Initial) else {
            return;
        };
        self.path.controller.on_discarded(space.sent.discard());
        space.log.release_to(space.log.next_index());
        space.crypto.resend();
        self.timer.reset();
    }
}
