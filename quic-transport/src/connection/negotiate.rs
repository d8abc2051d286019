//! A client's answers to Retry and Version Negotiation packets, and to a server that has chosen another version,
//! [RFC 9000, section 17.2.5](https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5) and
//! [RFC 9368, section 2](https://www.rfc-editor.org/rfc/rfc9368#section-2).

use std::time::Instant;

use super::{Connection, space::Spaces};
use crate::{
    cid::RemoteCids,
    error::{ApiError, CloseReason, Error},
    limits::TOKEN,
    observe::{DropReason, PacketType},
    tls::{self, Session},
    transmit::Space,
    wire::{
        ConnectionId, Level, PacketHeader, Retry, Version, VersionInformation, Versions,
        supported_versions,
    },
};

/// Bytes of the destination that a client makes up for its first Initial; at least 8 (RFC 9000, 7.2).
pub(super) const FIRST_DCID_LENGTH: usize = 8;

impl Connection {
    /// Starts over with the server's token, if the Retry is authentic and the first thing that was heard.
    pub(super) fn on_retry(&mut self, packet: &[u8], header: &PacketHeader, now: Instant) {
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
            return self.drop_packet(packet.len(), DropReason::Invalid, now);
        };
        let ids = (header.dcid, header.scid);
        self.tell_unnumbered(PacketType::Retry, ids, packet.len(), now);
        self.setup.token = retry.token.to_vec();
        self.setup.retry_scid = Some(header.scid);
        self.setup.initial_dcid = header.scid;
        self.remote_cids.replace_initial(header.scid);
        self.keys.initial = Some(tls::initial_keys(self.version, &header.scid, self.side).into());
        self.setup.negotiation.forget_keys();
        self.resend_initial();
        // RFC 9000, 17.2.5.3: the server has not kept what came before its Retry.
        self.forget_early_packets();
    }

    /// Begins anew with a version that the server speaks, once; ends the attempt when it speaks none of ours.
    pub(super) fn on_version_negotiation(
        &mut self,
        packet: &[u8],
        header: &PacketHeader,
        now: Instant,
    ) {
        let is_answer = self.side.is_client()
            && self.setup.peer_cid.is_none()
            && self.setup.retry_scid.is_none()
            && !self.setup.negotiation.has_begun_anew
            && self.local_cids.contains(&header.dcid)
            && header.scid == self.setup.original_dcid;
        let spoken = supported_versions(packet, header).map(Versions::known);
        // RFC 9000, 6.2: a list with the version in use is to be ignored.
        let Some(spoken) = spoken.filter(|spoken| is_answer && !spoken.contains(self.version))
        else {
            return self.drop_packet(packet.len(), DropReason::Invalid, now);
        };
        let ids = (header.dcid, header.scid);
        self.tell_unnumbered(PacketType::VersionNegotiation, ids, packet.len(), now);
        match self.setup.negotiation.ours.choose(&spoken) {
            Some(version) => {
                if self.begin_anew(version, now).is_err() {
                    self.abandon(CloseReason::Local(Error::internal("TLS can't begin anew")));
                }
            }
            None => self.abandon(CloseReason::VersionMismatch),
        }
    }

    /// Before an Initial packet is opened: if it is of another version, the server may have chosen that.
    pub(super) fn expect_version(&mut self, header: &PacketHeader) {
        if header.version != self.version && header.kind.level() == Some(Level::Initial) {
            let setup = &mut self.setup;
            setup
                .negotiation
                .expect(header.version, &setup.initial_dcid);
        }
    }

    /// An Initial packet of another version was authentic: a client goes on in that version (RFC 9369, 4.1).
    pub(super) fn follow_version(&mut self, header: &PacketHeader) {
        if header.version == self.version {
            return;
        }
        if let Some(keys) = self.setup.negotiation.take(header.version) {
            self.version = header.version;
            self.keys.initial = Some(keys.into());
            self.session.set_version(header.version);
            // RFC 9369, 4.1: 0-RTT packets have the first version, in which nothing more is sent.
            self.keys.early = None;
        }
    }

    /// All that was sent is forgotten, and another first flight is made (RFC 9368, 2.1).
    fn begin_anew(&mut self, version: Version, now: Instant) -> Result<(), Error> {
        let internal = |_: ApiError| Error::internal("TLS refused to begin anew");
        let negotiation = &mut self.setup.negotiation;
        let Some(beginning) = negotiation.beginning.as_mut() else {
            return Err(Error::internal("nothing to begin anew with"));
        };
        let dcid = ConnectionId::draw(&mut self.random, FIRST_DCID_LENGTH);
        let information = VersionInformation::new(version, &negotiation.ours, &mut self.random);
        beginning.parameters.version_information = Some(information);
        let mut parameters = Vec::new();
        beginning
            .parameters
            .encode(&mut parameters, self.random.u64());
        let server = (beginning.server_name.as_str(), self.path.remote.port());
        // Early data has been tried, and came to nothing.
        self.session = Session::client(&beginning.tls, version, server, &parameters, false)
            .map_err(internal)?;
        negotiation.first = version;
        negotiation.has_begun_anew = true;
        negotiation.forget_keys();
        self.version = version;
        self.setup.original_dcid = dcid;
        self.setup.initial_dcid = dcid;
        let token = self.session.memory().and_then(tls::Memory::take_token);
        self.setup.token = token.unwrap_or_default().into_vec();
        self.withdraw_early_data();
        self.keys.initial = Some(tls::initial_keys(version, &dcid, self.side).into());
        self.remote_cids = RemoteCids::new(dcid);
        self.forget_sent();
        self.drive_tls(now)
    }

    fn forget_sent(&mut self) {
        for space in Space::ALL {
            if let Some(state) = self.spaces.get_mut(space) {
                self.path.controller.on_discarded(state.sent.discard());
            }
        }
        self.spaces = Spaces::new(self.config.max_ack_delay, &mut self.random);
        self.timer.reset();
    }

    /// Every Initial packet so far counts as lost; packet numbers go on (RFC 9000, 17.2.5.3).
    fn resend_initial(&mut self) {
        let Some(space) = self.spaces.get_mut(Space::Initial) else {
            return;
        };
        self.path.controller.on_discarded(space.sent.discard());
        space.log.release_to(space.log.next_index());
        space.crypto().resend();
        self.timer.reset();
    }
}
