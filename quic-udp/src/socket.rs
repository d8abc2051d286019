//! The socket itself.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
};

use quic_common::{BatchBuffer, BatchHead, DatagramBatch};
use socket2::{Domain, SockRef, Type};

use crate::{
    address::{Bound, normal_address, wildcard_for},
    calls::Calls as _,
    counters::Counters,
    icmp::IcmpError,
    kernel::Kernel,
    limits::DEFAULT_SOCKET_BUFFER,
    offloads::Offloads,
    receive_buffer::{Datagrams, ReceiveBuffer},
    sizing::{BufferSize, negotiate},
    transfer::{Sent, Transfer},
};

/// A non-blocking UDP socket that never fragments, with what the system offers for QUIC turned on.
///
/// Register it with a poller by its [`AsFd`](std::os::fd::AsFd) (or `AsSocket`). Pollers that report edges see a new
/// one only after [`receive`](Self::receive) has failed with [`WouldBlock`](io::ErrorKind::WouldBlock), or a send has
/// returned [`Sent::Blocked`].
#[derive(Debug)]
pub struct Socket {
    transfer: Transfer<Kernel>,
    send_buffer: BufferSize,
    receive_buffer: BufferSize,
}

impl Socket {
    /// A socket bound to `address`, with [`DEFAULT_SOCKET_BUFFER`] bytes each way asked for.
    ///
    /// The IPv6 wildcard takes IPv4 traffic too, where the system allows it.
    ///
    /// # Errors
    ///
    /// Those of the system: the address is in use, isn't ours, or needs a privilege.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Self::open(address)?;
        socket.bind(&address.into())?;
        Self::from_std(socket.into())
    }

    /// A socket that is still to be bound to `address`.
    pub(crate) fn open(address: SocketAddr) -> io::Result<socket2::Socket> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        if let IpAddr::V6(ip) = address.ip() {
            // Refused on systems without IPv4-mapped addresses: then it is an IPv6 socket only.
            let only_v6 = !ip.is_unspecified();
            if socket.set_only_v6(only_v6).is_err() {
                socket.set_only_v6(true)?;
            }
        }
        Ok(socket)
    }

    /// A socket for a client whose server has the address `remote`: any local address and port of its family.
    ///
    /// # Errors
    ///
    /// Those of the system, notably when it doesn't have that address family.
    pub fn bind_for(remote: SocketAddr) -> io::Result<Self> {
        Self::bind(wildcard_for(normal_address(remote)))
    }

    /// Takes over a bound socket; it becomes non-blocking.
    ///
    /// # Errors
    ///
    /// When an option without which QUIC can't do is refused.
    pub fn from_std(socket: UdpSocket) -> io::Result<Self> {
        let size = DEFAULT_SOCKET_BUFFER;
        Self::take_over(socket, Offloads::default(), size, size)
    }

    /// Takes over a bound socket, and asks for kernel buffers of these sizes.
    pub(crate) fn take_over(
        socket: UdpSocket,
        offloads: Offloads,
        send: usize,
        receive: usize,
    ) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let options = SockRef::from(&socket);
        let bound = Bound {
            address: normal_address(address),
            ipv6: address.is_ipv6(),
            dual_stack: address.is_ipv6() && !options.only_v6().unwrap_or(true),
        };
        let send_buffer = send_size(&socket, send)?;
        let receive_buffer = receive_size(&socket, receive)?;
        Ok(Self {
            transfer: Transfer::new(Kernel::new(socket, offloads)?, bound),
            send_buffer,
            receive_buffer,
        })
    }

    /// Asks for other buffer sizes, in bytes, and returns what the kernel granted for sending and receiving.
    ///
    /// # Errors
    ///
    /// When the granted sizes can't be read.
    pub fn resize_buffers(
        &mut self,
        send: usize,
        receive: usize,
    ) -> io::Result<(BufferSize, BufferSize)> {
        let socket = &self.transfer.calls.socket;
        self.send_buffer = send_size(socket, send)?;
        self.receive_buffer = receive_size(socket, receive)?;
        // The layer below may go by the size that it knew.
        self.transfer.calls.renew()?;
        Ok((self.send_buffer, self.receive_buffer))
    }

    /// The kernel's buffer for datagrams to be sent.
    #[must_use]
    pub const fn send_buffer(&self) -> BufferSize {
        self.send_buffer
    }

    /// The kernel's buffer for received datagrams.
    #[must_use]
    pub const fn receive_buffer(&self) -> BufferSize {
        self.receive_buffer
    }

    /// The address that the socket is bound to.
    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.transfer.bound.address
    }

    /// Whether the socket reaches IPv4 and IPv6 addresses.
    #[must_use]
    pub const fn is_dual_stack(&self) -> bool {
        self.transfer.bound.dual_stack
    }

    /// How many datagrams one send call carries at most: 1 if the system can't segment.
    #[must_use]
    pub const fn segments(&self) -> usize {
        self.transfer.segments()
    }

    /// Whether the system may fragment what is larger than the MTU, so that no path MTU can be learned.
    #[must_use]
    pub fn may_fragment(&self) -> bool {
        self.transfer.calls.may_fragment()
    }

    /// What was sent and received so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.transfer.counters
    }

    /// Reads what has arrived, with one system call. The datagrams are borrowed from `buffer`; those of the read before
    /// are gone.
    ///
    /// There may be none although more have arrived; only `WouldBlock` says that the socket is empty.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when nothing has arrived. Another error means that the socket is of no
    /// further use: what a peer or the network may cause is never returned.
    pub fn receive<'b>(&mut self, buffer: &'b mut ReceiveBuffer) -> io::Result<Datagrams<'b>> {
        self.transfer.receive(buffer)
    }

    /// Sends a batch, with one system call where the system can segment it.
    ///
    /// When the socket is full, park the batch or use [`send_or_park`](Self::send_or_park).
    pub fn send(&mut self, batch: DatagramBatch<'_>) -> Sent {
        self.transfer.send(batch)
    }

    /// Sends the batch at the start of `buffer`, and parks in it what a full socket leaves.
    ///
    /// Until [`send_parked`](Self::send_parked) has emptied it, the buffer belongs to this socket.
    pub fn send_or_park(&mut self, buffer: &mut BatchBuffer, head: BatchHead) -> Sent {
        let sent = self.send(buffer.batch(head));
        if let Sent::Blocked { sent } = sent {
            buffer.park(head);
            buffer.advance_parked(sent);
        }
        sent
    }

    /// Goes on with a parked batch, once the socket is writable.
    pub fn send_parked(&mut self, buffer: &mut BatchBuffer) -> Sent {
        let Some(batch) = buffer.parked() else {
            return Sent::All;
        };
        let sent = self.send(batch);
        if let Sent::Blocked { sent } = sent {
            buffer.advance_parked(sent);
        } else {
            buffer.unpark();
        }
        sent
    }

    /// Has the system report ICMP errors, for [`icmp_error`](Self::icmp_error). For clients: a server has no use for
    /// what anyone on the path or off it may claim. Does nothing where the system can't.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn enable_icmp_errors(&mut self) -> io::Result<()> {
        self.transfer.calls.enable_icmp_errors()?;
        self.transfer.icmp.enable();
        Ok(())
    }

    /// Whether an ICMP error was met while sending or receiving, and waits in [`icmp_error`](Self::icmp_error).
    #[must_use]
    pub fn has_icmp_error(&self) -> bool {
        self.transfer.icmp.has_waiting()
    }

    /// The next ICMP error, if there is one; ask when the poller reports the socket readable or in error.
    pub fn icmp_error(&mut self) -> Option<IcmpError> {
        self.transfer.icmp.pop(&self.transfer.calls)
    }
}

fn send_size(socket: &UdpSocket, bytes: usize) -> io::Result<BufferSize> {
    let socket = SockRef::from(socket);
    negotiate(
        bytes,
        |size| socket.set_send_buffer_size(size),
        || socket.send_buffer_size(),
    )
}

fn receive_size(socket: &UdpSocket, bytes: usize) -> io::Result<BufferSize> {
    let socket = SockRef::from(socket);
    negotiate(
        bytes,
        |size| socket.set_recv_buffer_size(size),
        || socket.recv_buffer_size(),
    )
}

#[cfg(unix)]
impl std::os::fd::AsFd for Socket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.transfer.calls.socket.as_fd()
    }
}

#[cfg(unix)]
impl std::os::fd::AsRawFd for Socket {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.transfer.calls.socket.as_raw_fd()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsSocket for Socket {
    fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
        self.transfer.calls.socket.as_socket()
    }
}
