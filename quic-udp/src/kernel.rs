//! The real system calls, those of quinn-udp, and what of the system is used.

use std::{
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
};

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::{calls::Calls, icmp::IcmpError, offloads::Offloads};

/// The real calls.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) socket: UdpSocket,
    state: UdpSocketState,
    offloads: Offloads,
}

impl Kernel {
    /// Takes `socket` over: makes it non-blocking, forbids fragmentation, and turns on what the system offers.
    pub(crate) fn new(socket: UdpSocket, offloads: Offloads) -> io::Result<Self> {
        let state = new_state(&socket, offloads)?;
        Ok(Self {
            socket,
            state,
            offloads,
        })
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
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        if buffers.is_empty() {
            return Ok(0);
        }
        self.state
            .recv(UdpSockRef::from(&self.socket), buffers, meta)
    }

    fn send_plain(&self, destination: SocketAddr, contents: &[u8]) -> io::Result<()> {
        self.socket.send_to(contents, destination).map(|_length| ())
    }

    fn receive_plain(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.socket.recv_from(buffer)
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
        if self.offloads.segments_here() {
            self.state.max_gso_segments()
        } else {
            1
        }
    }

    fn renew(&mut self) -> io::Result<()> {
        self.state = new_state(&self.socket, self.offloads)?;
        Ok(())
    }

    fn separate(&self) {
        forbid_joining(&self.socket);
    }
}

fn new_state(socket: &UdpSocket, offloads: Offloads) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(UdpSockRef::from(socket))?;
    disable_timestamps(socket)?;
    apply(offloads, socket, &state)?;
    Ok(state)
}

/// Windows joins datagrams for those who ask for it.
#[cfg(windows)]
fn apply(offloads: Offloads, socket: &UdpSocket, state: &UdpSocketState) -> io::Result<()> {
    state.set_gro(UdpSockRef::from(socket), offloads.joins_here())
}

/// Apple's calls for several datagrams have been tried by then.
#[cfg(all(feature = "apple-fast-path", target_vendor = "apple"))]
#[expect(clippy::unnecessary_wraps, reason = "fails elsewhere")]
fn apply(_: Offloads, _: &UdpSocket, state: &UdpSocketState) -> io::Result<()> {
    if fast_path::works() {
        fast_path::enable(state);
    }
    Ok(())
}

#[cfg(not(any(windows, all(feature = "apple-fast-path", target_vendor = "apple"))))]
#[expect(clippy::unnecessary_wraps, reason = "fails elsewhere")]
const fn apply(_: Offloads, _: &UdpSocket, _: &UdpSocketState) -> io::Result<()> {
    Ok(())
}

/// Apple's private calls for several datagrams at a time: used once between two sockets of this process, before any
/// other socket relies on them.
#[cfg(all(feature = "apple-fast-path", target_vendor = "apple"))]
mod fast_path {
    use std::{io, net::UdpSocket, sync::OnceLock};

    use quinn_udp::{UdpSockRef, UdpSocketState};

    use super::Kernel;
    use crate::{offloads::Offloads, probe::carries};

    /// Whether they carry datagrams as the plain calls do. Tried once in a process.
    pub(super) fn works() -> bool {
        static WORKS: OnceLock<bool> = OnceLock::new();
        *WORKS.get_or_init(|| {
            let (Ok(from), Ok(to)) = (socket(), socket()) else {
                return false;
            };
            carries(&from.0, from.1, &to.0, to.1)
        })
    }

    fn socket() -> io::Result<(Kernel, std::net::SocketAddr)> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let address = socket.local_addr()?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        enable(&state);
        let offloads = Offloads::default();
        let kernel = Kernel {
            socket,
            state,
            offloads,
        };
        Ok((kernel, address))
    }

    #[expect(unsafe_code, reason = "quinn-udp marks the calls as unsafe to turn on")]
    pub(super) fn enable(state: &UdpSocketState) {
        // SAFETY: quinn-udp looks the functions up when the program runs, and goes without where there are none. Their
        // arguments have been the same in all versions of the system; `works` has tried them, or is doing so.
        unsafe { state.set_apple_fast_path() }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn forbid_joining(socket: &UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt::UdpGroSegment};

    // A system that can't be told doesn't join.
    let _ = setsockopt(socket, UdpGroSegment, &false);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
const fn forbid_joining(_: &UdpSocket) {}

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

    use super::Kernel;
    use crate::{calls::Calls as _, offloads::Offloads, probe::carries};

    fn kernel() -> (Kernel, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        (Kernel::new(socket, Offloads::default()).unwrap(), address)
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

    /// What Apple's calls have to show, Linux' can as well.
    #[test]
    fn the_probe_believes_calls_that_work() {
        let (from, to) = (kernel(), kernel());
        assert!(carries(&from.0, from.1, &to.0, to.1));
    }

    #[test]
    fn plain_calls_carry_single_datagrams() {
        let (from, to) = (kernel(), kernel());
        to.0.separate();
        for length in [1000, 0] {
            from.0.send_plain(to.1, &vec![7; length]).unwrap();
        }
        let mut bytes = [0; 2000];
        assert_eq!(to.0.receive_plain(&mut bytes).unwrap(), (1000, from.1));
        assert_eq!(to.0.receive_plain(&mut bytes).unwrap(), (0, from.1));
    }
}
