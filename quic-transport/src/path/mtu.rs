//! The largest datagram that a path carries, found by acknowledged probes,
//! [RFC 9000, section 14.3](https://www.rfc-editor.org/rfc/rfc9000#section-14.3) and RFC 8899.
//!
//! The configured maximum is tried first, since it mostly works; then the sizes that networks have; then the middle
//! between what worked and what didn't. Only probes decide that; what is lost otherwise is congestion, unless nothing
//! large gets through any more.

use std::time::{Duration, Instant};

/// What every path carries (RFC 9000, 14).
pub(crate) const MINIMUM_MTU: u16 = 1200;

/// UDP payloads that fill an Ethernet frame or a jumbo frame, over IPv6 and IPv4.
const COMMON: [u16; 4] = [1452, 1472, 8952, 8972];

/// Losses of a size before it is given up (RFC 8899, 5.1.2).
const TRIES: u8 = 3;

/// Flights of large packets that are lost, with none acknowledged in between, before the path counts as a black hole.
const LARGE_LOSSES: u8 = 3;

/// When to look for a larger size again (RFC 8899, 5.1.1).
const RAISE_INTERVAL: Duration = Duration::from_mins(10);

/// The search for a path's MTU. Sizes are of UDP payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mtu {
    current: u16,
    maximum: u16,
    /// The smallest size that is known not to get through; one more than the maximum at first.
    too_large: u32,
    /// The size of the probe that is on its way.
    in_flight: Option<u16>,
    /// The smallest size that was lost, and might have been by chance.
    doubt: Option<Doubt>,
    raise_at: Option<Instant>,
    /// Flights with packets larger than the minimum that were lost since one was acknowledged, and when the last one
    /// was found to be.
    large_losses: u8,
    large_loss: Option<Instant>,
}

/// A size that was lost, less than [`TRIES`] times. The search goes on below it, and comes back to it in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt {
    size: u16,
    lost: u8,
}

impl Mtu {
    /// Starts at the minimum; sizes up to `maximum` will be tried.
    pub(crate) fn new(maximum: u16) -> Self {
        let maximum = maximum.max(MINIMUM_MTU);
        Self {
            current: MINIMUM_MTU,
            maximum,
            too_large: u32::from(maximum).saturating_add(1),
            in_flight: None,
            doubt: None,
            raise_at: None,
            large_losses: 0,
            large_loss: None,
        }
    }

    /// The same knowledge for a path that no probe is on its way on.
    pub(crate) const fn without_probe(mut self) -> Self {
        self.in_flight = None;
        self
    }

    /// The size that datagrams may have.
    #[inline]
    pub(crate) const fn current(&self) -> u16 {
        self.current
    }

    /// The peer receives no datagram larger than `limit` (`max_udp_payload_size`).
    pub(crate) fn limit(&mut self, limit: u64) {
        let limit = u16::try_from(limit).unwrap_or(u16::MAX).max(MINIMUM_MTU);
        self.maximum = self.maximum.min(limit);
        self.too_large = self
            .too_large
            .min(u32::from(self.maximum).saturating_add(1));
        self.doubt = self.doubt.filter(|doubt| doubt.size <= self.maximum);
        self.current = self.current.min(self.maximum);
    }

    /// The size of the probe that should be sent, if any, where no more than `most` bytes may leave now. The datagram
    /// holds that one packet, padded.
    pub(crate) fn next_probe(&mut self, now: Instant, most: u16) -> Option<u16> {
        if self.in_flight.is_some() {
            return None;
        }
        let candidate = self.candidate(most);
        if candidate.is_none() && most >= self.maximum && self.current < self.maximum {
            match self.raise_at {
                None => self.raise_at = now.checked_add(RAISE_INTERVAL),
                Some(at) if at <= now => {
                    self.restart();
                    return self.candidate(most);
                }
                Some(_) => {}
            }
        }
        candidate
    }

