//! The ECN counts of an ACK frame, [RFC 9000, section 19.3.2](https://www.rfc-editor.org/rfc/rfc9000#section-19.3.2).

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
