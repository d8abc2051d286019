//! What has been received, and when to say so, [RFC 9000, section 13.2](https://www.rfc-editor.org/rfc/rfc9000#section-13.2).

mod duplicates;
mod ranges;
mod received;

pub(crate) use received::ReceivedPackets;
