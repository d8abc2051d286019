//! The streams' API, called in any order at both ends, against a model of what each stream carries.

use std::time::Duration;

use quic_common::{BatchHead, Ecn, Reader};
use quic_transport::{Bytes, Connection, Direction, Side, StreamError, StreamId};

use crate::ends::{Client, Log, Server, Settings};
use crate::network::{Chance, Link};
use crate::pair::Pair;

/// Opens, writes, ends, resets, stops and reads streams as the bytes say, over a network that loses packets.
///
/// Streams have the IDs that come next; bytes arrive as they were written, and the end where they end; what a stream
/// can't do is refused. Nothing closes the connection. In the end everything that was neither reset nor stopped has
/// arrived.
pub fn api(bytes: &[u8]) {
    let mut input = Reader::new(bytes);
    let Ok(first) = input.u8() else {
        return;
    };
    let link = Link {
        loss: Chance::percent(u32::from(first % 4) * 5),
        ..Link::delayed(Duration::from_millis(u64::from(first / 64)))
    };
    let mut pair = Pair::new(&Settings::default(), link);
    pair.handshake();
    let mut model = Model {
        pair,
        streams: Vec::new(),
    };
    while model.step(&mut input).is_some() {}
    model.complete();
}

struct Model {
    pair: Pair<Client<Log>, Server<Log>>,
    streams: Vec<Stream>,
}

/// A stream, and what each side has done with it, the client first.
struct Stream {
    id: StreamId,
    ends: [End; 2],
}

#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what was done, in any combination"
)]
struct End {
    written: usize,
    is_finished: bool,
    is_reset: bool,
    read: usize,
    has_ended: bool,
    has_stopped: bool,
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// Bytes that a stream carries at most.
const MOST: usize = 200_000;

fn pattern(offset: usize) -> u8 {
    u8::try_from((offset ^ ((offset >> 8) * 29)) & 0xff).unwrap()
}

/// Whether a side can send on a stream at all.
fn sends(id: StreamId, side: usize) -> bool {
    id.direction() == Direction::Bidirectional || id.initiator() == SIDES[side]
}

impl Model {
    fn step(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let operation = usize::from(input.u8().ok()?);
        let side = operation / 128;
        match operation % 16 {
            0 | 1 => self.open(side, operation & 16 != 0),
            2 => {
                let time = [0, 1, 10, 300][operation / 32 % 4];
                if operation & 16 != 0 {
                    self.disturb(side, time);
                }
                self.pair.run(Duration::from_millis(time));
            }
            3 if operation & 16 != 0 => {
                let connection = connection(&mut self.pair, side);
                // Before the last one is confirmed there can't be another.
                let _outcome = connection.update_keys();
            }
            operation => {
                let place = usize::from(input.u8().ok()?);
                let count = usize::from(input.u16().ok()?);
                if !self.streams.is_empty() {
                    let place = place % self.streams.len();
                    self.act(side, place, operation, count);
                }
            }
        }
        Some(())
    }

    /// Says what changes timers and sizes, but nothing of what arrives.
    fn disturb(&mut self, side: usize, choice: u64) {
        let now = self.pair.network.now();
        let connection = connection(&mut self.pair, side);
        let after = Duration::from_millis(50);
        let head = BatchHead {
            remote: connection.remote(),
            local: None,
            ecn: Ecn::NotEct,
            length: 1300,
            segment: 1300,
        };
        match choice {
            0 => connection.on_batch_refused(&head),
            1 => connection.set_alarm(now.checked_add(after)),
            10 => connection.set_keep_alive(Some(after)),
            _ => connection.set_keep_alive(None),
        }
    }

    fn open(&mut self, side: usize, is_unidirectional: bool) {
        let direction = if is_unidirectional {
            Direction::Unidirectional
        } else {
            Direction::Bidirectional
        };
        let of_kind = |id: StreamId| id.direction() == direction && id.initiator() == SIDES[side];
        let count = self.streams.iter().filter(|s| of_kind(s.id)).count();
        match connection(&mut self.pair, side).open(direction) {
            Some(id) => {
                assert!(of_kind(id));
                assert_eq!(id.index(), u64::try_from(count).unwrap());
                let ends = [End::default(); 2];
                self.streams.push(Stream { id, ends });
            }
            None => assert!(count >= 100, "the first hundred streams can be opened"),
        }
    }

    fn act(&mut self, side: usize, place: usize, operation: usize, count: usize) {
        let connection = connection(&mut self.pair, side);
        let stream = &mut self.streams[place];
        let id = stream.id;
        match operation {
            3 => {
                let urgency = u8::try_from(count % 8).unwrap();
                let set = connection.set_priority(id, urgency, count & 8 != 0);
                let mark = u32::try_from(count).unwrap();
                assert_eq!(connection.set_low_water_mark(id, mark), set);
                assert!(set.is_ok() || !sends(id, side) || stream.may_be_unknown(side));
            }
            4 | 5 => stream.send(connection, side, count, false),
            6 => stream.send(connection, side, count, true),
            7 => stream.finish(connection, side),
            8 if count.is_multiple_of(4) => {
                let reset = connection.reset(id, 7);
                if reset.is_ok() {
                    assert!(sends(id, side));
                    stream.ends[side].is_reset = true;
                }
            }
            9 if count.is_multiple_of(4) => {
                let stopped = connection.stop(id, 8);
                if stopped.is_ok() {
                    assert!(sends(id, 1 - side));
                    stream.ends[side].has_stopped = true;
                }
            }
            10 | 11 => stream.borrow(connection, side, count),
            _ => stream.read(connection, side, count % 5000),
        }
    }

