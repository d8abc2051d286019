//! The bytes of streams: reassembly, and what is kept until it is acknowledged.

use quic_common::Reader;

use super::{byte, narrow, pattern, short, wide};
use crate::buffer::{ChunkPool, ReceiveBuffer, SendBuffer};

/// Offsets that a model reaches: some chunks of a buffer.
const SPAN: usize = 3 << 14;

/// Puts pieces in and takes bytes out as the bytes say, and compares with a plain array: the first copy of a byte wins.
pub fn reassembly(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let mut model = Reassembly {
        buffer: ReceiveBuffer::default(),
        pool: ChunkPool::default(),
        bytes: Vec::new(),
        read: 0,
        content: 0,
    };
    while model.step(&mut input).is_some() {}
}

struct Reassembly {
    buffer: ReceiveBuffer,
    pool: ChunkPool,
    bytes: Vec<Option<u8>>,
    read: usize,
    /// Each piece has other bytes.
    content: u8,
}

impl Reassembly {
    fn step(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let operation = byte(input)?;
        match operation % 8 {
            0..=2 => {
                let near = self.contiguous() + byte(input)?;
                self.insert(near.saturating_sub(60), short(input)? % 3000)?;
            }
            3 => self.insert(short(input)? * 2, short(input)? % 3000)?,
            4 => self.insert(self.contiguous(), short(input)? % 40_000)?,
            5 => self.take(short(input)?),
            6 => self.borrow(short(input)?),
            _ if operation == 255 => {
                self.buffer.discard(&mut self.pool);
                self.bytes.clear();
                assert_eq!(self.buffer.readable(), 0);
                return None;
            }
            _ => self.take(byte(input)?),
        }
        let contiguous = self.contiguous();
        assert_eq!(self.buffer.contiguous(), wide(contiguous));
        assert_eq!(self.buffer.read_offset(), wide(self.read));
        assert_eq!(self.buffer.readable(), wide(contiguous - self.read));
        let beyond = self.bytes.iter().skip(contiguous).any(Option::is_some);
        assert_eq!(self.buffer.has_pieces(), beyond);
        Some(())
    }

    fn contiguous(&self) -> usize {
        let rest = &self.bytes[self.read..];
        self.read + rest.iter().take_while(|byte| byte.is_some()).count()
    }

    fn insert(&mut self, start: usize, length: usize) -> Option<()> {
        let end = (start + length).min(SPAN);
        let start = start.min(end);
        self.content = self.content.wrapping_add(1);
        let data = vec![self.content; end - start];
        let inserted = self.buffer.insert(wide(start), &data, &mut self.pool);
        if self.bytes.len() < end {
            self.bytes.resize(end, None);
        }
        for byte in &mut self.bytes[start..end] {
            byte.get_or_insert(self.content);
        }
        if inserted.is_err() {
            let runs = self.bytes.windows(2);
            let starts = runs.filter(|two| two[0].is_none() && two[1].is_some());
            assert!(starts.count() > crate::limits::REASSEMBLY_PIECES);
        }
        inserted.ok()
    }

    fn take(&mut self, length: usize) {
        let mut target = vec![0; length];
        let count = self.buffer.read(&mut target, &mut self.pool);
        let contiguous = self.contiguous();
        assert_eq!(count, length.min(contiguous - self.read));
        self.compare(&target[..count]);
        self.read += count;
    }

    fn borrow(&mut self, length: usize) {
        let lent = self.buffer.fill().to_vec();
        assert_eq!(lent.is_empty(), self.contiguous() == self.read);
        self.compare(&lent);
        let used = length.min(lent.len());
        assert_eq!(self.buffer.consume(used, &mut self.pool), wide(used));
        self.read += used;
    }

    fn compare(&self, data: &[u8]) {
        let expected = &self.bytes[self.read..][..data.len()];
        assert!(
            data.iter()
                .map(|byte| Some(*byte))
                .eq(expected.iter().copied())
        );
    }
}

/// Writes, lends, sends, acknowledges and loses ranges as the bytes say, and compares with the fate of each single byte.
pub fn send_buffer(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let mut model = Sending {
        buffer: SendBuffer::default(),
        pool: ChunkPool::default(),
        fates: Vec::new(),
    };
    while model.step(&mut input).is_some() {
        model.check();
    }
}

struct Sending {
    buffer: SendBuffer,
    pool: ChunkPool,
    fates: Vec<Fate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Written,
    InFlight,
    Lost,
    Acked,
}

