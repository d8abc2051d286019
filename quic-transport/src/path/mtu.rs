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
    /// The smallest size that didn't get through; one more than the maximum at first.
    too_large: u32,
    probe: Probe,
    raise_at: Option<Instant>,
    /// Flights with packets larger than the minimum that were lost since one was acknowledged, and when the last one
    /// was found to be.
    large_losses: u8,
    large_loss: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// The size has been lost so often.
    Idle { size: u16, lost: u8 },
    /// One is on its way.
    InFlight { size: u16, lost: u8 },
}

impl Mtu {
    /// Starts at the minimum; sizes up to `maximum` will be tried.
    pub(crate) fn new(maximum: u16) -> Self {
        let maximum = maximum.max(MINIMUM_MTU);
        Self {
            current: MINIMUM_MTU,
            maximum,
            too_large: u32::from(maximum).saturating_add(1),
            probe: Probe::Idle { size: 0, lost: 0 },
            raise_at: None,
            large_losses: 0,
            large_loss: None,
        }
    }

    /// The same knowledge for a path that no probe is on its way on.
    pub(crate) const fn without_probe(mut self) -> Self {
        self.probe = Probe::Idle { size: 0, lost: 0 };
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
        self.current = self.current.min(self.maximum);
    }

    /// The size of the probe that should be sent, if any. The datagram holds that one packet, padded.
    pub(crate) fn next_probe(&mut self, now: Instant) -> Option<u16> {
        if matches!(self.probe, Probe::InFlight { .. }) {
            return None;
        }
        let candidate = self.candidate();
        if candidate.is_none() && self.current < self.maximum {
            match self.raise_at {
                None => self.raise_at = now.checked_add(RAISE_INTERVAL),
                Some(at) if at <= now => {
                    self.restart();
                    return self.candidate();
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

    fn candidate(&self) -> Option<u16> {
        let fits = |size: &u16| *size > self.current && u32::from(*size) < self.too_large;
        let largest = u32::from(self.maximum) < self.too_large;
        if largest {
            return Some(self.maximum).filter(fits);
        }
        if let Some(size) = COMMON.into_iter().find(fits) {
            return Some(size);
        }
        // A sixteenth more isn't worth the probes.
        let gap = self.too_large.saturating_sub(self.current.into());
        let middle = self.current.saturating_add(u16::try_from(gap / 2).ok()?);
        Some(middle).filter(|_| gap > u32::from(self.current) / 16)
    }

    /// The probe of `size` bytes was sent.
    pub(crate) const fn on_probe_sent(&mut self, size: u16) {
        let lost = match self.probe {
            Probe::Idle { size: last, lost } | Probe::InFlight { size: last, lost }
                if last == size =>
            {
                lost
            }
            Probe::Idle { .. } | Probe::InFlight { .. } => 0,
        };
        self.probe = Probe::InFlight { size, lost };
    }

    /// A probe of `size` bytes was acknowledged; returns whether datagrams may be larger now.
    pub(crate) fn on_probe_acked(&mut self, size: u16) -> bool {
        self.probe = Probe::Idle { size: 0, lost: 0 };
        let larger = size > self.current && size <= self.maximum;
        if larger {
            self.current = size;
            // It got through, whatever was thought of it.
            self.too_large = self.too_large.max(u32::from(size).saturating_add(1));
        }
        larger
    }

    /// A probe of `size` bytes was lost.
    pub(crate) fn on_probe_lost(&mut self, size: u16) {
        let Probe::InFlight { size: probed, lost } = self.probe else {
            return;
        };
        if probed != size {
            return;
        }
        let lost = lost.saturating_add(1);
        self.probe = Probe::Idle { size, lost };
        if lost >= TRIES {
            self.on_probe_refused(size);
        }
    }

    /// Our own system would not send `size` bytes.
    pub(crate) fn on_probe_refused(&mut self, size: u16) {
        self.probe = Probe::Idle { size: 0, lost: 0 };
        if size > self.current {
            self.too_large = self.too_large.min(size.into());
        }
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
        self.probe = Probe::Idle { size: 0, lost: 0 };
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
        while let Some(size) = mtu.next_probe(now) {
            mtu.on_probe_sent(size);
            assert_eq!(mtu.next_probe(now), None, "one at a time");
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

    /// RFC 8899, 5.1.2: three losses make a size too large.
    #[test]
    fn a_size_is_given_up_after_three_losses() {
        let mut mtu = Mtu::new(65_507);
        let probes = search(&mut mtu, 1472, start());
        assert_eq!(probes[..6], [65_507, 65_507, 65_507, 1452, 1472, 8952]);
        assert_eq!(mtu.current(), 1472);
    }

    #[test]
    fn the_search_comes_near_every_size() {
        for maximum in [1452, 65_507] {
            for real in (MINIMUM_MTU..65_000).step_by(97) {
                let mut mtu = Mtu::new(maximum);
                let probes = search(&mut mtu, real, start());
                let real = real.min(maximum);
                assert!(mtu.current() <= real && mtu.current() >= real - real / 16 - 1);
                assert!(probes.len() <= 50, "{} probes for {real}", probes.len());
            }
        }
    }

    #[test]
    fn what_the_system_refuses_is_not_tried_again() {
        let mut mtu = Mtu::new(65_507);
        let now = start();
        assert_eq!(mtu.next_probe(now), Some(65_507));
        mtu.on_probe_sent(65_507);
        mtu.on_probe_refused(65_507);
        assert_eq!(mtu.next_probe(now), Some(1452));
    }

    /// RFC 8899, 5.1.1: after ten minutes larger sizes are tried again.
    #[test]
    fn larger_sizes_are_tried_again_later() {
        let mut mtu = Mtu::new(1452);
        let now = start();
        search(&mut mtu, 1300, now);
        assert_eq!(mtu.deadline(), Some(now + RAISE_INTERVAL));
        assert_eq!(mtu.next_probe(now + RAISE_INTERVAL / 2), None);
        assert_eq!(mtu.next_probe(now + RAISE_INTERVAL), Some(1452));
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
        assert_eq!(mtu.next_probe(start()), None);
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
        assert_eq!(mtu.next_probe(start()), Some(1452));
    }
}
