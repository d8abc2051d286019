//! A client that changes its address while it works: as a NAT would have it, or on purpose.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use quic_transport::{ApiError, Connection, PathEvent, PathId, PathNews};
use quic_udp::Socket;

use crate::{event_loop::SocketChange, failure::Failure};

/// What is to be done, and when, counted from the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Another socket takes the place of the first one, and the connection isn't told.
    pub rebind_after: Option<Duration>,
    /// The connection moves to another socket, which it validates first.
    pub migrate_after: Option<Duration>,
}

/// A plan, and how far it is.
#[derive(Debug, Default)]
pub struct Roaming {
    rebind_at: Option<Instant>,
    migrate_at: Option<Instant>,
    plan: Plan,
    /// A socket that the event loop is to take.
    change: Option<SocketChange>,
    /// The path that is being validated.
    probed: Option<PathId>,
    /// Why there was no move so far.
    obstacle: Option<String>,
    notes: Vec<String>,
}

impl Roaming {
    /// Nothing has begun.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            ..Self::default()
        }
    }

    /// The first request is made.
    pub fn begin(&mut self, now: Instant) {
        let after = |time: Option<Duration>| now.checked_add(time?);
        self.rebind_at = after(self.plan.rebind_after);
        self.migrate_at = after(self.plan.migrate_after);
    }

    /// How long nothing is due, if anything will be.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let next = [self.rebind_at, self.migrate_at]
            .into_iter()
            .flatten()
            .min()?;
        Some(next.saturating_duration_since(now))
    }

    /// What has become of the paths, a line for each change.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The socket that the event loop is to take.
    pub const fn take_change(&mut self) -> Option<SocketChange> {
        self.change.take()
    }

    /// Does what is due.
    ///
    /// # Errors
    ///
    /// When the system gives no socket.
    pub fn process(&mut self, connection: &mut Connection, now: Instant) -> Result<(), Failure> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.change.is_some() {
            return Ok(());
        }
        if is_due(self.rebind_at) {
            self.rebind_at = None;
            let socket = open(connection.remote())?;
            self.note("rebound to", socket.local_address(), connection.remote());
            self.change = Some(SocketChange::Replace(0, socket));
        } else if is_due(self.migrate_at) {
            let socket = open(connection.remote())?;
            match connection.probe(socket.local_address(), now) {
                Ok(path) => {
                    self.migrate_at = None;
                    self.probed = Some(path);
                    self.obstacle = Some("no answer on the new path".to_owned());
                    self.change = Some(SocketChange::Add(socket));
                }
                // It may be able to later.
                Err(error) => self.postpone(error, now),
            }
        }
        Ok(())
    }

    /// Something happened to a path.
    pub fn on_path(&mut self, connection: &mut Connection, event: &PathEvent, now: Instant) {
        let is_probed = self.probed == Some(event.path);
        match event.news {
            PathNews::Validated if is_probed => {
                self.probed = None;
                self.obstacle = connection
                    .migrate(event.path, now)
                    .err()
                    .map(|error| error.to_string());
            }
            PathNews::InUse => {
                let local = event.local.unwrap_or_else(|| unspecified(event.remote));
                self.note("path changed: from", local, event.remote);
            }
            _ => {}
        }
    }

    /// Whether all that was planned has come to pass.
    ///
    /// # Errors
    ///
    /// Says what hasn't.
    pub fn result(&self) -> Result<(), Failure> {
        if self.rebind_at.is_some() {
            return Err(Failure::new("over before --rebind-after"));
        }
        match &self.obstacle {
            Some(obstacle) => Err(Failure::new(format!("--migrate-after: {obstacle}"))),
            None if self.migrate_at.is_some() => Err(Failure::new("over before --migrate-after")),
            None => Ok(()),
        }
    }

    fn postpone(&mut self, error: ApiError, now: Instant) {
        self.obstacle = Some(error.to_string());
        self.migrate_at = now.checked_add(RETRY);
    }

    fn note(&mut self, what: &str, local: SocketAddr, remote: SocketAddr) {
        self.notes.push(format!("{what} {local} to {remote}"));
    }
}

/// How long to wait before a move is tried again that wasn't possible.
const RETRY: Duration = Duration::from_millis(20);

fn open(remote: SocketAddr) -> Result<Socket, Failure> {
    Socket::bind_for(remote).map_err(|error: io::Error| Failure::new(format!("no socket: {error}")))
}

const fn unspecified(remote: SocketAddr) -> SocketAddr {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    let ip = match remote {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(ip, 0)
}
