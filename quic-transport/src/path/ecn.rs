//! ECN validation, [RFC 9000, section 13.4.2](https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2).
//!
//! The first packets of a path are marked. If the peer's counts show that the marks arrive, marking goes on; if they
//! contradict what was sent, it stops for good. Nothing that a count says closes a connection.

use quic_common::Ecn;

use crate::{observe::EcnState as State, wire::EcnCounts};

/// Packets that are marked before anything is known (RFC 9000, 13.4.2).
const TESTING_PACKETS: u64 = 10;

/// What a packet number space knows about marks: the peer counts by space, not by path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EcnSpace {
    /// The counts that were reported last.
    counts: EcnCounts,
    /// Packets sent with ECT(0).
    sent: u64,
}

/// Whether a path carries marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EcnValidation {
    state: State,
    /// Marked packets sent, acknowledged and lost on the path while it was being tested.
    sent: u64,
    acked: u64,
    lost: u64,
}

impl EcnSpace {
    /// An ACK frame acknowledged packets of several paths: the next one is compared with its counts.
    pub(crate) const fn on_mixed(&mut self, counts: Option<EcnCounts>) {
        if let Some(counts) = counts {
            self.counts = counts;
        }
    }
}

impl EcnValidation {
    /// Begins to test a path, or leaves it unmarked.
    pub(crate) const fn new(is_enabled: bool) -> Self {
        Self {
            state: if is_enabled {
                State::Testing
            } else {
                State::Failed
            },
            sent: 0,
            acked: 0,
            lost: 0,
        }
    }

    /// A batch begins: its packets all have the same mark, and enough of them may have been marked by now.
    #[inline]
    pub(crate) const fn on_batch(&mut self) {
        if matches!(self.state, State::Testing) && self.sent >= TESTING_PACKETS {
            self.state = State::Unknown;
        }
    }

    /// The mark that the packets of this batch get.
    #[inline]
    pub(crate) const fn mark(&self) -> Ecn {
        match self.state {
            State::Testing | State::Capable => Ecn::Ect0,
            State::Unknown | State::Failed => Ecn::NotEct,
        }
    }

    /// So many packets with ECT(0) were sent.
    #[inline]
    pub(crate) const fn on_sent(&mut self, space: &mut EcnSpace, packets: u64) {
        space.sent = space.sent.saturating_add(packets);
        self.sent = self.sent.saturating_add(packets);
    }

    /// A packet with ECT(0) was declared lost.
    pub(crate) const fn on_lost(&mut self) {
        self.lost = self.lost.saturating_add(1);
        // All of them: the path may drop what is marked.
        if matches!(self.state, State::Unknown) && self.lost >= self.sent {
            self.state = State::Failed;
        }
    }

    /// An ACK frame newly acknowledged `acked` packets that were sent with ECT(0), and `raised` the largest
    /// acknowledged number. Returns whether it reports congestion.
    pub(crate) fn on_ack(
        &mut self,
        space: &mut EcnSpace,
        acked: u64,
        reported: Option<EcnCounts>,
        raised: bool,
    ) -> bool {
        // Reordered frames carry old counts, which MUST NOT fail validation.
        if self.state == State::Failed || !raised {
            return false;
        }
        let Some(counts) = reported else {
            if acked > 0 {
                self.state = State::Failed;
            }
            return false;
        };
        let before = space.counts;
        space.counts = counts;
        let (Some(ect0), Some(ce)) = (
            counts.ect0.checked_sub(before.ect0),
            counts.ce.checked_sub(before.ce),
        ) else {
            self.state = State::Failed;
            return false;
        };
        if counts.ect1 > 0
            || ect0.saturating_add(ce) < acked
            || counts.ect0.saturating_add(counts.ce) > space.sent
        {
            self.state = State::Failed;
            return false;
        }
        self.acked = self.acked.saturating_add(acked);
        if self.state != State::Capable && acked > 0 {
            if ect0 > 0 {
                self.state = State::Capable;
            } else if self.acked >= TESTING_PACKETS {
                // Each mark was turned into CE: that is a broken path, not congestion.
                self.state = State::Failed;
                return false;
            }
        }
        ce > 0
    }

    /// What is known so far.
    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Whether marks are known to arrive.
    #[cfg(test)]
    pub(crate) const fn is_capable(&self) -> bool {
        matches!(self.state, State::Capable)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ecn, EcnCounts, EcnSpace, EcnValidation};

