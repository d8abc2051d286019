//! Sockets that share an address, one for each thread.
//!
//! The kernel chooses among them for every datagram. It is given a program that finds the connection ID and works out
//! whose it is, as [`Share`](quic_common::Share) does, so that a datagram reaches the right thread whatever address it
//! came from.

use std::{io, net::SocketAddr};

use crate::socket::Socket;

impl Socket {
    /// `count` sockets bound to `address`, in the order of the [`Share`](quic_common::Share)s that they are for.
    ///
    /// # Errors
    ///
    /// Those of [`Socket::bind`]; [`Unsupported`](io::ErrorKind::Unsupported) for more than one where the system doesn't
    /// divide datagrams among sockets.
    pub fn bind_shared(address: SocketAddr, count: u16) -> io::Result<Vec<Self>> {
        if count == 1 {
            return Ok(vec![Self::bind(address)?]);
        }
        system::bind(address, count)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::{io, net::SocketAddr};

    use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
    use quic_common::SHARE_BYTES;

    use crate::socket::Socket;

    /// From the datagram, at a place that is known.
    const LOAD: u32 = libc::BPF_LD | libc::BPF_ABS;

    pub(super) fn bind(address: SocketAddr, count: u16) -> io::Result<Vec<Socket>> {
        let address = free(address)?;
        let sockets: Vec<_> = (0..count)
            .map(|_| shared(address))
            .collect::<io::Result<_>>()?;
        if let Some(first) = sockets.first() {
            steer(first, count)?;
        }
        sockets.into_iter().map(Socket::from_std).collect()
    }

    /// An address that nobody else has, with a free port for 0: a socket that shares would join a stranger's group.
    fn free(address: SocketAddr) -> io::Result<SocketAddr> {
        let alone = Socket::open(address)?;
        alone.bind(&address.into())?;
        std::net::UdpSocket::from(alone).local_addr()
    }

    fn shared(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
        let socket = Socket::open(address)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        Ok(socket.into())
    }

    /// Has the kernel choose among the `count` sockets of the group by connection ID. It takes the sockets in the order in
    /// which they were bound; what is too short for the program goes to the first.
    fn steer(first: &std::net::UdpSocket, count: u16) -> io::Result<()> {
        let mut program = program(count);
        let filter = libc::sock_fprog {
            len: u16::try_from(program.len()).unwrap_or_default(),
            filter: program.as_mut_ptr(),
        };
        Ok(setsockopt(first, AttachReusePortCbpf, &filter)?)
    }

    /// A short header has the ID behind its first byte; a long one has the version and a length between
    /// ([RFC 8999, section 5](https://www.rfc-editor.org/rfc/rfc8999#section-5)).
    fn program(count: u16) -> [libc::sock_filter; 7] {
        let bytes = u32::try_from(SHARE_BYTES.start).unwrap_or_default();
        let step = |code: u32, jt, jf, k| libc::sock_filter {
            code: u16::try_from(code).unwrap_or_default(),
            jt,
            jf,
            k,
        };
        [
            step(LOAD | libc::BPF_B, 0, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 2, 0, 0x80),
            step(LOAD | libc::BPF_W, 0, 0, 1 + bytes),
            step(libc::BPF_JMP | libc::BPF_JA, 0, 0, 1),
            step(LOAD | libc::BPF_W, 0, 0, 6 + bytes),
            step(
                libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K,
                0,
                0,
                count.into(),
            ),
            step(libc::BPF_RET | libc::BPF_A, 0, 0, 0),
        ]
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{io, net::SocketAddr};

    use crate::socket::Socket;

    pub(super) fn bind(_: SocketAddr, _: u16) -> io::Result<Vec<Socket>> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this system does not divide datagrams among sockets",
        ))
    }
}
