//! The ECN counts of an ACK frame, [RFC 9000, section 19.3.2](https://www.rfc-editor.org/rfc/rfc9000#section-19.3.2).

use quic_common::Ecn;

/// How many packets of a packet number space were received with each mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EcnCounts {
    /// With ECT(0).
    pub(crate) ect0: u64,
    /// With ECT(1).
    pub(crate) ect1: u64,
    /// With CE.
    pub(crate) ce: u64,
}

impl EcnCounts {
    /// So many packets more came with this mark.
    #[inline]
    pub(crate) const fn count(&mut self, mark: Ecn, packets: u64) {
        let place = match mark {
            Ecn::NotEct => return,
            Ecn::Ect0 => &mut self.ect0,
            Ecn::Ect1 => &mut self.ect1,
            Ecn::Ce => &mut self.ce,
        };
        *place = place.saturating_add(packets);
    }
}
