//! The boundary to the system: the few calls that the policies above are written against, so that tests can make any
//! of them fail.

use std::{
    io::{self, IoSliceMut},
    net::UdpSocket,
};

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::icmp::IcmpError;

/// One socket's system calls.
pub(crate) trait Calls {
    /// Sends one datagram, or several of equal size.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()>;
    /// Fills buffers, and as much of `meta`; returns how many.
    fn receive(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize>;
    /// Takes one ICMP error from the socket's queue.
    fn icmp_error(&self) -> io::Result<Option<IcmpError>>;
    /// How many datagrams one send may carry. It drops to 1 when the system refused a send.
    fn max_segments(&self) -> usize;
    /// Forgets what the layer below concluded from failed sends.
    fn renew(&mut self) -> io::Result<()>;
}

/// The real calls.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) socket: UdpSocket,
    state: UdpSocketState,
}

impl Kernel {
    /// Takes `socket` over: makes it non-blocking, forbids fragmentation, and turns on what the system offers.
    pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = new_state(&socket)?;
        Ok(Self { socket, state })
    }

    /// Has ICMP errors queued for [`Calls::icmp_error`], on systems that can.
    #[cfg(unix)]
    pub(crate) fn enable_icmp_errors(&self) -> io::Result<()> {
        self.state
            .enable_transport_errors(UdpSockRef::from(&self.socket))
    }

    /// This system reports none.
    #[cfg(not(unix))]
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "has work elsewhere"
    )]
    pub(crate) const fn enable_icmp_errors(&self) -> io::Result<()> {
        Ok(())
    }

    /// Whether datagrams larger than the path's MTU may be fragmented instead of refused.
    pub(crate) fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

impl Calls for Kernel {
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.state
            .try_send(UdpSockRef::from(&self.socket), transmit)
    }

    fn receive(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        self.state
            .recv(UdpSockRef::from(&self.socket), buffers, meta)
    }

    #[cfg(unix)]
    fn icmp_error(&self) -> io::Result<Option<IcmpError>> {
        let error = self
            .state
            .recv_transport_error(UdpSockRef::from(&self.socket))?;
        Ok(error.map(IcmpError::from))
    }

    #[cfg(not(unix))]
    fn icmp_error(&self) -> io::Result<Option<IcmpError>> {
        Ok(None)
    }

    fn max_segments(&self) -> usize {
        // Windows' segmentation offload is known to raise loss and to crash a driver.
        if cfg!(windows) {
            1
        } else {
            self.state.max_gso_segments()
        }
    }

    fn renew(&mut self) -> io::Result<()> {
        self.state = new_state(&self.socket)?;
        Ok(())
    }
}

fn new_state(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(UdpSockRef::from(socket))?;
    disable_timestamps(socket)?;
    Ok(state)
}

/// The kernel's timestamps, which nobody reads, would take the room of the ECN mark: the 96 bytes that quinn-udp has
/// for control messages don't hold both when datagrams are joined.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn disable_timestamps(socket: &UdpSocket) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};

    Ok(setsockopt(socket, ReceiveTimestampns, &false)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(clippy::unnecessary_wraps, reason = "fails elsewhere")]
const fn disable_timestamps(_: &UdpSocket) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "test code")]

    use std::{
        io::IoSliceMut,
        net::{SocketAddr, UdpSocket},
    };

    use quinn_udp::{EcnCodepoint, RecvMeta, Transmit};

    use super::{Calls as _, Kernel};

    fn kernel() -> (Kernel, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        (Kernel::new(socket).unwrap(), address)
    }

    fn send(from: &Kernel, to: SocketAddr, segments: usize) -> std::io::Result<()> {
        let contents = vec![1; segments * 100];
        from.try_send(&Transmit {
            destination: to,
            ecn: Some(EcnCodepoint::Ect0),
            contents: &contents,
            segment_size: (segments > 1).then_some(100),
            src_ip: None,
        })
    }

    fn mark(at: &Kernel) -> Option<EcnCodepoint> {
        let mut bytes = vec![0; 65536];
        let mut meta = [RecvMeta::default()];
        at.receive(&mut [IoSliceMut::new(&mut bytes)], &mut meta)
            .unwrap();
        meta[0].ecn
    }

    /// More segments than any kernel takes make it fail as one without segmentation offload does.
    #[test]
    fn ipv4_carries_ect_again_after_a_failed_segmented_send() {
        let (mut sender, to) = (kernel().0, kernel());
        assert!(sender.max_segments() > 1);
        send(&sender, to.1, 500).unwrap_err();
        assert_eq!(sender.max_segments(), 1);
        send(&sender, to.1, 1).unwrap();
        assert_eq!(mark(&to.0), None, "what the renewal is for");

        sender.renew().unwrap();
        send(&sender, to.1, 1).unwrap();
        assert_eq!(mark(&to.0), Some(EcnCodepoint::Ect0));
        send(&sender, to.1, 3).unwrap();
        assert_eq!(mark(&to.0), Some(EcnCodepoint::Ect0));
    }
}