    /// When [`next_probe`](Self::next_probe) may have a size again though it has none now.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.raise_at
    }

    fn candidate(&self, most: u16) -> Option<u16> {
        let doubt = self.doubt.map(|doubt| doubt.size);
        let end = doubt.map_or(self.too_large, u32::from);
        self.candidate_below(end.min(u32::from(most).saturating_add(1)))
            .or_else(|| doubt.filter(|size| *size <= most))
    }

    /// What to try next below `end`, the smallest size that didn't get through.
    fn candidate_below(&self, end: u32) -> Option<u16> {
        let fits = |size: &u16| *size > self.current && u32::from(*size) < end;
        if u32::from(self.maximum) < end {
            return Some(self.maximum).filter(fits);
        }
        if let Some(size) = COMMON.into_iter().find(fits) {
            return Some(size);
        }
        // A sixteenth more isn't worth the probes.
        let gap = end.saturating_sub(self.current.into());
        let middle = self.current.saturating_add(u16::try_from(gap / 2).ok()?);
        Some(middle).filter(|_| gap > u32::from(self.current) / 16)
    }

    /// The probe of `size` bytes was sent.
    pub(crate) const fn on_probe_sent(&mut self, size: u16) {
        self.in_flight = Some(size);
    }

    /// A probe of `size` bytes was acknowledged; returns whether datagrams may be larger now.
    pub(crate) fn on_probe_acked(&mut self, size: u16) -> bool {
        self.in_flight = None;
        let larger = size > self.current && size <= self.maximum;
        if larger {
            self.current = size;
            // It got through, whatever was thought of it.
            self.too_large = self.too_large.max(u32::from(size).saturating_add(1));
            self.doubt = self.doubt.filter(|doubt| doubt.size > size);
        }
        larger
    }

    /// A probe of `size` bytes was lost.
    pub(crate) fn on_probe_lost(&mut self, size: u16) {
        if self.in_flight != Some(size) {
            return;
        }
        self.in_flight = None;
        let before = self.doubt.filter(|doubt| doubt.size == size);
        let lost = before.map_or(0, |doubt| doubt.lost).saturating_add(1);
        if lost >= TRIES {
            self.on_refused(size);
        } else {
            self.doubt = Some(Doubt { size, lost });
        }
    }

    /// Datagrams of `size` bytes don't leave our own system, or are lost whenever they are tried. Returns whether
    /// datagrams must be smaller now; the search begins anew then.
    pub(crate) fn on_refused(&mut self, size: u16) -> bool {
        let smaller = size <= self.current && self.on_black_hole();
        if self.in_flight.is_some_and(|probe| probe >= size) {
            self.in_flight = None;
        }
        if size > self.current {
            self.too_large = self.too_large.min(size.into());
            self.doubt = self.doubt.filter(|doubt| doubt.size < size);
        }
        smaller
    }

    /// A packet of `size` bytes was acknowledged.
    #[inline]
    pub(crate) const fn on_acked(&mut self, size: u16) {
        if size > MINIMUM_MTU {
            self.large_losses = 0;
        }
    }

    /// A packet that was no probe, of `size` bytes and sent at `sent`, was lost; returns whether it looks as if none of
    /// that size gets through any more. A PING still may, so that timeouts don't tell.
    pub(crate) fn on_lost(&mut self, size: u16, sent: Instant, now: Instant) -> bool {
        if size > MINIMUM_MTU && self.large_loss.is_none_or(|last| sent > last) {
            self.large_losses = self.large_losses.saturating_add(1);
            self.large_loss = Some(now);
        }
        self.large_losses >= LARGE_LOSSES
    }

    /// The path may have changed to one with a smaller MTU: large packets don't get through any more, or nothing does.
    /// Returns whether datagrams must be smaller now; the search begins anew then.
    pub(crate) fn on_black_hole(&mut self) -> bool {
        let smaller = self.current > MINIMUM_MTU;
        if smaller {
            self.current = MINIMUM_MTU;
            self.restart();
        }
        smaller
    }

    fn restart(&mut self) {
        self.large_losses = 0;
        self.too_large = u32::from(self.maximum).saturating_add(1);
        self.in_flight = None;
        self.doubt = None;
        self.raise_at = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{MINIMUM_MTU, Mtu, RAISE_INTERVAL};

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        Instant::now()
    }

    /// Searches a path that carries `real` bytes; returns the probes.
    fn search(mtu: &mut Mtu, real: u16, now: Instant) -> Vec<u16> {
        let mut probes = Vec::new();
        while let Some(size) = mtu.next_probe(now, u16::MAX) {
            mtu.on_probe_sent(size);
            assert_eq!(mtu.next_probe(now, u16::MAX), None, "one at a time");
            probes.push(size);
            if size <= real {
                assert!(mtu.on_probe_acked(size));
            } else {
                mtu.on_probe_lost(size);
            }
            assert!(probes.len() < 100);
        }
        probes
    }

    /// RFC 9000, 14.3: discovery starts at the base of 1200 bytes.
    #[test]
    fn the_maximum_is_tried_first() {
        for maximum in [1452, 1472, 9000, 65_507, u16::MAX] {
            let mut mtu = Mtu::new(maximum);
            assert_eq!(mtu.current(), MINIMUM_MTU);
            assert_eq!(search(&mut mtu, u16::MAX, start()), [maximum]);
            assert_eq!((mtu.current(), mtu.deadline()), (maximum, None));
        }
        assert_eq!(search(&mut Mtu::new(0), u16::MAX, start()), [0; 0]);
    }

    /// RFC 8899, 5.1.2: three losses make a size too large. One has the search go on with smaller ones.
    #[test]
    fn a_size_is_given_up_after_three_losses() {
        let mut mtu = Mtu::new(65_507);
        let probes = search(&mut mtu, 1472, start());
        assert_eq!(probes[..4], [65_507, 1452, 1472, 8952]);
        let [.., a, b, c] = probes[..] else {
            panic!("{probes:?}");
        };
        assert!(a == b && b == c && a > 1472);
        assert_eq!(
            (mtu.current(), mtu.next_probe(start(), u16::MAX)),
            (1472, None)
        );
    }

    /// An odd size is found soon, whatever the maximum.
    #[test]
    fn a_few_probes_come_near() {
        let mut mtu = Mtu::new(65_507);
        let probes = search(&mut mtu, 1300, start());
        assert_eq!(probes, [65_507, 1452, 1326, 1263, 1326, 1326]);
        assert_eq!(mtu.current(), 1263);
    }

    /// What may not leave now is tried later; meanwhile smaller sizes are.
    #[test]
    fn no_probe_is_larger_than_what_may_leave() {
        let (mut mtu, now) = (Mtu::new(65_507), start());
        assert_eq!(mtu.next_probe(now, 1300), Some(1250));
        for size in [1452, 1472] {
            assert_eq!(mtu.next_probe(now, 3000), Some(size));
            mtu.on_probe_sent(size);
            assert!(mtu.on_probe_acked(size));
        }
        assert_eq!((mtu.next_probe(now, 1500), mtu.deadline()), (None, None));
        assert_eq!(mtu.next_probe(now, 65_507), Some(65_507));
        mtu.on_probe_sent(65_507);
        mtu.on_probe_lost(65_507);
        for size in [8952, 8972] {
            assert_eq!(mtu.next_probe(now, 9000), Some(size));
            mtu.on_probe_sent(size);
            assert!(mtu.on_probe_acked(size));
        }
        assert_eq!(mtu.next_probe(now, 9000), None);
    }

    /// A probe that is lost by chance costs a detour, and no bytes in the end.
    #[test]
    fn a_chance_loss_is_made_good() {
        for unlucky in 1..10 {
            let mut mtu = Mtu::new(65_507);
            let mut count = 0;
            while let Some(size) = mtu.next_probe(start(), u16::MAX) {
                count += 1;
                mtu.on_probe_sent(size);
                if count == 1 || count == unlucky {
                    mtu.on_probe_lost(size);
                } else {
                    assert!(mtu.on_probe_acked(size));
                }
            }
            assert_eq!(mtu.current(), 65_507, "{unlucky}");
            assert!(count < 20);
        }
    }

    #[test]
    fn the_search_comes_near_every_size() {
        for maximum in [1452, 65_507] {
            for real in (MINIMUM_MTU..65_000).step_by(97) {
                let mut mtu = Mtu::new(maximum);
                let probes = search(&mut mtu, real, start());
                let real = real.min(maximum);
                assert!(mtu.current() <= real && mtu.current() >= real - real / 16 - 1);
                assert!(probes.len() <= 20, "{} probes for {real}", probes.len());
            }
        }
    }

    #[test]
    fn what_the_system_refuses_is_not_tried_again() {
        let mut mtu = Mtu::new(65_507);
        let now = start();
        assert_eq!(mtu.next_probe(now, u16::MAX), Some(65_507));
        mtu.on_probe_sent(65_507);
        assert!(!mtu.on_refused(65_507));
        assert_eq!(mtu.next_probe(now, u16::MAX), Some(1452));
        mtu.on_probe_sent(1452);
        mtu.on_probe_lost(1452);
        assert!(!mtu.on_refused(1400), "smaller than what is in doubt");
        let probes = search(&mut mtu, u16::MAX, now);
        assert!(probes.iter().all(|size| *size < 1400), "{probes:?}");
        assert!(mtu.current() > 1300);
    }

    /// An interface whose MTU was made smaller.
    #[test]
    fn a_size_in_use_that_is_refused_starts_the_search_over() {
        let (mut mtu, now) = (Mtu::new(1452), start());
        search(&mut mtu, u16::MAX, now);
        assert!(mtu.on_refused(1452));
        assert_eq!(mtu.current(), MINIMUM_MTU);
        let probes = search(&mut mtu, 1392, now);
        assert!(!probes.is_empty() && probes.iter().all(|size| *size < 1452));
        assert!(mtu.current() > 1300);
    }

    /// RFC 8899, 5.1.1: after ten minutes larger sizes are tried again.
    #[test]
    fn larger_sizes_are_tried_again_later() {
        let mut mtu = Mtu::new(1452);
        let now = start();
        search(&mut mtu, 1300, now);
        assert_eq!(mtu.deadline(), Some(now + RAISE_INTERVAL));
        assert_eq!(mtu.next_probe(now + RAISE_INTERVAL / 2, u16::MAX), None);
        assert_eq!(mtu.next_probe(now + RAISE_INTERVAL, u16::MAX), Some(1452));
        assert_eq!(mtu.deadline(), None);
    }

    /// RFC 9000, 18.2: no datagram may be larger than the peer's max_udp_payload_size.
    #[test]
    fn the_peers_limit_holds() {
        let mut mtu = Mtu::new(65_507);
        mtu.limit(1400);
        assert_eq!(search(&mut mtu, u16::MAX, start()), [1400]);
        mtu.limit(0);
        assert_eq!(mtu.current(), MINIMUM_MTU);
        mtu.limit(u64::MAX);
        assert_eq!(mtu.next_probe(start(), u16::MAX), None);
    }

    /// RFC 8899, 4.3: a black hole leads back to the base, and to a new search.
    #[test]
    fn a_black_hole_starts_over() {
        let mut mtu = Mtu::new(1452);
        search(&mut mtu, 1452, start());
        assert!(mtu.on_black_hole());
        assert_eq!(mtu.current(), MINIMUM_MTU);
        assert!(!mtu.on_black_hole());
        assert_eq!(search(&mut mtu, 1452, start()), [1452]);
    }

    #[test]
    fn large_losses_in_flight_after_flight_are_a_black_hole() {
        let mut mtu = Mtu::new(1452);
        search(&mut mtu, 1452, start());
        let at = |flight| start() + RAISE_INTERVAL * flight;
        let lose = |mtu: &mut Mtu, size, flight| mtu.on_lost(size, at(flight), at(flight + 1));
        for flight in 0..10 {
            assert!((0..9).all(|_| !lose(&mut mtu, 1452, flight)), "one flight");
            mtu.on_acked(1201);
        }
        assert!((10..20).all(|flight| !lose(&mut mtu, 1200, flight)));
        assert!(!lose(&mut mtu, 1452, 20));
        mtu.on_acked(1200);
        assert!(!lose(&mut mtu, 1201, 22) && lose(&mut mtu, 1452, 24));
    }

    #[test]
    fn news_of_old_probes_is_harmless() {
        let mut mtu = Mtu::new(1452);
        mtu.on_probe_lost(1452);
        assert!(!mtu.on_probe_acked(1200));
        assert!(!mtu.on_probe_acked(u16::MAX), "never above the maximum");
        assert_eq!(mtu.next_probe(start(), u16::MAX), Some(1452));
    }
}
