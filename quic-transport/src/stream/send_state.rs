//! The sending part of a stream, [RFC 9000, section 3.1](https://www.rfc-editor.org/rfc/rfc9000#section-3.1).
//!
//! The whole machine is [`SendState::after`]; nothing else makes a state from another.

/// Where the sending part of a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendState {
    /// Nothing has been sent.
    #[default]
    Ready,
    /// Data is being sent.
    Send,
    /// All data and the FIN have been sent.
    DataSent,
    /// All data and the FIN have been acknowledged.
    DataReceived,
    /// RESET_STREAM has been sent, or is about to be.
    ResetSent,
    /// RESET_STREAM has been acknowledged.
    ResetReceived,
}

/// What moves the sending part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendEvent {
    /// STREAM with data, or STREAM_DATA_BLOCKED, goes out.
    Data,
    /// STREAM with FIN goes out.
    Fin,
    /// We give the rest up.
    Reset,
    /// We give the rest up, but for the beginning: RESET_STREAM_AT is as good as a FIN.
    ResetAt,
    /// Everything up to the FIN is acknowledged, or all that RESET_STREAM_AT left, and that frame.
    AllAcked,
    /// RESET_STREAM is acknowledged.
    ResetAcked,
    /// All that was sent has been rejected, before anything was acknowledged.
    Rejected,
}

/// The specification has no such edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invalid;

impl SendState {
    /// The state that follows `self` on `event`.
    ///
    /// # Errors
    ///
    /// When the event can't happen in that state.
    pub(crate) const fn after(self, event: SendEvent) -> Result<Self, Invalid> {
        use SendEvent as E;
        Ok(match (self, event) {
            (Self::Ready | Self::Send, E::Data) => Self::Send,
            // Lost data and a lost FIN are sent again without leaving the state.
            (Self::DataSent, E::Data | E::Fin | E::ResetAt)
            | (Self::Ready | Self::Send, E::Fin | E::ResetAt) => Self::DataSent,
            (Self::Ready | Self::Send | Self::DataSent, E::Reset)
            | (Self::ResetSent, E::Rejected) => Self::ResetSent,
            (Self::DataSent, E::AllAcked) => Self::DataReceived,
            (Self::ResetSent, E::ResetAcked) => Self::ResetReceived,
            (Self::Ready | Self::Send | Self::DataSent, E::Rejected) => Self::Ready,
            _ => return Err(Invalid),
        })
    }

    /// Whether data may still go out, for the first time or again.
    #[inline]
    pub(crate) const fn is_sending(self) -> bool {
        matches!(self, Self::Ready | Self::Send | Self::DataSent)
    }

    /// Whether nothing more is needed from either side.
    #[inline]
    pub(crate) const fn is_terminal(self) -> bool {
        matches!(self, Self::DataReceived | Self::ResetReceived)
    }
}

#[cfg(test)]
mod tests {
    use super::{SendEvent as E, SendState as S};

    /// The full table, so that a changed edge shows up as a changed row.
    #[test]
    fn every_edge() {
        let states = [
            S::Ready,
            S::Send,
            S::DataSent,
            S::DataReceived,
            S::ResetSent,
            S::ResetReceived,
        ];
        let events = [
            E::Data,
            E::Fin,
            E::Reset,
            E::ResetAt,
            E::AllAcked,
            E::ResetAcked,
            E::Rejected,
        ];
        let table = states.map(|s| events.map(|e| s.after(e).ok()));
        let (sending, finished, done) = (Some(S::Send), Some(S::DataSent), Some(S::DataReceived));
        let (reset, gone) = (Some(S::ResetSent), Some(S::ResetReceived));
        let ready = Some(S::Ready);
        assert_eq!(
            table,
            [
                // Data, Fin, Reset, ResetAt, AllAcked, ResetAcked, Rejected
                [sending, finished, reset, finished, None, None, ready],
                [sending, finished, reset, finished, None, None, ready],
                [finished, finished, reset, finished, done, None, ready],
                [None, None, None, None, None, None, None],
                [None, None, None, None, None, gone, reset],
                [None, None, None, None, None, None, None],
            ]
        );
        let questions = states.map(|s| (s.is_sending(), s.is_terminal()));
        let (goes_on, waits, is_over) = ((true, false), (false, false), (false, true));
        assert_eq!(
            questions,
            [goes_on, goes_on, goes_on, is_over, waits, is_over]
        );
    }
}
