//! Key updates that we begin, and the end of keys that have been used as often as they may,
//! [RFC 9001, section 6](https://www.rfc-editor.org/rfc/rfc9001#section-6).

use quic_common::MAX_BATCH_SEGMENTS;

use super::Connection;
use crate::{
    error::{ApiError, CloseReason, Error},
    wire::{TransportErrorCode, wide},
};

impl Connection {
    /// Begins a key update: what is sent from now on is protected with new keys.
    ///
    /// The connection does this by itself before the keys wear out; doing it earlier is for tests and for the cautious.
    ///
    /// # Errors
    ///
    /// When the handshake isn't confirmed, or the last update isn't over (RFC 9001, 6.1 and 6.5).
    pub fn update_keys(&mut self) -> Result<(), ApiError> {
        let can_update = self.is_confirmed() && self.drop_old_keys_at.is_none();
        self.keys.wake();
        let keys = self
            .keys
            .one_rtt
            .as_mut()
            .filter(|keys| can_update && !keys.has_previous());
        let has_begun = keys.is_some_and(|keys| keys.update());
        if has_begun {
            self.tell_key_update(self.side);
        }
        has_begun.then_some(()).ok_or(ApiError::KeyUpdate)
    }

    /// Before a batch: renews keys that are nearly worn out, and ends the connection when they couldn't be renewed in
    /// time (RFC 9001, 6.6).
    #[inline]
    pub(super) fn mind_key_limits(&mut self) {
        let Some(keys) = self.keys.one_rtt.as_ref() else {
            return;
        };
        let Some(next) = self.spaces.application.numbers.upcoming() else {
            return self.wear_out();
        };
        if keys.is_update_due(next) {
            self.renew_or_end(next);
        }
    }

    #[cold]
    fn renew_or_end(&mut self, next: u64) {
        // Not asked again before the batch is full.
        let last = next.saturating_add(wide(MAX_BATCH_SEGMENTS));
        let is_exhausted = self
            .keys
            .one_rtt
            .as_ref()
            .is_some_and(|keys| keys.is_exhausted(last));
        if self.update_keys().is_err() && is_exhausted {
            self.wear_out();
        }
    }

    /// Nothing more may be sealed, not even a CONNECTION_CLOSE.
    #[cold]
    fn wear_out(&mut self) {
        self.abandon(CloseReason::Local(Error::new(
            TransportErrorCode::AEAD_LIMIT_REACHED,
            0,
            "the keys have protected as many packets as they may",
        )));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use quic_common::{BatchBuffer, Datagram, MAX_VARINT, Random};

    use crate::{
        Application, CloseReason, Config, Connection, Direction, Endpoint, EndpointConfig, Event,
        Handle, Output, tls, wire::TransportErrorCode,
    };

    /// The most packets that a key of AES-128-GCM may protect (RFC 9001, 6.6).
    const LIMIT: u64 = 1 << 23;

    struct Nobody;

    impl Application for Nobody {
        fn process(&mut self, connection: &mut Connection, _: Instant) {
            while connection.next_event().is_some() {}
        }
    }

    /// A client and its server, which have shaken hands.
    struct Ends {
        client: Connection,
        server: Endpoint<Nobody>,
        handle: Handle,
        now: Instant,
        buffer: BatchBuffer,
    }

    impl Ends {
        fn new() -> Self {
            let certificate = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
            let chain = vec![certificate.cert.der().clone()];
            let key = certificate.signing_key.serialize_der().try_into().unwrap();
            let server_tls = tls::ServerConfig::new(chain.clone(), key, &[b"a"]).unwrap();
            let client_tls = tls::ClientConfig::with_roots(chain, &[b"a"]).unwrap();
            #[expect(clippy::disallowed_methods, reason = "any instant will do as an epoch")]
            let now = Instant::now();
            let mut random = Random::from_seed([1; 32]);
            let mut server = Endpoint::new(EndpointConfig::new(&mut random), random.fork());
            let address = ([192, 0, 2, 1], 443).into();
            let config = Config::default();
            let mut client =
                Connection::client(&config, &client_tls, "a", address, random, now).unwrap();
            let mut buffer = BatchBuffer::new();
            pass(client.process_output(now, &mut buffer), |datagram| {
                server.input(datagram, now);
            });
            let incoming = server.next_incoming().unwrap();
            let handle = server
                .accept(incoming, &config, &server_tls, Nobody, now)
                .unwrap();
            let mut ends = Self {
                client,
                server,
                handle,
                now,
                buffer,
            };
            ends.talk();
            assert!(ends.client.is_confirmed());
            ends
        }

        /// Lets all that is due cross, for a second.
        fn talk(&mut self) {
            for _ in 0..100 {
                let Self {
                    client,
                    server,
                    now,
                    buffer,
                    ..
                } = self;
                while pass(client.process_output(*now, buffer), |datagram| {
                    server.input(datagram, *now);
                }) {}
                while pass(server.process_output(*now, buffer), |datagram| {
                    client.input(datagram, *now);
                }) {}
                *now += Duration::from_millis(10);
            }
        }

        /// The client says something, once it has sent `count` packets with the keys that it has.
        fn speak_after(&mut self, count: u64) {
            self.client.spaces.application.numbers.jump(count);
            self.say();
            self.talk();
        }

        fn say(&mut self) {
            let id = self.client.open(Direction::Unidirectional).unwrap();
            self.client.stream_send(id, b"something").unwrap();
        }

        /// Whether the client sends something, which is lost.
        fn is_sending(&mut self) -> bool {
            let output = self.client.process_output(self.now, &mut self.buffer);
            matches!(output, Output::Datagrams(_))
        }

        fn closed(&mut self) -> Option<CloseReason> {
            std::iter::from_fn(|| self.client.next_event()).find_map(|event| {
                if let Event::Closed(reason) = event {
                    Some(reason)
                } else {
                    None
                }
            })
        }
    }

    fn pass(output: Output<'_>, mut arrive: impl FnMut(Datagram<'_>)) -> bool {
        let Output::Datagrams(batch) = output else {
            return false;
        };
        for segment in batch.segments() {
            arrive(Datagram {
                remote: batch.head().remote,
                local: None,
                ecn: batch.head().ecn,
                payload: &mut segment.to_vec(),
            });
        }
        true
    }

