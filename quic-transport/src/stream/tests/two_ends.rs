//! Two ends with a network between them that loses and reorders: everything arrives, once and in order, and both ends
//! agree on all credit at the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use quic_common::Random;

use super::{
    BIDI, Packet, PeerLimits, Side, StreamEvent, StreamId, Streams, UNI, acked, deliver, epoch,
    lost, settings, write,
};
use crate::buffer::to_offset;
use crate::error::StreamError;
use crate::stream::Priority;

const LIMITS: PeerLimits = PeerLimits {
    data: 30_000,
    stream_local: 9000,
    stream_remote: 9000,
    stream_unidirectional: 9000,
    bidirectional: 8,
    unidirectional: 8,
};

/// What an application knows of the streams that it sends on or reads.
struct End {
    streams: Streams,
    sending: BTreeMap<StreamId, Sending>,
    reading: BTreeMap<StreamId, Reading>,
    flying: Vec<Packet>,
}

struct Sending {
    rest: u64,
    offset: u64,
}

#[derive(Default)]
struct Reading {
    offset: u64,
    over: Option<bool>,
}

/// The byte of a stream at an offset: what is read can be checked without what was sent.
fn byte(id: StreamId, offset: u64) -> u8 {
    (id.value().wrapping_mul(31) ^ offset ^ (offset >> 8)).to_le_bytes()[0]
}

impl End {
    fn new(side: Side) -> Self {
        let mut streams = Streams::new(side, settings(8, 9000, 30_000));
        streams.set_peer_limits(LIMITS);
        Self {
            streams,
            sending: BTreeMap::new(),
            reading: BTreeMap::new(),
            flying: Vec::new(),
        }
    }

    fn open(&mut self, random: &mut Random) {
        let direction = if random.below(2) == 0 { BIDI } else { UNI };
        if let Some(id) = self.streams.open(direction) {
            let incremental = random.below(2) == 0;
            let urgency = u8::try_from(random.below(8)).unwrap();
            let priority = Priority::new(urgency, incremental);
            self.streams.set_priority(id, priority).unwrap();
            self.start(id, random);
            if direction == BIDI {
                self.reading.insert(id, Reading::default());
            }
        }
    }

    fn start(&mut self, id: StreamId, random: &mut Random) {
        let rest = match random.below(3) {
            0 => random.below(3),
            1 => random.below(2000),
            _ => random.below(60_000),
        };
        self.sending.insert(id, Sending { rest, offset: 0 });
    }

    /// What an application does with its events, and now and then on its own.
    fn act(&mut self, random: &mut Random) {
        while let Some(event) = self.streams.next_event() {
            if let StreamEvent::Opened(id) = event {
                self.reading.insert(id, Reading::default());
                if id.direction() == BIDI {
                    self.start(id, random);
                }
            } else if let StreamEvent::Stopped { id, .. } = event {
                self.sending.remove(&id);
            } else if let StreamEvent::Reset { id, .. } = event {
                self.reading.get_mut(&id).unwrap().over = Some(false);
            }
        }
        let ids: Vec<_> = self.sending.keys().copied().collect();
        for id in ids {
            self.send(id, random);
        }
        let ids: Vec<_> = self
            .reading
            .iter()
            .filter(|(_, reading)| reading.over.is_none())
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.read(id, random);
        }
    }

    fn send(&mut self, id: StreamId, random: &mut Random) {
        if random.below(400) == 0 {
            self.streams.reset(id, 1).unwrap();
            self.sending.remove(&id);
            return;
        }
        let sending = self.sending.get_mut(&id).unwrap();
        let length = sending.rest.min(random.below(5000));
        let data: Vec<u8> = (sending.offset..sending.offset + length)
            .map(|offset| byte(id, offset))
            .collect();
        let taken = to_offset(self.streams.send(id, &data).unwrap());
        sending.offset += taken;
        sending.rest -= taken;
        if sending.rest == 0 {
            self.streams.finish(id).unwrap();
            self.sending.remove(&id);
        }
    }

    fn read(&mut self, id: StreamId, random: &mut Random) {
        let reading = self.reading.get_mut(&id).unwrap();
        if random.below(400) == 0 {
            if self.streams.stop(id, 2).is_ok() {
                reading.over = Some(false);
            }
            return;
        }
        if random.below(2) == 0 {
            match self.streams.fill(id) {
                Ok(fill) => {
                    let length = fill.data.len();
                    for got in fill.data {
                        assert_eq!(*got, byte(id, reading.offset));
                        reading.offset += 1;
                    }
                    if fill.fin {
                        reading.over = Some(true);
                    }
                    if length > 0 {
                        self.streams.consume(id, length).unwrap();
                    }
                }
                Err(error) => assert_eq!(error, StreamError::Reset { code: 1 }),
            }
            return;
        }
        let mut buffer = vec![0; usize::try_from(1 + random.below(4000)).unwrap()];
        match self.streams.read(id, &mut buffer) {
            Ok(read) => {
                for got in &buffer[..read.length] {
                    assert_eq!(*got, byte(id, reading.offset));
                    reading.offset += 1;
                }
                if read.fin {
                    reading.over = Some(true);
                }
            }
            Err(error) => {
                assert!(matches!(error, StreamError::Reset { .. }), "{error:?}");
                reading.over = Some(false);
            }
        }
    }
}

