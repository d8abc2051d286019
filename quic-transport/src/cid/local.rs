//! The connection IDs that we give to the peer to address us by.
//!
//! A connection keeps the peer supplied: each one that it retires is replaced
//! ([RFC 9000, section 5.1.1](https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1)). At first it gets a few, enough for
//! a move; as soon as either end moves, or the connection has been in use for a while, as many as it stores. Short ones
//! would spend more on IDs than on what they are for.

use std::collections::VecDeque;

use quic_common::{Random, Share};

use super::CidGenerator;
use crate::{
    error::Error,
    limits::{FIRST_CIDS, ISSUED_CIDS},
    tls::ResetKey,
    wire::{ConnectionId, Frame, ResetToken},
};

/// What the router of datagrams has to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CidChange {
    /// Datagrams with this ID belong to the connection from now on.
    Added(ConnectionId),
    /// They no longer do.
    Removed(ConnectionId),
}

/// How often an ID is drawn that the connection has already.
const DRAWS: u32 = 64;

/// Room for as many as most peers get.
const FEW: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Issued {
    sequence: u64,
    cid: ConnectionId,
    /// A NEW_CONNECTION_ID for it is owed.
    owed: bool,
    /// The peer has been seen to use it.
    is_seen: bool,
}

/// The IDs that the peer may use, in order of their sequence numbers.
#[derive(Debug)]
pub(crate) struct LocalCids {
    length: usize,
    generator: CidGenerator,
    /// Which IDs lead to the thread that the connection is on.
    share: Share,
    reset_key: ResetKey,
    issued: VecDeque<Issued>,
    next_sequence: u64,
    /// How many the peer gets, if it stores so many.
    supply: u64,
    /// Frames owed in all, so that the common path looks at one number.
    owed: usize,
    /// What a router has not been told; `None` without a router.
    changes: Option<VecDeque<CidChange>>,
}

impl LocalCids {
    /// Starts with the ID that the handshake uses, sequence number 0.
    pub(crate) fn new(initial: ConnectionId, reset_key: ResetKey) -> Self {
        let mut issued = VecDeque::with_capacity(if initial.is_empty() { 1 } else { FEW });
        issued.push_back(Issued {
            sequence: 0,
            cid: initial,
            owed: false,
            is_seen: true,
        });
        Self {
            length: initial.len(),
            generator: CidGenerator::Random {
                length: initial.len(),
            },
            share: Share::WHOLE,
            reset_key,
            issued,
            next_sequence: 1,
            supply: FIRST_CIDS,
            owed: 0,
            changes: None,
        }
    }

    /// The same, where a router asks for changes.
    pub(crate) fn with_router(mut self) -> Self {
        let mut changes = VecDeque::with_capacity(FEW);
        changes.extend(self.all().map(CidChange::Added));
        self.changes = Some(changes);
        self
    }

    /// The same, with IDs that `generator` makes as it has made the first, and that lead to the thread of `share`.
    pub(crate) fn made_by(mut self, generator: CidGenerator, share: Share) -> Self {
        debug_assert_eq!(generator.length(), self.length, "all IDs have one length");
        self.generator = generator;
        self.share = share;
        self
    }

    /// Gives back the room that isn't needed now.
    pub(crate) fn rest(&mut self) {
        self.issued.shrink_to_fit();
        if let Some(changes) = &mut self.changes {
            changes.shrink_to_fit();
        }
    }

    /// Bytes of each ID.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// The ID that the handshake used, or the oldest one not retired.
    pub(crate) fn first(&self) -> ConnectionId {
        self.issued
            .front()
            .map_or(ConnectionId::EMPTY, |issued| issued.cid)
    }

    /// There is more than one path, or there may come to be: the peer gets all that it stores from now on.
    pub(crate) const fn expect_moves(&mut self) {
        self.supply = ISSUED_CIDS;
    }

    /// Draws new IDs until the peer holds `peer_limit` of them, or as many as we are willing to give.
    pub(crate) fn replenish(&mut self, peer_limit: u64, random: &mut Random) {
        let wanted = usize::try_from(peer_limit.min(self.supply)).unwrap_or_default();
        while self.issued.len() < wanted {
            if self.issue(true, random).is_none() {
                return;
            }
        }
    }

    /// Draws the ID that goes with a preferred address, number 1, and the token of its stateless resets.
    pub(crate) fn issue_preferred(
        &mut self,
        random: &mut Random,
    ) -> Option<(ConnectionId, ResetToken)> {
        let cid = self.issue(false, random)?;
        Some((cid, self.reset_key.token(&cid)))
    }

