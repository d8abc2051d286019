//! Datagrams that reached the wrong one of several threads: kept until someone carries them to the right one.
//!
//! The kernel is asked to choose the thread by connection ID, but not every kernel can, and none does for what is too
//! short to tell.

use std::{collections::VecDeque, net::SocketAddr};

use quic_common::{Datagram, Ecn};

use super::{Application, Endpoint};
use crate::{
    limits::FOREIGN_BYTES,
    wire::{ConnectionId, wide},
};

/// A datagram for an endpoint on another thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    owner: u16,
    remote: SocketAddr,
    local: Option<SocketAddr>,
    ecn: Ecn,
    payload: Vec<u8>,
}

impl Foreign {
    /// The index of the [`Share`](quic_common::Share) that it is for.
    #[must_use]
    pub const fn owner(&self) -> u16 {
        self.owner
    }

    /// The datagram, for [`Endpoint::input`] there.
    pub fn datagram(&mut self) -> Datagram<'_> {
        Datagram {
            remote: self.remote,
            local: self.local,
            ecn: self.ecn,
            payload: &mut self.payload,
        }
    }
}

/// Datagrams that wait to be carried away, up to [`FOREIGN_BYTES`].
#[derive(Debug, Default)]
pub(super) struct Strangers {
    queue: VecDeque<Foreign>,
    bytes: u64,
}

impl Strangers {
    /// Keeps a copy; returns whether there was room.
    fn push(&mut self, owner: u16, datagram: &Datagram<'_>) -> bool {
        let bytes = self.bytes.saturating_add(wide(datagram.payload.len()));
        if bytes > FOREIGN_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.queue.push_back(Foreign {
            owner,
            remote: datagram.remote,
            local: datagram.local,
            ecn: datagram.ecn,
            payload: datagram.payload.to_vec(),
        });
        true
    }

    fn pop(&mut self) -> Option<Foreign> {
        let foreign = self.queue.pop_front()?;
        self.bytes -= wide(foreign.payload.len());
        Some(foreign)
    }
}

impl<A: Application> Endpoint<A> {
    /// The next datagram that has arrived here and belongs to another thread: whoever runs the endpoints carries it there.
    ///
    /// There are some only if [`EndpointConfig::share`](super::EndpointConfig::share) is not the whole.
    pub fn take_foreign(&mut self) -> Option<Foreign> {
        self.strangers.pop()
    }

    /// Puts a datagram aside if its connection, known or not, belongs to another thread; returns whether it does.
    pub(super) fn is_foreign(&mut self, dcid: &ConnectionId, datagram: &Datagram<'_>) -> bool {
        let share = self.config.share;
        if share.holds(dcid.as_slice()) {
            return false;
        }
        if !self.strangers.push(share.owner(dcid.as_slice()), datagram) {
            self.stats.dropped += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use quic_common::{Datagram, Ecn};

    use super::{FOREIGN_BYTES, Strangers};

    #[test]
    fn what_waits_is_bounded_and_comes_out_as_it_went_in() {
        let mut strangers = Strangers::default();
        let mut payload = vec![7; 1 << 16];
        let mut datagram = Datagram {
            remote: ([192, 0, 2, 1], 7).into(),
            local: Some(([192, 0, 2, 2], 443).into()),
            ecn: Ecn::Ce,
            payload: &mut payload,
        };
        let most = FOREIGN_BYTES >> 16;
        for _ in 0..most {
            assert!(strangers.push(3, &datagram));
        }
        assert!(!strangers.push(3, &datagram));
        let mut foreign = strangers.pop().unwrap();
        assert_eq!(foreign.owner(), 3);
        let copy = foreign.datagram();
        assert_eq!(
            (copy.remote, copy.local, copy.ecn, &*copy.payload),
            (
                datagram.remote,
                datagram.local,
                datagram.ecn,
                &*datagram.payload
            )
        );
        datagram.ecn = Ecn::NotEct;
        assert!(strangers.push(1, &datagram), "there is room again");
    }
}
