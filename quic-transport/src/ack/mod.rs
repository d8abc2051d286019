//! What has been received, and when to say so, [RFC 9000, section 13.2](https://www.rfc-editor.org/rfc/rfc9000#section-13.2).

mod duplicates;
mod ranges;
mod frequency;
mod received;
mod requests;
#[cfg(test)]
mod in_order_tests;

pub(crate) use frequency::{Frequency, MIN_ACK_DELAY};
pub(crate) use received::ReceivedPackets;
pub(crate) use requests::{AckRequests, Situation};
