//! The receiving part of a stream, [RFC 9000, section 3.2](https://www.rfc-editor.org/rfc/rfc9000#section-3.2).
//!
//! The whole machine is [`ReceiveState::after`]; nothing else makes a state from another.

use super::send_state::Invalid;

/// Where the receiving part of a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReceiveState {
    /// Data arrives, and its end is unknown.
    #[default]
    Receive,
    /// The final size is known, and data is missing.
    SizeKnown,
    /// Everything has arrived.
    DataReceived,
    /// The application has everything.
    DataRead,
    /// The peer has reset the stream.
    ResetReceived,
    /// The application knows of the reset.
    ResetRead,
}

/// What moves the receiving part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveEvent {
    /// A FIN told the final size.
    Fin,
    /// Everything up to the final size has arrived.
    AllData,
    /// RESET_STREAM arrived.
    Reset,
    /// The application has read everything, or wants none of it.
    Read,
}

impl ReceiveState {
    /// The state that follows `self` on `event`.
    ///
    /// A reset is of no consequence once all data is here, nor is data after a reset.
    ///
    /// # Errors
    ///
    /// When the event can't happen in that state.
    pub(crate) const fn after(self, event: ReceiveEvent) -> Result<Self, Invalid> {
        use ReceiveEvent as E;
        Ok(match (self, event) {
            (Self::Receive | Self::SizeKnown, E::Fin) => Self::SizeKnown,
            (Self::SizeKnown, E::AllData) | (Self::DataReceived, E::Reset) => Self::DataReceived,
            (Self::Receive | Self::SizeKnown, E::Reset) => Self::ResetReceived,
            (Self::DataReceived, E::Read) => Self::DataRead,
            (Self::ResetReceived, E::Read) => Self::ResetRead,
            _ => return Err(Invalid),
        })
    }

    /// Whether data can still arrive that matters.
    #[inline]
    pub(crate) const fn is_receiving(self) -> bool {
        matches!(self, Self::Receive | Self::SizeKnown)
    }

    /// Whether nothing more is needed from either side.
    #[inline]
    pub(crate) const fn is_terminal(self) -> bool {
        matches!(self, Self::DataRead | Self::ResetRead)
    }
}

#[cfg(test)]
mod tests {
    use super::{ReceiveEvent as E, ReceiveState as S};

    /// The full table, so that a changed edge shows up as a changed row.
    #[test]
    fn every_edge() {
        let states = [
            S::Receive,
            S::SizeKnown,
            S::DataReceived,
            S::DataRead,
            S::ResetReceived,
            S::ResetRead,
        ];
        let events = [E::Fin, E::AllData, E::Reset, E::Read];
        let table = states.map(|s| events.map(|e| s.after(e).ok()));
        let (size, all, read) = (Some(S::SizeKnown), Some(S::DataReceived), Some(S::DataRead));
        let (reset, gone) = (Some(S::ResetReceived), Some(S::ResetRead));
        assert_eq!(
            table,
            [
                // Fin, AllData, Reset, Read
                [size, None, reset, None],
                [size, all, reset, None],
                [None, None, all, read],
                [None, None, None, None],
                [None, None, None, gone],
                [None, None, None, None],
            ]
        );
    }
}
