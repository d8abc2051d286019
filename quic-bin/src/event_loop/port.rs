//! A socket in the loop, with what the poller has said about it.
//!
//! Writability is watched only while a batch is parked: a UDP socket reports it after every datagram that has left,
//! which would wake an idle program for nothing.

use std::io;

use mio::{Interest, Registry, Token, event::Event};
use quic_common::BatchBuffer;
use quic_udp::{IcmpError, Socket};

use self::source::Source;

/// A socket and its place in the loop.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) socket: Socket,
    /// Whether more may have arrived: the poller said so, and reading has not yet come to the end.
    pub(super) is_ready: bool,
    source: Source,
    token: Token,
    blocked: Option<Blocked>,
    /// Whether the poller was asked for writability.
    watches_writable: bool,
    has_error: bool,
}

/// A full socket.
#[derive(Debug)]
struct Blocked {
    buffer: BatchBuffer,
    /// Whether the poller has said that it no longer is.
    is_writable: bool,
}

impl Port {
    pub(super) fn new(socket: Socket, registry: &Registry, token: Token) -> io::Result<Self> {
        let mut source = Source::new(&socket)?;
        source.register(registry, token, Interest::READABLE)?;
        Ok(Self {
            socket,
            is_ready: false,
            source,
            token,
            blocked: None,
            watches_writable: false,
            has_error: false,
        })
    }

    pub(super) fn on_event(&mut self, event: &Event) {
        self.is_ready |= event.is_readable() || event.is_error();
        self.has_error |= event.is_error();
        if event.is_writable()
            && let Some(blocked) = self.blocked.as_mut()
        {
            blocked.is_writable = true;
        }
    }

    /// Reading came to the end.
    #[cfg_attr(
        unix,
        expect(clippy::missing_const_for_fn, reason = "makes calls elsewhere")
    )]
    pub(super) fn on_empty(&mut self, registry: &Registry) -> io::Result<()> {
        self.is_ready = false;
        let interest = self.interest();
        self.source.rearm(registry, self.token, interest)
    }

    pub(super) const fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// Keeps the buffer whose batch the socket had no room for.
    pub(super) fn park(&mut self, buffer: BatchBuffer) {
        self.blocked = Some(Blocked {
            buffer,
            is_writable: false,
        });
    }

    /// Gives the parked buffer back, once there may be room.
    pub(super) fn take_parked(&mut self) -> Option<BatchBuffer> {
        if self.blocked.as_ref()?.is_writable {
            self.blocked.take().map(|blocked| blocked.buffer)
        } else {
            None
        }
    }

    /// Has the poller watch what matters now.
    pub(super) fn watch(&mut self, registry: &Registry) -> io::Result<()> {
        let (was, is, interest) = (self.watches_writable, self.is_blocked(), self.interest());
        self.watches_writable = is;
        match (was, is) {
            (false, false) => Ok(()),
            (true, true) => self.source.rearm(registry, self.token, interest),
            (false, true) | (true, false) => self.source.reregister(registry, self.token, interest),
        }
    }

    pub(super) fn icmp_error(&mut self) -> Option<IcmpError> {
        if !self.has_error && !self.socket.has_icmp_error() {
            return None;
        }
        let error = self.socket.icmp_error();
        self.has_error = error.is_some();
        error
    }

    const fn interest(&self) -> Interest {
        if self.is_blocked() {
            Interest::READABLE.add(Interest::WRITABLE)
        } else {
            Interest::READABLE
        }
    }
}

#[cfg(unix)]
mod source {
    //! A descriptor can be watched while others use it.

    use std::{
        io,
        os::fd::{AsRawFd as _, RawFd},
    };

    use mio::{Interest, Registry, Token, event::Source as _, unix::SourceFd};
    use quic_udp::Socket;

    #[derive(Debug)]
    pub(super) struct Source(RawFd);

    impl Source {
        #[expect(clippy::unnecessary_wraps, reason = "fails elsewhere")]
        pub(super) fn new(socket: &Socket) -> io::Result<Self> {
            Ok(Self(socket.as_raw_fd()))
        }

        #[expect(clippy::needless_pass_by_ref_mut, reason = "changes state elsewhere")]
        pub(super) fn register(
            &mut self,
            registry: &Registry,
            token: Token,
            interest: Interest,
        ) -> io::Result<()> {
            SourceFd(&self.0).register(registry, token, interest)
        }

        #[expect(clippy::needless_pass_by_ref_mut, reason = "changes state elsewhere")]
        pub(super) fn reregister(
            &mut self,
            registry: &Registry,
            token: Token,
            interest: Interest,
        ) -> io::Result<()> {
            SourceFd(&self.0).reregister(registry, token, interest)
        }

        /// The next edge comes by itself.
        #[expect(
            clippy::unnecessary_wraps,
            clippy::unused_self,
            reason = "has work elsewhere"
        )]
        pub(super) const fn rearm(&self, _: &Registry, _: Token, _: Interest) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(windows)]
mod source {
    //! The poller watches only sockets of its own type, here a second handle of ours. It believes that a socket has an
    //! edge left until one of its own calls would have blocked, so it is told anew when one of ours did.

    use std::{io, net::UdpSocket, os::windows::io::AsSocket as _};

    use mio::{Interest, Registry, Token, event::Source as _};
    use quic_udp::Socket;

    #[derive(Debug)]
    pub(super) struct Source(mio::net::UdpSocket);

    impl Source {
        pub(super) fn new(socket: &Socket) -> io::Result<Self> {
            let handle = socket.as_socket().try_clone_to_owned()?;
            Ok(Self(mio::net::UdpSocket::from_std(UdpSocket::from(handle))))
        }

        pub(super) fn register(
            &mut self,
            registry: &Registry,
            token: Token,
            interest: Interest,
        ) -> io::Result<()> {
            self.0.register(registry, token, interest)
        }

        pub(super) fn reregister(
            &mut self,
            registry: &Registry,
            token: Token,
            interest: Interest,
        ) -> io::Result<()> {
            self.0.reregister(registry, token, interest)
        }

        pub(super) fn rearm(
            &mut self,
            registry: &Registry,
            token: Token,
            interest: Interest,
        ) -> io::Result<()> {
            self.0.reregister(registry, token, interest)
        }
    }
}