fn exchange(from: &mut End, to: &mut End, random: &mut Random, now: Instant) {
    from.streams.settle(now, Duration::from_millis(1), true);
    while from.streams.has_pending_frames() && from.flying.len() < 20 {
        let size = usize::try_from(60 + random.below(1200)).unwrap();
        let packet = write(&mut from.streams, size);
        if packet.payload.is_empty() {
            // What waits is larger than this packet.
            break;
        }
        from.flying.push(packet);
    }
    for _ in 0..random.below(12) {
        if from.flying.is_empty() {
            break;
        }
        let count = to_offset(from.flying.len());
        let index = usize::try_from(random.below(count.min(4))).unwrap();
        let packet = from.flying.remove(index);
        match random.below(10) {
            0 => lost(&mut from.streams, &packet),
            1 => {
                // Late rather than lost, and acknowledged after it was sent again.
                lost(&mut from.streams, &packet);
                deliver(&mut to.streams, &packet.payload).unwrap();
                acked(&mut from.streams, &packet);
            }
            _ => {
                deliver(&mut to.streams, &packet.payload).unwrap();
                acked(&mut from.streams, &packet);
            }
        }
    }
}

#[test]
fn everything_arrives_once_and_in_order() {
    for seed in 0..30 {
        let mut random = Random::from_seed([seed; 32]);
        let (mut client, mut server) = (End::new(Side::Client), End::new(Side::Server));
        let mut now = epoch();
        let mut quiet = 0;
        for round in 0..20_000 {
            now += Duration::from_micros(300);
            if round < 400 {
                client.open(&mut random);
                server.open(&mut random);
            }
            client.act(&mut random);
            server.act(&mut random);
            exchange(&mut client, &mut server, &mut random, now);
            exchange(&mut server, &mut client, &mut random, now);
            let idle = [&client, &server].iter().all(|end| {
                end.flying.is_empty()
                    && !end.streams.has_pending_frames()
                    && end.sending.is_empty()
                    && end.streams.count() == 0
            });
            quiet = if idle && round > 400 { quiet + 1 } else { 0 };
            if quiet > 5 {
                break;
            }
        }
        assert!(quiet > 5, "seed {seed}: it came to an end");
        for (from, to) in [(&client, &server), (&server, &client)] {
            assert_eq!(from.streams.held(), 0, "seed {seed}");
            assert_eq!(from.streams.in_flight, 0, "seed {seed}");
            assert!(from.streams.scheduled.is_empty() && from.streams.owing.is_empty());
            let read = to.reading.values().filter(|r| r.over == Some(true)).count();
            assert!(
                read > 10,
                "seed {seed}: {read} streams were read to the end"
            );
            assert!(to.reading.values().all(|r| r.over.is_some()), "seed {seed}");
            let window = &to.streams.window;
            assert!(window.limit() >= to.streams.received);
            assert_eq!(
                window.used(),
                to.streams.received,
                "seed {seed}: all credit has been given back"
            );
        }
    }
}
