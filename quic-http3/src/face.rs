//! What both sides of HTTP/3 can do with requests that are there: the part that [`ClientSession`](crate::ClientSession) and
//! [`ServerSession`](crate::ServerSession) have in common.

/// Gives a session that part.
macro_rules! face {
    ($side:ident) => {
        impl $side {
            /// Makes, or takes, no more requests and says so; those that exist go on.
            ///
            /// # Errors
            ///
            /// When the control stream can't be opened yet.
            pub fn shutdown<T: Transport>(&mut self, transport: &mut T) -> Result<(), ApiError> {
                self.session.shutdown(transport)
            }

            /// What the peer says about itself, once its SETTINGS have arrived.
            #[must_use]
            pub const fn peer_settings(&self) -> Option<Settings> {
                self.session.peer_settings()
            }

            /// How many requests are not over.
            #[must_use]
            pub fn active(&self) -> usize {
                self.session.active()
            }

            /// Takes note of what happened to a stream; call [`Self::next_event`] afterwards until it has nothing more.
            #[inline]
            pub fn on_event<T: Transport>(&mut self, transport: &mut T, event: StreamEvent) {
                self.session.on_event(transport, event);
            }

            /// Lends the next bytes of the peer's body, as they lie in the transport.
            ///
            /// Empty means that the next event tells how it goes on. After a `Data` event, read until then.
            ///
            /// # Errors
            ///
            /// When the request is unknown.
            #[inline]
            pub fn fill<'t, T: Transport>(
                &mut self,
                transport: &'t mut T,
                id: StreamId,
            ) -> Result<&'t [u8], ApiError> {
                self.session.fill(transport, id)
            }

            /// Takes `count` bytes that [`Self::fill`] lent off the body.
            ///
            /// # Errors
            ///
            /// When the request is unknown.
            #[inline]
            pub fn consume<T: Transport>(
                &mut self,
                transport: &mut T,
                id: StreamId,
                count: usize,
            ) -> Result<(), ApiError> {
                self.session.consume(transport, id, count)
            }

            /// Sends bytes of a body and returns how many were taken; fewer than all mean that a `Writable` event follows.
            ///
            /// A write promises its bytes: what was not taken must be written before the message can end. When the header section
            /// had a content-length, the body must have that length.
            ///
            /// # Errors
            ///
            /// When the request is unknown or not at that point, or the body gets too long.
            #[inline]
            pub fn send_body<T: Transport>(
                &mut self,
                transport: &mut T,
                id: StreamId,
                data: &[u8],
            ) -> Result<usize, ApiError> {
                self.session.send_body(transport, id, &mut &*data)
            }

            /// As [`Self::send_body`], without a copy: what is taken off the front of `data` stays where it is until it has been
            /// acknowledged, or the stream is given up; see
            /// [`stream_send_bytes`](quic_transport::Connection::stream_send_bytes).
            ///
            /// # Errors
            ///
            /// As [`Self::send_body`].
            pub fn send_body_bytes<T: Transport>(
                &mut self,
                transport: &mut T,
                id: StreamId,
                data: &mut Bytes,
            ) -> Result<usize, ApiError> {
                self.session.send_body(transport, id, data)
            }

            /// Sends a trailer section, which ends the message.
            ///
            /// # Errors
            ///
            /// When the request is unknown or not at that point, the lines are malformed, or the body is too short.
            pub fn send_trailers<T: Transport>(
                &mut self,
                transport: &mut T,
                id: StreamId,
                fields: &[Field<'_>],
            ) -> Result<(), ApiError> {
                self.session.trailers(transport, id, fields.iter().copied())
            }

            /// Ends the message.
            ///
            /// # Errors
            ///
            /// When the request is unknown or not at that point, or the body is too short.
            #[inline]
            pub fn finish<T: Transport>(
                &mut self,
                transport: &mut T,
                id: StreamId,
            ) -> Result<(), ApiError> {
                self.session.finish(transport, id)
            }

            /// Wants no more of the peer's message; the own one goes on.
            ///
            /// # Errors
            ///
            /// When the request is unknown.
            pub fn stop<T: Transport>(
                &mut self,
                transport: &mut T,
                id: StreamId,
                code: Code,
            ) -> Result<(), ApiError> {
                self.session.stop(transport, id, code)
            }

            /// Abandons a request and its response; it is forgotten at once, and no event follows.
            ///
            /// # Errors
            ///
            /// When the request is unknown.
            pub fn cancel<T: Transport>(
                &mut self,
                transport: &mut T,
                id: StreamId,
                code: Code,
            ) -> Result<(), ApiError> {
                self.session.cancel(transport, id, code)
            }

            /// Gives back the memory that is kept for requests to come; to be called when the transport has been silent for a while.
            pub fn rest(&mut self) {
                self.session.rest();
            }

            /// Takes a field list back, so that the next one needs no allocation.
            pub fn recycle(&mut self, fields: Fields) {
                self.session.recycle(fields);
            }
        }
    };
}

pub(crate) use face;
