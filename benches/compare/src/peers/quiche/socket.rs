//! A socket that waits for datagrams, and sends as many at a time as the kernel segments.

use std::{
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    ops::Range,
    time::Duration,
};

use quiche::{Connection, RecvInfo};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::{Outcome, peers::SOCKET_BUFFER};

/// What one call sends at most: what the system takes, less some.
const BATCH: usize = 65_400;

/// Datagrams of one at most, for older kernels.
const SEGMENTS: usize = 64;

/// Room for a batch and the datagram that turns out not to belong to it.
const ROOM: usize = BATCH + (1 << 16);

/// Datagrams of one size, the last of which may be shorter, and one that is longer than they are, if anything.
#[derive(Default)]
struct Batch {
    to: Option<SocketAddr>,
    length: usize,
    segment: usize,
    longer: usize,
}

/// A socket, and what is kept between two uses of it.
pub(super) struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
    address: SocketAddr,
    /// Bytes of a datagram.
    datagram: usize,
    received: Vec<u8>,
    batch: Vec<u8>,
}

impl Socket {
    pub(super) fn bind(address: SocketAddr, datagram: usize) -> Outcome<Self> {
        let socket = UdpSocket::bind(address)?;
        let options = socket2::SockRef::from(&socket);
        options.set_recv_buffer_size(SOCKET_BUFFER)?;
        options.set_send_buffer_size(SOCKET_BUFFER)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        socket.set_nonblocking(false)?;
        Ok(Self {
            address: socket.local_addr()?,
            udp: socket,
            state,
            datagram,
            received: vec![0; 1 << 16],
            batch: vec![0; ROOM],
        })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for datagrams, and hands them over one by one; without any after `wait`, for none.
    pub(super) fn receive(
        &mut self,
        wait: Option<Duration>,
        mut each: impl FnMut(&mut [u8], RecvInfo) -> Outcome<()>,
    ) -> Outcome<()> {
        let wait = wait.map(|wait| wait.max(Duration::from_micros(1)));
        self.udp.set_read_timeout(wait)?;
        let mut meta = [RecvMeta::default()];
        let mut slices = [IoSliceMut::new(&mut self.received)];
        match self
            .state
            .recv(UdpSockRef::from(&self.udp), &mut slices, &mut meta)
        {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            other => other?,
        };
        let [meta] = meta;
        let received = self.received.get_mut(..meta.len).unwrap_or_default();
        for datagram in received.chunks_mut(meta.stride.max(1)) {
            let info = RecvInfo {
                from: meta.addr,
                to: self.address,
            };
            each(datagram, info)?;
        }
        Ok(())
    }

    /// Sends all that the connection has.
    pub(super) fn flush(&mut self, connection: &mut Connection) -> Outcome<()> {
        loop {
            let batch = self.fill(connection)?;
            let Some(to) = batch.to else {
                return Ok(());
            };
            self.send(to, 0..batch.length, batch.segment)?;
            if batch.longer > 0 {
                let end = batch.length + batch.longer;
                self.send(to, batch.length..end, batch.longer)?;
            }
        }
    }

    fn fill(&mut self, connection: &mut Connection) -> Outcome<Batch> {
        let most = BATCH / self.datagram * self.datagram;
        let quantum = connection.send_quantum().min(most).max(self.datagram);
        let mut batch = Batch::default();
        while batch.length < quantum && batch.length < SEGMENTS * batch.segment.max(1) {
            let room = batch.length..batch.length + self.datagram;
            match connection.send(self.batch.get_mut(room).unwrap_or_default()) {
                Ok((size, info)) if batch.to.is_none() => {
                    batch.to = Some(info.to);
                    (batch.length, batch.segment) = (size, size);
                }
                Ok((size, _)) if size == batch.segment => batch.length += size,
                Ok((size, _)) if size < batch.segment => {
                    batch.length += size;
                    break;
                }
                Ok((size, _)) => {
                    batch.longer = size;
                    break;
                }
                Err(quiche::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(batch)
    }

    fn send(&self, to: SocketAddr, bytes: Range<usize>, segment: usize) -> Outcome<()> {
        let contents = self.batch.get(bytes).unwrap_or_default();
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents,
            segment_size: Some(segment).filter(|segment| *segment < contents.len()),
            src_ip: None,
        };
        let socket = UdpSockRef::from(&self.udp);
        Ok(self.state.try_send(socket, &transmit)?)
    }
}
