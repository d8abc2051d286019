//! Datagrams that arrive together mean what they mean one by one, whatever they hold: packets in a row that are alike are
//! processed together, and nothing but time may tell.
//!
//! Two pairs are the same but for that. A script, drawn from a seed, sends both the same packets: rows of stream data, and
//! among them all that may end a row.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "test code"
)]

use std::fmt::Debug;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use quic_common::{Datagram, Ecn, Random};
use quic_transport::{Config, Connection, Event, StreamId};
use test_fixture::ends::{Client, Log, Server, Settings};
use test_fixture::network::Link;
use test_fixture::scripted::{Draft, Level, Parameters, ScriptedPeer, SeenFrame, frames};
use test_fixture::{CLIENT, Pair, SERVER};

/// An end that is tested, and the scripted peer.
trait Ends {
    fn new(settings: &Settings) -> Self;
    fn peer(&mut self) -> &mut ScriptedPeer;
    fn tested(&mut self) -> Option<(&mut Connection, &mut Vec<Event>)>;
    /// Addresses of the peer and of the tested end.
    fn addresses(&self) -> (SocketAddr, SocketAddr);
    fn give(&mut self, datagrams: Vec<Datagram<'_>>, together: bool);
    fn pass(&mut self, time: Duration);
}

/// The bits of stream numbers by which those of the peer are told apart, unidirectional ones first.
const STREAMS: [u64; 3] = [2, 6, 0];

impl Ends for Pair<Client<Log>, ScriptedPeer> {
    fn new(settings: &Settings) -> Self {
        let mut pair = Self::scripted_server(settings, Parameters::generous(), Link::default());
        pair.handshake();
        pair
    }

    fn peer(&mut self) -> &mut ScriptedPeer {
        &mut self.server
    }

    fn tested(&mut self) -> Option<(&mut Connection, &mut Vec<Event>)> {
        Some((
            &mut self.client.connection,
            &mut self.client.application.events,
        ))
    }

    fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.network.address(SERVER), self.network.address(CLIENT))
    }

    fn give(&mut self, datagrams: Vec<Datagram<'_>>, together: bool) {
        let (connection, now) = (&mut self.client.connection, self.network.now());
        if together {
            connection.process_multiple_input(datagrams, now);
        } else {
            for datagram in datagrams {
                connection.input(datagram, now);
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.run(time);
    }
}

impl Ends for Pair<ScriptedPeer, Server<Log>> {
    fn new(settings: &Settings) -> Self {
        let mut pair = Self::scripted_client(settings, Parameters::generous(), Link::default());
        pair.handshake();
        pair
    }

    fn peer(&mut self) -> &mut ScriptedPeer {
        &mut self.client
    }

    fn tested(&mut self) -> Option<(&mut Connection, &mut Vec<Event>)> {
        let (connection, log) = self.server.connection(0)?;
        Some((connection, &mut log.events))
    }

    fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.network.address(CLIENT), self.network.address(SERVER))
    }

    fn give(&mut self, datagrams: Vec<Datagram<'_>>, together: bool) {
        let (endpoint, now) = (&mut self.server.endpoint, self.network.now());
        if together {
            endpoint.process_multiple_input(datagrams, now);
        } else {
            for datagram in datagrams {
                endpoint.input(datagram, now);
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.run(time);
    }
}

/// A datagram that the script sends.
#[derive(Clone, Debug)]
struct Item {
    frames: Vec<u8>,
    ecn: Ecn,
    number_length: usize,
    size: usize,
    /// Packet numbers left out before it.
    skipped: u64,
    /// Bits of the first byte to turn over.
    flip: u8,
    special: Option<Special>,
    /// A bit to turn over once it is sealed.
    damage: Option<(usize, u8)>,
    /// Bytes of it that arrive.
    cut: Option<usize>,
}

/// What is special about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// The peer updates its keys before it.
    NewKeys,
    /// It is for another of the connection IDs.
    OtherCid,
    /// It is from another address.
    Elsewhere,
    /// It comes twice.
    Repeated,
}

