//! The keys of 1-RTT packets and their updates
//! ([RFC 9001, section 6](https://www.rfc-editor.org/rfc/rfc9001#section-6)).
//!
//! When an update may begin, and when old keys are dropped, the connection says, since both depend on time; what a
//! packet or an acknowledgment means for the keys is decided here.

use super::phases::{Choice, DormantPhases, Phase, RemotePhases};
use super::protect::{HeaderKey, LocalKeys, RemoteKeys};
use super::schedule::TrafficSecret;
use super::suite::CipherSuite;
use crate::error::Error;
use crate::wire::TransportErrorCode;

/// How many packets before the confidentiality limit an update falls due.
const UPDATE_MARGIN: u64 = 1 << 16;

/// The 1-RTT keys of both directions, with the phase that they are in.
pub(crate) struct OneRttKeys {
    local: LocalKeys,
    local_secret: TrafficSecret,
    course: LocalCourse,
    remote: RemotePhases,
    remote_header: HeaderKey,
}

/// Where our own direction stands.
#[derive(Clone, Copy)]
struct LocalCourse {
    /// The first number sealed in this phase; `None` until something is sent.
    first_sent: Option<u64>,
    /// Whether a packet of this phase has been acknowledged, so that the next update is allowed.
    acked: bool,
    generation: u64,
}

/// [`OneRttKeys`] of a connection that is silent: the secrets, from which the keys are made again. They take a tenth of
/// the memory.
pub(crate) struct DormantKeys {
    local_secret: TrafficSecret,
    course: LocalCourse,
    remote: DormantPhases,
    /// The header keys, ours and the peer's, once the secrets that they came from are gone.
    headers: Option<Box<[HeaderKey; 2]>>,
}

impl DormantKeys {
    /// The keys as they were, but for those of the phase before. How long this takes says nothing but that there has been
    /// silence.
    pub(crate) fn wake(self) -> OneRttKeys {
        let [local_header, remote_header] = self.headers.map_or_else(
            || {
                [
                    self.local_secret.header_key(),
                    self.remote.secret().header_key(),
                ]
            },
            |headers| *headers,
        );
        OneRttKeys {
            local: LocalKeys {
                packet: self.local_secret.seal_key(),
                header: local_header,
            },
            local_secret: self.local_secret,
            course: self.course,
            remote: self.remote.wake(),
            remote_header,
        }
    }

    /// How many updates there have been, from either side.
    pub(crate) const fn generation(&self) -> u64 {
        self.course.generation
    }
}

impl OneRttKeys {
    pub(super) fn new(local: TrafficSecret, remote: TrafficSecret) -> Self {
        let RemoteKeys { packet, header } = remote.remote_keys();
        Self {
            local: local.local_keys(),
            local_secret: local,
            course: LocalCourse {
                first_sent: None,
                acked: false,
                generation: 0,
            },
            remote: RemotePhases::new(packet, remote),
            remote_header: header,
        }
    }

    /// Gives up all keys for as long as nothing is sent or received.
    pub(crate) fn into_dormant(self) -> DormantKeys {
        let headers = [self.local.header, self.remote_header];
        DormantKeys {
            headers: (self.course.generation > 0).then(|| Box::new(headers)),
            local_secret: self.local_secret,
            course: self.course,
            remote: self.remote.into_dormant(),
        }
    }

    /// The key phase bit of the packets that we send.
    #[inline]
    #[must_use]
    pub(crate) const fn phase(&self) -> bool {
        self.remote.phase()
    }

    /// How many updates there have been, from either side.
    #[must_use]
    pub(crate) const fn generation(&self) -> u64 {
        self.course.generation
    }

    /// The suite, which sets the limits.
    #[must_use]
    pub(crate) const fn suite(&self) -> CipherSuite {
        self.local_secret.suite()
    }

    /// The key for the headers that we send; the same in every phase.
    #[inline]
    #[must_use]
    pub(crate) const fn local_header(&self) -> &HeaderKey {
        &self.local.header
    }

    /// The key for the headers that we receive; the same in every phase.
    #[inline]
    #[must_use]
    pub(crate) const fn remote_header(&self) -> &HeaderKey {
        &self.remote_header
    }

