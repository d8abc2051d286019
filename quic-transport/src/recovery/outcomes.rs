//! Persistent congestion that shows only when the packet number spaces are looked at together
//! ([RFC 9002, section 7.6.2](https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2)).
//!
//! That can be only while the handshake lasts, when packets are few: what became of the last of them is remembered, in
//! the order in which they were sent.

use std::time::{Duration, Instant};

use crate::limits::HANDSHAKE_OUTCOMES;

/// What became of packets, by the time at which they were sent.
#[derive(Debug)]
pub(crate) struct Outcomes {
    known: Vec<(Instant, Fate)>,
}

/// At the same time an acknowledged packet comes first: it lies before a lost one, or after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Acked,
    Lost,
}

impl Outcomes {
    /// None known.
    pub(crate) const fn new() -> Self {
        Self { known: Vec::new() }
    }

    /// A packet was acknowledged.
    pub(crate) fn on_acked(&mut self, sent: Instant) {
        self.insert(sent, Fate::Acked);
    }

    /// An ack-eliciting packet, sent after the first RTT sample, was lost.
    pub(crate) fn on_lost(&mut self, sent: Instant) {
        self.insert(sent, Fate::Lost);
    }

    /// The longest time between two packets that were lost, with none acknowledged that was sent in between.
    pub(crate) fn longest_loss(&self) -> Duration {
        let mut longest = Duration::ZERO;
        let mut start: Option<Instant> = None;
        for (sent, fate) in &self.known {
            match fate {
                Fate::Acked => start = None,
                Fate::Lost => {
                    let start = *start.get_or_insert(*sent);
                    longest = longest.max(sent.saturating_duration_since(start));
                }
            }
        }
        longest
    }

    fn insert(&mut self, sent: Instant, fate: Fate) {
        let entry = (sent, fate);
        let place = self.known.partition_point(|known| *known <= entry);
        self.known.insert(place, entry);
        if self.known.len() > HANDSHAKE_OUTCOMES {
            self.known.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{HANDSHAKE_OUTCOMES, Outcomes};

    const MS: Duration = Duration::from_millis(1);

    fn epoch() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        Instant::now()
    }

    /// RFC 9002, 7.6.2: the spaces' packets in one order, by the time at which they were sent.
    #[test]
    fn losses_of_all_spaces_make_one_run() {
        let start = epoch();
        let mut outcomes = Outcomes::new();
        assert_eq!(outcomes.longest_loss(), Duration::ZERO);
        outcomes.on_lost(start + MS * 900);
        outcomes.on_lost(start + MS * 100);
        assert_eq!(outcomes.longest_loss(), MS * 800);
        outcomes.on_acked(start + MS * 50);
        outcomes.on_acked(start + MS * 950);
        assert_eq!(outcomes.longest_loss(), MS * 800);
        outcomes.on_acked(start + MS * 300);
        assert_eq!(outcomes.longest_loss(), Duration::ZERO);
        outcomes.on_lost(start + MS * 400);
        assert_eq!(outcomes.longest_loss(), MS * 500);
    }

    #[test]
    fn a_bounded_number_is_remembered() {
        let start = epoch();
        let mut outcomes = Outcomes::new();
        let most = u32::try_from(HANDSHAKE_OUTCOMES).unwrap();
        for number in 0..most {
            outcomes.on_lost(start + MS * number);
        }
        assert_eq!(outcomes.longest_loss(), MS * (most - 1));
        outcomes.on_lost(start + MS * most);
        assert_eq!(outcomes.longest_loss(), MS * (most - 1));
        assert_eq!(outcomes.known.len(), HANDSHAKE_OUTCOMES);
    }
}