/// Who draws the items.
struct Script {
    random: Random,
    /// What is added to a number of [`STREAMS`].
    initiator: u64,
    stream: usize,
    offsets: [u64; 3],
    /// How often something comes in between, and something that breaks a rule.
    odd: u64,
    wrong: u64,
    requests: u64,
    /// Frames that have been left out, or lost: sent again, so that the gap closes.
    missing: Vec<Vec<u8>>,
}

/// A STREAM frame, with its length or without.
fn stream(id: u64, offset: u64, data: &[u8], (fin, has_length): (bool, bool)) -> Vec<u8> {
    let has_offset = offset > 0;
    let kind = 8 | u64::from(has_offset) << 2 | u64::from(has_length) << 1 | u64::from(fin);
    let mut frame = frames::numbers(kind, &[id]);
    if has_offset {
        frame.extend(frames::varint(offset));
    }
    if has_length {
        frame.extend(frames::varint(data.len().try_into().unwrap()));
    }
    frame.extend(data);
    frame
}

impl Script {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    const fn id(&self) -> u64 {
        STREAMS[self.stream] + self.initiator
    }

    /// The next bytes of the stream.
    fn next_bytes(&mut self, most: u64, (fin, has_length): (bool, bool)) -> Vec<u8> {
        let length = 1 + self.below(most);
        let mut data = vec![0; usize::try_from(length).unwrap()];
        self.random.fill(&mut data);
        let offset = self.offsets[self.stream];
        self.offsets[self.stream] += length;
        stream(self.id(), offset, &data, (fin, has_length))
    }

    fn item(&mut self) -> Item {
        let has_length = self.below(4) == 0;
        let is_again = !self.missing.is_empty() && self.below(3) == 0;
        let frames = if is_again {
            self.missing.remove(0)
        } else {
            self.next_bytes(1100, (false, has_length))
        };
        let mut item = Item {
            frames,
            ecn: Ecn::NotEct,
            number_length: 4,
            size: 0,
            skipped: 0,
            flip: 0,
            special: None,
            damage: None,
            cut: None,
        };
        if self.below(self.odd) == 0 {
            self.make_odd(&mut item);
        }
        if item.damage.is_some() || item.cut.is_some() {
            self.missing.push(item.frames.clone());
        }
        if self.below(self.wrong) == 0 {
            self.make_wrong(&mut item);
        }
        item
    }

    /// Something in between that breaks no rule.
    fn make_odd(&mut self, item: &mut Item) {
        let (id, offset) = (self.id(), self.offsets[self.stream]);
        let back = self.below(offset.min(2000));
        match self.below(25) {
            0 => {
                let later = self.next_bytes(300, (false, true));
                self.missing
                    .push(std::mem::replace(&mut item.frames, later));
            }
            1 => self.offsets[self.stream] -= back,
            2 => {
                self.missing.push(item.frames.clone());
                item.frames = stream(id, offset - back, &[], (false, true));
            }
            3 => item.frames.splice(0..0, frames::ping()).for_each(drop),
            4 => {
                self.missing.push(item.frames.clone());
                item.frames = [self.next_bytes(300, (false, true)), frames::ping()].concat();
            }
            5 => {
                self.missing.push(item.frames.clone());
                item.frames = self.next_bytes(300, (false, true));
                item.frames.extend(self.next_bytes(300, (false, false)));
            }
            6 => {
                let later = std::mem::replace(&mut item.frames, frames::ping());
                self.missing.push(later);
            }
            7 => {
                let later = std::mem::replace(&mut item.frames, frames::max_data(1 << 31));
                self.missing.push(later);
            }
            8 => item.damage = Some((self.below(30).try_into().unwrap(), self.random_bit())),
            9 => item.damage = Some((self.below(1200).try_into().unwrap(), self.random_bit())),
            10 => item.skipped = self.below(5),
            11 => item.skipped = self.below(200),
            12 => {
                let mark = usize::try_from(self.below(3)).unwrap();
                item.ecn = [Ecn::Ect0, Ecn::Ect1, Ecn::Ce][mark];
            }
            13 => item.special = Some(Special::Elsewhere),
            14 => item.cut = Some(self.below(60).try_into().unwrap()),
            15 => self.stream = usize::try_from(self.below(3)).unwrap(),
            16 => {
                self.missing.push(item.frames.clone());
                item.frames = self.next_bytes(3500, (false, false));
            }
            17 => item.number_length = usize::try_from(2 + self.below(2)).unwrap(),
            18 | 19 => {
                self.missing.push(item.frames.clone());
                let (threshold, reordering) = (self.below(9), self.below(6));
                self.requests += 1;
                item.frames = frames::ack_frequency(self.requests, threshold, 20_000, reordering);
            }
            20 => item.flip = 0x40,
            21 => item.special = Some(Special::OtherCid),
            22 => item.size = 1200,
            23 => item.flip = 0x20,
            _ => item.special = Some(Special::Repeated),
        }
    }

