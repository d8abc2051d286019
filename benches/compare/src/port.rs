//! Ports for UDP and TCP both.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
};

/// Ports that are tried. Somebody else may have one for UDP that is free for TCP.
const TRIES: usize = 32;

/// Sockets for both on one free port of loopback.
pub(crate) fn bind() -> io::Result<(TcpListener, UdpSocket)> {
    let mut tries = (0..TRIES).map(|_| {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let udp = UdpSocket::bind(tcp.local_addr()?)?;
        Ok((tcp, udp))
    });
    let found = tries.find(|outcome| match outcome {
        Ok(_) => true,
        Err(error) => io::Error::kind(error) != io::ErrorKind::AddrInUse,
    });
    found.unwrap_or_else(|| Err(io::ErrorKind::AddrInUse.into()))
}
