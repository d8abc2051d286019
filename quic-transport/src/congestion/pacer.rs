//! Spreads a window over its round trip, [RFC 9002, section 7.7](https://www.rfc-editor.org/rfc/rfc9002#section-7.7).
//!
//! A bucket of bytes fills at a little more than a window per round trip. Once it is empty, nothing leaves until it
//! holds a burst that is worth a wake-up: a millisecond's bytes, and a full batch where that takes only a few.
//! Where a burst is as large as the window, as on short paths, there is nothing to spread.

use std::time::{Duration, Instant};

use crate::rtt::GRANULARITY;

/// Bytes of a full batch.
const BATCH: u64 = 65_536;

/// Longer than this no batch is waited for.
const BATCH_TIME: Duration = Duration::from_millis(4);

/// The bucket holds what a timer that is late by a millisecond would miss.
const BURST_TIME: Duration = Duration::from_millis(2);

/// Datagrams that may always leave at once, like an initial window (RFC 9002, 7.7).
const BURST_DATAGRAMS: u64 = 10;

/// The bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pacer {
    is_enabled: bool,
    tokens: u64,
    filled: Option<Instant>,
    /// When the bucket will hold the burst that is waited for.
    waiting_for: Option<Instant>,
    /// Bytes of a full datagram.
    datagram: u64,
    /// Whether the bucket ran empty and doesn't hold a burst yet.
    is_spent: bool,
}

/// What the rate is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The congestion window.
    pub(crate) window: u64,
    /// The smoothed RTT.
    pub(crate) rtt: Duration,
    /// Whether the window grows by all that is acknowledged, so that it must leave twice as fast.
    pub(crate) is_slow_start: bool,
    /// Bytes of a full datagram.
    pub(crate) datagram: u16,
}

impl Pace {
    /// Bytes that leave in `time`.
    fn bytes_in(&self, time: Duration) -> u64 {
        let (numerator, denominator) = if self.is_slow_start { (2, 1) } else { (5, 4) };
        let bytes = u128::from(self.window) * numerator * nanos(time);
        u64::try_from(bytes / (denominator * nanos(self.rtt)).max(1)).unwrap_or(u64::MAX)
    }

    /// How long `bytes` take to leave, rounded up: a wait must not end before its bytes are there.
    fn time_of(&self, bytes: u64) -> Duration {
        let (numerator, denominator) = if self.is_slow_start { (2, 1) } else { (5, 4) };
        let time = u128::from(bytes) * denominator * nanos(self.rtt);
        let time = time.div_ceil((numerator * u128::from(self.window)).max(1));
        Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// Whether a full batch takes only a few milliseconds.
    fn is_fast(&self) -> bool {
        self.bytes_in(BATCH_TIME) >= BATCH
    }

    /// What the bucket holds.
    fn capacity(&self) -> u64 {
        let batch = if self.is_fast() { BATCH } else { 0 };
        self.bytes_in(BURST_TIME)
            .max(batch)
            .max(u64::from(self.datagram).saturating_mul(BURST_DATAGRAMS))
    }

    /// What is worth a wake-up.
    fn burst(&self) -> u64 {
        let batch = if self.is_fast() { BATCH } else { 0 };
        self.bytes_in(GRANULARITY)
            .max(batch)
            .max(self.datagram.into())
    }
}

impl Pacer {
    /// A full bucket, or one without a bottom.
    pub(crate) const fn new(is_enabled: bool) -> Self {
        Self {
            is_enabled,
            tokens: 0,
            filled: None,
            waiting_for: None,
            datagram: 0,
            is_spent: false,
        }
    }

