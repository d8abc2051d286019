//! 0-RTT in HTTP/3: what a client may ask before it has heard from the server
//! ([RFC 8470](https://www.rfc-editor.org/rfc/rfc8470)), under settings that it remembers
//! ([RFC 9114, section 7.2.4.2](https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2)).
//!
//! Whoever records early data may be able to make a server read it twice. So a client asks with safe methods only, and
//! a server lets requests with other methods wait until the handshake is complete: then the client has shown that it
//! is there.

use quic_transport::StreamId;

use super::exchange::Slot;
use super::{Session, Signal};
use crate::error::Error;
use crate::field::Fields;
use crate::message::is_safe;
use crate::qpack::Encoder;
use crate::settings::Settings;
use crate::transport::Transport;

impl Session {
    /// A client that sends early data keeps to what the server said the last time, until it says something new.
    pub(super) fn recall<T: Transport>(&mut self, transport: &T) {
        if self.side.is_client() && self.peer.settings.is_none() && transport.is_early() {
            let recalled = transport.recalled();
            self.peer.recalled = recalled.and_then(|payload| Settings::parse(payload).ok());
        }
    }

    /// SETTINGS have come; a client remembers them, and has relied on those of an earlier connection if its early data
    /// was accepted.
    pub(super) fn on_settings<T: Transport>(
        &mut self,
        settings: Settings,
        transport: &mut T,
    ) -> Result<(), Error> {
        if self.side.is_client() {
            // A server that had said nothing when its session was kept has promised nothing.
            let recalled = transport
                .recalled()
                .filter(|payload| !payload.is_empty() && transport.is_early_data_accepted());
            if let Some(earlier) = recalled.and_then(|payload| Settings::parse(payload).ok()) {
                settings.keep(&earlier)?;
            }
            let mut payload = Vec::new();
            settings.encode(&mut payload);
            transport.remember(&payload);
        }
        self.encoder = Encoder::new(settings.qpack_capacity, settings.qpack_blocked_streams);
        self.peer.settings = Some(settings);
        Ok(())
    }

    /// The header section of a request is there: it is told of now, or when the handshake is complete.
    pub(super) fn on_head<T: Transport>(
        &mut self,
        slot: Slot,
        id: StreamId,
        fields: Fields,
        transport: &mut T,
    ) -> Option<Signal> {
        if self.side.is_server() && transport.is_early() && !fields.method().is_some_and(is_safe) {
            self.exchanges.hold(slot, fields);
            return None;
        }
        if self.side.is_server() {
            self.on_priority_field(slot, &fields, transport);
        }
        Some(Signal::Head(id, fields))
    }

    /// Once the handshake is complete, what has waited for it goes on.
    pub(super) fn release_held<T: Transport>(&mut self, transport: &T) {
        if self.exchanges.has_held() && !transport.is_early() {
            self.exchanges.queue_held();
        }
    }
}
