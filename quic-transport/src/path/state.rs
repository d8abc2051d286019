//! One path, as a connection keeps it: a group of components, and what follows from all of them together.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use quic_common::BatchHead;

use super::{Amplification, EcnValidation, Mtu, Probing};
use crate::congestion::{CongestionControl, Controller, Pace, Pacer};
use crate::rtt::{INITIAL_RTT, Rtt};
use crate::transmit::PathId;

/// The largest UDP payload that is sent over IPv6, as one datagram or as a batch that the system cuts into several.
pub(crate) const MAXIMUM_MTU_V6: u16 = 65_487;

/// What a path starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathSettings {
    /// Which congestion control.
    pub(crate) congestion_control: CongestionControl,
    /// Whether packets are spread over the round trip.
    pub(crate) is_paced: bool,
    /// Whether ECN is tried.
    pub(crate) is_ecn_tried: bool,
    /// The largest UDP payload that is tried.
    pub(crate) maximum_mtu: u16,
    /// What is assumed of the RTT before the first sample.
    pub(crate) initial_rtt: Duration,
}

impl Default for PathSettings {
    fn default() -> Self {
        Self {
            congestion_control: CongestionControl::default(),
            is_paced: true,
            is_ecn_tried: true,
            maximum_mtu: 1452,
            initial_rtt: INITIAL_RTT,
        }
    }
}

/// A path.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// What packets sent on it are known by.
    pub(crate) id: PathId,
    /// The peer's address.
    pub(crate) remote: SocketAddr,
    /// Ours, where the peer's datagrams arrive, when it is known.
    pub(crate) local: Option<SocketAddr>,
    /// Ours, to be sent from, when it matters.
    pub(crate) source: Option<SocketAddr>,
    /// Whether the peer has been reached on it.
    pub(crate) is_validated: bool,
    /// The round-trip time.
    pub(crate) rtt: Rtt,
    /// The congestion window and what is in flight.
    pub(crate) controller: Controller,
    /// When the next packets may leave.
    pub(crate) pacer: Pacer,
    /// The largest datagram.
    pub(crate) mtu: Mtu,
    /// Whether marks arrive.
    pub(crate) ecn: EcnValidation,
    /// The limit for an address that may be anybody's.
    pub(crate) amplification: Amplification,
    /// Challenges and their answers.
    pub(crate) probing: Probing,
}

impl Path {
    /// A path about which nothing is known.
    pub(crate) fn new(
        id: PathId,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        settings: &PathSettings,
    ) -> Self {
        let most = if remote.is_ipv6() {
            MAXIMUM_MTU_V6
        } else {
            u16::MAX
        };
        let mtu = Mtu::new(settings.maximum_mtu.min(most));
        Self {
            id,
            remote,
            local,
            source: local,
            is_validated: false,
            rtt: Rtt::new(settings.initial_rtt),
            controller: Controller::new(settings.congestion_control, mtu.current()),
            pacer: Pacer::new(settings.is_paced),
            mtu,
            ecn: EcnValidation::new(settings.is_ecn_tried),
            amplification: Amplification::new(),
            probing: Probing::new(),
        }
    }

    /// A path to another address of the peer, or from another of ours.
    ///
    /// Its capacity has to be found anew, unless the peer's port is all that differs: then a NAT has most likely forgotten
    /// the old one, and the network is the same ([RFC 9000, section
    /// 9.4](https://www.rfc-editor.org/rfc/rfc9000#section-9.4)). What is in flight belongs to the old path.
    pub(crate) fn branch(
        &self,
        id: PathId,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        settings: &PathSettings,
    ) -> Self {
        let new = Self::new(id, remote, local, settings);
        if remote.ip() != self.remote.ip() || local != self.local {
            return new;
        }
        Self {
            rtt: self.rtt,
            controller: self.controller.without_flight(),
            pacer: self.pacer,
            mtu: self.mtu.without_probe(),
            ecn: self.ecn,
            ..new
        }
    }

    /// Whether these may be its addresses, as far as they are known: whoever doesn't say where to send from receives
    /// anywhere, and an unspecified IP address stands for all of ours.
    pub(crate) fn may_have_addresses(&self, remote: SocketAddr, local: Option<SocketAddr>) -> bool {
        let fits = match (self.source, local) {
            (Some(own), Some(local)) => is_same(own, local),
            (None, _) | (_, None) => true,
        };
        self.remote == remote && fits
    }

    /// Whether these are its addresses, for all that is known: of one that doesn't say where to send from, it may be known
    /// where the peer's datagrams arrive.
    pub(crate) fn has_addresses(&self, remote: SocketAddr, local: SocketAddr) -> bool {
        let own = self.source.or(self.local);
        self.remote == remote && own.is_some_and(|own| is_same(own, local))
    }