    /// Something that ends the connection, or a stream.
    fn make_wrong(&mut self, item: &mut Item) {
        let (id, offset) = (self.id(), self.offsets[self.stream]);
        match self.below(11) {
            0 => item.frames = self.next_bytes(1000, (true, false)),
            1 => item.flip = 0x08,
            2 => item.special = Some(Special::NewKeys),
            3 => item.frames = stream(id, offset + (1 << 40), b"far", (false, false)),
            4 => item.frames.truncate(3),
            5 => item.frames = frames::reset_stream(id, 7, offset + self.below(100)),
            6 => item.frames = stream(id + 400_000, 0, b"beyond the limit", (false, true)),
            7 => item.frames = frames::connection_close(0, 0, b"over"),
            8 => item
                .frames
                .splice(0..0, frames::handshake_done())
                .for_each(drop),
            9 => item.frames = vec![0x40, 0x3f],
            _ => item.frames = stream(id, offset.saturating_sub(90), b"end", (true, true)),
        }
    }

    /// Not the highest: what a long header would say is encrypted here, and differs between the pairs.
    fn random_bit(&mut self) -> u8 {
        1 << self.below(7)
    }
}

/// Sends what the script says; returns the datagrams as they arrive.
fn seal(
    peer: &mut ScriptedPeer,
    issued: Option<&[u8]>,
    items: &[Item],
) -> Vec<(Vec<u8>, Ecn, bool)> {
    let mut datagrams = Vec::new();
    for item in items {
        if item.special == Some(Special::NewKeys) {
            peer.update_keys();
        }
        let number = peer.next_number(Level::OneRtt) + item.skipped;
        let mut draft = Draft::new(Level::OneRtt, &item.frames);
        draft.number = Some(number);
        draft.number_length = item.number_length;
        draft.flip = item.flip;
        draft.size = item.size.max(40);
        draft.destination = issued.filter(|_| item.special == Some(Special::OtherCid));
        let mut bytes = peer.seal(&draft);
        if let Some((place, bit)) = item.damage {
            let place = place % bytes.len();
            bytes[place] ^= bit;
        }
        bytes.truncate(item.cut.unwrap_or(bytes.len()));
        for _ in 0..=usize::from(item.special == Some(Special::Repeated)) {
            datagrams.push((
                bytes.clone(),
                item.ecn,
                item.special == Some(Special::Elsewhere),
            ));
        }
    }
    datagrams
}

