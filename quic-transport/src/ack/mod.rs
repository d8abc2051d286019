//! What has been received, and when to say so, [RFC 9000, section 13.2](https://www.rfc-editor.org/rfc/rfc9000#section-13.2).

mod duplicates;
mod ranges;
mod frequency;
mod received;
mod requests;

pub(crate) use frequency::{Frequency, MIN_ACK_DELAY};
pub(crate) use received::ReceivedPackets;
pub(crate) use requests::{AckRequests, Situation};
