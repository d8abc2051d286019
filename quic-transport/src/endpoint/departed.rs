//! What is left of connections that their peers have closed: late packets still lead to them, and are dropped
//! ([RFC 9000, section 10.2](https://www.rfc-editor.org/rfc/rfc9000#section-10.2)).
//!
//! An endpoint that drains says nothing, so it needs to know no more than which datagrams are not to be answered. The
//! memory of the connection itself goes on to the next one while it is still warm.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use super::Handle;
use crate::{
    limits::{TRACED_CID_MEMORY, TRACES_MEMORY},
    wire::{ConnectionId, ResetToken, wide},
};

/// Traces that nobody wakes up for are wiped away by this time.
const GRACE: Duration = Duration::from_millis(250);

/// How a connection that is gone is still known.
#[derive(Debug)]
pub(super) struct Traces {
    /// The IDs that datagrams for it may have.
    pub(super) cids: Box<[ConnectionId]>,
    pub(super) reset_token: Option<ResetToken>,
    /// The address that it counts for.
    pub(super) address: IpAddr,
    pub(super) is_half_open: bool,
}

impl Traces {
    /// What they count for, with their places in the maps of the router.
    pub(super) fn memory(&self) -> u64 {
        TRACED_CID_MEMORY
            .saturating_mul(wide(self.cids.len()))
            .saturating_add(TRACES_MEMORY)
    }
}

/// The traces, by when they are no longer needed.
#[derive(Debug, Default)]
pub(super) struct Departed {
    traces: BTreeMap<(Instant, Handle), Traces>,
}

impl Departed {
    pub(super) fn len(&self) -> usize {
        self.traces.len()
    }

    /// Late packets are expected until then.
    pub(super) fn insert(&mut self, until: Instant, handle: Handle, traces: Traces) {
        self.traces.insert((until, handle), traces);
    }

    /// Takes the traces of one connection that are no longer needed.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(Handle, Traces)> {
        let first = self.traces.first_entry()?;
        let (until, handle) = *first.key();
        (until <= now).then(|| (handle, first.remove()))
    }

    /// When to look here if nothing else gives reason to: tidying up isn't worth a wake-up for each connection.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let ((until, _), _) = self.traces.first_key_value()?;
        until.checked_add(GRACE)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Traces> {
        self.traces.values()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{IpAddr, Ipv4Addr},
        time::{Duration, Instant},
    };

    use super::{Departed, GRACE, Traces};
    use crate::endpoint::Handle;

    fn traces() -> Traces {
        Traces {
            cids: Box::default(),
            reset_token: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            is_half_open: false,
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant will do as an epoch")]
    fn traces_go_in_the_order_of_their_times_and_wake_nobody_at_once() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut departed = Departed::default();
        assert_eq!(departed.deadline(), None);
        for (index, seconds) in [(0, 9), (1, 3), (2, 3)] {
            departed.insert(at(seconds), Handle::new(index, 0), traces());
        }
        assert_eq!(departed.deadline(), Some(at(3) + GRACE));
        assert!(departed.take_due(at(2)).is_none());
        let gone = |departed: &mut Departed| departed.take_due(at(3)).map(|(handle, _)| handle);
        assert_eq!(gone(&mut departed), Some(Handle::new(1, 0)));
        assert_eq!(gone(&mut departed), Some(Handle::new(2, 0)));
        assert_eq!((gone(&mut departed), departed.len()), (None, 1));
    }
}
