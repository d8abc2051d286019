//! Steps of TLS that others work out: taken from the connection, and given back.

use std::time::Instant;

use super::Connection;
use crate::{error::ApiError, tls::HandshakeJob, wire::Level};

/// The levels that TLS reads from, in order.
const LEVELS: [Level; 3] = [Level::Initial, Level::Handshake, Level::OneRtt];

impl Connection {
    /// The next step of the handshake, after [`Event::HandshakeJob`](crate::Event::HandshakeJob), if
    /// [`Config::lends_handshake`](crate::Config::lends_handshake) is on.
    ///
    /// While it is out, nothing of TLS is known or goes on; what arrives is kept, and probes, acknowledgments and timeouts
    /// go on.
    #[must_use]
    pub fn take_handshake_job(&mut self) -> Option<HandshakeJob> {
        self.setup.job.take().map(|job| *job)
    }

    /// Takes a step back; one that hasn't been run is run here. Ask what to send afterwards.
    ///
    /// # Errors
    ///
    /// [`ApiError::Closed`] when the connection has ended meanwhile, [`ApiError::OtherConnection`] for the step of
    /// another connection.
    pub fn return_handshake_job(
        &mut self,
        job: HandshakeJob,
        now: Instant,
    ) -> Result<(), ApiError> {
        let outcome = self
            .session
            .take_back(job)
            .ok_or(ApiError::OtherConnection)?;
        if !self.life.is_open() {
            return Err(ApiError::Closed);
        }
        let more = outcome.and_then(|()| {
            self.drive_tls(now)?;
            // What has arrived meanwhile.
            LEVELS
                .into_iter()
                .try_for_each(|level| self.read_tls(level, now))
        });
        match more {
            Ok(()) => self.replay_undecryptable(now),
            Err(error) => self.fail(error),
        }
        Ok(())
    }
}
