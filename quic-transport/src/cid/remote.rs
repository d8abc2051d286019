//! The connection IDs that the peer gave us to address it by.
//!
//! One is in use on the path in use; others were taken for other paths, and the rest waits for new ones. What the peer wants retired is retired at once, and the number of
//! retirements that wait for their acknowledgement is bounded
//! ([RFC 9000, section 5.1.2](https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2)).

use std::collections::VecDeque;

use super::retired::RetiredNumbers;
use crate::{
    error::Error,
    limits::{ACTIVE_CIDS, PENDING_RETIREMENTS},
    wire::{ConnectionId, ResetToken, TransportErrorCode},
};

const NEW_CONNECTION_ID: u64 = 0x18;

/// What a NEW_CONNECTION_ID frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewConnectionId {
    pub(crate) sequence: u64,
    pub(crate) retire_prior_to: u64,
    pub(crate) cid: ConnectionId,
    pub(crate) token: ResetToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Given {
    sequence: u64,
    cid: ConnectionId,
    token: Option<ResetToken>,
    /// Something has been sent to it: it mustn't appear on another path.
    is_used: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Retirement {
    sequence: u64,
    owed: bool,
}

/// The IDs that we may send to, the first of them on the path in use.
#[derive(Debug)]
pub(crate) struct RemoteCids {
    given: VecDeque<Given>,
    retire_prior_to: u64,
    retired: RetiredNumbers,
    /// Those of them whose retirement isn't acknowledged.
    retiring: VecDeque<Retirement>,
    /// Frames owed in all, so that the common path looks at one number.
    owed: usize,
}

impl RemoteCids {
    /// Starts with the ID of the handshake, sequence number 0.
    pub(crate) fn new(initial: ConnectionId) -> Self {
        Self {
            given: VecDeque::from([Given {
                sequence: 0,
                cid: initial,
                token: None,
                is_used: true,
            }]),
            retire_prior_to: 0,
            retired: RetiredNumbers::default(),
            retiring: VecDeque::new(),
            owed: 0,
        }
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.given.shrink_to_fit();
        self.retiring.shrink_to_fit();
    }

    /// The ID to send to.
    pub(crate) fn current(&self) -> ConnectionId {
        self.given
            .front()
            .map_or(ConnectionId::EMPTY, |given| given.cid)
    }

    /// Replaces the ID of the handshake: with a Retry's, or with the one that the peer chose in its first packet.
    pub(crate) fn replace_initial(&mut self, cid: ConnectionId) {
        if let Some(first) = self.given.front_mut().filter(|first| first.sequence == 0) {
            first.cid = cid;
        }
    }

    /// Stores the reset token of the handshake's ID, from the server's transport parameters.
    pub(crate) fn set_initial_token(&mut self, token: ResetToken) {
        if let Some(first) = self.given.iter_mut().find(|given| given.sequence == 0) {
            first.token = Some(token);
        }
    }

    /// Applies a NEW_CONNECTION_ID frame.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when the peer uses zero-length IDs, or changes what it said of a number (RFC 9000, 19.15);
    /// CONNECTION_ID_LIMIT_ERROR when it gives more than it may, or makes us retire faster than it acknowledges.
    pub(crate) fn on_new(&mut self, new: &NewConnectionId) -> Result<(), Error> {
        let violation = |reason| Error::protocol(NEW_CONNECTION_ID, reason);
        if self.current().is_empty() {
            return Err(violation(
                "a peer with zero-length connection IDs gave a new one",
            ));
        }
        for given in &self.given {
            let same_number = given.sequence == new.sequence;
            let same_id = given.cid == new.cid;
            if same_number != same_id
                || (same_number && given.token.is_some_and(|t| t != new.token))
            {
                return Err(violation("a connection ID was given twice, differently"));
            }
            if same_number {
                return self.retire_below(new.retire_prior_to);
            }
        }
        let mut retiring = self.retiring.iter();
        if self.retired.contains(new.sequence) || retiring.any(|r| r.sequence == new.sequence) {
            return Ok(());
        }
        if new.sequence < self.retire_prior_to.max(self.retired.floor()) {
            return self.retire(new.sequence);
        }
        self.given.push_back(Given {
            sequence: new.sequence,
            cid: new.cid,
            token: Some(new.token),
            is_used: false,
        });
        self.retire_below(new.retire_prior_to)?;
        if self.given.len() > usize::try_from(ACTIVE_CIDS).unwrap_or(usize::MAX) {
            return Err(Error::new(
                TransportErrorCode::CONNECTION_ID_LIMIT_ERROR,
                NEW_CONNECTION_ID,
                "more connection IDs than active_connection_id_limit",
            ));
        }
        Ok(())
    }

    /// Whether a datagram's last 16 bytes are the reset token of an ID in use. Those of IDs that were never used, or are
    /// retired, MUST NOT count (RFC 9000, 10.3.1). Tokens are compared in full, so that the time taken says nothing.
    pub(crate) fn is_reset_token(&self, tail: ResetToken) -> bool {
        let in_use = self.given.iter().filter(|given| given.is_used);
        let tokens = in_use.filter_map(|given| given.token);
        tokens.filter(|token| *token == tail).count() > 0
    }

    /// The number of the ID to send to.
    pub(crate) fn current_sequence(&self) -> u64 {
        self.given.front().map_or(0, |given| given.sequence)
    }

    /// Whether the peer is addressed without connection IDs: then there is nothing to tell paths apart by.
    pub(crate) fn is_empty(&self) -> bool {
        self.current().is_empty()
    }

    /// Takes an ID that was never used, for a new path. None while many retirements wait: a peer that keeps moving must
    /// not make us use up its IDs faster than it gives new ones.
    pub(crate) fn take_unused(&mut self) -> Option<u64> {
        let used = self.given.iter().filter(|given| given.is_used).count();
        if used + self.retiring.len() >= PENDING_RETIREMENTS / 2 {
            return None;
        }
        let unused = self.given.iter_mut().filter(|given| !given.is_used);
        let next = unused.min_by_key(|given| given.sequence)?;
        next.is_used = true;
        Some(next.sequence)
    }

    /// Whether the ID with this number is still there.
    pub(crate) fn has(&self, sequence: u64) -> bool {
        self.given.iter().any(|given| given.sequence == sequence)
    }

    /// Sends to the ID with this number from now on.
    pub(crate) fn select(&mut self, sequence: u64) {
        if let Some(place) = self
            .given
            .iter()
            .position(|given| given.sequence == sequence)
        {
            self.given.swap(0, place);
        }
    }

    /// The path of the ID with this number is left: it is retired. The one to send to is not.
    pub(crate) fn release(&mut self, sequence: u64) {
        let place = self
            .given
            .iter()
            .position(|given| given.sequence == sequence);
        if let Some(place) = place.filter(|place| *place > 0) {
            self.given.remove(place);
            self.announce(sequence);
        }
    }

    /// Stores the ID that comes with a preferred address, number 1.
    pub(crate) fn add_preferred(&mut self, cid: ConnectionId, token: ResetToken) {
        self.given.push_back(Given {
            sequence: 1,
            cid,
            token: Some(token),
            is_used: false,
        });
    }

    /// The reset token of the ID to send to, if it has one.
    pub(crate) fn reset_token(&self) -> Option<ResetToken> {
        let current = self.given.front()?;
        current.token
    }

    /// The next retirement to be announced; call [`Self::on_retire_sent`] once it is in a packet.
    pub(crate) fn owed_retirement(&self) -> Option<u64> {
        self.retiring
            .iter()
            .find(|retirement| retirement.owed)
            .map(|retirement| retirement.sequence)
    }

    /// Whether a RETIRE_CONNECTION_ID is owed.
    #[inline]
    pub(crate) const fn is_owing(&self) -> bool {
        self.owed > 0
    }

    /// RETIRE_CONNECTION_ID went out.
    pub(crate) fn on_retire_sent(&mut self, sequence: u64) {
        self.set_owed(sequence, false);
    }

    /// RETIRE_CONNECTION_ID was lost.
    pub(crate) fn on_retire_lost(&mut self, sequence: u64) {
        self.set_owed(sequence, true);
    }

    /// RETIRE_CONNECTION_ID was acknowledged.
    pub(crate) fn on_retire_acked(&mut self, sequence: u64) {
        self.retiring
            .retain(|retirement| retirement.sequence != sequence);
        self.count_owed();
    }

    fn set_owed(&mut self, sequence: u64, owed: bool) {
        for retirement in self.retiring.iter_mut().filter(|r| r.sequence == sequence) {
            retirement.owed = owed;
        }
        self.count_owed();
    }

    fn count_owed(&mut self) {
        self.owed = self.retiring.iter().filter(|r| r.owed).count();
    }

    fn retire_below(&mut self, bound: u64) -> Result<(), Error> {
        if bound <= self.retire_prior_to {
            return Ok(());
        }
        self.retire_prior_to = bound;
        let current = self.current_sequence();
        while let Some(index) = self.given.iter().position(|given| given.sequence < bound) {
            if let Some(given) = self.given.remove(index) {
                self.retire(given.sequence)?;
            }
        }
        if self.current_sequence() != current {
            self.replace_current();
        }
        Ok(())
    }

    /// The ID in use is gone: one that was never used takes its place, if there is any.
    fn replace_current(&mut self) {
        if let Some(place) = self.given.iter().position(|given| !given.is_used) {
            self.given.swap(0, place);
        }
        if let Some(first) = self.given.front_mut() {
            first.is_used = true;
        }
    }

    fn retire(&mut self, sequence: u64) -> Result<(), Error> {
        if self.retiring.len() >= PENDING_RETIREMENTS {
            return Err(Error::new(
                TransportErrorCode::CONNECTION_ID_LIMIT_ERROR,
                NEW_CONNECTION_ID,
                "too many connection IDs to retire",
            ));
        }
        self.announce(sequence);
        Ok(())
    }

    fn announce(&mut self, sequence: u64) {
        self.retired.insert(sequence);
        self.retiring.push_back(Retirement {
            sequence,
            owed: true,
        });
        self.count_owed();
    }
}

#[cfg(test)]
mod tests {
    use super::{NewConnectionId, RemoteCids};
    use crate::{
        limits::{ACTIVE_CIDS, PENDING_RETIREMENTS},
        wire::{ConnectionId, ResetToken, TransportErrorCode},
    };

    fn cid(n: u64) -> ConnectionId {
        ConnectionId::new(&n.to_be_bytes()).unwrap()
    }

    fn token(n: u64) -> ResetToken {
        ResetToken(u128::from(n).to_be_bytes())
    }

    fn new(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
        NewConnectionId {
            sequence,
            retire_prior_to,
            cid: cid(sequence + 100),
            token: token(sequence),
        }
    }

    /// RFC 9000, 5.1.1: more IDs than the limit are a CONNECTION_ID_LIMIT_ERROR.
    #[test]
    fn the_limit_holds_at_the_cap_and_beyond() {
        let mut cids = RemoteCids::new(cid(0));
        for sequence in 1..ACTIVE_CIDS {
            cids.on_new(&new(sequence, 0)).unwrap();
        }
        let error = cids.on_new(&new(ACTIVE_CIDS, 0)).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::CONNECTION_ID_LIMIT_ERROR);
    }

    #[test]
    fn retired_ids_make_room() {
        let mut cids = RemoteCids::new(cid(0));
        for sequence in 1..ACTIVE_CIDS {
            cids.on_new(&new(sequence, 0)).unwrap();
        }
        cids.on_new(&new(ACTIVE_CIDS, 2)).unwrap();
        assert_eq!(cids.current(), cid(102));
        assert_eq!(cids.owed_retirement(), Some(0));
        cids.on_retire_sent(0);
        assert_eq!(cids.owed_retirement(), Some(1));
        cids.on_retire_lost(0);
        assert_eq!(cids.owed_retirement(), Some(0));
        cids.on_retire_acked(0);
        assert_eq!(cids.owed_retirement(), Some(1));
    }

    #[test]
    fn a_retirement_is_owed_until_it_is_sent_and_again_when_lost() {
        let mut cids = RemoteCids::new(cid(0));
        assert!(!cids.is_owing());
        cids.on_new(&new(1, 1)).unwrap();
        assert!(cids.is_owing());
        cids.on_retire_sent(0);
        assert!(!cids.is_owing());
        cids.on_retire_lost(0);
        assert!(cids.is_owing());
        cids.on_retire_acked(0);
        assert!(!cids.is_owing());
    }

    #[test]
    fn only_the_id_of_the_handshake_is_replaced() {
        let mut cids = RemoteCids::new(cid(0));
        cids.replace_initial(cid(7));
        assert_eq!(cids.current(), cid(7));
        cids.on_new(&new(1, 1)).unwrap();
        cids.replace_initial(cid(8));
        assert_eq!(cids.current(), cid(101));
    }

    /// RFC 9000, 5.1.2: outstanding retirements are bounded.
    #[test]
    fn churn_without_acknowledgement_is_an_error() {
        let mut cids = RemoteCids::new(cid(0));
        let cap = u64::try_from(PENDING_RETIREMENTS).unwrap();
        for sequence in 1..=cap {
            cids.on_new(&new(sequence, sequence)).unwrap();
        }
        let error = cids.on_new(&new(cap + 1, cap + 1)).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::CONNECTION_ID_LIMIT_ERROR);
    }

    /// RFC 9000, 19.15: a changed meaning of a number, or a second number for an ID, is a PROTOCOL_VIOLATION.
    #[test]
    fn contradictions_are_violations() {
        let mut cids = RemoteCids::new(cid(0));
        cids.on_new(&new(1, 0)).unwrap();
        cids.on_new(&new(1, 0)).unwrap();
        let mut other_cid = new(1, 0);
        other_cid.cid = cid(7);
        let mut other_token = new(1, 0);
        other_token.token = token(9);
        let mut second_number = new(2, 0);
        second_number.cid = cid(101);
        for frame in [other_cid, other_token, second_number] {
            assert_eq!(
                cids.on_new(&frame).unwrap_err().code,
                TransportErrorCode::PROTOCOL_VIOLATION
            );
        }
    }

    #[test]
    fn a_late_id_below_the_bound_is_retired_at_once() {
        let mut cids = RemoteCids::new(cid(0));
        cids.on_new(&new(5, 5)).unwrap();
        cids.on_retire_acked(0);
        cids.on_new(&new(3, 0)).unwrap();
        assert_eq!(cids.owed_retirement(), Some(3));
        assert_eq!(cids.current(), cid(105));
    }

    /// RFC 9000, 5.1.2 and 19.15: the same frame may come again, however late; what is retired stays so.
    #[test]
    fn a_late_copy_brings_no_retired_id_back() {
        let mut cids = supplied(2);
        assert_eq!(cids.take_unused(), Some(1));
        cids.release(1);
        cids.on_retire_sent(1);
        cids.on_retire_acked(1);
        cids.on_new(&new(1, 0)).unwrap();
        assert!(!cids.has(1) && !cids.is_owing());
        assert_eq!((cids.take_unused(), cids.take_unused()), (Some(2), None));
    }

    /// RFC 9000, 5.1.2: what is too old to be remembered is retired, once more perhaps, and not used.
    #[test]
    fn an_id_of_long_ago_is_retired_at_once() {
        let mut cids = RemoteCids::new(cid(0));
        for sequence in 2..200 {
            cids.on_new(&new(sequence, 0)).unwrap();
            assert_eq!(cids.take_unused(), Some(sequence));
            cids.release(sequence);
            cids.on_retire_acked(sequence);
        }
        for _ in 0..2 {
            cids.on_new(&new(1, 0)).unwrap();
            assert_eq!(
                (cids.owed_retirement(), cids.take_unused()),
                (Some(1), None)
            );
        }
        assert_eq!(cids.retiring.len(), 1);
    }

    /// RFC 9000, 19.15: what lies below Retire Prior To is retired, and the number itself is not.
    #[test]
    fn a_late_id_at_the_bound_is_kept() {
        let mut cids = RemoteCids::new(cid(0));
        cids.on_new(&new(6, 5)).unwrap();
        cids.on_retire_acked(0);
        cids.on_new(&new(5, 0)).unwrap();
        assert_eq!(cids.owed_retirement(), None);
        assert_eq!(cids.given.len(), 2);
    }

    /// RFC 9000, 19.15: a peer that is addressed without connection IDs MUST NOT give any.
    #[test]
    fn a_peer_without_ids_gives_none() {
        let mut cids = RemoteCids::new(ConnectionId::EMPTY);
        let error = cids.on_new(&new(1, 0)).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    }

    /// RFC 9000, 10.3.1: tokens of IDs that are not in use, or retired, MUST NOT be looked for.
    #[test]
    fn only_the_token_of_the_id_in_use_counts() {
        let mut cids = RemoteCids::new(cid(0));
        assert!(!cids.is_reset_token(ResetToken([0; 16])));
        cids.set_initial_token(token(50));
        cids.on_new(&new(1, 0)).unwrap();
        assert!(cids.is_reset_token(token(50)) && !cids.is_reset_token(token(1)));
        cids.on_new(&new(2, 1)).unwrap();
        assert!(cids.is_reset_token(token(1)) && !cids.is_reset_token(token(50)));
        assert!(!cids.is_reset_token(token(2)));
    }

    fn supplied(count: u64) -> RemoteCids {
        let mut cids = RemoteCids::new(cid(0));
        for sequence in 1..=count {
            cids.on_new(&new(sequence, 0)).unwrap();
        }
        cids
    }

    #[test]
    fn the_id_of_a_preferred_address_waits_to_be_used() {
        let mut cids = RemoteCids::new(cid(0));
        assert!(!cids.is_empty() && RemoteCids::new(ConnectionId::EMPTY).is_empty());
        cids.add_preferred(cid(7), token(7));
        assert_eq!((cids.current(), cids.take_unused()), (cid(0), Some(1)));
        cids.select(1);
        assert_eq!(cids.current(), cid(7));
        assert!(cids.is_reset_token(token(7)));
    }

    /// RFC 9000, 9.5: an ID that was used on one path is not used on another.
    #[test]
    fn each_path_gets_an_id_that_was_never_used() {
        let mut cids = supplied(2);
        assert_eq!((cids.take_unused(), cids.take_unused()), (Some(1), Some(2)));
        assert_eq!(cids.take_unused(), None);
        cids.select(2);
        assert_eq!((cids.current(), cids.current_sequence()), (cid(102), 2));
        assert!(cids.is_reset_token(token(1)) && cids.is_reset_token(token(2)));
        cids.release(2);
        assert!(!cids.is_owing(), "the one to send to stays");
        cids.release(1);
        assert_eq!(cids.owed_retirement(), Some(1));
        assert!(!cids.has(1) && cids.has(0) && !cids.is_reset_token(token(1)));
    }

    /// Moving uses up IDs no faster than they are retired.
    #[test]
    fn moving_on_and_on_leaves_room_for_retirements() {
        let mut cids = supplied(3);
        let (mut taken, mut next) = (0, 4);
        while let Some(sequence) = cids.take_unused() {
            cids.release(sequence);
            cids.on_new(&new(next, 0)).unwrap();
            (taken, next) = (taken + 1, next + 1);
        }
        assert_eq!(taken, PENDING_RETIREMENTS / 2 - 1);
        cids.on_new(&new(next, next)).unwrap();
        cids.on_retire_acked(1);
        assert_eq!(cids.current_sequence(), next);
    }

    #[test]
    fn a_retired_id_is_replaced_by_one_that_no_other_path_has() {
        let mut cids = supplied(3);
        assert_eq!(cids.take_unused(), Some(1));
        cids.on_new(&new(4, 1)).unwrap();
        assert_eq!(cids.current_sequence(), 2);
    }
}