    fn is_limit(reason: Option<&CloseReason>) -> bool {
        let limit = TransportErrorCode::AEAD_LIMIT_REACHED;
        matches!(reason, Some(CloseReason::Local(error)) if error.code == limit)
    }

    /// RFC 9001, 6.6: keys are renewed before they have protected as many packets as they may, and the peer follows.
    #[test]
    fn keys_are_renewed_before_they_wear_out() {
        let mut ends = Ends::new();
        ends.speak_after(LIMIT / 2);
        assert_eq!(ends.client.key_updates(), 0);
        ends.speak_after(LIMIT - 100);
        assert_eq!(ends.client.key_updates(), 1);
        let (server, _) = ends.server.connection_mut(ends.handle).unwrap();
        assert_eq!(server.key_updates(), 1);
        assert!(ends.client.path.controller.in_flight() == 0, "all was read");
        ends.speak_after(2 * LIMIT - 200);
        assert_eq!((ends.client.key_updates(), ends.closed()), (2, None));
    }

    /// RFC 9001, 6.6: keys that can't be renewed in time protect nothing more, and the connection is over.
    #[test]
    fn keys_that_are_worn_out_end_the_connection() {
        let mut ends = Ends::new();
        ends.client.update_keys().unwrap();
        let first = ends.client.spaces.application.numbers.upcoming().unwrap();
        ends.say();
        assert!(ends.is_sending());
        assert!(ends.client.update_keys().is_err(), "not acknowledged yet");
        let numbers = &mut ends.client.spaces.application.numbers;
        numbers.jump(first + LIMIT);
        ends.say();
        assert!(!ends.is_sending());
        assert!(is_limit(ends.closed().as_ref()) && ends.client.is_closed());
    }

    /// RFC 9000, 12.3: nor is anything said beyond the last packet number.
    #[test]
    fn the_last_number_ends_the_connection() {
        let mut ends = Ends::new();
        let sent = ends.client.stats().packets_sent;
        ends.client.spaces.application.numbers.jump(MAX_VARINT + 1);
        ends.talk();
        assert!(is_limit(ends.closed().as_ref()));
        assert_eq!(ends.client.stats().packets_sent, sent);
    }
}
