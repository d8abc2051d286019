//! The congestion state of a path: what is in flight, the window, and the recovery period
//! ([RFC 9002, section 7.3](https://www.rfc-editor.org/rfc/rfc9002#section-7.3)).
//!
//! For a packet only sums are kept; the window moves once for all that a wake-up has acknowledged, in [`Controller::settle`].

use std::time::{Duration, Instant};

use super::algorithm::Algorithm as _;
use super::cubic::Cubic;
use super::new_reno::NewReno;
use super::slow_start::SlowStart;
use super::window::Window;
use crate::recovery::Spurious;

/// Which algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CongestionControl {
    /// CUBIC, RFC 9438.
    #[default]
    Cubic,
    /// NewReno, RFC 9002.
    NewReno,
}

impl CongestionControl {
    /// The name, as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "CUBIC",
            Self::NewReno => "NewReno",
        }
    }
}

/// Signs of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Congestion {
    /// Packets were lost.
    Loss {
        /// How many.
        count: u32,
        /// Whether over so long a time that the path may have changed (RFC 9002, 7.6).
        is_persistent: bool,
    },
    /// The peer has received packets with a CE mark.
    Ecn,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Avoidance {
    Cubic(Cubic),
    NewReno(NewReno),
}

/// What a congestion event changed, in case it turns out to have been none.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Undo {
    window: Window,
    avoidance: Avoidance,
    /// Packets declared lost in the event whose acknowledgment hasn't come.
    missing: u32,
}

/// The congestion controller of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Controller {
    in_flight: u64,
    window: Window,
    avoidance: Avoidance,
    slow_start: SlowStart,
    /// When the last congestion event was; packets sent up to then neither grow nor shrink the window.
    recovery_start: Option<Instant>,
    undo: Option<Undo>,
    /// Bytes acknowledged since the last settling, of packets sent after the last congestion.
    acked: u64,
    /// When the newest packet acknowledged was sent.
    newest_acked: Option<Instant>,
    round: Round,
}

/// The most that was in flight in this round trip and the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Round {
    start: Option<Instant>,
    peak: u64,
    previous_peak: u64,
}

impl Controller {
    /// The controller of a new path with datagrams of `datagram` bytes.
    pub(crate) fn new(control: CongestionControl, datagram: u16) -> Self {
        Self {
            in_flight: 0,
            window: Window::new(datagram.into()),
            avoidance: match control {
                CongestionControl::Cubic => Avoidance::Cubic(Cubic::default()),
                CongestionControl::NewReno => Avoidance::NewReno(NewReno::default()),
            },
            slow_start: SlowStart::new(),
            recovery_start: None,
            undo: None,
            acked: 0,
            newest_acked: None,
            round: Round::default(),
        }
    }

    /// The same window where nothing is in flight.
    pub(crate) fn without_flight(&self) -> Self {
        Self {
            in_flight: 0,
            undo: None,
            acked: 0,
            newest_acked: None,
            round: Round::default(),
            ..self.clone()
        }
    }

