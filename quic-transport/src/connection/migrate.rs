//! A client moves: to another address of its own, or to the one that the server prefers,
//! [RFC 9000, sections 9.1, 9.2 and 9.6](https://www.rfc-editor.org/rfc/rfc9000#section-9.1).

use std::{net::SocketAddr, time::Instant};

use super::Connection;
use crate::{
    config::MIN_DATAGRAM,
    error::{ApiError, Error},
    event::PathNews,
    transmit::PathId,
    wire::{PreferredAddress, TransportErrorCode},
};

impl Connection {
    /// A client finds out whether the server can be reached from another address of its own.
    ///
    /// `local` is the address of a socket that the embedder has made for it; an unspecified IP address leaves the choice
    /// to the system. From now on batches may be [from](quic_common::BatchHead::local) there, and those of the path in
    /// use are from elsewhere: the embedder sends each from the socket with that address, and from its first one when
    /// none is named. [`Event::Path`](crate::Event::Path) tells how it went; nothing else is sent on the path before
    /// [`Connection::migrate`].
    ///
    /// # Errors
    ///
    /// When the connection can't move: it is a server's, the handshake isn't confirmed, the server forbids it or has
    /// given no connection ID to spare, or too many paths are known already.
    pub fn probe(&mut self, local: SocketAddr, now: Instant) -> Result<PathId, ApiError> {
        self.may_move()?;
        let remote = self.path.remote;
        let id = match self.others.find_exact(remote, local) {
            Some(id) => id,
            None => self.add_own_path(remote, Some(local))?,
        };
        if let Some(other) = self.others.get_mut(id) {
            other.is_wanted = true;
            other.is_left = false;
            other.keep_until = None;
            // The server is where it was.
            other.path.amplification.validate();
        }
        self.begin_validation(id, now);
        // RFC 9000, 9.6.3: while the server's preferred address is being asked, it is asked from here too.
        let awaited = self.others.iter().find(|other| other.is_awaited);
        if let Some(preferred) = awaited.map(|other| other.path.remote) {
            self.ask_preferred(preferred, Some(local), Some(local), now);
        }
        Ok(id)
    }

    /// A client moves to a path that it has [probed](Connection::probe). It may do so before it knows that the server can
    /// be reached there, as when the address in use is gone; when it can't, the connection returns to the path before.
    ///
    /// # Errors
    ///
    /// As [`Connection::probe`], and when there is no such path.
    pub fn migrate(&mut self, path: PathId, now: Instant) -> Result<(), ApiError> {
        self.may_move()?;
        if path == self.path.id {
            return Ok(());
        }
        if !self.switch_to(path) {
            return Err(ApiError::Migration("there is no such path"));
        }
        if !self.path.is_validated {
            self.begin_validation(path, now);
        }
        self.announce_move();
        self.let_go(now);
        Ok(())
    }

    /// Forgets a path that was [probed](Connection::probe), when its socket goes away.
    pub fn abandon_path(&mut self, path: PathId) {
        self.forget_path(path);
    }

    /// The server's transport parameters name an address that it prefers, with a connection ID to use.
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR when the server has no connection IDs (RFC 9000, 18.2).
    pub(super) fn on_preferred_address(
        &mut self,
        preferred: &PreferredAddress,
    ) -> Result<(), Error> {
        if self.remote_cids.is_empty() {
            let code = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
            let reason = "preferred_address without connection IDs";
            return Err(Error::new(code, 0, reason));
        }
        self.remote_cids
            .add_preferred(preferred.cid, preferred.reset_token);
        // RFC 9000, 9.6.3: of the family that works already.
        let address = match self.path.remote {
            SocketAddr::V4(_) => preferred.v4.map(SocketAddr::from),
            SocketAddr::V6(_) => preferred.v6.map(SocketAddr::from),
        };
        let current = self.path.remote.ip();
        self.setup.preferred = address.filter(|address| {
            self.config.follows_preferred_address
                && address.port() != 0
                && !address.ip().is_unspecified()
                // RFC 9000, 21.5.6: nobody gets us to talk to our own machine.
                && (current.is_loopback() || !address.ip().is_loopback())
        });
        Ok(())
    }

    /// The handshake is confirmed: a client validates the address that the server prefers, if it has named one.
    pub(super) fn seek_preferred(&mut self, now: Instant) {
        if let Some(remote) = self.setup.preferred.take() {
            self.ask_preferred(remote, self.path.local, self.path.source, now);
        }
    }

    fn ask_preferred(
        &mut self,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        source: Option<SocketAddr>,
        now: Instant,
    ) {
        let mut others = self.others.iter().map(|other| &other.path);
        if others.any(|path| path.remote == remote && path.source == source) {
            return;
        }
        let Ok(id) = self.add_own_path(remote, local) else {
            return;
        };
        if let Some(other) = self.others.get_mut(id) {
            other.is_awaited = true;
            other.is_wanted = true;
            other.path.source = source;
            // Whoever is there is asked no more than if one full datagram had come from there.
            other.path.amplification.on_received(MIN_DATAGRAM.into());
        }
        self.begin_validation(id, now);
    }

    /// An address that the server prefers is in use: its rules for the first one don't matter any more, and nobody is to
    /// go there again (RFC 9000, 9.6.3).
    pub(super) fn on_preferred_in_use(&mut self) {
        if self.side.is_server() {
            return;
        }
        self.peer.forbids_migration = false;
        self.announce_move();
        let remote = self.path.remote;
        while let Some(id) = self.others.aimed_elsewhere(remote) {
            self.tell_of_path(id, PathNews::Failed);
            self.forget_path(id);
        }
        for other in self.others.iter_mut() {
            other.is_awaited = false;
        }
    }

    /// A packet that isn't a probe says where we are now; one with a challenge may be nothing else.
    fn announce_move(&mut self) {
        let probes = &mut self.spaces.application.probes;
        *probes = (*probes).max(1 + usize::from(self.path.probing.is_owing()));
    }

    /// A path of our own choice needs a connection ID that was never used.
    fn add_own_path(
        &mut self,
        remote: SocketAddr,
        local: Option<SocketAddr>,
    ) -> Result<PathId, ApiError> {
        if self.others.is_full() {
            return Err(ApiError::Migration("too many paths are known"));
        }
        let none = ApiError::Migration("the server has given no connection ID to spare");
        let cid = self.remote_cids.take_unused().ok_or(none)?;
        Ok(self.add_path(remote, local, Some(cid)))
    }

    fn may_move(&self) -> Result<(), ApiError> {
        if !self.life.is_open() {
            return Err(ApiError::Closed);
        }
        let obstacles = [
            (self.side.is_server(), "a server stays where it is"),
            (!self.is_confirmed(), "the handshake isn't confirmed"),
            (self.peer.forbids_migration, "the server forbids it"),
            (
                self.remote_cids.is_empty(),
                "the server has no connection IDs",
            ),
        ];
        let first = obstacles.into_iter().find(|(applies, _)| *applies);
        first.map_or(Ok(()), |(_, why)| Err(ApiError::Migration(why)))
    }
}