    /// Encrypts a packet in place with the keys of the current phase, see [`SealKey::seal`].
    #[inline]
    pub(crate) fn seal(&mut self, number: u64, header_length: usize, packet: &mut [u8]) {
        if self.course.first_sent.is_none() {
            self.course.first_sent = Some(number);
        }
        self.local.packet.seal(number, header_length, packet);
    }

    /// Decrypts a packet in place, with the key that its number and phase bit ask for, and says which that was; `None`, and
    /// the payload is destroyed, when it isn't authentic.
    #[inline]
    pub(crate) fn open<'p>(
        &self,
        number: u64,
        phase: bool,
        header_length: usize,
        packet: &'p mut [u8],
    ) -> Option<(&'p [u8], Choice)> {
        self.remote.open(number, phase, header_length, packet)
    }

    /// The packet `number` was [opened](Self::open) with this key; returns what that means for the phase.
    ///
    /// # Errors
    ///
    /// KEY_UPDATE_ERROR (RFC 9001, 6.2 and 6.4).
    #[inline]
    pub(crate) fn on_opened(&mut self, number: u64, choice: Choice) -> Result<Phase, Error> {
        let phase = self.remote.on_opened(number, choice)?;
        if phase == Phase::Updated {
            self.rotate_local();
        }
        Ok(phase)
    }

    /// Moves both directions to the next phase.
    fn rotate(&mut self) {
        self.remote.rotate();
        self.rotate_local();
    }

    #[cold]
    fn rotate_local(&mut self) {
        self.local_secret = self.local_secret.next();
        self.local.packet = self.local_secret.seal_key();
        self.course.first_sent = None;
        self.course.acked = false;
        self.course.generation = self.course.generation.saturating_add(1);
    }

    /// An acknowledgment is being sent, sealed with the keys of the current phase.
    #[inline]
    pub(crate) const fn on_ack_sent(&mut self) {
        self.remote.on_ack_sent();
    }

    /// The peer acknowledged `largest`, in a packet whose own phase was `carrier`.
    ///
    /// # Errors
    ///
    /// KEY_UPDATE_ERROR when the peer acknowledged a packet of the current phase with keys of the one before
    /// (RFC 9001, 6.2).
    #[inline]
    pub(crate) fn on_acked(&mut self, largest: u64, carrier: Phase) -> Result<(), Error> {
        if self.course.acked || self.course.first_sent.is_none_or(|first| largest < first) {
            return Ok(());
        }
        if carrier == Phase::Previous {
            return Err(Error::new(
                TransportErrorCode::KEY_UPDATE_ERROR,
                0x02,
                "new keys acknowledged with old ones",
            ));
        }
        self.course.acked = true;
        Ok(())
    }

    /// Whether we may begin an update: a packet of this phase was acknowledged (RFC 9001, 6.1).
    ///
    /// The handshake must be confirmed too, and 3 PTO should have passed since the last update.
    #[must_use]
    pub(crate) const fn can_update(&self) -> bool {
        self.course.acked && self.remote.is_answered()
    }

    /// Begins an update: whatever is sealed from now on has the new phase. `false`, and nothing changes, when it isn't
    /// allowed yet.
    pub(crate) fn update(&mut self) -> bool {
        let allowed = self.can_update();
        if allowed {
            self.rotate();
        }
        allowed
    }

    /// Drops the keys of the phase before, 3 PTO after [`Phase::Updated`] or [`Phase::Confirmed`] (RFC 9001, 6.5).
    pub(crate) fn drop_previous(&mut self) {
        self.remote.drop_previous();
    }

    /// Whether the peer is known to be in the current phase.
    #[inline]
    #[must_use]
    pub(crate) const fn is_answered(&self) -> bool {
        self.remote.is_answered()
    }

    /// Whether keys of the phase before are still held.
    #[must_use]
    pub(crate) const fn has_previous(&self) -> bool {
        self.remote.has_previous()
    }

    /// Whether an update is due, `next` being the next number to be sealed: the limit on one key's use is near.
    #[inline]
    #[must_use]
    pub(crate) const fn is_update_due(&self, next: u64) -> bool {
        let limit = self.suite().confidentiality_limit();
        self.sealed(next) >= limit.saturating_sub(UPDATE_MARGIN)
    }

    /// Whether `next` must not be sealed any more: the connection closes with AEAD_LIMIT_REACHED (RFC 9001, 6.6).
    #[inline]
    #[must_use]
    pub(crate) const fn is_exhausted(&self, next: u64) -> bool {
        self.sealed(next) >= self.suite().confidentiality_limit()
    }

    /// The most packets that can have been sealed in this phase: numbers only grow, so that nothing needs counting.
    #[inline]
    const fn sealed(&self, next: u64) -> u64 {
        match self.course.first_sent {
            Some(first) => next.saturating_sub(first),
            None => 0,
        }
    }
}

