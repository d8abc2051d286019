//! What of the system is used only by those who ask for it.

/// Offloads that are off unless somebody turns them on, and knows the machines that it runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offloads {
    /// Windows segments what is sent (USO).
    pub(crate) windows_segmentation: bool,
    /// Windows joins what is received (URO).
    pub(crate) windows_joining: bool,
}

impl Offloads {
    /// Whether one send may carry several datagrams, where the system can do that.
    pub(crate) const fn segments_here(self) -> bool {
        self.segments(cfg!(windows))
    }

    /// Whether Windows is asked to join datagrams.
    #[cfg(any(windows, test))]
    pub(crate) const fn joins_here(self) -> bool {
        self.joins(cfg!(any(target_arch = "aarch64", target_arch = "arm")))
    }

    const fn segments(self, is_windows: bool) -> bool {
        !is_windows || self.windows_segmentation
    }

    /// On ARM the segments' size isn't told, so that nobody could tell the datagrams apart.
    #[cfg(any(windows, test))]
    const fn joins(self, is_arm: bool) -> bool {
        self.windows_joining && !is_arm
    }
}

#[cfg(test)]
mod tests {
    use super::Offloads;

    #[test]
    fn windows_segments_and_joins_only_for_those_who_ask_and_never_joins_on_arm() {
        let off = Offloads::default();
        let on = Offloads {
            windows_segmentation: true,
            windows_joining: true,
        };
        assert_eq!((off.segments(true), off.joins(false)), (false, false));
        assert_eq!((on.segments(true), on.joins(false)), (true, true));
        assert!(!on.joins(true));
        assert!(off.segments(false), "other systems just do it");
        assert!(off.segments_here() || cfg!(windows));
        assert!(!off.joins_here());
    }
}
