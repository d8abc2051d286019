//! System calls that return what a test tells them to.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use std::{
    collections::VecDeque,
    io::{self, IoSliceMut},
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use quinn_udp::{RecvMeta, Transmit};

use super::Transfer;
use crate::{
    address::Bound,
    calls::Calls,
    icmp::{IcmpError, IcmpKind},
};

/// What one read does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read {
    /// Fails with this code.
    Error(i32),
    /// Returns so many joined datagrams of this size.
    Datagrams(usize, usize),
    /// Takes in a datagram whose address is of no family that anyone knows.
    Unknown,
}

/// Calls that follow a script: sends succeed and reads find nothing once it is at its end.
#[derive(Debug)]
pub(crate) struct Script {
    sends: Mutex<VecDeque<i32>>,
    reads: Mutex<VecDeque<Read>>,
    calls: Mutex<Vec<(usize, Option<usize>)>>,
    payload: Mutex<Vec<u8>>,
    icmp_errors: AtomicUsize,
    degrading: bool,
    /// What every send and read with options fails with.
    refusal: Option<i32>,
    max_segments: AtomicUsize,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self {
            sends: Mutex::default(),
            reads: Mutex::default(),
            calls: Mutex::default(),
            payload: Mutex::default(),
            icmp_errors: AtomicUsize::new(0),
            degrading: false,
            refusal: None,
            max_segments: AtomicUsize::new(64),
        }
    }

    /// The codes that sends return, 0 for success.
    pub(crate) fn sends(self, codes: &[i32]) -> Self {
        self.sends.lock().unwrap().extend(codes);
        self
    }

    pub(crate) fn reads(self, reads: &[Read]) -> Self {
        self.reads.lock().unwrap().extend(reads);
        self
    }

    pub(crate) fn icmp_errors(self, count: usize) -> Self {
        self.icmp_errors.store(count, Ordering::Relaxed);
        self
    }

    /// Each send works only at the second try, below.
    pub(crate) const fn degrading(mut self) -> Self {
        self.degrading = true;
        self
    }

    /// Every send and read with options fails with this code; plain ones follow the script.
    pub(crate) const fn refusing_options(mut self, code: i32) -> Self {
        self.refusal = Some(code);
        self
    }

    pub(crate) fn icmp_errors_left(&self) -> usize {
        self.icmp_errors.load(Ordering::Relaxed)
    }

    /// Length and segment size of every send so far.
    pub(crate) fn calls(&self) -> Vec<(usize, Option<usize>)> {
        self.calls.lock().unwrap().clone()
    }

    /// What went out, end to end.
    pub(crate) fn payload(&self) -> Vec<u8> {
        self.payload.lock().unwrap().clone()
    }
}

impl Calls for Script {
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let call = (transmit.contents.len(), transmit.segment_size);
        self.calls.lock().unwrap().push(call);
        if self.degrading {
            self.max_segments.store(1, Ordering::Relaxed);
        }
        if let Some(code) = self.refusal {
            return Err(io::Error::from_raw_os_error(code));
        }
        self.next_send(transmit.contents)
    }

    fn receive(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        if let Some(code) = self.refusal {
            return Err(io::Error::from_raw_os_error(code));
        }
        if buffers.is_empty() {
            return Ok(0);
        }
        match self.next_read() {
            None => Err(io::ErrorKind::WouldBlock.into()),
            Some(Read::Error(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(Read::Unknown) => Err(io::Error::other("neither IPv4 nor IPv6")),
            Some(Read::Datagrams(stride, count)) => {
                buffers[0][..stride * count].fill(1);
                meta[0] = RecvMeta::default();
                meta[0].addr = SocketAddr::from(([127, 0, 0, 1], 1));
                meta[0].len = stride * count;
                meta[0].stride = stride;
                Ok(1)
            }
        }
    }

    fn send_plain(&self, _: SocketAddr, contents: &[u8]) -> io::Result<()> {
        self.next_send(contents)
    }

    fn receive_plain(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match self.next_read() {
            Some(Read::Datagrams(length, 1)) => {
                buffer[..length].fill(1);
                Ok((length, SocketAddr::from(([127, 0, 0, 1], 1))))
            }
            Some(Read::Error(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(Read::Datagrams(..) | Read::Unknown) | None => {
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }

    fn icmp_error(&self) -> io::Result<Option<IcmpError>> {
        let left = self.icmp_errors_left();
        if left == 0 {
            return Ok(None);
        }
        self.icmp_errors.store(left - 1, Ordering::Relaxed);
        let error = IcmpError::new(None, IcmpKind::Unreachable, libc::ECONNREFUSED);
        Ok(Some(error))
    }

    fn max_segments(&self) -> usize {
        self.max_segments.load(Ordering::Relaxed)
    }

    fn renew(&mut self) -> io::Result<()> {
        self.max_segments.store(64, Ordering::Relaxed);
        Ok(())
    }

    fn separate(&self) {}
}

impl Script {
    fn next_send(&self, contents: &[u8]) -> io::Result<()> {
        let code = self.sends.lock().unwrap().pop_front();
        match code {
            None | Some(0) => {
                self.payload.lock().unwrap().extend(contents);
                Ok(())
            }
            Some(code) => {
                if [libc::EIO, libc::EINVAL].contains(&code) {
                    self.max_segments.store(1, Ordering::Relaxed);
                }
                Err(io::Error::from_raw_os_error(code))
            }
        }
    }

    fn next_read(&self) -> Option<Read> {
        self.reads.lock().unwrap().pop_front()
    }
}

/// A transfer over an IPv4 socket.
pub(crate) fn transfer(script: Script) -> Transfer<Script> {
    let bound = Bound {
        address: SocketAddr::from(([0, 0, 0, 0], 4433)),
        ipv6: false,
        dual_stack: false,
    };
    Transfer::new(script, bound)
}
