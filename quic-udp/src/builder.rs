//! Sockets that aren't like all others.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
};

use crate::{
    address::{normal_address, wildcard_for},
    limits::DEFAULT_SOCKET_BUFFER,
    offloads::Offloads,
    socket::Socket,
};

/// How a [`Socket`] is to be made; [`Socket::bind`] makes one as this does with nothing said.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct SocketBuilder {
    offloads: Offloads,
    send_buffer: usize,
    receive_buffer: usize,
}

impl Socket {
    /// Settings for sockets, the usual ones at first.
    pub fn builder() -> SocketBuilder {
        SocketBuilder {
            offloads: Offloads::default(),
            send_buffer: DEFAULT_SOCKET_BUFFER,
            receive_buffer: DEFAULT_SOCKET_BUFFER,
        }
    }
}

impl SocketBuilder {
    /// Asks for kernel buffers of these sizes, in bytes: for sending and for receiving.
    pub const fn buffers(mut self, send: usize, receive: usize) -> Self {
        self.send_buffer = send;
        self.receive_buffer = receive;
        self
    }

    /// Whether Windows may segment what is sent (USO). Off by default: it has raised loss, and crashed a driver. Other
    /// systems segment whenever they can.
    pub const fn windows_segmentation(mut self, is_wanted: bool) -> Self {
        self.offloads.windows_segmentation = is_wanted;
        self
    }

    /// Whether Windows may join what is received (URO). Off by default, and never on ARM, where the datagrams' size isn't
    /// told. Other systems join whenever they can.
    pub const fn windows_joining(mut self, is_wanted: bool) -> Self {
        self.offloads.windows_joining = is_wanted;
        self
    }

    /// As [`Socket::bind`].
    ///
    /// # Errors
    ///
    /// Those of the system: the address is in use, isn't ours, or needs a privilege.
    pub fn bind(self, address: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::open(address)?;
        socket.bind(&address.into())?;
        self.from_std(socket.into())
    }

    /// As [`Socket::bind_for`].
    ///
    /// # Errors
    ///
    /// Those of the system, notably when it doesn't have that address family.
    pub fn bind_for(self, remote: SocketAddr) -> io::Result<Socket> {
        self.bind(wildcard_for(normal_address(remote)))
    }

    /// As [`Socket::from_std`].
    ///
    /// # Errors
    ///
    /// When an option without which QUIC can't do is refused.
    #[expect(clippy::wrong_self_convention, reason = "as the method of Socket")]
    pub fn from_std(self, socket: UdpSocket) -> io::Result<Socket> {
        Socket::take_over(socket, self.offloads, self.send_buffer, self.receive_buffer)
    }
}
