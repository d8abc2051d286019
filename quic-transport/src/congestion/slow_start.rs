//! HyStart++, [RFC 9406](https://www.rfc-editor.org/rfc/rfc9406): slow start is left before it overruns the path,
//! when the round-trip time begins to rise.
//!
//! A rise first leads to a conservative phase of a few rounds; if the time falls again, the rise was chance and slow
//! start resumes.

use std::time::Duration;

const LEAST_RISE: Duration = Duration::from_millis(4);
const GREATEST_RISE: Duration = Duration::from_millis(16);
const RISE_DIVISOR: u32 = 8;
const SAMPLES: u32 = 8;
const CONSERVATIVE_DIVISOR: u64 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;

/// The first slow start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlowStart {
    phase: Phase,
    /// The smallest RTT of the last round.
    last: Option<Duration>,
    /// The smallest RTT of this round.
    current: Option<Duration>,
    samples: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Standard,
    /// Growing slowly, because the RTT rose to `baseline`.
    Conservative {
        baseline: Duration,
        rounds: u32,
    },
}

impl SlowStart {
    /// Begins.
    pub(super) const fn new() -> Self {
        Self {
            phase: Phase::Standard,
            last: None,
            current: None,
            samples: 0,
        }
    }

    /// An RTT was measured.
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        self.current = Some(current);
        self.samples = self.samples.saturating_add(1);
        if self.samples < SAMPLES {
            return;
        }
        match self.phase {
            Phase::Standard => {
                let Some(last) = self.last else { return };
                let rise = (last / RISE_DIVISOR).clamp(LEAST_RISE, GREATEST_RISE);
                if current >= last.saturating_add(rise) {
                    self.phase = Phase::Conservative {
                        baseline: current,
                        rounds: 0,
                    };
                }
            }
            Phase::Conservative { baseline, .. } => {
                if current < baseline {
                    self.phase = Phase::Standard;
                }
            }
        }
    }

    /// A round trip has passed; returns whether slow start is over.
    pub(super) const fn on_round(&mut self) -> bool {
        self.last = self.current.take();
        self.samples = 0;
        match &mut self.phase {
            Phase::Standard => false,
            Phase::Conservative { rounds, .. } => {
                *rounds = rounds.saturating_add(1);
                *rounds >= CONSERVATIVE_ROUNDS
            }
        }
    }

    /// By how much the window grows for `acked` bytes.
    pub(super) const fn growth(&self, acked: u64) -> u64 {
        match self.phase {
            Phase::Standard => acked,
            Phase::Conservative { .. } => acked / CONSERVATIVE_DIVISOR,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{SAMPLES, SlowStart};

    const MS: Duration = Duration::from_millis(1);

    fn round(slow_start: &mut SlowStart, rtt: Duration, samples: u32) -> bool {
        for _ in 0..samples {
            slow_start.on_sample(rtt);
        }
        slow_start.on_round()
    }

    /// RFC 9406, 4.2: a rise of an eighth, but 4 to 16 ms, in at least eight samples.
    #[test]
    fn a_rise_slows_growth_down() {
        for (before, after, slower) in [
            (80, 89, false),
            (80, 90, true),
            (8, 11, false),
            (8, 12, true),
            (400, 416, true),
        ] {
            let mut slow_start = SlowStart::new();
            round(&mut slow_start, MS * before, SAMPLES);
            round(&mut slow_start, MS * after, SAMPLES);
            assert_eq!(
                slow_start.growth(1000) == 250,
                slower,
                "{before} to {after} ms"
            );
        }
        let mut slow_start = SlowStart::new();
        round(&mut slow_start, MS * 80, SAMPLES);
        round(&mut slow_start, MS * 200, SAMPLES - 1);
        assert_eq!(slow_start.growth(1000), 1000, "too few samples");
    }

    /// RFC 9406, 4.2: after five conservative rounds slow start ends.
    #[test]
    fn it_ends_after_five_conservative_rounds() {
        let mut slow_start = SlowStart::new();
        round(&mut slow_start, MS * 80, SAMPLES);
        let ends: Vec<_> = (0..5)
            .map(|_| round(&mut slow_start, MS * 95, SAMPLES))
            .collect();
        assert_eq!(ends, [false, false, false, false, true]);
    }

    /// RFC 9406, 4.2: when the RTT falls below where it had risen to, slow start resumes.
    #[test]
    fn a_fall_resumes_it() {
        let mut slow_start = SlowStart::new();
        round(&mut slow_start, MS * 80, SAMPLES);
        round(&mut slow_start, MS * 95, SAMPLES);
        assert_eq!(slow_start.growth(1000), 250);
        round(&mut slow_start, MS * 94, SAMPLES);
        assert_eq!(slow_start.growth(1000), 1000);
    }
}
