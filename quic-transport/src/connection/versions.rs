//! How the version of a connection comes about, and what both ends have to say of it
//! ([RFC 9368](https://www.rfc-editor.org/rfc/rfc9368)).
//!
//! A client's first flight has a version of its choice. A server may take it for one of another version and answer in
//! that; or it speaks none of the kind, says so, and the client begins anew. What was said in the open is confirmed by
//! the transport parameters.

use crate::{
    error::Error,
    tls::{self, LevelKeys},
    wire::{
        ConnectionId, Level, PacketHeader, Side, TransportErrorCode, TransportParameters, Version,
        VersionInformation, Versions,
    },
};

/// What a handshake remembers of its versions.
#[derive(Debug)]
pub(super) struct Negotiation {
    /// The version of the client's first flight.
    pub(super) first: Version,
    /// What a client speaks; what a server speaks is settled before there is a connection.
    pub(super) ours: Versions,
    /// The server may still answer in another version than the client's.
    is_open: bool,
    /// The client has begun anew because of a Version Negotiation packet.
    pub(super) has_begun_anew: bool,
    /// The other version that Initial packets may have: at a client the one that the server may have chosen, at a
    /// server the one that the client has begun with.
    other: Option<Box<(Version, LevelKeys)>>,
    /// What a client needs to begin anew.
    pub(super) beginning: Option<Box<Beginning>>,
}

/// What a client's first flight was made from.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) tls: tls::ClientConfig,
    pub(super) server_name: String,
    pub(super) parameters: TransportParameters,
}

impl Negotiation {
    /// A client's, which begins with `first`.
    pub(super) fn client(first: Version, ours: Versions, beginning: Beginning) -> Self {
        let has_others = ours.iter().any(|version| version != first);
        Self {
            first,
            ours,
            is_open: has_others,
            has_begun_anew: false,
            other: None,
            beginning: has_others.then(|| Box::new(beginning)),
        }
    }

    /// A server's, whose client began with `first` and sends its Initial packets to `dcid`.
    pub(super) fn server(first: Version, chosen: Version, dcid: &ConnectionId) -> Self {
        let keys = || Box::new((first, tls::initial_keys(first, dcid, Side::Server)));
        Self {
            first,
            ours: Versions::DEFAULT,
            is_open: false,
            has_begun_anew: false,
            other: (first != chosen).then(keys),
            beginning: None,
        }
    }

    /// Whether a packet of another version than the connection's may be the peer's.
    pub(super) fn admits(&self, header: &PacketHeader) -> bool {
        match header.kind.level() {
            Some(Level::Initial) if !self.is_open => self.keys(header.version).is_some(),
            // A Handshake packet may overtake the Initial that tells of the version.
            Some(Level::Initial | Level::Handshake) => {
                self.is_open && self.ours.contains(header.version)
            }
            Some(Level::ZeroRtt | Level::OneRtt) | None => false,
        }
    }

    /// The keys of Initial packets of another version than the connection's.
    pub(super) fn keys(&self, version: Version) -> Option<&LevelKeys> {
        let (other, keys) = self.other.as_deref()?;
        (*other == version).then_some(keys)
    }

    /// The server may have chosen `version`: keys are made to find out.
    pub(super) fn expect(&mut self, version: Version, dcid: &ConnectionId) {
        if self.is_open && self.keys(version).is_none() {
            let keys = tls::initial_keys(version, dcid, Side::Client);
            self.other = Some(Box::new((version, keys)));
        }
    }

    /// The server has chosen `version`, as an authentic Initial shows.
    pub(super) fn take(&mut self, version: Version) -> Option<LevelKeys> {
        let (other, keys) = *self.other.take_if(|_| self.is_open)?;
        self.settle();
        (other == version).then_some(keys)
    }

    /// The version doesn't change any more.
    pub(super) fn settle(&mut self) {
        self.is_open = false;
        self.beginning = None;
        self.other = None;
    }

    /// The keys belong to another destination: a Retry has come.
    pub(super) fn forget_keys(&mut self) {
        self.other = None;
    }

    /// Compares what the peer says of the versions with what was seen (RFC 9368, 4).
    pub(super) fn check(
        &self,
        side: Side,
        version: Version,
        information: Option<&VersionInformation>,
    ) -> Result<(), Error> {
        match (side, information) {
            (Side::Server, None) => Ok(()),
            (Side::Server, Some(client)) => {
                rule(client.chosen == self.first, "not the version that was used")
            }
            (Side::Client, Some(server)) => self.check_server(version, server),
            (Side::Client, None) => {
                rule(version == self.first, "no word of the version chosen")?;
                // RFC 9368, 8: a server of version 1 alone needs no words.
                rule(
                    !self.has_begun_anew
                        || (version == Version::V1 && self.would_choose(&[version])),
                    "no word of the versions spoken",
                )
            }
        }
    }

    fn check_server(&self, version: Version, server: &VersionInformation) -> Result<(), Error> {
        rule(
            self.ours.contains(server.chosen),
            "a version that wasn't offered",
        )?;
        rule(server.chosen == version, "not the version that is used")?;
        if !self.has_begun_anew {
            return Ok(());
        }
        let available = server.available();
        let spoken: Vec<_> = available.iter().chain([version]).collect();
        rule(
            available.iter().next().is_some() && self.would_choose(&spoken),
            "another version would have been chosen",
        )
    }

    /// Whether a Version Negotiation packet with these versions leads to the version that was begun with.
    fn would_choose(&self, spoken: &[Version]) -> bool {
        let spoken = Versions::known(spoken.iter().copied());
        self.ours.choose(&spoken) == Some(self.first)
    }
}

const fn rule(holds: bool, reason: &'static str) -> Result<(), Error> {
    let code = TransportErrorCode::VERSION_NEGOTIATION_ERROR;
    if holds {
        Ok(())
    } else {
        Err(Error::new(code, 0, reason))
    }
}