    #[expect(clippy::unnecessary_wraps, reason = "as it is reported")]
    fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
        Some(EcnCounts { ect0, ect1, ce })
    }

    fn tested(packets: u64) -> (EcnValidation, EcnSpace) {
        let (mut ecn, mut space) = (EcnValidation::new(true), EcnSpace::default());
        for _ in 0..packets {
            assert_eq!(ecn.mark(), Ecn::Ect0);
            ecn.on_sent(&mut space, 1);
        }
        ecn.on_batch();
        (ecn, space)
    }

    /// RFC 9000, A.4: ten packets are marked, and all from then on once the counts are right.
    #[test]
    fn right_counts_make_a_path_capable() {
        let (mut ecn, mut space) = tested(10);
        assert_eq!(ecn.mark(), Ecn::NotEct);
        assert!(!ecn.on_ack(&mut space, 2, counts(2, 0, 0), true));
        assert!(ecn.is_capable());
        assert!(ecn.on_ack(&mut space, 1, counts(3, 0, 1), true));
        assert!(
            !ecn.on_ack(&mut space, 0, counts(3, 0, 1), true),
            "told once"
        );
        assert_eq!(ecn.mark(), Ecn::Ect0);
    }

    /// RFC 9000, 13.4.2.1: the ways in which counts can be wrong.
    #[test]
    fn wrong_counts_end_marking() {
        for (acked, reported, why) in [
            (1, None, "no counts"),
            (3, counts(2, 0, 0), "fewer than were acknowledged"),
            (3, counts(1, 0, 1), "fewer, with CE"),
            (1, counts(11, 0, 0), "more than were sent"),
            (1, counts(9, 0, 2), "more than were sent, with CE"),
            (1, counts(1, 1, 0), "a mark that was never applied"),
            (1, counts(0, 0, 0), "bleached"),
            (0, counts(u64::MAX, 0, u64::MAX), "absurd"),
        ] {
            let (mut ecn, mut space) = tested(10);
            assert!(!ecn.on_ack(&mut space, acked, reported, true), "{why}");
            assert_eq!(ecn.mark(), Ecn::NotEct, "{why}");
            assert!(!ecn.on_ack(&mut space, 1, counts(5, 0, 5), true));
            assert!(!ecn.is_capable());
        }
    }

    /// A batch has one mark, and what is recorded as sent with a mark must have been.
    #[test]
    fn the_mark_does_not_change_within_a_batch() {
        let (mut ecn, mut space) = tested(9);
        for _ in 0..40 {
            assert_eq!(ecn.mark(), Ecn::Ect0);
            ecn.on_sent(&mut space, 1);
        }
        ecn.on_batch();
        assert_eq!(ecn.mark(), Ecn::NotEct);
        assert!(!ecn.on_ack(&mut space, 49, counts(49, 0, 0), true));
        assert!(ecn.is_capable());
    }

    #[test]
    fn decreasing_counts_end_marking_later_too() {
        let (mut ecn, mut space) = tested(9);
        assert!(!ecn.on_ack(&mut space, 5, counts(5, 0, 0), true));
        assert!(ecn.is_capable());
        assert!(!ecn.on_ack(&mut space, 0, counts(4, 0, 1), true));
        assert_eq!(ecn.mark(), Ecn::NotEct);
    }

    /// RFC 9000, 13.4.2.1: an ACK that does not raise the largest number MUST NOT fail validation.
    #[test]
    fn reordered_acks_are_ignored() {
        let (mut ecn, mut space) = tested(10);
        assert!(!ecn.on_ack(&mut space, 4, counts(4, 0, 0), true));
        assert!(!ecn.on_ack(&mut space, 1, counts(2, 0, 0), false));
        assert!(!ecn.on_ack(&mut space, 1, None, false));
        assert!(ecn.is_capable());
    }

    /// RFC 9000, 13.4.2: all marked packets are lost, or, A.4, all become CE.
    #[test]
    fn paths_that_drop_or_remark_everything_fail() {
        let (mut ecn, _) = tested(10);
        for _ in 0..10 {
            ecn.on_lost();
        }
        assert!(ecn.state == super::State::Failed);

        let (mut ecn, mut space) = tested(10);
        assert!(
            ecn.on_ack(&mut space, 9, counts(0, 0, 9), true),
            "congestion, for all we know"
        );
        assert!(!ecn.is_capable());
        assert!(!ecn.on_ack(&mut space, 1, counts(0, 0, 10), true));
        assert!(ecn.state == super::State::Failed);
    }

    #[test]
    fn packets_that_are_not_marked_need_no_counts() {
        let mut ecn = EcnValidation::new(false);
        assert_eq!(ecn.mark(), Ecn::NotEct);
        let (mut testing, mut space) = tested(0);
        assert!(!testing.on_ack(&mut space, 0, None, true));
        assert_eq!(testing.mark(), Ecn::Ect0);
        assert!(!ecn.on_ack(&mut space, 0, counts(0, 0, 1), true));
    }
}
