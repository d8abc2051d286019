//! Datagrams that the system would not send, being larger than an interface's MTU,
//! [RFC 9000, section 14.2](https://www.rfc-editor.org/rfc/rfc9000#section-14.2).

use quic_common::BatchHead;

use super::Connection;
use crate::{config::MIN_DATAGRAM, error::Error, wire::TransportErrorCode};

impl Connection {
    /// Tells that the system would not send the last batch, because its datagrams are larger than the MTU (EMSGSIZE).
    ///
    /// A probe that meets this has failed at once, instead of counting as lost much later; otherwise datagrams become
    /// smaller. Where not even 1200 bytes leave there can be no QUIC. The validation of such a path has failed; if there
    /// is no other path, the connection closes with NO_VIABLE_PATH.
    pub fn on_batch_refused(&mut self, head: &BatchHead) {
        let size = head.segment;
        if !self.life.is_open() || size == 0 {
            return;
        }
        let is_small = size <= usize::from(MIN_DATAGRAM);
        if head.remote != self.path.remote || head.local != self.path.source {
            // How large datagrams may be on another path will be found out on it.
            let other = self.others.sent_on(head.remote, head.local);
            if let Some(path) = other.filter(|_| is_small) {
                path.probing.on_refused();
            }
            return;
        }
        if is_small && self.path.probing.is_pending() && self.others.last_validated().is_some() {
            return self.path.probing.on_refused();
        }
        if is_small {
            let code = TransportErrorCode::NO_VIABLE_PATH;
            let reason = "the path carries less than 1200 bytes";
            return self.fail(Error::new(code, 0, reason));
        }
        self.spaces.application.sent.withdraw_mtu_probe();
        self.path
            .on_refused(u16::try_from(size).unwrap_or(u16::MAX));
    }
}
