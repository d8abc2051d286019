//! The memory that datagrams are received in, and the iterator over what is in it.
//!
//! All sockets of a thread share one buffer, and a packet is decrypted where it lies, so receiving neither allocates
//! nor copies. One slot is enough while the kernel joins datagrams (GRO). While it gives single ones, more slots let
//! one call return several; they lie in the same allocation and cost no memory until then.

use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, SocketAddr},
    slice,
};

use quic_common::{Datagram, Ecn};
use quinn_udp::{EcnCodepoint, RecvMeta};

use crate::{
    address::{is_answerable, normal_address, normal_ip},
    limits::{FULL_READS_TO_GROW, MAX_SLOTS, SLOT_BYTES},
};

/// Long-lived memory for received datagrams.
#[derive(Debug)]
pub struct ReceiveBuffer {
    bytes: Box<[u8]>,
    meta: [RecvMeta; MAX_SLOTS],
    /// How many slots the next read is given.
    slots: usize,
    /// How many slots the last read filled.
    filled: usize,
    /// Reads in a row that filled every slot with a single datagram.
    full_reads: u32,
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiveBuffer {
    /// A buffer whose reads start with one slot.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: vec![0; MAX_SLOTS * SLOT_BYTES].into_boxed_slice(),
            meta: [RecvMeta::default(); MAX_SLOTS],
            slots: 1,
            filled: 0,
            full_reads: 0,
        }
    }

    /// How many slots the next read is given.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// Has `receive` fill the slots, and drops what they held.
    pub(crate) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<Totals> {
        self.filled = 0;
        let slots = self.slots;
        let mut chunks = self.bytes.chunks_exact_mut(SLOT_BYTES);
        let mut buffers: [IoSliceMut<'_>; MAX_SLOTS] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let filled = receive(
            buffers.get_mut(..slots).unwrap_or_default(),
            self.meta.get_mut(..slots).unwrap_or_default(),
        )?;
        self.filled = filled.min(slots);
        let totals = self.totals();
        self.adapt(totals);
        Ok(totals)
    }

    /// What the last read has put here, by a socket that is bound to `bound`.
    pub(crate) fn datagrams(&mut self, bound: SocketAddr) -> Datagrams<'_> {
        Datagrams {
            bound,
            slots: self.bytes.chunks_exact_mut(SLOT_BYTES),
            meta: self.meta.get(..self.filled).unwrap_or_default().iter(),
            run: None,
        }
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for meta in self.meta.iter().take(self.filled) {
            let length = meta.len.min(SLOT_BYTES);
            totals.datagrams += length.div_ceil(stride(meta)).max(1);
            totals.bytes += length;
            if !is_answerable_meta(meta) {
                totals.ignored += 1;
            }
        }
        totals
    }

    fn adapt(&mut self, totals: Totals) {
        if totals.datagrams > self.filled {
            // The kernel joins datagrams: one slot, always the same warm memory, does best.
            self.slots = 1;
            self.full_reads = 0;
        } else if self.filled == self.slots {
            self.full_reads = self.full_reads.saturating_add(1);
            if self.full_reads >= FULL_READS_TO_GROW {
                self.slots = (self.slots * 2).min(MAX_SLOTS);
                self.full_reads = 0;
            }
        } else {
            self.full_reads = 0;
            if self.filled * 2 <= self.slots {
                self.slots = (self.slots / 2).max(1);
            }
        }
    }
}

/// What one read returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) datagrams: usize,
    pub(crate) bytes: usize,
    pub(crate) ignored: usize,
}

/// Bytes of each datagram of a run. Windows on ARM joins datagrams and tells no size: nobody can tell them apart then, so
/// they are one datagram, which QUIC drops if it can't read it.
fn stride(meta: &RecvMeta) -> usize {
    match meta.stride {
        0 => meta.len.max(1),
        stride => stride,
    }
}

fn is_answerable_meta(meta: &RecvMeta) -> bool {
    is_answerable(normal_address(meta.addr), meta.dst_ip.map(normal_ip))
}

/// The datagrams of one read, borrowed from the [`ReceiveBuffer`].
///
/// Datagrams that the kernel joined are told apart again.
#[derive(Debug)]
pub struct Datagrams<'a> {
    bound: SocketAddr,
    slots: slice::ChunksExactMut<'a, u8>,
    meta: slice::Iter<'a, RecvMeta>,
    run: Option<Run<'a>>,
}

/// Datagrams with the same addresses and mark, end to end in one slot.
#[derive(Debug)]
struct Run<'a> {
    rest: &'a mut [u8],
    stride: usize,
    remote: SocketAddr,
    local: SocketAddr,
    ecn: Ecn,
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = Datagram<'a>;

    #[inline] // Else each datagram is moved through memory, and read before it has settled there.
    fn next(&mut self) -> Option<Self::Item> {
        if self.run.is_none() {
            self.run = self.next_run();
        }
        let run = self.run.as_mut()?;
        let rest = std::mem::take(&mut run.rest);
        let (payload, rest) = rest.split_at_mut(run.stride.min(rest.len()));
        let datagram = Datagram {
            remote: run.remote,
            local: Some(run.local),
            ecn: run.ecn,
            payload,
        };
        if rest.is_empty() {
            self.run = None;
        } else {
            run.rest = rest;
        }
        Some(datagram)
    }
}

impl<'a> Datagrams<'a> {
    /// The next run that can be answered. An empty run still is one datagram.
    fn next_run(&mut self) -> Option<Run<'a>> {
        loop {
            let meta = self.meta.next()?;
            let slot = self.slots.next()?;
            if is_answerable_meta(meta) {
                let length = meta.len.min(slot.len());
                return Some(Run {
                    rest: slot.get_mut(..length).unwrap_or_default(),
                    stride: stride(meta),
                    remote: normal_address(meta.addr),
                    local: local_address(self.bound, meta.dst_ip),
                    ecn: mark(meta.ecn),
                });
            }
        }
    }
}

