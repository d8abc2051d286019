//! Which stream goes first, in the terms of [RFC 9218](https://www.rfc-editor.org/rfc/rfc9218#section-4).

/// The least urgent.
const LEAST_URGENT: u8 = 7;

/// Urgency and whether the stream shares its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priority {
    urgency: u8,
    incremental: bool,
}

impl Default for Priority {
    /// The urgency of RFC 9218, and, as nothing is known of what the streams carry, fair shares.
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: true,
        }
    }
}

impl Priority {
    /// Urgency from 0, the most urgent, to 7; more counts as 7.
    pub(crate) const fn new(urgency: u8, incremental: bool) -> Self {
        let urgency = if urgency < LEAST_URGENT {
            urgency
        } else {
            LEAST_URGENT
        };
        Self {
            urgency,
            incremental,
        }
    }

    /// Whether streams of this urgency take turns by the packet.
    #[inline]
    pub(crate) const fn is_incremental(self) -> bool {
        self.incremental
    }

    /// The lane of the scheduler: two for each urgency, the first for what needs no credit from the peer.
    #[inline]
    pub(super) const fn lane(self, demand: Demand) -> u8 {
        match demand {
            Demand::Again => 2 * self.urgency,
            Demand::New => 2 * self.urgency + 1,
        }
    }
}

/// What a stream has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// Lost data, or a bare FIN: the connection's flow control has nothing to say.
    Again,
    /// Data that was never sent.
    New,
}

/// Lanes of the scheduler.
pub(super) const LANES: usize = 16;

/// The bits of the lanes with new data.
pub(super) const NEW_LANES: u32 = 0xaaaa;

#[cfg(test)]
mod tests {
    use super::{Demand, LANES, NEW_LANES, Priority};

    #[test]
    fn each_urgency_has_two_lanes_in_order() {
        for urgency in 0..8 {
            let priority = Priority::new(urgency, false);
            let (again, new) = (priority.lane(Demand::Again), priority.lane(Demand::New));
            assert_eq!(new, again + 1);
            assert!(usize::from(new) < LANES);
            assert_eq!(NEW_LANES & (3 << again), 1 << new);
        }
        assert_eq!(Priority::new(200, true), Priority::new(7, true));
    }
}
