//! Flow control, [RFC 9000, section 4](https://www.rfc-editor.org/rfc/rfc9000#section-4): what each end lets the other
//! send, for a stream and for the connection, and how many streams it lets the other open.

mod receive_window;
mod send_credit;
mod stream_limits;

pub(crate) use receive_window::{ReceiveWindow, WindowSize};
pub(crate) use send_credit::SendCredit;
pub(crate) use stream_limits::{LocalStreams, PeerStreams, Place};