    fn issue(&mut self, owed: bool, random: &mut Random) -> Option<ConnectionId> {
        if self.length == 0 {
            return None;
        }
        let cid = self.draw(random)?;
        self.issued.push_back(Issued {
            sequence: self.next_sequence,
            cid,
            owed,
            is_seen: false,
        });
        self.next_sequence += 1;
        self.owed += usize::from(owed);
        if let Some(changes) = &mut self.changes {
            changes.push_back(CidChange::Added(cid));
        }
        Some(cid)
    }

    /// Another connection has this ID: if the peer hasn't been given it yet, another is drawn in its place.
    pub(crate) fn redraw(&mut self, taken: &ConnectionId, random: &mut Random) {
        if let Some(cid) = self.draw(random)
            && let Some(place) = self.not_given(taken)
            && let Some(issued) = self.issued.get_mut(place)
        {
            issued.cid = cid;
            if let Some(changes) = &mut self.changes {
                changes.push_back(CidChange::Added(cid));
            }
        }
    }

    /// Another connection has this ID, and no free one is found: the peer gets fewer.
    pub(crate) fn withdraw(&mut self, taken: &ConnectionId) {
        // Numbers have no gaps, so those that come after it go, too.
        let first = self.not_given(taken).unwrap_or(self.issued.len());
        for gone in self.issued.drain(first..) {
            self.next_sequence = self.next_sequence.min(gone.sequence);
            self.owed -= usize::from(gone.owed);
            if let Some(changes) = &mut self.changes {
                changes.push_back(CidChange::Removed(gone.cid));
            }
        }
    }

    /// Where an ID stands that the peer hasn't been told of.
    fn not_given(&self, cid: &ConnectionId) -> Option<usize> {
        let is_it = |issued: &Issued| issued.cid == *cid && issued.owed;
        self.issued.iter().position(is_it)
    }

    /// An ID that the connection doesn't have; none if short ones are that scarce.
    fn draw(&self, random: &mut Random) -> Option<ConnectionId> {
        (0..DRAWS)
            .map(|_| self.generator.draw(self.share, random))
            .find(|cid| !self.contains(cid))
    }

    /// The peer has moved, and uses this ID; tells whether it used it before, so that it may not know that it moved.
    pub(crate) fn see(&mut self, cid: &ConnectionId) -> bool {
        let used = self.issued.iter_mut().find(|issued| issued.cid == *cid);
        used.is_none_or(|used| std::mem::replace(&mut used.is_seen, true))
    }

    /// Applies RETIRE_CONNECTION_ID, which arrived in a packet sent to `used`.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a number that was never given out, or for the ID that carried the frame (RFC 9000, 19.16).
    pub(crate) fn on_retire(&mut self, sequence: u64, used: &ConnectionId) -> Result<(), Error> {
        let violation = |reason| Error::protocol(0x19, reason);
        if sequence >= self.next_sequence {
            return Err(violation("retired a connection ID that was never issued"));
        }
        if self.length == 0 {
            return Err(violation("retired a zero-length connection ID"));
        }
        let Some(index) = self
            .issued
            .iter()
            .position(|issued| issued.sequence == sequence)
        else {
            return Ok(());
        };
        if self
            .issued
            .get(index)
            .is_some_and(|issued| issued.cid == *used)
        {
            return Err(violation(
                "retired the connection ID that the packet was sent to",
            ));
        }
        if let Some(retired) = self.issued.remove(index) {
            self.owed -= usize::from(retired.owed);
            if let Some(changes) = &mut self.changes {
                changes.push_back(CidChange::Removed(retired.cid));
            }
        }
        Ok(())
    }

    /// Whether a NEW_CONNECTION_ID is owed.
    pub(crate) const fn is_owing(&self) -> bool {
        self.owed > 0
    }

    /// The next NEW_CONNECTION_ID that is owed; call [`Self::on_sent`] once it is in a packet.
    pub(crate) fn owed(&self) -> Option<(u64, Frame<'static>)> {
        let issued = self.issued.iter().find(|issued| issued.owed)?;
        let frame = Frame::NewConnectionId {
            sequence: issued.sequence,
            retire_prior_to: 0,
            cid: issued.cid,
            reset_token: self.reset_key.token(&issued.cid),
        };
        Some((issued.sequence, frame))
    }

    /// The NEW_CONNECTION_ID with this number went out.
    pub(crate) fn on_sent(&mut self, sequence: u64) {
        self.set_owed(sequence, false);
    }