/// All that can be known of the tested end from without.
fn state<E: Ends>(ends: &mut E, initiator: u64, reads: bool) -> impl Debug + PartialEq + use<E> {
    let is_busy = ends.peer().packets().len();
    let sent: Vec<_> = ends
        .peer()
        .packets()
        .iter()
        .map(|packet| {
            (
                packet.level,
                packet.first,
                packet.number,
                packet.frames.clone(),
            )
        })
        .collect();
    ends.peer().forget();
    let tested = ends.tested().map(|(connection, events)| {
        let mut streams = Vec::new();
        for stream in STREAMS {
            let id = StreamId::try_from(stream + initiator).unwrap();
            let mut buffer = vec![0; if reads { 100_000 } else { 0 }];
            let read = connection.stream_read(id, &mut buffer);
            let length = read.map_or(0, |read| read.length);
            buffer.truncate(length);
            streams.push((format!("{read:?}"), buffer, connection.stream_stats(id)));
        }
        let life = (connection.is_closing(), connection.is_closed());
        let events = format!("{:?}", std::mem::take(events));
        (
            streams,
            life,
            connection.stats(),
            connection.key_updates(),
            events,
        )
    });
    (is_busy, sent, tested)
}

fn are_the_same<E: Ends>(seeds: std::ops::Range<u8>, initiator: u64) {
    for seed in seeds {
        let run = || run::<E>(seed, initiator);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            println!("seed {seed}");
            resume_unwind(panic);
        }
    }
}

fn run<E: Ends>(seed: u8, initiator: u64) {
    let mut settings = Settings {
        seed,
        ..Settings::default()
    };
    let window = if seed.is_multiple_of(4) {
        30_000
    } else {
        1 << 20
    };
    for config in [&mut settings.client, &mut settings.server] {
        *config = Config {
            stream_window: window,
            connection_window: window + window / 2,
            cid_length: [8, 8, 0, 20, 5][usize::from(seed % 5)],
            ack_frequency: !seed.is_multiple_of(3),
            grease: !seed.is_multiple_of(2),
            ..config.clone()
        };
    }
    let mut both = [E::new(&settings), E::new(&settings)];
    let issued = both[0].peer().frames(Level::OneRtt).find_map(|frame| {
        let SeenFrame::NewConnectionId { cid, .. } = frame else {
            return None;
        };
        Some(cid.clone())
    });
    for ends in &mut both {
        ends.peer().forget();
    }
    let mut script = Script {
        random: Random::from_seed([seed; 32]),
        initiator,
        stream: 0,
        offsets: [0; 3],
        odd: [3, 8, 30][usize::from(seed % 3)],
        wrong: [50, 400, 100_000][usize::from(seed / 3 % 3)],
        requests: 0,
        missing: Vec::new(),
    };
    for step in 0..60 {
        let count = 1 + script.below(40);
        let items: Vec<_> = (0..count).map(|_| script.item()).collect();
        let swapped = (script.below(5) == 0).then(|| script.below(count));
        let time =
            Duration::from_millis([0, 1, 30, 1500][usize::try_from(script.below(4)).unwrap()]);
        let reads = script.below(3) > 0;
        let states = [0, 1].map(|place| {
            let ends = &mut both[place];
            let mut sealed = seal(ends.peer(), issued.as_deref(), &items);
            if let Some(place) = swapped.map(|place| usize::try_from(place).unwrap())
                && place > 0
            {
                sealed.swap(place - 1, place);
            }
            let (remote, local) = ends.addresses();
            let elsewhere = SocketAddr::new(remote.ip(), remote.port() + 1);
            let datagrams = sealed
                .iter_mut()
                .map(|(payload, ecn, is_elsewhere)| Datagram {
                    remote: if *is_elsewhere { elsewhere } else { remote },
                    local: Some(local),
                    ecn: *ecn,
                    payload,
                });
            ends.give(datagrams.collect(), place == 0);
            let before = state(ends, initiator, reads);
            ends.pass(time);
            (before, state(ends, initiator, false))
        });
        let [together, one_by_one] = states;
        assert_eq!(together, one_by_one, "step {step}");
    }
}

#[test]
fn a_client_does_not_tell_datagrams_that_come_together_from_others() {
    are_the_same::<Pair<Client<Log>, ScriptedPeer>>(0..120, 1);
}

#[test]
fn a_server_does_not_tell_datagrams_that_come_together_from_others() {
    are_the_same::<Pair<ScriptedPeer, Server<Log>>>(120..240, 0);
}