    /// Packets of `bytes` in all were sent that count as in flight.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        if self.in_flight == 0 {
            self.round.peak = 0;
            self.round.previous_peak = 0;
        }
        self.in_flight = self.in_flight.saturating_add(bytes);
        self.round.peak = self.round.peak.max(self.in_flight);
    }

    /// Packets in flight, sent at `sent`, were acknowledged, `bytes` in all.
    #[inline]
    pub(crate) fn on_acked(&mut self, bytes: u64, sent: Instant) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.newest_acked = self.newest_acked.max(Some(sent));
        // No growth for what was sent before or in the moment of congestion (RFC 9002, 7.3.2).
        if self.recovery_start < Some(sent) {
            self.acked = self.acked.saturating_add(bytes);
        }
    }

    /// A packet in flight was declared lost.
    #[inline]
    pub(crate) fn on_lost(&mut self, size: u16) {
        self.in_flight = self.in_flight.saturating_sub(size.into());
    }

    /// `bytes` can no longer be acknowledged, their keys being gone (RFC 9002, 6.4).
    pub(crate) const fn on_discarded(&mut self, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// An RTT was measured.
    pub(crate) fn on_rtt_sample(&mut self, latest: Duration) {
        if self.window.is_first_slow_start() {
            self.slow_start.on_sample(latest);
        }
    }

    /// Packets show congestion, of which the newest was sent at `newest`. Told before the wake-up is settled.
    pub(crate) fn on_congestion(&mut self, newest: Instant, now: Instant, congestion: Congestion) {
        let lost = match congestion {
            Congestion::Loss { count, .. } => count,
            Congestion::Ecn => 0,
        };
        if self.recovery_start.is_some_and(|start| newest <= start) {
            if let Some(undo) = &mut self.undo {
                undo.missing = undo.missing.saturating_add(lost);
            }
        } else {
            // A mark is never a mistake, so only losses can be undone.
            self.undo = (lost > 0).then_some(Undo {
                window: self.window,
                avoidance: self.avoidance,
                missing: lost,
            });
            self.recovery_start = Some(now);
            self.acked = 0;
            match &mut self.avoidance {
                Avoidance::Cubic(cubic) => cubic.on_congestion(&mut self.window),
                Avoidance::NewReno(reno) => reno.on_congestion(&mut self.window),
            }
        }
        match congestion {
            Congestion::Loss {
                is_persistent: true,
                ..
            } => self.on_persistent_congestion(),
            Congestion::Loss { .. } => {}
            Congestion::Ecn => self.undo = None,
        }
    }

    /// RFC 9002, 7.6.2: the window falls to its minimum, and slow start begins again.
    fn on_persistent_congestion(&mut self) {
        self.window.bytes = self.window.minimum();
        self.recovery_start = None;
        self.undo = None;
        match &mut self.avoidance {
            Avoidance::Cubic(cubic) => cubic.on_persistent_congestion(),
            Avoidance::NewReno(reno) => reno.on_persistent_congestion(),
        }
    }

    /// Packets that were declared lost have been acknowledged. When that is true of all in the last event, it was
    /// none, and the window is restored (RFC 9438, 4.9.2).
    pub(crate) fn on_spurious(&mut self, spurious: Spurious) {
        let Some(undo) = &mut self.undo else { return };
        if self.recovery_start < Some(spurious.newest) {
            return;
        }
        undo.missing = undo.missing.saturating_sub(spurious.count);
        if undo.missing > 0 {
            return;
        }
        if self.window.bytes < undo.window.bytes {
            let datagram = self.window.datagram;
            self.window = undo.window;
            self.window.resize(datagram);
            self.avoidance = undo.avoidance;
            self.recovery_start = None;
        }
        self.undo = None;
    }

    /// Moves the window for all that has been acknowledged since the last call.
    pub(crate) fn settle(&mut self, now: Instant, smoothed_rtt: Duration) {
        let Some(newest) = self.newest_acked.take() else {
            return;
        };
        if self.round.start.is_none_or(|start| newest >= start) {
            self.start_round(now);
        }
        let acked = std::mem::take(&mut self.acked);
        if acked == 0 {
            return;
        }
        if self.is_underused() {
            match &mut self.avoidance {
                Avoidance::Cubic(cubic) => cubic.on_underused(now),
                Avoidance::NewReno(reno) => reno.on_underused(now),
            }
        } else if self.window.is_first_slow_start() {
            self.window.grow(self.slow_start.growth(acked));
        } else if self.window.is_slow_start() {
            self.window.grow(acked);
        } else {
            let window = &mut self.window;
            match &mut self.avoidance {
                Avoidance::Cubic(cubic) => cubic.on_acked(window, acked, now, smoothed_rtt),
                Avoidance::NewReno(reno) => reno.on_acked(window, acked, now, smoothed_rtt),
            }
        }
    }

    const fn start_round(&mut self, now: Instant) {
        self.round = Round {
            start: Some(now),
            peak: self.in_flight,
            previous_peak: self.round.peak,
        };
        if self.window.is_first_slow_start() && self.slow_start.on_round() {
            self.window.threshold = self.window.bytes;
        }
    }

    /// Whether the window was larger than what was to be sent, so that it mustn't grow (RFC 9002, 7.8).
    ///
    /// In slow start the pacer keeps what is in flight behind the window, by up to a half.
    fn is_underused(&self) -> bool {
        let peak = self.round.peak.max(self.round.previous_peak);
        let used = if self.window.is_slow_start() {
            peak.saturating_mul(2)
        } else {
            peak.saturating_add(self.window.minimum())
        };
        used < self.window.bytes
    }

    /// A full datagram has `datagram` bytes from now on.
    pub(crate) fn set_datagram_size(&mut self, datagram: u16) {
        self.window.resize(datagram.into());
    }

    /// The congestion window.
    #[inline]
    pub(crate) const fn window(&self) -> u64 {
        self.window.bytes
    }

    /// Bytes in flight, in all packet number spaces.
    #[inline]
    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Bytes that may be sent now.
    #[inline]
    pub(crate) const fn available(&self) -> u64 {
        self.window.bytes.saturating_sub(self.in_flight)
    }

    /// Where slow start ends, once that is known.
    pub(crate) fn threshold(&self) -> Option<u64> {
        (!self.window.is_first_slow_start()).then_some(self.window.threshold)
    }

    /// Whether the window grows by all that is acknowledged.
    #[inline]
    pub(crate) const fn is_slow_start(&self) -> bool {
        self.window.is_slow_start()
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
