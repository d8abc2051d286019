//! The numbers that every algorithm works on, [RFC 9002, section 7.2](https://www.rfc-editor.org/rfc/rfc9002#section-7.2).

/// The congestion window, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// What may be in flight.
    pub(super) bytes: u64,
    /// Where slow start ends; the largest value until there was congestion.
    pub(super) threshold: u64,
    /// The size of a full datagram.
    pub(super) datagram: u64,
}

impl Window {
    /// The window of a new path.
    pub(super) fn new(datagram: u64) -> Self {
        Self {
            bytes: initial(datagram),
            threshold: u64::MAX,
            datagram,
        }
    }

    /// The smallest window that congestion leaves.
    pub(super) const fn minimum(&self) -> u64 {
        self.datagram.saturating_mul(2)
    }

    /// Whether the window grows by all that is acknowledged.
    #[inline]
    pub(super) const fn is_slow_start(&self) -> bool {
        self.bytes < self.threshold
    }

    /// Whether slow start has never been left.
    #[inline]
    pub(super) const fn is_first_slow_start(&self) -> bool {
        self.threshold == u64::MAX
    }

    /// Adds `bytes`, in slow start no further than the threshold.
    #[inline]
    pub(super) fn grow(&mut self, bytes: u64) {
        let grown = self.bytes.saturating_add(bytes);
        self.bytes = if self.is_slow_start() {
            grown.min(self.threshold)
        } else {
            grown
        };
    }

    /// Cuts the window to `bytes`, or to the minimum.
    pub(super) fn reduce(&mut self, bytes: u64) {
        self.threshold = bytes.max(self.minimum());
        self.bytes = self.threshold;
    }

    /// The full datagram has another size now. A window that is still the initial one is computed anew.
    pub(super) fn resize(&mut self, datagram: u64) {
        let was_initial = self.is_first_slow_start() && self.bytes == initial(self.datagram);
        self.datagram = datagram;
        let least = if was_initial {
            initial(datagram)
        } else {
            self.minimum()
        };
        self.bytes = if was_initial {
            least
        } else {
            self.bytes.max(least)
        };
    }
}

/// Ten datagrams, but no more than the larger of 14720 bytes and two datagrams.
fn initial(datagram: u64) -> u64 {
    datagram
        .saturating_mul(10)
        .min(datagram.saturating_mul(2).max(14_720))
}

#[cfg(test)]
mod tests {
    use super::Window;

    /// RFC 9002, 7.2: ten datagrams, limited to the larger of 14720 bytes and twice the datagram.
    #[test]
    fn initial_windows() {
        assert_eq!(Window::new(1200).bytes, 12_000);
        assert_eq!(Window::new(1472).bytes, 14_720);
        assert_eq!(Window::new(9000).bytes, 18_000);
        assert_eq!(Window::new(65_507).bytes, 131_014);
        assert_eq!(Window::new(1200).minimum(), 2400);
    }

    /// RFC 9002, 7.2: the initial window is recalculated when the datagram's size changes.
    #[test]
    fn an_initial_window_follows_the_datagram() {
        let mut window = Window::new(1200);
        window.resize(65_507);
        assert_eq!(window.bytes, 131_014);
        window.resize(1200);
        assert_eq!(window.bytes, 12_000);
        window.grow(1000);
        window.resize(1472);
        assert_eq!(window.bytes, 13_000);
        window.resize(9000);
        assert_eq!(window.bytes, 18_000, "the minimum");
    }

    #[test]
    fn slow_start_stops_at_the_threshold() {
        let mut window = Window::new(1200);
        window.threshold = 12_500;
        window.grow(1200);
        assert_eq!(window.bytes, 12_500);
        window.reduce(100);
        assert_eq!((window.bytes, window.threshold), (2400, 2400));
    }
}
