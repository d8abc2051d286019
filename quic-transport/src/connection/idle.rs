//! The idle timeout and what keeps it from ending a connection,
//! [RFC 9000, section 10.1](https://www.rfc-editor.org/rfc/rfc9000#section-10.1).

use std::time::{Duration, Instant};

/// Silence, measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    /// Zero: never.
    timeout: Duration,
    since: Instant,
    /// When anything was last received, or sent that elicits an answer.
    active: Instant,
    /// An ack-eliciting packet has been sent since one was received: another doesn't start the time anew.
    has_sent: bool,
    /// When keys were last made again because something broke the silence, forged or not.
    woken: Instant,
    /// When to find out whether the silence is long enough to rest: worked out anew when it has come, not for each packet.
    rest_at: Instant,
}

/// Silence after which a connection gives back what it only needs to be fast.
const REST: Duration = Duration::from_secs(1);

impl Idle {
    pub(super) const fn new(timeout: Duration, now: Instant) -> Self {
        Self {
            timeout,
            since: now,
            active: now,
            has_sent: false,
            woken: now,
            rest_at: now,
        }
    }

    /// The peer's timeout is known: the smaller one holds, zero being none.
    pub(super) fn negotiate(&mut self, theirs: Duration) {
        if self.timeout.is_zero() || (!theirs.is_zero() && theirs < self.timeout) {
            self.timeout = theirs;
        }
    }

    #[inline]
    pub(super) const fn on_received(&mut self, now: Instant) {
        self.since = now;
        self.active = now;
        self.has_sent = false;
    }

    #[inline]
    pub(super) const fn on_sent(&mut self, now: Instant) {
        self.active = now;
        if !self.has_sent {
            self.since = now;
            self.has_sent = true;
        }
    }

    #[cold]
    pub(super) const fn on_woken(&mut self, now: Instant) {
        self.woken = now;
    }

    /// Whether it is time to find out [how long](Self::is_silent) the silence has been: once a second while there is none.
    #[inline]
    pub(super) fn is_look_due(&self, now: Instant) -> bool {
        self.rest_at <= now
    }

    /// Whether there has been silence for long enough to rest.
    #[cold]
    pub(super) fn is_silent(&mut self, now: Instant) -> bool {
        if let Some(at) = self.active.max(self.woken).checked_add(REST) {
            self.rest_at = at;
        }
        self.rest_at <= now
    }

    /// Whether something has happened so long after `begun` that more may be expected: most connections end before.
    pub(super) fn is_lasting(&self, begun: Instant) -> bool {
        self.active.saturating_duration_since(begun) >= REST
    }

    /// When to ask next, if that comes before the end of the connection, which then needn't be known.
    #[inline]
    pub(super) fn next_rest(&self, now: Instant) -> Option<Instant> {
        (self.rest_at > now && !self.is_overlong(self.rest_at)).then_some(self.rest_at)
    }

    /// When a PING is due (RFC 9000, 10.1.2), `after` so long a silence.
    pub(super) fn keep_alive_deadline(&self, after: Duration) -> Option<Instant> {
        self.active.checked_add(after)
    }

    /// When a sender without credit speaks again (RFC 9000, 4.1): in time for what is lost to be sent again before the
    /// connection is given up. Never, if it isn't.
    pub(super) fn blocked_deadline(&self, pto: Duration) -> Option<Instant> {
        let length = self.length(pto)?;
        self.active.checked_add(length / 2)
    }

    /// Something that asks for an answer is on its way.
    pub(super) const fn on_keep_alive(&mut self, now: Instant) {
        self.active = now;
    }

    /// Whether the silence may be so long that the connection is given up: whether [`Self::deadline`] is worth asking for.
    #[inline]
    pub(super) fn is_overlong(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= self.timeout
    }

    /// When the connection is given up, which is never sooner than after 3 `pto`.
    pub(super) fn deadline(&self, pto: Duration) -> Option<Instant> {
        let length = self.length(pto)?;
        self.since.checked_add(length)
    }

    fn length(&self, pto: Duration) -> Option<Duration> {
        (!self.timeout.is_zero()).then(|| self.timeout.max(pto.saturating_mul(3)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Idle;

    const PTO: Duration = Duration::from_millis(10);

    fn epoch() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant will do as an epoch")]
        Instant::now()
    }

    /// RFC 9000, 10.1: the minimum of both values, of which zero is none.
    #[test]
    fn the_smaller_timeout_holds() {
        let now = epoch();
        for (ours, theirs, expected) in [
            (30, 20, Some(20)),
            (20, 30, Some(20)),
            (0, 9, Some(9)),
            (9, 0, Some(9)),
            (0, 0, None),
        ] {
            let mut idle = Idle::new(Duration::from_secs(ours), now);
            idle.negotiate(Duration::from_secs(theirs));
            assert_eq!(
                idle.deadline(PTO),
                expected.map(|s| now + Duration::from_secs(s))
            );
        }
    }

    /// RFC 9000, 10.1: restarted by each packet received, and by the first ack-eliciting one sent after it.
    #[test]
    fn only_the_first_packet_sent_restarts_it() {
        let start = epoch();
        let at = |s| start + Duration::from_secs(s);
        let mut idle = Idle::new(Duration::from_secs(10), start);
        idle.on_sent(at(1));
        idle.on_sent(at(2));
        assert_eq!(idle.deadline(PTO), Some(at(11)));
        idle.on_received(at(3));
        idle.on_sent(at(4));
        assert_eq!(idle.deadline(PTO), Some(at(14)));
    }

    /// Asked while packets come and go, it says when to ask again, but for a connection that ends before.
    #[test]
    fn a_rest_is_due_after_a_second_of_silence() {
        let start = epoch();
        let at = |millis| start + Duration::from_millis(millis);
        let is_rest_due = |idle: &mut Idle, now| idle.is_look_due(now) && idle.is_silent(now);
        let mut idle = Idle::new(Duration::from_secs(10), start);
        assert!(!is_rest_due(&mut idle, start));
        assert_eq!(idle.next_rest(start), Some(at(1000)));
        idle.on_received(at(900));
        assert!(!is_rest_due(&mut idle, at(1000)));
        assert_eq!(idle.next_rest(at(1000)), Some(at(1900)));
        assert!(is_rest_due(&mut idle, at(1900)) && is_rest_due(&mut idle, at(5000)));
        assert_eq!(idle.next_rest(at(1900)), None, "it has come");
        idle.on_woken(at(5000));
        assert!(!is_rest_due(&mut idle, at(5999)) && is_rest_due(&mut idle, at(6000)));
        let mut brief = Idle::new(Duration::from_millis(500), start);
        assert!(!is_rest_due(&mut brief, start));
        assert_eq!(brief.next_rest(start), None);
    }

    #[test]
    fn a_connection_lasts_when_something_happens_after_a_second() {
        let start = epoch();
        let at = |millis| start + Duration::from_millis(millis);
        let mut idle = Idle::new(Duration::from_secs(10), start);
        idle.on_received(at(999));
        assert!(!idle.is_lasting(start));
        idle.on_sent(at(1000));
        assert!(idle.is_lasting(start));
    }

    /// RFC 9000, 10.1: at least three times the PTO.
    #[test]
    fn three_ptos_at_least() {
        let now = epoch();
        let idle = Idle::new(Duration::from_millis(1), now);
        assert_eq!(idle.deadline(PTO), Some(now + 3 * PTO));
    }
}
