//! The boundary to the system: the few calls that the policies above are written against, so that tests can make any
//! of them fail.

use std::{
    io::{self, IoSliceMut},
    net::SocketAddr,
};

use quinn_udp::{RecvMeta, Transmit};

use crate::icmp::IcmpError;

/// One socket's system calls.
pub(crate) trait Calls {
    /// Sends one datagram, or several of equal size.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()>;
    /// Fills buffers, and as much of `meta`; returns how many. Without buffers, it only tells whether there is such a call.
    fn receive(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize>;
    /// Sends one datagram by the plainest call that there is: without a mark, from whatever address.
    fn send_plain(&self, destination: SocketAddr, contents: &[u8]) -> io::Result<()>;
    /// Receives one datagram by the plainest call that there is; returns its length, and whom it is from.
    fn receive_plain(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)>;
    /// Takes one ICMP error from the socket's queue.
    fn icmp_error(&self) -> io::Result<Option<IcmpError>>;
    /// How many datagrams one send may carry. It drops to 1 when the system refused a send.
    fn max_segments(&self) -> usize;
    /// Forgets what the layer below concluded from failed sends.
    fn renew(&mut self) -> io::Result<()>;
    /// Has the system join no more datagrams for one read: a plain one wouldn't tell them apart.
    fn separate(&self);
}