    /// Bytes that may leave now; the largest value when there is no limit but the window. Asked once for a batch.
    pub(crate) fn budget(&mut self, now: Instant, pace: &Pace) -> u64 {
        let capacity = pace.capacity();
        self.datagram = pace.datagram.into();
        if !self.is_enabled || capacity >= pace.window {
            self.waiting_for = None;
            self.is_spent = false;
            self.tokens = capacity;
            self.filled = Some(now);
            return u64::MAX;
        }
        self.fill(now, pace, capacity);
        if self.tokens < self.datagram {
            self.is_spent = true;
        }
        if self.is_spent {
            let missing = pace.burst().min(capacity).saturating_sub(self.tokens);
            if missing > 0 {
                self.waiting_for = now.checked_add(pace.time_of(missing));
                return 0;
            }
            self.is_spent = false;
        }
        self.waiting_for = None;
        self.tokens
    }

    fn fill(&mut self, now: Instant, pace: &Pace, capacity: u64) {
        let Some(filled) = self.filled else {
            self.tokens = capacity;
            self.filled = Some(now);
            return;
        };
        // A bucket that was idle for longer is full.
        let elapsed = now
            .saturating_duration_since(filled)
            .min(Duration::from_secs(1));
        let bytes = pace.bytes_in(elapsed);
        if bytes > 0 {
            self.tokens = self.tokens.saturating_add(bytes).min(capacity);
            self.filled = Some(now);
        }
    }

    /// `bytes` have left that count as in flight.
    #[inline]
    pub(crate) const fn on_sent(&mut self, bytes: u64) {
        self.tokens = self.tokens.saturating_sub(bytes);
        self.is_spent |= self.tokens < self.datagram;
    }

    /// The window permits nothing: an acknowledgement is waited for, not a time.
    #[inline]
    pub(crate) const fn on_window_full(&mut self) {
        self.waiting_for = None;
    }

    /// When there will be a budget again, if there was none.
    #[inline]
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.waiting_for
    }
}