    /// The peer has been reached on it, and may be sent as much as the network carries.
    pub(crate) const fn validate(&mut self) {
        self.is_validated = true;
        self.amplification.validate();
    }

    /// The head of a batch that goes this way.
    pub(crate) const fn head(&self, length: usize, segment: usize) -> BatchHead {
        BatchHead {
            remote: self.remote,
            local: self.source,
            ecn: self.ecn.mark(),
            length,
            segment,
        }
    }

    /// Bytes of packets in flight that may leave now, as window and pacer permit; asked once for a batch.
    ///
    /// The [amplification limit](Amplification::allowance) is apart: it holds for every datagram.
    pub(crate) fn budget(&mut self, now: Instant) -> u64 {
        let available = self.controller.available();
        if available < u64::from(self.mtu.current()) {
            self.pacer.on_window_full();
            return available;
        }
        let pace = Pace {
            window: self.controller.window(),
            rtt: self.rtt.smoothed(),
            is_slow_start: self.controller.is_slow_start(),
            datagram: self.mtu.current(),
        };
        available.min(self.pacer.budget(now, &pace))
    }

    /// A probe of the MTU was acknowledged; datagrams may be larger from now on.
    pub(crate) fn on_mtu_probe_acked(&mut self, size: u16) {
        if self.mtu.on_probe_acked(size) {
            self.controller.set_datagram_size(self.mtu.current());
        }
    }

    /// Our own system doesn't send datagrams of `size` bytes, which is more than the minimum.
    pub(crate) fn on_refused(&mut self, size: u16) {
        if self.mtu.on_refused(size) {
            self.controller.set_datagram_size(self.mtu.current());
        }
    }

    /// A packet that was no probe of the MTU, of `size` bytes and sent at `sent`, was lost.
    pub(crate) fn on_lost(&mut self, size: u16, sent: Instant, now: Instant) {
        if self.mtu.on_lost(size, sent, now) {
            self.on_black_hole();
        }
    }

    /// Nothing large gets through any more: datagrams are made small again, in case the path has changed.
    pub(crate) fn on_black_hole(&mut self) {
        if self.mtu.on_black_hole() {
            self.controller.set_datagram_size(self.mtu.current());
        }
    }

    /// Whether not even the smallest full datagram may be sent for fear of amplification (RFC 9002, 6.2.2.1).
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        self.amplification.allowance() < super::MINIMUM_MTU.into()
    }
}