    /// Ends what is open and reads until all has arrived.
    fn complete(&mut self) {
        for _ in 0..600 {
            for side in [0, 1] {
                for stream in &mut self.streams {
                    let connection = connection(&mut self.pair, side);
                    if sends(stream.id, side) && stream.is_open(side) {
                        stream.finish(connection, side);
                    }
                    if sends(stream.id, 1 - side) {
                        stream.read(connection, side, MOST);
                    }
                }
            }
            if self.streams.iter().all(Stream::is_complete) {
                break;
            }
            self.pair.run(Duration::from_millis(50));
        }
        for stream in &self.streams {
            assert!(stream.is_complete(), "{} {:?}", stream.id, stream.ends);
        }
        for side in [0, 1] {
            assert!(!connection(&mut self.pair, side).is_closing());
        }
    }
}

fn connection(pair: &mut Pair<Client<Log>, Server<Log>>, side: usize) -> &mut Connection {
    if side == 0 {
        &mut pair.client.connection
    } else {
        pair.server.connection(0).unwrap().0
    }
}

impl Stream {
    const fn is_open(&self, side: usize) -> bool {
        !self.ends[side].is_finished && !self.ends[side].is_reset
    }

    /// Whether the other side may not have said anything on it yet, or both are through with it.
    fn may_be_unknown(&self, side: usize) -> bool {
        self.id.initiator() != SIDES[side] || !self.is_open(side)
    }

    /// Whether each direction has ended at both sides.
    fn is_complete(&self) -> bool {
        [0, 1].into_iter().all(|side| {
            let (sender, receiver) = (self.ends[side], self.ends[1 - side]);
            let is_whole = receiver.has_ended && receiver.read == sender.written;
            !sends(self.id, side) || sender.is_reset || receiver.has_stopped || is_whole
        })
    }

    /// Writes bytes, which are copied or lent.
    fn send(&mut self, connection: &mut Connection, side: usize, count: usize, lends: bool) {
        let start = self.ends[side].written;
        let count = count.min(MOST - start);
        let data: Vec<u8> = (start..start + count).map(pattern).collect();
        let can = sends(self.id, side) && self.is_open(side);
        let mut lent = Bytes::from(data);
        let sent = if lends {
            connection.stream_send_bytes(self.id, &mut lent)
        } else {
            connection.stream_send(self.id, &lent)
        };
        match sent {
            Ok(taken) => {
                assert!(can && taken <= count);
                assert!(!lends || lent.len() == count - taken);
                self.ends[side].written += taken;
            }
            Err(error) => self.refused(error, side, can),
        }
    }

    fn finish(&mut self, connection: &mut Connection, side: usize) {
        let can = sends(self.id, side) && self.is_open(side);
        match connection.finish(self.id) {
            Ok(()) => {
                assert!(can);
                self.ends[side].is_finished = true;
            }
            Err(error) => self.refused(error, side, can),
        }
    }

    /// Sending is refused when it is over, was stopped, or when the stream isn't known here yet.
    fn refused(&self, error: StreamError, side: usize, can: bool) {
        let is_stopped = self.ends[1 - side].has_stopped;
        let is_unknown = self.id.initiator() != SIDES[side] && error == StreamError::UnknownStream;
        assert!(!can || is_stopped || is_unknown, "{error} {:?}", self.ends);
    }

    fn read(&mut self, connection: &mut Connection, side: usize, count: usize) {
        let mut buffer = vec![0; count];
        match connection.stream_read(self.id, &mut buffer) {
            Ok(read) => {
                self.take(side, &buffer[..read.length]);
                self.ended(side, read.fin);
            }
            Err(error) => self.unreadable(error, side),
        }
    }

    fn borrow(&mut self, connection: &mut Connection, side: usize, count: usize) {
        match connection.fill(self.id) {
            Ok(fill) => {
                let used = count.min(fill.data.len());
                let is_all = fill.fin && used == fill.data.len();
                let data = fill.data[..used].to_vec();
                // An end without bytes has been taken with the look at it.
                let taken = connection.consume(self.id, used);
                assert_eq!(taken.is_err(), data.is_empty() && is_all);
                self.take(side, &data);
                self.ended(side, is_all);
            }
            Err(error) => self.unreadable(error, side),
        }
    }

    fn take(&mut self, side: usize, data: &[u8]) {
        let start = self.ends[side].read;
        assert!(
            data.iter()
                .copied()
                .eq((start..start + data.len()).map(pattern))
        );
        self.ends[side].read += data.len();
        assert!(self.ends[side].read <= self.ends[1 - side].written);
    }

    fn ended(&mut self, side: usize, has_ended: bool) {
        if has_ended {
            assert!(self.ends[1 - side].is_finished, "it ends too early");
            assert_eq!(self.ends[side].read, self.ends[1 - side].written);
            self.ends[side].has_ended = true;
        }
    }

    /// Reading is refused when it is over, was stopped or reset, or when the stream isn't known here yet.
    fn unreadable(&self, error: StreamError, side: usize) {
        let own = self.ends[side];
        let is_over = own.has_ended || own.has_stopped || self.ends[1 - side].is_reset;
        let is_unknown = self.id.initiator() != SIDES[side] && error == StreamError::UnknownStream;
        let is_wrong_way = !sends(self.id, 1 - side);
        assert!(is_over || is_unknown || is_wrong_way, "{error} {own:?}");
    }
}
