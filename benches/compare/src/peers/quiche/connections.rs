//! A server's connections, by their IDs.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    time::Duration,
};

use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, Type};

use super::{Socket, Talk};
use crate::Outcome;

/// Bytes of the IDs that the server gives out.
const ID: usize = 8;

pub(super) struct Connections {
    config: Config,
    address: SocketAddr,
    /// By the ID given out, a number.
    all: BTreeMap<u64, (Connection, Box<dyn Talk>)>,
    /// By the destinations that clients began with.
    firsts: HashMap<Vec<u8>, u64>,
    next: u64,
}

impl Connections {
    pub(super) fn new(config: Config, address: SocketAddr) -> Self {
        Self {
            config,
            address,
            all: BTreeMap::new(),
            firsts: HashMap::new(),
            next: 0,
        }
    }

    /// The earliest deadline.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let timeouts = self.all.values().filter_map(|(one, _)| one.timeout());
        timeouts.min()
    }

    /// A datagram, which may be a new client's.
    pub(super) fn input(
        &mut self,
        datagram: &mut [u8],
        info: RecvInfo,
        talk: impl FnOnce() -> Box<dyn Talk>,
    ) -> Outcome<()> {
        // What is no packet is no failure.
        let Ok(header) = Header::from_slice(datagram, ID) else {
            return Ok(());
        };
        let given = header.dcid.first_chunk().copied().map(u64::from_be_bytes);
        let first = self.firsts.get(header.dcid.as_ref()).copied();
        let known = first.or_else(|| given.filter(|number| self.all.contains_key(number)));
        let number = match known {
            Some(number) => number,
            None if header.ty == Type::Initial => {
                self.next += 1;
                let id = self.next.to_be_bytes();
                let id = ConnectionId::from_ref(&id);
                let (local, remote) = (self.address, info.from);
                let connection = quiche::accept(&id, None, local, remote, &mut self.config)?;
                self.all.insert(self.next, (connection, talk()));
                self.firsts.insert(header.dcid.to_vec(), self.next);
                self.next
            }
            None => return Ok(()),
        };
        if let Some((connection, _)) = self.all.get_mut(&number) {
            // A packet that can't be used is no failure.
            let _ = connection.recv(datagram, info);
        }
        Ok(())
    }

    /// Lets all of them do what they can.
    pub(super) fn turn(&mut self, socket: &mut Socket, piece: &mut [u8]) -> Outcome<()> {
        for (connection, talk) in self.all.values_mut() {
            if connection.timeout().is_some_and(|wait| wait.is_zero()) {
                connection.on_timeout();
            }
            if connection.is_established() {
                talk.turn(connection, piece)?;
            }
            socket.flush(connection)?;
        }
        self.all
            .retain(|_, (connection, _)| !connection.is_closed());
        self.firsts
            .retain(|_, number| self.all.contains_key(number));
        Ok(())
    }
}