/// Whether both may be one socket's, where an unspecified IP address stands for all of ours.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    let is_open = one.ip().is_unspecified() || other.ip().is_unspecified();
    one == other || (is_open && one.port() == other.port())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{MAXIMUM_MTU_V6, Path, PathId, PathSettings};

    fn path(settings: &PathSettings) -> (Path, Instant) {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        let now = Instant::now();
        let remote = ([192, 0, 2, 1], 443).into();
        (Path::new(PathId(0), remote, None, settings), now)
    }

    #[test]
    fn window_and_pacer_limit_what_leaves() {
        let (mut path, now) = path(&PathSettings::default());
        assert_eq!(path.budget(now), 12_000, "an initial window leaves at once");
        for _ in 0..10 {
            path.controller.on_sent(1200);
            path.pacer.on_sent(1200);
        }
        assert_eq!(path.budget(now), 0);
        assert_eq!(
            path.pacer.deadline(),
            None,
            "an acknowledgment is awaited, not a time"
        );

        let rtt = Duration::from_millis(100);
        let later = now + rtt;
        path.rtt
            .update(later, rtt, Duration::ZERO, true, Duration::ZERO);
        for _ in 0..10 {
            path.controller.on_acked(1200, now);
        }
        path.controller.settle(later, path.rtt.smoothed());
        assert_eq!(path.controller.window(), 24_000);
        assert_eq!(path.budget(later), 12_000);
        path.controller.on_sent(12_000);
        path.pacer.on_sent(12_000);
        assert_eq!(path.budget(later), 0);
        assert!(path.pacer.deadline().is_some_and(|at| at > later));
        path.controller.on_sent(12_000);
        assert_eq!(path.budget(later), 0);
        assert_eq!(path.pacer.deadline(), None, "the window is full again");
    }

    #[test]
    fn a_larger_mtu_enlarges_the_initial_window() {
        let settings = PathSettings {
            maximum_mtu: 65_507,
            ..PathSettings::default()
        };
        let (mut path, now) = path(&settings);
        assert_eq!(path.mtu.next_probe(now, u16::MAX), Some(65_507));
        path.mtu.on_probe_sent(65_507);
        path.on_mtu_probe_acked(65_507);
        assert_eq!(
            (path.mtu.current(), path.controller.window()),
            (65_507, 131_014)
        );
        path.on_black_hole();
        assert_eq!(path.mtu.current(), 1200);
    }

    #[test]
    fn nothing_larger_than_a_batch_is_tried_over_ipv6() {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        let now = Instant::now();
        let settings = PathSettings {
            maximum_mtu: 65_507,
            ..PathSettings::default()
        };
        let remote = std::net::SocketAddr::from(([0; 16], 443));
        let mut path = Path::new(PathId(0), remote, None, &settings);
        assert_eq!(path.mtu.next_probe(now, u16::MAX), Some(MAXIMUM_MTU_V6));
    }

    /// RFC 9000, 8.1: a server that has received nothing is blocked; a full datagram lets it send three.
    #[test]
    fn amplification_blocks() {
        let (mut path, _) = path(&PathSettings::default());
        assert!(path.is_blocked());
        path.amplification.on_received(1200);
        path.amplification.on_sent(2400);
        assert!(!path.is_blocked());
        path.amplification.on_sent(1);
        assert!(path.is_blocked());
        path.amplification.validate();
        assert!(!path.is_blocked());
    }

    /// RFC 9000, 9.4: another port of the peer is most likely the same network; anything else may be another.
    #[test]
    fn a_branch_inherits_what_only_a_port_changes() {
        let settings = PathSettings::default();
        let (mut path, now) = path(&settings);
        path.local = Some(([192, 0, 2, 7], 5).into());
        path.controller.on_sent(1200);
        path.mtu.on_probe_sent(1452);
        let rtt = Duration::from_millis(20);
        path.rtt
            .update(now, rtt, Duration::ZERO, true, Duration::ZERO);
        let branch = |remote: ([u8; 4], u16), local: ([u8; 4], u16)| {
            path.branch(PathId(1), remote.into(), Some(local.into()), &settings)
        };
        let ours = ([192, 0, 2, 7], 5);
        let same = branch(([192, 0, 2, 1], 444), ours);
        assert_eq!((same.rtt.smoothed(), same.controller.in_flight()), (rtt, 0));
        assert_eq!(
            { same.mtu }.next_probe(now, u16::MAX),
            Some(1452),
            "the old probe is the old path's"
        );
        assert!(!same.is_validated && same.is_blocked());
        for other in [
            branch(([192, 0, 2, 2], 443), ours),
            branch(([192, 0, 2, 1], 443), ([192, 0, 2, 7], 6)),
            branch(([192, 0, 2, 1], 443), ([192, 0, 2, 8], 5)),
        ] {
            assert_eq!(other.rtt.smoothed(), settings.initial_rtt);
        }
    }

    #[test]
    fn addresses_fit_as_far_as_they_are_known() {
        let (mut path, _) = path(&PathSettings::default());
        let (remote, elsewhere) = (path.remote, ([192, 0, 2, 9], 443).into());
        let at = |ip, port| Some(std::net::SocketAddr::from((ip, port)));
        assert!(path.may_have_addresses(remote, at([192, 0, 2, 7], 5)));
        assert!(!path.may_have_addresses(elsewhere, None));
        path.source = at([0, 0, 0, 0], 5);
        assert!(path.may_have_addresses(remote, at([192, 0, 2, 7], 5)));
        assert!(!path.may_have_addresses(remote, at([192, 0, 2, 7], 6)));
        path.source = at([192, 0, 2, 7], 5);
        assert!(
            path.may_have_addresses(remote, None) && path.may_have_addresses(remote, path.source)
        );
        assert!(!path.may_have_addresses(remote, at([192, 0, 2, 8], 5)));
    }

    #[test]
    fn where_datagrams_arrive_tells_what_is_sent_from_anywhere() {
        let (mut path, _) = path(&PathSettings::default());
        let remote = path.remote;
        let at = |ip: [u8; 4], port: u16| std::net::SocketAddr::from((ip, port));
        let home = at([192, 0, 2, 7], 5);
        assert!(!path.has_addresses(remote, home), "nothing is known yet");
        path.local = Some(home);
        assert!(path.has_addresses(remote, home));
        assert!(path.has_addresses(remote, at([0; 4], 5)));
        assert!(!path.has_addresses(remote, at([192, 0, 2, 8], 5)));
        assert!(!path.has_addresses(at([192, 0, 2, 9], 443), home));
        path.source = Some(at([0; 4], 6));
        assert!(path.has_addresses(remote, at([192, 0, 2, 8], 6)));
        assert!(!path.has_addresses(remote, home));
    }
}
