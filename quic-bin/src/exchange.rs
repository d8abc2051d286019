//! A request of the client's, as a download sees it.

use std::time::Instant;

use crate::{failure::Failure, site::Body};

/// What a request asks for, and where the answer goes.
pub trait Exchange {
    /// The method.
    fn method(&self) -> &'static str;

    /// What `:authority` says.
    fn authority(&self) -> &str;

    /// What `:path` says.
    fn path(&self) -> &str;

    /// Bytes of the body to send, if there is one.
    fn upload_length(&self) -> Option<u64> {
        None
    }

    /// The body to send; taken once.
    fn take_upload(&mut self) -> Option<Body> {
        None
    }

    /// Whether the answer goes where others go too, so that they have to come one after the other.
    fn shares_output(&self) -> bool {
        false
    }

    /// Whether more of the body can be taken now. The event loop is woken once it can again.
    fn has_room(&self) -> bool {
        true
    }

    /// The final response has come; `length` is what it says about its body.
    fn on_response(&mut self, status: u16, length: Option<u64>);

    /// Bytes of the body.
    ///
    /// # Errors
    ///
    /// When there is no use in more of them; the download ends.
    fn on_body(&mut self, data: &[u8], now: Instant) -> Result<(), Failure>;

    /// The body is complete.
    ///
    /// # Errors
    ///
    /// When it can't be kept, or isn't what it should be.
    fn on_end(&mut self) -> Result<(), Failure>;

    /// What the user calls it.
    fn name(&self) -> String;
}