/// Nanoseconds; no time that matters here has more than 2^64.
const fn nanos(time: Duration) -> u128 {
    time.as_nanos()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{BATCH, Pace, Pacer};

    const MS: Duration = Duration::from_millis(1);

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant serves")]
        Instant::now()
    }

    fn pace(window: u64, rtt: Duration) -> Pace {
        Pace {
            window,
            rtt,
            is_slow_start: false,
            datagram: 1200,
        }
    }

    /// Sends what the pacer permits for `time`, waking up when it says; returns the bytes and the wake-ups.
    fn run(
        pacer: &mut Pacer,
        pace: &Pace,
        now: Instant,
        time: Duration,
        late: Duration,
    ) -> (u64, u32) {
        let (mut at, mut bytes, mut wakes) = (now, 0, 0);
        while at < now + time {
            let budget = pacer.budget(at, pace);
            assert!(budget < u64::MAX);
            let sent = budget / 1200 * 1200;
            pacer.on_sent(sent);
            bytes += sent;
            if sent == 0 {
                at = pacer.deadline().unwrap() + late;
                wakes += 1;
            }
        }
        (bytes, wakes)
    }

    /// RFC 9002, 7.7: N * congestion_window / smoothed_rtt, with N of 1.25, and 2 in slow start.
    #[test]
    fn the_rate_is_a_window_and_a_quarter_per_rtt() {
        let mut pace = pace(1_000_000, MS * 100);
        let (bytes, _) = run(
            &mut Pacer::new(true),
            &pace,
            start(),
            MS * 1000,
            Duration::ZERO,
        );
        assert!((12_400_000..12_600_000).contains(&bytes), "{bytes}");
        pace.is_slow_start = true;
        let (bytes, _) = run(
            &mut Pacer::new(true),
            &pace,
            start(),
            MS * 1000,
            Duration::ZERO,
        );
        assert!((19_800_000..20_200_000).contains(&bytes), "{bytes}");
    }

    /// RFC 9002, 7.7: bursts are limited to an initial window where the rate is low.
    #[test]
    fn a_slow_path_gets_small_bursts() {
        let pace = pace(60_000, MS * 100);
        let mut pacer = Pacer::new(true);
        let now = start();
        assert_eq!(pacer.budget(now, &pace), 12_000);
        pacer.on_sent(12_000);
        assert_eq!(pacer.budget(now, &pace), 0);
        let deadline = pacer.deadline().unwrap();
        assert_eq!(
            deadline,
            now + MS * 100 * 4 / 5 / 50,
            "one datagram is worth a wake-up here"
        );
        assert_eq!(pacer.budget(deadline, &pace), 1200);
    }

    /// A byte that takes less than a nanosecond is waited for all the same, or the caller would spin.
    #[test]
    fn a_wait_ends_when_its_bytes_are_there() {
        let pace = pace(20_000_000, MS * 10);
        let mut pacer = Pacer::new(true);
        let now = start();
        let all = pacer.budget(now, &pace);
        pacer.on_sent(all);
        assert_eq!(pacer.budget(now, &pace), 0);
        let nanosecond = Duration::from_nanos(1);
        let almost = pacer.deadline().unwrap().checked_sub(nanosecond).unwrap();
        assert_eq!(pacer.budget(almost, &pace), 0);
        let deadline = pacer.deadline().unwrap();
        assert!(deadline > almost);
        assert!(pacer.budget(deadline, &pace) > 0);
    }

    /// A wake-up a millisecond at most, though the timer is late by as much, and without loss of rate.
    #[test]
    fn timers_do_not_limit_a_fast_path() {
        let pace = pace(20_000_000, MS * 10);
        let (bytes, wakes) = run(&mut Pacer::new(true), &pace, start(), MS * 1000, MS / 2);
        assert!(bytes > 2_400_000_000, "{bytes}");
        assert!(wakes <= 1000, "{wakes}");
    }

    #[test]
    fn a_full_batch_leaves_at_once_where_it_takes_a_few_milliseconds() {
        let pace = pace(1_000_000, MS * 50);
        let mut pacer = Pacer::new(true);
        let now = start();
        assert_eq!(pacer.budget(now, &pace), BATCH);
        pacer.on_sent(BATCH);
        assert_eq!(pacer.budget(now + MS, &pace), 0);
        assert_eq!(pacer.budget(pacer.deadline().unwrap(), &pace), BATCH);
    }

    #[test]
    fn a_short_path_is_not_paced() {
        let now = start();
        assert_eq!(Pacer::new(true).budget(now, &pace(1_000_000, MS)), u64::MAX);
        assert_eq!(
            Pacer::new(true).budget(now, &pace(12_000, MS * 333)),
            u64::MAX
        );
        assert_eq!(
            Pacer::new(true).budget(now, &pace(1_000_000, Duration::ZERO)),
            u64::MAX
        );
        assert_eq!(
            Pacer::new(false).budget(now, &pace(1_000_000, MS * 100)),
            u64::MAX
        );
    }

    #[test]
    fn frequent_questions_lose_no_time() {
        let pace = pace(60_000, MS * 100);
        let mut pacer = Pacer::new(true);
        let now = start();
        let budget = pacer.budget(now, &pace);
        pacer.on_sent(budget);
        let mut bytes = 0;
        for nanos in (0..100_000_000).step_by(777) {
            let budget = pacer.budget(now + Duration::from_nanos(nanos), &pace);
            pacer.on_sent(budget);
            bytes += budget;
        }
        assert!(bytes > 60_000, "{bytes}");
        assert!(bytes < 76_000, "{bytes}");
    }

    #[test]
    fn clocks_that_jump_do_no_harm() {
        let pace = pace(60_000, MS * 100);
        let mut pacer = Pacer::new(true);
        let now = start() + MS * 10_000;
        let budget = pacer.budget(now, &pace);
        pacer.on_sent(budget);
        assert_eq!(pacer.budget(now.checked_sub(MS * 5000).unwrap(), &pace), 0);
        assert_eq!(
            pacer.budget(now + Duration::from_hours(9000), &pace),
            12_000
        );
    }
}