impl std::fmt::Debug for DormantKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DormantKeys")
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for OneRttKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneRttKeys")
            .field("suite", &self.suite())
            .field("generation", &self.course.generation)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::{Secret, TrafficSecret};
    use super::{Error, OneRttKeys, Phase, UPDATE_MARGIN};
    use crate::tls::{CipherSuite, TAG_LENGTH};
    use crate::wire::{TransportErrorCode, Version};

    const HEADER: usize = 4;

    fn secret(suite: CipherSuite, byte: u8) -> TrafficSecret {
        let bytes = vec![byte; suite.secret_length()];
        TrafficSecret::new(suite, Version::V1, Secret::new(&bytes).unwrap())
    }

    fn pair_of(suite: CipherSuite) -> (OneRttKeys, OneRttKeys) {
        (
            OneRttKeys::new(secret(suite, 1), secret(suite, 2)),
            OneRttKeys::new(secret(suite, 2), secret(suite, 1)),
        )
    }

    fn pair() -> (OneRttKeys, OneRttKeys) {
        pair_of(CipherSuite::Aes128Gcm)
    }

    /// A packet with the phase that it was sealed in.
    struct Packet {
        number: u64,
        phase: bool,
        bytes: Vec<u8>,
    }

    fn seal(keys: &mut OneRttKeys, number: u64) -> Packet {
        let mut bytes = vec![0x40; HEADER + 20 + TAG_LENGTH];
        keys.seal(number, HEADER, &mut bytes);
        Packet {
            number,
            phase: keys.phase(),
            bytes,
        }
    }

    /// Why a packet wasn't opened.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum NotOpened {
        Forged,
        Invalid(Error),
    }

    fn open(keys: &mut OneRttKeys, packet: &Packet) -> Result<Phase, NotOpened> {
        let mut bytes = packet.bytes.clone();
        let (payload, choice) = keys
            .open(packet.number, packet.phase, HEADER, &mut bytes)
            .ok_or(NotOpened::Forged)?;
        assert_eq!(payload, [0x40; 20]);
        keys.on_opened(packet.number, choice)
            .map_err(NotOpened::Invalid)
    }

    /// Acknowledges everything, in both directions, up to numbers that were sent.
    fn acknowledge(from: &mut OneRttKeys, to: &mut OneRttKeys, number: u64, largest: u64) {
        let packet = seal(from, number);
        from.on_ack_sent();
        let phase = open(to, &packet).unwrap();
        to.on_acked(largest, phase).unwrap();
    }

    fn is_update_error(result: Result<Phase, NotOpened>) -> bool {
        matches!(
            result,
            Err(NotOpened::Invalid(error)) if error.code == TransportErrorCode::KEY_UPDATE_ERROR
        )
    }

    #[test]
    fn both_ends_follow_ten_updates_with_every_suite() {
        for suite in CipherSuite::ALL {
            let (mut ours, mut theirs) = pair_of(suite);
            let mut number = 0;
            for generation in 0..10 {
                assert_eq!(ours.generation(), generation);
                assert_eq!(ours.phase(), generation % 2 == 1);
                let packet = seal(&mut ours, number);
                let expected = if generation == 0 {
                    Phase::Current
                } else {
                    Phase::Updated
                };
                assert_eq!(open(&mut theirs, &packet), Ok(expected));
                assert_eq!(theirs.phase(), ours.phase());
                assert!(!ours.can_update());
                acknowledge(&mut theirs, &mut ours, number, number);
                acknowledge(&mut ours, &mut theirs, number + 1, number);
                number += 2;
                assert!(ours.update());
            }
        }
    }

    /// Keys come back as they were, in each phase and with each suite, and in the middle of an update.
    #[test]
    fn keys_that_were_given_up_come_back() {
        let sleep = |keys: OneRttKeys| keys.into_dormant().wake();
        for suite in CipherSuite::ALL {
            let (mut ours, mut theirs) = pair_of(suite);
            let mut number = 0;
            for generation in 0..4 {
                let packet = seal(&mut ours, number);
                theirs = sleep(theirs);
                open(&mut theirs, &packet).unwrap();
                assert_eq!(theirs.generation(), generation);
                ours = sleep(ours);
                acknowledge(&mut theirs, &mut ours, number, number);
                theirs = sleep(theirs);
                acknowledge(&mut ours, &mut theirs, number + 1, number);
                number += 2;
                ours = sleep(ours);
                assert!(ours.update());
                ours = sleep(ours);
            }
        }
    }

    /// RFC 9001, 6.1: no second update before a packet of the current phase was acknowledged.
    #[test]
    fn an_update_waits_for_an_acknowledgment() {
        let (mut ours, mut theirs) = pair();
        assert!(!ours.update());
        let packet = seal(&mut ours, 5);
        assert_eq!(open(&mut theirs, &packet), Ok(Phase::Current));
        ours.on_acked(4, Phase::Current).unwrap();
        assert!(!ours.update());
        ours.on_acked(5, Phase::Current).unwrap();
        assert!(ours.update());
        assert!(!ours.update());
        seal(&mut ours, 6);
        ours.on_acked(5, Phase::Previous).unwrap();
        assert!(!ours.update());
    }

    #[test]
    fn the_answer_to_our_update_confirms_it() {
        let (mut ours, mut theirs) = pair();
        let delayed = seal(&mut theirs, 0);
        let packet = seal(&mut ours, 0);
        open(&mut theirs, &packet).unwrap();
        acknowledge(&mut theirs, &mut ours, 1, 0);
        assert!(ours.update());
        assert!(ours.has_previous());
        // Until the answer comes the old keys can't be dropped.
        ours.drop_previous();
        assert!(ours.has_previous());
        let still_old = seal(&mut theirs, 2);
        assert_eq!(open(&mut ours, &still_old), Ok(Phase::Previous));
        let packet = seal(&mut ours, 1);
        assert_eq!(open(&mut theirs, &packet), Ok(Phase::Updated));
        let answer = seal(&mut theirs, 3);
        assert_eq!(open(&mut ours, &answer), Ok(Phase::Confirmed));
        assert_eq!(open(&mut ours, &delayed), Ok(Phase::Previous));
        let packet = seal(&mut theirs, 4);
        assert_eq!(open(&mut ours, &packet), Ok(Phase::Current));
        ours.drop_previous();
        assert!(!ours.has_previous());
        assert_eq!(open(&mut ours, &delayed), Err(NotOpened::Forged));
    }

    /// Sealed by `ours` in phase 0, then phase 1, with `theirs` ready to see the update.
    fn updated(old: &[u64], new: &[u64]) -> (Vec<Packet>, Vec<Packet>, OneRttKeys, OneRttKeys) {
        let (mut ours, theirs) = pair();
        let before: Vec<_> = old.iter().map(|number| seal(&mut ours, *number)).collect();
        ours.on_acked(old[0], Phase::Current).unwrap();
        assert!(ours.update());
        let after = new.iter().map(|number| seal(&mut ours, *number)).collect();
        (before, after, ours, theirs)
    }

    #[test]
    fn packets_of_both_phases_open_in_any_order() {
        let (before, after, _, mut theirs) = updated(&[0, 1, 2], &[3, 4, 5]);
        assert_eq!(open(&mut theirs, &before[0]), Ok(Phase::Current));
        assert_eq!(open(&mut theirs, &after[2]), Ok(Phase::Updated));
        assert_eq!(open(&mut theirs, &before[2]), Ok(Phase::Previous));
        assert_eq!(open(&mut theirs, &after[0]), Ok(Phase::Current));
        assert_eq!(open(&mut theirs, &before[1]), Ok(Phase::Previous));
        assert_eq!(open(&mut theirs, &after[1]), Ok(Phase::Current));
        assert_eq!(theirs.generation(), 1);
    }

    /// RFC 9001, 6.3: a forged phase bit neither updates keys nor wears them out.
    #[test]
    fn forged_phase_bits_change_nothing() {
        let (mut ours, mut theirs) = pair();
        for number in 0..100 {
            let mut packet = seal(&mut ours, number);
            assert_eq!(open(&mut theirs, &packet), Ok(Phase::Current));
            packet.phase = !packet.phase;
            packet.number += 1;
            assert_eq!(open(&mut theirs, &packet), Err(NotOpened::Forged));
        }
        assert_eq!(theirs.generation(), 0);
        let packet = seal(&mut ours, 100);
        assert_eq!(open(&mut theirs, &packet), Ok(Phase::Current));
    }

    #[test]
    fn replays_of_the_update_are_packets_like_others() {
        let (_, after, _, mut theirs) = updated(&[0], &[1]);
        assert_eq!(open(&mut theirs, &after[0]), Ok(Phase::Updated));
        for _ in 0..3 {
            assert_eq!(open(&mut theirs, &after[0]), Ok(Phase::Current));
        }
        assert_eq!(theirs.generation(), 1);
    }

    /// RFC 9001, 6.2: a peer that updates again before we acknowledged its first update.
    #[test]
    fn a_second_update_before_our_acknowledgment_is_an_error() {
        let (_, after, mut ours, mut theirs) = updated(&[0], &[1]);
        assert_eq!(open(&mut theirs, &after[0]), Ok(Phase::Updated));
        // The peer can't know that its packet arrived, and goes on all the same.
        ours.rotate();
        let again = seal(&mut ours, 2);
        assert!(is_update_error(open(&mut theirs, &again)));
    }

    /// RFC 9001, 6.4: higher packet numbers never have older keys.
    #[test]
    fn old_keys_for_a_higher_number_are_an_error() {
        // The packets of the new phase carry 3 and 5, and one with the old keys 4.
        let (before, after, _, mut theirs) = updated(&[0, 4], &[3, 5]);
        assert_eq!(open(&mut theirs, &after[1]), Ok(Phase::Updated));
        assert_eq!(open(&mut theirs, &before[1]), Ok(Phase::Previous));
        assert!(is_update_error(open(&mut theirs, &after[0])));

        // An update with a lower number than what came before.
        let (before, after, _, mut theirs) = updated(&[0, 9], &[8]);
        assert_eq!(open(&mut theirs, &before[0]), Ok(Phase::Current));
        assert_eq!(open(&mut theirs, &before[1]), Ok(Phase::Current));
        assert!(is_update_error(open(&mut theirs, &after[0])));
    }

    /// RFC 9001, 6.2: new keys acknowledged in a packet with old ones.
    #[test]
    fn acknowledging_new_keys_with_old_ones_is_an_error() {
        let (_, after, mut ours, _) = updated(&[0], &[1]);
        assert_eq!(ours.on_acked(0, Phase::Previous), Ok(()));
        let error = ours.on_acked(after[0].number, Phase::Previous).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::KEY_UPDATE_ERROR);
        assert_eq!(ours.on_acked(after[0].number, Phase::Confirmed), Ok(()));
    }

    #[test]
    fn updates_of_both_ends_at_once_meet() {
        let (mut ours, mut theirs) = pair();
        acknowledge(&mut ours, &mut theirs, 0, 0);
        acknowledge(&mut theirs, &mut ours, 0, 0);
        acknowledge(&mut ours, &mut theirs, 1, 0);
        assert!(ours.update() && theirs.update());
        let (a, b) = (seal(&mut ours, 2), seal(&mut theirs, 1));
        assert_eq!(open(&mut ours, &b), Ok(Phase::Confirmed));
        assert_eq!(open(&mut theirs, &a), Ok(Phase::Confirmed));
        assert_eq!((ours.generation(), theirs.generation()), (1, 1));
    }

    /// RFC 9001, 6.6: an update comes before the confidentiality limit.
    #[test]
    fn an_update_falls_due_before_the_limit() {
        let (mut ours, _) = pair();
        let limit = ours.suite().confidentiality_limit();
        assert!(!ours.is_update_due(u64::MAX));
        seal(&mut ours, 10);
        assert!(!ours.is_update_due(9 + limit - UPDATE_MARGIN));
        assert!(ours.is_update_due(10 + limit - UPDATE_MARGIN));
        assert!(!ours.is_exhausted(9 + limit));
        assert!(ours.is_exhausted(10 + limit));
        ours.on_acked(10, Phase::Current).unwrap();
        assert!(ours.update());
        assert!(!ours.is_update_due(10 + limit));
        seal(&mut ours, 10 + limit);
        assert!(!ours.is_exhausted(10 + limit));

        let (mut ours, _) = pair_of(CipherSuite::ChaCha20Poly1305);
        seal(&mut ours, 0);
        assert!(!ours.is_update_due(1 << 61));
    }
}