/// Where a socket that is bound to `bound` has received what was sent to `ip`; the system may not tell.
const fn local_address(bound: SocketAddr, ip: Option<IpAddr>) -> SocketAddr {
    match ip {
        Some(ip) => SocketAddr::new(normal_ip(ip), bound.port()),
        None => bound,
    }
}

const fn mark(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        net::{IpAddr, Ipv4Addr, SocketAddr},
    };

    use quic_common::Ecn;
    use quinn_udp::{EcnCodepoint, RecvMeta};

    use super::{ReceiveBuffer, SLOT_BYTES};
    use crate::limits::{FULL_READS_TO_GROW, MAX_SLOTS};

    const BOUND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 443);

    fn meta(len: usize, stride: usize, from: &str) -> RecvMeta {
        let mut meta = RecvMeta::default();
        meta.addr = from.parse().unwrap();
        meta.len = len;
        meta.stride = stride;
        meta.ecn = Some(EcnCodepoint::Ect0);
        meta
    }

    /// Pretends that the kernel returned `messages`, each filled with its index.
    fn fill(buffer: &mut ReceiveBuffer, messages: &[RecvMeta]) {
        buffer
            .fill(|buffers, meta| {
                for (index, message) in messages.iter().enumerate() {
                    let length = message.len.min(SLOT_BYTES);
                    buffers[index][..length].fill(u8::try_from(index).unwrap());
                    meta[index] = *message;
                }
                Ok(messages.len())
            })
            .unwrap();
    }

    fn sizes(buffer: &mut ReceiveBuffer) -> Vec<usize> {
        buffer.datagrams(BOUND).map(|d| d.payload.len()).collect()
    }

    #[test]
    fn joined_datagrams_are_told_apart() {
        let mut buffer = ReceiveBuffer::new();
        fill(&mut buffer, &[meta(2500, 1200, "[::ffff:1.2.3.4]:5")]);
        let all: Vec<_> = buffer.datagrams(BOUND).collect();
        let lengths: Vec<_> = all.iter().map(|d| d.payload.len()).collect();
        assert_eq!(lengths, [1200, 1200, 100]);
        assert!(all.iter().all(|d| d.remote == "1.2.3.4:5".parse().unwrap()));
        assert!(all.iter().all(|d| d.ecn == Ecn::Ect0));
    }

    #[test]
    fn payloads_can_be_changed_where_they_lie() {
        let mut buffer = ReceiveBuffer::new();
        fill(&mut buffer, &[meta(4, 2, "1.2.3.4:5")]);
        let mut all: Vec<_> = buffer.datagrams(BOUND).collect();
        all[0].payload.fill(7);
        all[1].payload.fill(8);
        assert_eq!(
            (&*all[0].payload, &*all[1].payload),
            (&[7, 7][..], &[8, 8][..])
        );
    }

    #[test]
    fn an_empty_datagram_is_one_datagram() {
        let mut buffer = ReceiveBuffer::new();
        fill(&mut buffer, &[meta(0, 0, "1.2.3.4:5")]);
        assert_eq!(sizes(&mut buffer), [0]);
    }

    #[test]
    fn sizes_that_the_kernel_could_not_mean_stay_within_the_slot() {
        let mut buffer = ReceiveBuffer::new();
        fill(&mut buffer, &[meta(usize::MAX, usize::MAX, "1.2.3.4:5")]);
        assert_eq!(sizes(&mut buffer), [SLOT_BYTES]);
    }

    #[test]
    fn a_run_without_the_size_of_its_datagrams_is_one() {
        let mut buffer = ReceiveBuffer::new();
        fill(&mut buffer, &[meta(2400, 0, "1.2.3.4:5")]);
        assert_eq!(sizes(&mut buffer), [2400]);
        assert_eq!(buffer.totals().datagrams, 1);
    }

    #[test]
    fn what_cannot_be_answered_is_left_out() {
        let mut buffer = ReceiveBuffer::new();
        buffer.slots = 2;
        fill(
            &mut buffer,
            &[meta(9, 9, "1.2.3.4:0"), meta(5, 5, "1.2.3.4:5")],
        );
        assert_eq!(sizes(&mut buffer), [5]);
        assert_eq!(buffer.totals().ignored, 1);
    }

    #[test]
    fn a_failed_read_leaves_nothing_of_the_one_before() {
        let mut buffer = ReceiveBuffer::new();
        fill(&mut buffer, &[meta(5, 5, "1.2.3.4:5")]);
        let failed = buffer.fill(|_, _| Err(io::ErrorKind::WouldBlock.into()));
        assert!(failed.is_err());
        assert_eq!(sizes(&mut buffer), [0; 0]);
    }

    #[test]
    fn slots_follow_what_reads_return() {
        let mut buffer = ReceiveBuffer::new();
        let single = meta(1200, 1200, "1.2.3.4:5");
        for _ in 0..FULL_READS_TO_GROW {
            assert_eq!(buffer.slots(), 1);
            fill(&mut buffer, &[single]);
        }
        assert_eq!(buffer.slots(), 2);
        for _ in 0..10 * FULL_READS_TO_GROW {
            let slots = buffer.slots();
            fill(&mut buffer, &vec![single; slots]);
        }
        assert_eq!(buffer.slots(), MAX_SLOTS);
        fill(&mut buffer, &[single; MAX_SLOTS / 2]);
        assert_eq!(buffer.slots(), MAX_SLOTS / 2);
        fill(&mut buffer, &[meta(2400, 1200, "1.2.3.4:5")]);
        assert_eq!(buffer.slots(), 1);
    }
}