impl Sending {
    fn step(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let operation = byte(input)?;
        match operation % 8 {
            0 => {
                let length = short(input)? % 20_000;
                let start = self.fates.len();
                let end = (start + length).min(SPAN);
                let data: Vec<u8> = (start..end).map(pattern).collect();
                if operation & 8 == 0 {
                    self.buffer.write(&data, &mut self.pool);
                } else {
                    self.buffer.lend(data.into());
                }
                self.fates.resize(end, Fate::Written);
            }
            1 | 2 => self.send(short(input)? % 3000),
            3 => self.send_again(short(input)? % 3000),
            4 | 5 => {
                let (start, end) = self.range(input)?;
                let fresh = self.buffer.on_acked(wide(start)..wide(end), &mut self.pool);
                let sent = self.sent();
                let mut expected = 0;
                for fate in &mut self.fates[start..end.min(sent).max(start)] {
                    expected += u64::from(*fate != Fate::Acked);
                    *fate = Fate::Acked;
                }
                assert_eq!(fresh, expected);
            }
            6 => {
                let (start, end) = self.range(input)?;
                self.buffer.on_lost(wide(start)..wide(end));
                for fate in &mut self.fates[start..end] {
                    if *fate == Fate::InFlight {
                        *fate = Fate::Lost;
                    }
                }
            }
            _ if operation == 255 => {
                self.buffer.discard(&mut self.pool);
                assert!(self.buffer.is_acked() && !self.buffer.has_lost());
                return None;
            }
            _ if operation == 247 => {
                let base = self.base();
                let end = (short(input)? * 2).clamp(base, self.fates.len().max(base));
                self.buffer.truncate(wide(end));
                self.fates.truncate(end);
                // Nothing is written behind the end.
                while self.fates.len() > self.sent() {
                    self.send(1000);
                }
                while self.buffer.has_lost() {
                    self.send_again(1000);
                }
                self.check();
                return None;
            }
            _ if operation == 239 && self.fates.iter().all(|fate| *fate != Fate::Acked) => {
                self.buffer.restart();
                self.fates.fill(Fate::Written);
            }
            _ => self.send(byte(input)?),
        }
        Some(())
    }

    /// A range of what has been sent, often one that begins where the acknowledged part ends.
    fn range(&self, input: &mut Reader<'_>) -> Option<(usize, usize)> {
        let sent = self.sent();
        let (place, length) = (short(input)?, short(input)?);
        let start = if place % 4 == 0 {
            self.base()
        } else {
            (place * 2).min(sent)
        };
        Some((start, (start + length).min(sent)))
    }

    /// Where the acknowledged part ends.
    fn base(&self) -> usize {
        self.fates.iter().take_while(|f| **f == Fate::Acked).count()
    }

    fn sent(&self) -> usize {
        self.fates.partition_point(|fate| *fate != Fate::Written)
    }

    fn send(&mut self, limit: usize) {
        let start = self.sent();
        let length = limit.min(self.fates.len() - start);
        let chunk = self.buffer.take_new(limit);
        let taken = chunk.map(|chunk| (narrow(chunk.offset), chunk.length));
        assert_eq!(taken, (length > 0).then_some((start, length)));
        self.fates[start..start + length].fill(Fate::InFlight);
        self.compare(start, length);
    }

    fn send_again(&mut self, limit: usize) {
        let lost = self.fates.iter().position(|fate| *fate == Fate::Lost);
        let first = lost.unwrap_or(0);
        let run = self.fates[first..].iter();
        let length = run
            .take_while(|fate| **fate == Fate::Lost)
            .count()
            .min(limit);
        let chunk = self.buffer.take_lost(limit);
        let taken = chunk.map(|chunk| (narrow(chunk.offset), chunk.length));
        assert_eq!(taken, (length > 0).then_some((first, length)));
        self.fates[first..first + length].fill(Fate::InFlight);
        self.compare(first, length);
    }

    fn compare(&mut self, start: usize, length: usize) {
        let mut space = vec![0; length];
        self.buffer.copy_to(wide(start), &mut space);
        assert!(space.into_iter().eq((start..start + length).map(pattern)));
    }

    fn check(&self) {
        let (mut sent, mut acked, mut lost) = (0, 0, 0);
        for fate in &self.fates {
            sent += usize::from(*fate != Fate::Written);
            acked += usize::from(*fate == Fate::Acked);
            lost += usize::from(*fate == Fate::Lost);
        }
        assert_eq!(self.buffer.end(), wide(self.fates.len()));
        assert_eq!(self.buffer.sent(), wide(sent));
        assert_eq!(self.buffer.unsent(), wide(self.fates.len() - sent));
        assert_eq!(self.buffer.unacked(), wide(sent - acked));
        assert_eq!(self.buffer.is_sent_acked(), acked == sent);
        assert_eq!(self.buffer.is_acked(), acked == self.fates.len());
        assert_eq!(self.buffer.has_lost(), lost > 0);
    }
}