    /// The NEW_CONNECTION_ID with this number was lost: it is owed again unless retired meanwhile.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        self.set_owed(sequence, true);
    }

    /// Whether a packet sent to `cid` is for us.
    #[inline]
    pub(crate) fn contains(&self, cid: &ConnectionId) -> bool {
        let is_it = |issued: &Issued| issued.cid == *cid;
        // The first is what peers use as a rule.
        self.issued.front().is_some_and(is_it) || self.issued.iter().any(is_it)
    }

    /// What the router has to learn, oldest first.
    pub(crate) fn take_change(&mut self) -> Option<CidChange> {
        self.changes.as_mut()?.pop_front()
    }

    /// All IDs that the router still knows.
    pub(crate) fn all(&self) -> impl Iterator<Item = ConnectionId> {
        self.issued.iter().map(|issued| issued.cid)
    }

    fn set_owed(&mut self, sequence: u64, owed: bool) {
        let found = self
            .issued
            .iter_mut()
            .find(|issued| issued.sequence == sequence && issued.owed != owed);
        let Some(issued) = found else { return };
        issued.owed = owed;
        if owed {
            self.owed += 1;
        } else {
            self.owed -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use quic_common::{Random, Share};

    use super::{CidChange, CidGenerator, LocalCids};
    use crate::{
        tls::ResetKey,
        wire::{ConnectionId, TransportErrorCode},
    };

    fn cids() -> (LocalCids, Random) {
        let mut random = Random::from_seed([1; 32]);
        let initial = ConnectionId::new(&[9; 8]).unwrap();
        let mut cids = LocalCids::new(initial, ResetKey::new([0; 32])).with_router();
        cids.expect_moves();
        cids.replenish(4, &mut random);
        (cids, random)
    }

    fn owed_sequence(cids: &LocalCids) -> Option<u64> {
        cids.owed().map(|(sequence, _)| sequence)
    }

    #[test]
    fn the_peer_is_kept_supplied() {
        let (mut cids, mut random) = cids();
        assert_eq!(cids.length(), 8);
        for sequence in 1..4 {
            assert!(cids.is_owing());
            assert_eq!(owed_sequence(&cids), Some(sequence));
            cids.on_sent(sequence);
        }
        assert!(!cids.is_owing());
        cids.on_retire(1, &ConnectionId::EMPTY).unwrap();
        cids.replenish(4, &mut random);
        assert_eq!(owed_sequence(&cids), Some(4));
    }

    /// RFC 9000, 19.15 and 19.16: whoever is addressed without connection IDs MUST NOT give any, and has none to retire.
    #[test]
    fn a_connection_without_ids_gives_none_and_retires_none() {
        let (_, mut random) = cids();
        let mut cids = LocalCids::new(ConnectionId::EMPTY, ResetKey::new([0; 32]));
        cids.replenish(8, &mut random);
        assert!(!cids.is_owing() && cids.owed().is_none());
        let error = cids.on_retire(0, &ConnectionId::EMPTY).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    }

    #[test]
    fn the_peers_limit_is_capped_by_ours() {
        let (mut cids, mut random) = cids();
        cids.expect_moves();
        cids.replenish(u64::MAX, &mut random);
        assert_eq!(cids.issued.len(), 8);
    }

    /// RFC 9000, 5.1.1: enough for a move at once, and all that it stores once somebody moves.
    #[test]
    fn a_peer_that_stays_where_it_is_gets_few() {
        let mut random = Random::from_seed([1; 32]);
        let initial = ConnectionId::new(&[9; 8]).unwrap();
        let mut cids = LocalCids::new(initial, ResetKey::new([0; 32]));
        cids.replenish(8, &mut random);
        assert_eq!(cids.issued.len(), 3);
        cids.on_retire(1, &initial).unwrap();
        cids.replenish(8, &mut random);
        assert_eq!(cids.issued.len(), 3);
        cids.expect_moves();
        cids.replenish(8, &mut random);
        assert_eq!(cids.issued.len(), 8);
    }

    /// RFC 9000, 19.16: a sequence number greater than any previously sent is a PROTOCOL_VIOLATION.
    #[test]
    fn retiring_what_was_never_issued_is_a_violation() {
        let (mut cids, _) = cids();
        assert!(cids.on_retire(4, &ConnectionId::EMPTY).is_err());
        assert!(cids.on_retire(3, &ConnectionId::EMPTY).is_ok());
        assert!(
            cids.on_retire(3, &ConnectionId::EMPTY).is_ok(),
            "a repeated retirement is ignored"
        );
    }

    /// RFC 9000, 19.16: the sequence number MUST NOT refer to the DCID of the packet that contains the frame.
    #[test]
    fn retiring_the_id_in_use_is_a_violation() {
        let (mut cids, _) = cids();
        let used = cids.first();
        assert!(cids.on_retire(0, &used).is_err());
    }

    #[test]
    fn a_lost_frame_is_owed_again_unless_retired() {
        let (mut cids, _) = cids();
        cids.on_sent(1);
        cids.on_sent(2);
        cids.on_sent(3);
        cids.on_lost(2);
        assert_eq!(owed_sequence(&cids), Some(2));
        cids.on_retire(2, &ConnectionId::EMPTY).unwrap();
        assert!(!cids.is_owing());
        cids.on_lost(2);
        assert!(!cids.is_owing());
    }

    #[test]
    fn without_a_router_nothing_piles_up() {
        let (_, mut random) = cids();
        let initial = ConnectionId::new(&[9; 8]).unwrap();
        let mut cids = LocalCids::new(initial, ResetKey::new([0; 32]));
        cids.expect_moves();
        cids.replenish(4, &mut random);
        for sequence in 1..100 {
            cids.on_retire(sequence, &ConnectionId::EMPTY).unwrap();
            cids.replenish(4, &mut random);
        }
        assert_eq!(cids.take_change(), None);
        assert_eq!(cids.issued.len(), 4);
    }

    #[test]
    fn every_id_leads_to_the_thread_of_the_connection() {
        let (cids, mut random) = cids();
        let share = Share::new(3, 5).unwrap();
        let length = cids.length();
        let mut cids = cids.made_by(CidGenerator::Random { length }, share);
        cids.on_retire(1, &ConnectionId::EMPTY).unwrap();
        cids.replenish(8, &mut random);
        assert!(cids.all().skip(3).all(|cid| share.holds(cid.as_slice())));
    }

    /// RFC 9000, 5.1.1: the ID of a preferred address is number 1, and needs no frame.
    #[test]
    fn the_id_of_a_preferred_address_is_number_one() {
        let mut random = Random::from_seed([1; 32]);
        let initial = ConnectionId::new(&[9; 8]).unwrap();
        let mut cids = LocalCids::new(initial, ResetKey::new([0; 32]));
        let (cid, token) = cids.issue_preferred(&mut random).unwrap();
        assert_eq!(token, ResetKey::new([0; 32]).token(&cid));
        assert!(cids.contains(&cid) && !cids.is_owing());
        cids.on_retire(1, &initial).unwrap();
        assert!(!cids.contains(&cid));
    }

    #[test]
    fn an_id_is_new_when_it_is_seen_first() {
        let (mut cids, _) = cids();
        let (first, next) = (cids.first(), cids.all().nth(1).unwrap());
        assert!(cids.see(&first), "the handshake used it");
        assert!(!cids.see(&next) && cids.see(&next));
        assert!(cids.see(&ConnectionId::EMPTY), "nothing says otherwise");
    }

    /// RFC 9000, 5.1.1: numbers increase by one with each new ID, also where one was taken already.
    #[test]
    fn an_id_that_is_taken_is_replaced_or_withdrawn() {
        let (cids, mut random) = cids();
        let mut cids = LocalCids::new(cids.first(), cids.reset_key).with_router();
        cids.replenish(3, &mut random);
        let ids: Vec<_> = cids.all().collect();
        assert_eq!(ids.len(), 3);
        cids.redraw(&ids[1], &mut random);
        let others: Vec<_> = cids.all().collect();
        assert_eq!((others[0], others[2]), (ids[0], ids[2]));
        assert_ne!(others[1], ids[1]);
        let changes: Vec<_> = std::iter::from_fn(|| cids.take_change()).collect();
        assert_eq!(changes.last(), Some(&CidChange::Added(others[1])));

        // What was given stays.
        assert_eq!(owed_sequence(&cids), Some(1));
        cids.on_sent(1);
        for taken in [ids[0], others[1]] {
            cids.redraw(&taken, &mut random);
            cids.withdraw(&taken);
        }
        assert_eq!(cids.all().collect::<Vec<_>>(), others);
        cids.withdraw(&others[2]);
        assert_eq!(cids.all().collect::<Vec<_>>(), others[..2]);
        assert!(!cids.is_owing());
        assert_eq!(cids.take_change(), Some(CidChange::Removed(others[2])));
        cids.replenish(3, &mut random);
        assert_eq!(owed_sequence(&cids), Some(2));
    }

    #[test]
    fn the_router_learns_of_each_change() {
        let (mut cids, _) = cids();
        let added = std::iter::from_fn(|| cids.take_change()).count();
        assert_eq!(added, 4);
        let first = cids.first();
        assert!(cids.contains(&first) && !cids.contains(&ConnectionId::EMPTY));
        cids.on_retire(0, &ConnectionId::EMPTY).unwrap();
        assert_eq!(cids.take_change(), Some(CidChange::Removed(first)));
        assert!(!cids.contains(&first) && cids.contains(&cids.first()));
        assert_eq!(
            (cids.all().count(), cids.all().next()),
            (3, Some(cids.first()))
        );
    }
}
