//! 0-RTT packets that came before the Initial that they belong to: a few are kept for a moment,
//! [RFC 9000, section 5.2.2](https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2).

use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

use quic_common::Datagram;

use super::incoming::Kept;
use crate::{
    limits::{EARLY_DATAGRAM_SIZE, EARLY_DATAGRAMS},
    wire::ConnectionId,
};

/// How long they are kept: the Initial was sent before them.
const LIFETIME: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct Arrival {
    dcid: ConnectionId,
    remote: SocketAddr,
    at: Instant,
    kept: Kept,
}

/// Datagrams of clients that are not known yet; the oldest goes when there are too many.
#[derive(Debug, Default)]
pub(super) struct EarlyArrivals {
    arrivals: VecDeque<Arrival>,
}

impl EarlyArrivals {
    /// Keeps a copy of a datagram; false when it is too large.
    pub(super) fn keep(
        &mut self,
        dcid: ConnectionId,
        datagram: &Datagram<'_>,
        now: Instant,
    ) -> bool {
        if datagram.payload.len() > EARLY_DATAGRAM_SIZE {
            return false;
        }
        let is_old = |arrival: &Arrival| now.saturating_duration_since(arrival.at) > LIFETIME;
        while self.arrivals.front().is_some_and(is_old) || self.arrivals.len() >= EARLY_DATAGRAMS {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(Arrival {
            dcid,
            remote: datagram.remote,
            at: now,
            kept: Kept {
                ecn: datagram.ecn,
                payload: datagram.payload.to_vec(),
            },
        });
        true
    }

    /// Takes one of those that the client sent which has come now.
    pub(super) fn take(&mut self, dcid: &ConnectionId, remote: SocketAddr) -> Option<Kept> {
        let place = self
            .arrivals
            .iter()
            .position(|arrival| arrival.dcid == *dcid && arrival.remote == remote)?;
        self.arrivals.remove(place).map(|arrival| arrival.kept)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use quic_common::{Datagram, Ecn};

    use super::{
        ConnectionId, Duration, EARLY_DATAGRAM_SIZE, EARLY_DATAGRAMS, EarlyArrivals, Instant,
        LIFETIME,
    };

    fn remote(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn keep(arrivals: &mut EarlyArrivals, client: u16, size: usize, now: Instant) -> bool {
        let datagram = Datagram {
            remote: remote(client),
            local: None,
            ecn: Ecn::NotEct,
            payload: &mut vec![0; size],
        };
        arrivals.keep(cid(client), &datagram, now)
    }

    fn cid(client: u16) -> ConnectionId {
        ConnectionId::new(&client.to_be_bytes().repeat(4)).unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "any instant serves")]
    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn as_many_as_fit_are_kept_and_one_more_drives_out_the_oldest() {
        let (mut arrivals, now) = (EarlyArrivals::default(), now());
        let most = u16::try_from(EARLY_DATAGRAMS).unwrap();
        for client in 0..most {
            assert!(keep(&mut arrivals, client, EARLY_DATAGRAM_SIZE, now));
        }
        assert!(!keep(&mut arrivals, 0, EARLY_DATAGRAM_SIZE + 1, now));
        assert!(keep(&mut arrivals, most, 100, now));
        assert!(arrivals.take(&cid(0), remote(0)).is_none());
        assert!(arrivals.take(&cid(1), remote(2)).is_none());
        assert!(arrivals.take(&cid(1), remote(1)).is_some());
        assert!(arrivals.take(&cid(1), remote(1)).is_none());
        assert!(arrivals.take(&cid(most), remote(most)).is_some());
    }

    #[test]
    fn old_ones_go() {
        let (mut arrivals, now) = (EarlyArrivals::default(), now());
        assert!(keep(&mut arrivals, 1, 100, now));
        let later = now + LIFETIME + Duration::from_millis(1);
        assert!(keep(&mut arrivals, 2, 100, later));
        assert!(arrivals.take(&cid(1), remote(1)).is_none());
    }
}
